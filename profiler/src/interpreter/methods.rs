//! Names of interpreted methods, read from the JVM's memory.

use std::io;

use super::Layout;
use super::lines::{line_of, table_length};
use super::unloads::Unloads;
use crate::memory::{Memory, Pages};
use ahash::HashMap;

/// Maximum number of cached methods before unused ones are evicted.
const REMEMBERED: usize = 4096;
/// While no class is unloaded, a method is read again only after this time, ns, because redefinition by agents can move
/// it. Reading a method takes up to seven system calls.
const AGAIN_NS: u64 = 10_000_000_000;
/// Samples wait less than this between naming and resolving, ns.
const NEEDED_NS: u64 = 15_000_000_000;

/// An interpreted method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterpretedMethod {
    /// Its names.
    pub names: Names,
    place: Place,
    line_table: Vec<u8>,
    excess: u8,
}

/// The names of a method.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Names {
    /// Binary class name with dots.
    pub class: String,
    /// Method name.
    pub name: String,
    /// JVM signature.
    pub signature: String,
    /// Source file.
    pub file: String,
}

/// Address and number of its bytecodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    code: u64,
    size: u16,
    has_lines: bool,
}

impl InterpretedMethod {
    /// Whether a frame of this method can have this saved bytecode pointer: frames of native methods have none.
    pub fn can_save(&self, bcp: u64) -> bool {
        bcp == 0 || self.bci(bcp).is_some()
    }

    /// The bytecode index of a bytecode pointer, if it points into this method.
    pub fn bci(&self, bcp: u64) -> Option<u16> {
        let bci = bcp.checked_sub(self.place.code)?;
        (bci < u64::from(self.place.size)).then_some(bci as u16)
    }

    /// The line of a bytecode; 0 if unknown.
    pub fn line(&self, bci: u16) -> u32 {
        line_of(&self.line_table, u32::from(bci), self.excess)
    }
}

/// Reads methods of one JVM.
///
/// The JVM reuses the memory of unloaded classes, so an address can later stand for another method. Each method gets a
/// unique number.
///
/// An address is read again every ten seconds, and at once after the JVM has unloaded a class. If it has unloaded one since
/// the last [`Methods::begin`], an address only has a method if it had the same one before: another one may have been
/// loaded after the samples were taken.
///
/// A JVM with `-XX:-UsePerfData` does not count unloaded classes. Then every [`Methods::begin`] reads again, and an
/// address only lacks a method if it had another one before. A method that was never read before its class was unloaded
/// and replaced can get the name of the other one.
#[derive(Debug)]
pub struct Methods {
    memory: Pages,
    layout: Layout,
    unloads: Unloads,
    /// Number of unloaded classes at the last `begin`, if the JVM counts them.
    unloaded: Option<u64>,
    /// Whether classes may have been unloaded since the previous `begin`.
    is_ambiguous: bool,
    /// The method at each address since `begin`.
    current: HashMap<u64, Option<u32>>,
    /// The method at each address when it was last read.
    before: HashMap<u64, Reading>,
    numbers: HashMap<(Names, Place), u32>,
    /// Methods by number, with the time of their last use.
    methods: HashMap<u32, (InterpretedMethod, u64)>,
    next: u32,
    now: u64,
}

/// The method at an address, with the time of reading.
#[derive(Debug, Clone, Copy)]
struct Reading {
    number: u32,
    read: u64,
    /// Number of unloaded classes at that time, if its class was certainly not among them.
    unloaded: Option<u64>,
}

