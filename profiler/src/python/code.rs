//! Code objects: their names and lines, each read once and kept by its address.

use std::rc::Rc;

use ahash::HashMap;

use super::layout::Layout;
use super::line_table::Lines;
use super::snapshot::Snapshot;

/// Longest name of a function that is kept, and longest path, bytes.
const LONGEST_NAME: usize = 256;
const LONGEST_PATH: usize = 512;
/// Most characters of a text that are read.
const MOST_CHARACTERS: u64 = 1_024;
/// Longest table of lines, bytes.
const LONGEST_TABLE: u64 = 1 << 20;
/// Number of code objects that are kept, and the size of their lines, bytes; all are forgotten when there are more.
const MOST_CODES: usize = 4_096;
const MOST_LINES: usize = 2 << 20;
/// The length of a text and of an array of bytes, the state of a text, and the begin of an array of bytes. These offsets are
/// the same in all versions.
const LENGTH: u64 = 16;
const STATE: u64 = 32;
const ARRAY: u64 = 32;
/// Bytes of the line table that show that the statements of a module are others than before.
const BEGIN: u64 = 48;
/// The name of the code of a module, or of a text that is executed.
const MODULE: &str = "<module>";
/// The type of an object, and the number of items of a code object since 3.11.
const TYPE: usize = 8;
const ITEMS: usize = 16;

/// A function, by its name and the path of its file as the interpreter knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) file: String,
}

/// The names and lines of a code object.
#[derive(Debug, Clone)]
pub(super) struct Code {
    pub(super) function: Rc<Function>,
    lines: Rc<Lines>,
    /// What another object at this address would have different.
    identity: Identity,
    /// Of a module, the begin of its line table: texts that are executed one after the other can differ in nothing else.
    begin: Option<Vec<u8>>,
    /// Length of the code, bytes; 0 if unknown.
    length: i64,
}

/// Pointers to the names and lines of a code object, its first line, and the number of its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    file: u64,
    name: u64,
    lines: u64,
    first_line: i32,
    items: u64,
}

impl Code {
    /// The line of an instruction, by its offset in bytes; 0 if it has none. `None` if the offset is not in the code.
    pub(super) fn line(&self, offset: i64) -> Option<u32> {
        let is_inside = self.length == 0 || offset < self.length;
        (is_inside && offset >= -2).then(|| self.lines.at(offset))
    }
}

/// The code objects of a process.
#[derive(Debug, Clone, Default)]
pub(super) struct Codes {
    by_address: HashMap<u64, Code>,
    /// Size of their lines, bytes.
    size: usize,
}

impl Codes {
    /// The code object at an address; `None` if there is none of this type.
    pub(super) fn get(
        &mut self,
        address: u64,
        kind: u64,
        layout: &Layout,
        memory: &mut Snapshot,
    ) -> Option<&Code> {
        let identity = identify(address, kind, layout, memory)?;
        // Another object may have got the address of one that is gone.
        let is_known = self.by_address.get(&address).is_some_and(|code| {
            code.identity == identity
                && (code.begin.is_none() || code.begin == begin(identity, memory))
        });
        if !is_known {
            let code = read(identity, layout, memory)?;
            if self.by_address.len() >= MOST_CODES || self.size >= MOST_LINES {
                self.by_address.clear();
                self.size = 0;
            }
            self.size += code.lines.size();
            self.by_address.insert(address, code);
        }
        self.by_address.get(&address)
    }
}

fn identify(address: u64, kind: u64, layout: &Layout, memory: &mut Snapshot) -> Option<Identity> {
    let of = &layout.code;
    let bytes = memory.get(address, of.size())?;
    let word = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    if word(TYPE)? != kind {
        return None;
    }
    let first = of.first_line as usize;
    Some(Identity {
        file: word(of.file as usize)?,
        name: word(of.name as usize)?,
        lines: word(of.lines as usize)?,
        first_line: i32::from_ne_bytes(bytes.get(first..first + 4)?.try_into().ok()?),
        items: word(ITEMS)?,
    })
}

/// The first bytes of a line table. What follows a shorter table is not compared.
fn begin(identity: Identity, memory: &mut Snapshot) -> Option<Vec<u8>> {
    let length = memory.word(identity.lines.checked_add(LENGTH)?)?;
    let begin = identity.lines.checked_add(ARRAY)?;
    let bytes = memory.get(begin, length.min(BEGIN) as usize)?;
    Some(bytes.to_vec())
}

fn read(identity: Identity, layout: &Layout, memory: &mut Snapshot) -> Option<Code> {
    let of = &layout.code;
    let function = Function {
        name: text(identity.name, LONGEST_NAME, layout, memory)?,
        file: text(identity.file, LONGEST_PATH, layout, memory)?,
    };
    let table = array(identity.lines, memory)?;
    let lines = Lines::decode(of.encoding, &table, identity.first_line);
    // Since 3.11, the items are the units of the code.
    let length = match of.begin {
        0 => 0,
        _ => i64::try_from(identity.items).ok()?.checked_mul(2)?,
    };
    let begin = match function.name == MODULE {
        true => begin(identity, memory),
        false => None,
    };
    Some(Code {
        begin,
        function: Rc::new(function),
        lines: Rc::new(lines),
        identity,
        length,
    })
}

fn word(memory: &Snapshot, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    memory.once(address, &mut bytes)?;
    Some(u64::from_ne_bytes(bytes))
}

/// The bytes of a `bytes` object.
fn array(address: u64, memory: &Snapshot) -> Option<Vec<u8>> {
    let length = word(memory, address.checked_add(LENGTH)?)?;
    let length = usize::try_from(length)
        .ok()
        .filter(|_| length <= LONGEST_TABLE)?;
    let mut bytes = vec![0; length];
    memory.once(address.checked_add(ARRAY)?, &mut bytes)?;
    Some(bytes)
}

/// The text of a `str` object, or its first part.
fn text(address: u64, most: usize, layout: &Layout, memory: &Snapshot) -> Option<String> {
    let length = word(memory, address.checked_add(LENGTH)?)?;
    let mut state = [0; 4];
    memory.once(address.checked_add(STATE)?, &mut state)?;
    let state = u32::from_ne_bytes(state);
    let (width, is_compact, is_ascii) = ((state >> 2) & 7, state & 32 != 0, state & 64 != 0);
    if !is_compact || !matches!(width, 1 | 2 | 4) || length > u64::from(u32::MAX) {
        return None;
    }
    let begin = address.checked_add(layout.text[usize::from(!is_ascii)])?;
    let mut bytes = vec![0; (length.min(MOST_CHARACTERS) * u64::from(width)) as usize];
    memory.once(begin, &mut bytes)?;
    let characters = bytes.chunks_exact(width as usize).map(|character| {
        let mut whole = [0; 4];
        whole[..character.len()].copy_from_slice(character);
        char::from_u32(u32::from_le_bytes(whole)).unwrap_or(char::REPLACEMENT_CHARACTER)
    });
    let mut text: String = characters.collect();
    text.truncate(text.floor_char_boundary(most));
    Some(text)
}
