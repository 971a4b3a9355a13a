//! Names of interpreted methods, read from the JVM's memory.

use std::collections::HashMap;
use std::io;

use super::Layout;
use super::lines::{line_of, table_length};
use crate::memory::{Memory, Pages};

/// Methods remembered before those that nobody needs any more are dropped.
const REMEMBERED: usize = 4096;
/// A method that has been there for so long is of a class that stays; it is read again at such intervals only.
const SETTLED_NS: u64 = 10_000_000_000;
const AGAIN_NS: u64 = 1_000_000_000;
/// Samples wait for less than this between being named and being resolved.
const NEEDED_NS: u64 = 15_000_000_000;

/// A method that was interpreted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterpretedMethod {
    /// Its names.
    pub names: Names,
    place: Place,
    line_table: Vec<u8>,
    excess: u8,
}

/// What a method is called.
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

/// Where its bytecodes are, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    code: u64,
    size: u16,
    has_lines: bool,
}

impl InterpretedMethod {
    /// The bytecode index of a bytecode pointer, if it points into this method.
    pub fn bci(&self, bcp: u64) -> Option<u16> {
        let bci = bcp.checked_sub(self.place.code)?;
        (bci < u64::from(self.place.size)).then_some(bci as u16)
    }

    /// The line of a bytecode, 0 where unknown.
    pub fn line(&self, bci: u16) -> u32 {
        line_of(&self.line_table, u32::from(bci), self.excess)
    }
}

/// Reads methods of one JVM.
///
/// Metadata of unloaded classes is reused, so an address says nothing later. A method is read anew at
/// each [`Methods::begin`], soon after the samples were taken, and gets a number that is its own forever. Those of
/// classes that stay, which are most, are read once a second.
#[derive(Debug)]
pub struct Methods {
    memory: Pages,
    layout: Layout,
    /// What stood at each address since `begin`.
    current: HashMap<u64, Option<u32>>,
    /// What stood there at earlier ones.
    before: HashMap<u64, Standing>,
    numbers: HashMap<(Names, Place), u32>,
    /// Methods by number, and when they were last met.
    methods: HashMap<u32, (InterpretedMethod, u64)>,
    next: u32,
    now: u64,
}

/// How long a method has been at an address.
#[derive(Debug, Clone, Copy)]
struct Standing {
    number: u32,
    since: u64,
    read: u64,
}

impl Standing {
    fn is_settled(&self, now: u64) -> bool {
        self.read - self.since >= SETTLED_NS && now.saturating_sub(self.read) < AGAIN_NS
    }
}

impl Methods {
    /// Methods in a JVM's memory, if its layout is known.
    pub(crate) fn new(memory: Memory, layout: Layout) -> io::Result<Self> {
        if !layout.is_known() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "unknown JVM layout",
            ));
        }
        Ok(Self {
            memory: Pages::of(memory),
            layout,
            current: HashMap::new(),
            before: HashMap::new(),
            numbers: HashMap::new(),
            methods: HashMap::new(),
            next: 0,
            now: 0,
        })
    }

    /// From here on, addresses mean what is there now.
    pub fn begin(&mut self, now: u64) {
        self.current.clear();
        self.memory.forget();
        self.now = now;
        if self.methods.len() >= REMEMBERED {
            self.methods.retain(|_, (_, met)| *met + NEEDED_NS > now);
            let methods = &self.methods;
            self.numbers
                .retain(|_, number| methods.contains_key(number));
            self.before
                .retain(|_, standing| methods.contains_key(&standing.number));
        }
    }

    /// The number of the method at a `Method*`; `None` if what is there is no method.
    pub fn number(&mut self, method: u64) -> Option<u32> {
        if let Some(known) = self.current.get(&method) {
            return *known;
        }
        let number = self.settled(method).or_else(|| self.read(method));
        self.current.insert(method, number);
        number
    }

    /// The number of a method that need not be read.
    fn settled(&mut self, method: u64) -> Option<u32> {
        let standing = self.before.get(&method)?;
        if !standing.is_settled(self.now) {
            return None;
        }
        self.methods.get_mut(&standing.number)?.1 = self.now;
        Some(standing.number)
    }

    /// The method with a number.
    pub fn get(&self, number: u32) -> Option<&InterpretedMethod> {
        self.methods.get(&number).map(|(method, _)| method)
    }

    fn read(&mut self, method: u64) -> Option<u32> {
        let number = self.numbered(method)?;
        let now = self.now;
        let standing = self.before.entry(method).or_insert(Standing {
            number,
            since: now,
            read: now,
        });
        if standing.number != number {
            (standing.number, standing.since) = (number, now);
        }
        standing.read = now;
        Some(number)
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
        let constant = self.memory.word(at(method, l.method_const_method)?)?;
        let pool = self.memory.word(at(constant, l.const_method_constants)?)?;
        let holder = self.memory.word(at(pool, l.constant_pool_holder)?)?;
        let source = if l.constant_pool_source_file > 0 {
            self.half(pool, l.constant_pool_source_file)?
        } else {
            self.half(holder, l.klass_source_file)?
        };
        let class = self.memory.word(at(holder, l.klass_name)?)?;
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
            code: at(constant, l.const_method_size)?,
            size: self.half(constant, l.const_method_code_size)?,
            has_lines: self.half(constant, l.const_method_flags)? & 1 != 0,
        };
        Some((names, place))
    }

    fn half(&mut self, from: u64, offset: u64) -> Option<u16> {
        self.memory.half(at(from, offset)?)
    }

    /// The symbol at an index of a constant pool.
    fn entry(&mut self, pool: u64, index: u16) -> Option<String> {
        let offset = self.layout.constant_pool_size + 8 * u64::from(index);
        let symbol = self.memory.word(at(pool, offset)?)?;
        self.symbol(symbol)
    }

    /// The line table, which follows the bytecodes.
    fn line_table(&mut self, place: Place) -> Vec<u8> {
        let mut table = vec![0; if place.has_lines { 8192 } else { 0 }];
        let read = at(place.code, u64::from(place.size))
            // Fewer bytes at the end of the mapping are fine.
            .map_or(0, |from| self.memory.read(&mut table, from));
        table.truncate(read);
        table.truncate(table_length(&table, self.layout.number_excess));
        table.shrink_to_fit();
        table
    }

    fn symbol(&mut self, symbol: u64) -> Option<String> {
        let length = self.memory.half(at(symbol, self.layout.symbol_length)?)?;
        if length == 0 {
            return None;
        }
        let mut bytes = vec![0; usize::from(length).min(1024)];
        let read = self
            .memory
            .read(&mut bytes, at(symbol, self.layout.symbol_body)?);
        bytes.truncate(read);
        String::from_utf8(bytes).ok()
    }
}

/// Numbers have this many bits, so that they fit into a chain's word.
const NUMBER_BITS: u32 = (1 << 30) - 1;

/// An address; what is read as a pointer may be anything.
fn at(from: u64, offset: u64) -> Option<u64> {
    from.checked_add(offset)
}

/// The name as JVMTI gives it for compiled code: dots, also before the suffix of a hidden class.
fn binary_name(symbol: &str) -> String {
    let mut name = symbol.replace('/', ".");
    if let Some(plus) = name.rfind("+0x") {
        name.replace_range(plus..=plus, ".");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_compiled_code() {
        assert_eq!(binary_name("java/util/Map$Entry"), "java.util.Map$Entry");
        assert_eq!(binary_name("a/Hot$$Lambda+0x00ab"), "a.Hot$$Lambda.0x00ab");
    }
}