impl Methods {
    /// Reads methods from a JVM's memory, if its layout is known.
    pub(crate) fn new(memory: Memory, layout: Layout) -> io::Result<Self> {
        if !layout.is_known() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "unknown JVM layout",
            ));
        }
        let mut unloads = Unloads::new(memory.try_clone()?, layout.counters);
        Ok(Self {
            unloaded: unloads.count(0),
            unloads,
            is_ambiguous: true,
            memory: Pages::new(memory),
            layout,
            current: HashMap::default(),
            before: HashMap::default(),
            numbers: HashMap::default(),
            methods: HashMap::default(),
            next: 0,
            now: 0,
        })
    }

    /// From now on, addresses refer to the current content.
    pub fn begin(&mut self, now: u64) {
        self.current.clear();
        self.memory.forget();
        self.now = now;
        let unloaded = self.unloads.count(now);
        self.is_ambiguous = unloaded.is_none() || unloaded != self.unloaded;
        self.unloaded = unloaded;
        if self.methods.len() >= REMEMBERED {
            self.methods.retain(|_, (_, met)| *met + NEEDED_NS > now);
            let methods = &self.methods;
            self.numbers
                .retain(|_, number| methods.contains_key(number));
            self.before
                .retain(|_, reading| methods.contains_key(&reading.number));
        }
    }

    /// The number of the method at a `Method*`; `None` if there is no method, or possibly another one than when the
    /// samples were taken.
    pub fn number(&mut self, method: u64) -> Option<u32> {
        if let Some(known) = self.current.get(&method) {
            return *known;
        }
        let number = self.settled(method).or_else(|| self.read(method));
        self.current.insert(method, number);
        number
    }

    /// Whether an address has, or had, a method.
    pub fn is_method(&self, address: u64) -> bool {
        self.before.contains_key(&address)
    }

    /// The number of a method that need not be read again.
    fn settled(&mut self, method: u64) -> Option<u32> {
        let reading = self.before.get(&method)?;
        let is_settled = self.unloaded.is_some()
            && self.unloaded == reading.unloaded
            && self.now.saturating_sub(reading.read) < AGAIN_NS;
        if !is_settled {
            return None;
        }
        self.methods.get_mut(&reading.number)?.1 = self.now;
        Some(reading.number)
    }

    /// The method with a number.
    pub fn get(&self, number: u32) -> Option<&InterpretedMethod> {
        self.methods.get(&number).map(|(method, _)| method)
    }

    fn read(&mut self, method: u64) -> Option<u32> {
        let number = self.numbered(method)?;
        let reading = Reading {
            number,
            read: self.now,
            // An unloaded method may still be readable.
            unloaded: self.unloaded.filter(|_| !self.is_ambiguous),
        };
        let before = self.before.insert(method, reading);
        let is_counted = self.unloaded.is_some();
        let is_other = before.map_or(is_counted, |before| before.number != number);
        let after_samples = self.is_ambiguous && is_other;
        let while_read = is_counted && self.unloads.count(self.now) != self.unloaded;
        // Its class may have been loaded in that time.
        (!after_samples && !while_read).then_some(number)
    }

    fn numbered(&mut self, method: u64) -> Option<u32> {
        let (names, place) = self.describe(method)?;
        if let Some(number) = self.numbers.get(&(names.clone(), place)) {
            self.methods.get_mut(number)?.1 = self.now;
            return Some(*number);
        }
        let line_table = self.line_table(place);
        let number = self.next;
        self.next = (self.next + 1) & NUMBER_BITS;
        self.numbers.insert((names.clone(), place), number);
        let method = InterpretedMethod {
            names,
            place,
            line_table,
            excess: self.layout.number_excess,
        };
        self.methods.insert(number, (method, self.now));
        Some(number)
    }

    fn describe(&mut self, method: u64) -> Option<(Names, Place)> {
        let l = self.layout;
        let constant = self
            .memory
            .word(field_address(method, l.method_const_method)?)?;
        let pool = self
            .memory
            .word(field_address(constant, l.const_method_constants)?)?;
        let holder = self
            .memory
            .word(field_address(pool, l.constant_pool_holder)?)?;
        let source = if l.constant_pool_source_file > 0 {
            self.half(pool, l.constant_pool_source_file)?
        } else {
            self.half(holder, l.klass_source_file)?
        };
        let class = self.memory.word(field_address(holder, l.klass_name)?)?;
        let class = self.symbol(class)?;
        let name = self.half(constant, l.const_method_name_index)?;
        let signature = self.half(constant, l.const_method_signature_index)?;
        let names = Names {
            class: binary_name(&class),
            name: self.entry(pool, name)?,
            signature: self.entry(pool, signature)?,
            file: if source == 0 {
                String::new()
            } else {
                self.entry(pool, source).unwrap_or_default()
            },
        };
        let place = Place {
            code: field_address(constant, l.const_method_size)?,
            size: self.half(constant, l.const_method_code_size)?,
            has_lines: self.half(constant, l.const_method_flags)? & 1 != 0,
        };
        Some((names, place))
    }

    fn half(&mut self, from: u64, offset: u64) -> Option<u16> {
        self.memory.half(field_address(from, offset)?)
    }

    /// The symbol at an index of a constant pool.
    fn entry(&mut self, pool: u64, index: u16) -> Option<String> {
        let offset = self.layout.constant_pool_size + 8 * u64::from(index);
        let symbol = self.memory.word(field_address(pool, offset)?)?;
        self.symbol(symbol)
    }

    /// The line table, which is after the bytecodes.
    fn line_table(&mut self, place: Place) -> Vec<u8> {
        let mut table = vec![0; if place.has_lines { 8192 } else { 0 }];
        let read = field_address(place.code, u64::from(place.size))
            // Fewer bytes are fine at the end of the mapping.
            .map_or(0, |from| self.memory.read(&mut table, from));
        table.truncate(read);
        table.truncate(table_length(&table, self.layout.number_excess));
        table.shrink_to_fit();
        table
    }

    fn symbol(&mut self, symbol: u64) -> Option<String> {
        let length = self
            .memory
            .half(field_address(symbol, self.layout.symbol_length)?)?;
        if length == 0 {
            return None;
        }
        let mut bytes = vec![0; usize::from(length).min(1024)];
        let read = self
            .memory
            .read(&mut bytes, field_address(symbol, self.layout.symbol_body)?);
        bytes.truncate(read);
        String::from_utf8(bytes).ok()
    }
}

/// Numbers have 30 bits, to fit into a word of a chain.
const NUMBER_BITS: u32 = (1 << 30) - 1;

/// Adds an offset to an address, which may be any value.
fn field_address(from: u64, offset: u64) -> Option<u64> {
    from.checked_add(offset)
}

/// The class name as JVMTI returns it for compiled code: with dots, also before the suffix of a hidden class.
fn binary_name(symbol: &str) -> String {
    let mut name = symbol.replace('/', ".");
    if let Some(plus) = name.rfind("+0x") {
        name.replace_range(plus..=plus, ".");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::super::unloads::tests::Counters;
    use super::*;

    /// One word for each field, except for words with several.
    const LAYOUT: Layout = Layout {
        method_const_method: 8,
        const_method_constants: 8,
        const_method_code_size: 16,
        const_method_flags: 18,
        const_method_name_index: 20,
        const_method_signature_index: 22,
        const_method_size: 24,
        constant_pool_holder: 8,
        constant_pool_source_file: 16,
        constant_pool_size: 24,
        klass_source_file: 0,
        klass_name: 16,
        symbol_length: 0,
        symbol_body: 2,
        counters: 0,
        number_excess: 0,
    };

    /// Metadata of a class with one method, at a fixed address in this process.
    struct Metadata {
        words: Box<[u64; 64]>,
        symbols: Vec<Vec<u8>>,
    }

    impl Metadata {
        const METHOD: usize = 0;
        const CONSTANT: usize = 4;
        const POOL: usize = 16;
        const KLASS: usize = 32;

        fn new(class: &str) -> Self {
            let mut metadata = Self {
                words: Box::new([0; 64]),
                symbols: Vec::new(),
            };
            metadata.load(class);
            metadata
        }

        fn address(&self, word: usize) -> u64 {
            (&raw const self.words[word]) as u64
        }

        fn symbol(&mut self, text: &str) -> u64 {
            let mut symbol = (text.len() as u16).to_ne_bytes().to_vec();
            symbol.extend(text.as_bytes());
            let address = symbol.as_ptr() as u64;
            self.symbols.push(symbol);
            address
        }

        /// Replaces the class by another one.
        fn load(&mut self, class: &str) {
            self.words[Self::METHOD + 1] = self.address(Self::CONSTANT);
            self.words[Self::CONSTANT + 1] = self.address(Self::POOL);
            // Five bytes of code, no line table, names at 1 and 2.
            self.words[Self::CONSTANT + 2] = 5 | 1 << 32 | 2 << 48;
            self.words[Self::POOL + 1] = self.address(Self::KLASS);
            self.words[Self::POOL + 4] = self.symbol("run");
            self.words[Self::POOL + 5] = self.symbol("()V");
            self.words[Self::KLASS + 2] = self.symbol(class);
        }

        fn class(&self, methods: &mut Methods, now: u64) -> Option<String> {
            methods.begin(now);
            let number = methods.number(self.address(Self::METHOD))?;
            Some(methods.get(number)?.names.class.clone())
        }
    }

    /// Methods of this process; `counters` 0 disables the count of unloaded classes.
    fn methods(counters: u64) -> Methods {
        let memory = Memory::open(std::process::id()).expect("this process");
        Methods::new(memory, Layout { counters, ..LAYOUT }).expect("a layout")
    }

    #[test]
    fn a_batch_with_an_unload_gives_a_changed_address_no_name() {
        let (mut counters, mut metadata) = (Counters::new(), Metadata::new("a/First"));
        let mut methods = methods(counters.start());
        assert_eq!(metadata.class(&mut methods, 1).as_deref(), Some("a.First"));
        counters.unload();
        metadata.load("a/Other");
        assert_eq!(metadata.class(&mut methods, 2), None);
        assert_eq!(metadata.class(&mut methods, 3).as_deref(), Some("a.Other"));
        counters.unload();
        methods.begin(4);
        metadata.load("a/Third");
        assert_eq!(metadata.class(&mut methods, 5).as_deref(), Some("a.Third"));
    }

    #[test]
    fn a_batch_with_an_unload_gives_a_new_address_no_name() {
        let (mut counters, metadata) = (Counters::new(), Metadata::new("a/First"));
        let mut methods = methods(counters.start());
        counters.unload();
        assert_eq!(metadata.class(&mut methods, 1), None);
        assert_eq!(metadata.class(&mut methods, 2).as_deref(), Some("a.First"));
    }

    #[test]
    fn a_method_that_was_unloaded_and_is_still_there_is_read_again() {
        let (mut counters, mut metadata) = (Counters::new(), Metadata::new("a/First"));
        let mut methods = methods(counters.start());
        assert_eq!(metadata.class(&mut methods, 1).as_deref(), Some("a.First"));
        counters.unload();
        assert_eq!(metadata.class(&mut methods, 2).as_deref(), Some("a.First"));
        metadata.load("a/Other");
        assert_eq!(metadata.class(&mut methods, 3).as_deref(), Some("a.Other"));
    }

    #[test]
    fn a_method_is_read_every_ten_seconds_while_no_class_is_unloaded() {
        let (counters, mut metadata) = (Counters::new(), Metadata::new("a/First"));
        let mut methods = methods(counters.start());
        assert_eq!(metadata.class(&mut methods, 1).as_deref(), Some("a.First"));
        metadata.load("a/Redefined");
        let soon = metadata.class(&mut methods, AGAIN_NS);
        assert_eq!(soon.as_deref(), Some("a.First"));
        let later = metadata.class(&mut methods, AGAIN_NS + 1);
        assert_eq!(later.as_deref(), Some("a.Redefined"));
    }

    #[test]
    fn without_counters_a_changed_address_has_a_name_from_the_next_batch_on() {
        let (mut methods, mut metadata) = (methods(0), Metadata::new("a/First"));
        assert_eq!(metadata.class(&mut methods, 1).as_deref(), Some("a.First"));
        assert_eq!(metadata.class(&mut methods, 2).as_deref(), Some("a.First"));
        metadata.load("a/Other");
        assert_eq!(metadata.class(&mut methods, 3), None);
        assert!(methods.is_method(metadata.address(Metadata::METHOD)));
        assert_eq!(metadata.class(&mut methods, 4).as_deref(), Some("a.Other"));
    }

    #[test]
    fn a_caller_saves_a_pointer_into_its_own_code() {
        let (mut methods, metadata) = (methods(0), Metadata::new("a/First"));
        metadata.class(&mut methods, 1).expect("a class");
        let method = methods.get(0).expect("a method");
        let code = metadata.address(Metadata::CONSTANT) + LAYOUT.const_method_size;
        assert!(method.can_save(code + 4) && method.can_save(0));
        assert!(!method.can_save(code + 5) && !method.can_save(code - 1));
    }

    #[test]
    fn names_are_those_of_compiled_code() {
        assert_eq!(binary_name("java/util/Map$Entry"), "java.util.Map$Entry");
        assert_eq!(binary_name("a/Hot$$Lambda+0x00ab"), "a.Hot$$Lambda.0x00ab");
    }
}
