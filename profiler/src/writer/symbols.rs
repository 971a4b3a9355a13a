//! Names of native frames, from the symbol tables of their libraries. Only the writer resolves them, so samplers stay
//! small.

use std::collections::HashMap;
use std::fmt;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;

use object::read::elf::{FileHeader, ProgramHeader};
use object::read::{ReadCache, ReadRef};
use object::{Object, ObjectSymbol, SymbolKind};
use unfuse_format::{Frame, FrameKind};

use crate::wire::WireFrame;

/// Largest library, bytes.
const LARGEST_LIBRARY: u64 = 1 << 30;
/// Maximum memory for the functions of all libraries, bytes.
const MOST_NAMES: usize = 256 << 20;
/// Longest name of a function, bytes.
const LONGEST_NAME: usize = 4 << 10;

/// Symbols of the libraries seen so far.
#[derive(Debug)]
pub(super) struct Symbols {
    libraries: HashMap<String, Library>,
    /// Remaining memory for symbols, bytes.
    room: usize,
}

impl Default for Symbols {
    fn default() -> Self {
        Self {
            libraries: HashMap::new(),
            room: MOST_NAMES,
        }
    }
}

/// Functions of a library by address, and the file offsets of its code segments.
#[derive(Debug, Default)]
struct Library {
    functions: Vec<(u64, u64, String)>,
    /// File offset, size and address.
    segments: Vec<(u64, u64, u64)>,
}

impl Symbols {
    /// The frame with its native symbol; `[libname]` without one.
    pub(super) fn name(&mut self, wire: WireFrame) -> Frame {
        let WireFrame { mut frame, address } = wire;
        if frame.kind != FrameKind::Native || !frame.method.is_empty() {
            return frame;
        }
        let library = self
            .libraries
            .entry(frame.file.clone())
            .or_insert_with(|| Library::read(&frame.file, &mut self.room).unwrap_or_default());
        frame.method = library.function(address).map_or_else(
            || format!("[{}]", frame.file.rsplit('/').next().unwrap_or(&frame.file)),
            demangle,
        );
        frame
    }
}

impl Library {
    /// Reads as many functions as fit into `room`, and reduces it.
    fn read(path: &str, room: &mut usize) -> Option<Self> {
        if *room == 0 {
            return None;
        }
        // The JVM provides the paths of its libraries: a FIFO there must not block, a device must not be read.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path)
            .ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || metadata.len() > LARGEST_LIBRARY {
            return None;
        }
        // For a large library only its tables are read.
        let bytes = ReadCache::new(file);
        let file = object::File::parse(&bytes).ok()?;
        let mut functions: Vec<_> = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() != 0)
            .filter_map(|symbol| Some((symbol.address(), symbol.size(), symbol.name().ok()?)))
            .take_while(|(_, _, name)| {
                // Names may overlap in the file, but not here.
                let needed = name.len() + size_of::<(u64, u64, String)>();
                *room = room.saturating_sub(needed);
                *room > 0
            })
            .map(|(address, size, name)| (address, size, name.to_owned()))
            .collect();
        functions.sort();
        functions.dedup_by_key(|(address, _, _)| *address);
        let segments = code_segments(&bytes).unwrap_or_default();
        *room = room.saturating_sub(size_of_val(&*segments));
        Some(Self {
            functions,
            segments,
        })
    }

    fn function(&self, file_offset: u64) -> Option<&str> {
        let (offset, _, address) = self.segments.iter().find(|(offset, size, _)| {
            (*offset..offset.saturating_add(*size)).contains(&file_offset)
        })?;
        let address = address.wrapping_add(file_offset - offset);
        let after = self
            .functions
            .partition_point(|(start, _, _)| *start <= address);
        let (start, size, name) = self.functions.get(after.checked_sub(1)?)?;
        // Hand-written assembly has symbols without a size; they extend to the next one.
        (*size == 0 || address - start < *size).then_some(name)
    }
}

fn code_segments<'a>(bytes: impl ReadRef<'a>) -> Option<Vec<(u64, u64, u64)>> {
    let header = object::elf::FileHeader64::<object::Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, bytes).ok()?;
    Some(
        segments
            .iter()
            .filter(|segment| segment.p_type(endian) == object::elf::PT_LOAD)
            .map(|segment| {
                (
                    segment.p_offset(endian),
                    segment.p_filesz(endian),
                    segment.p_vaddr(endian),
                )
            })
            .collect(),
    )
}

/// A text that must not exceed [`LONGEST_NAME`]: a short mangled name may expand to a huge one.
#[derive(Default)]
struct BoundedText(String);

impl fmt::Write for BoundedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST_NAME {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// The demangled name; the mangled one if that is too long.
fn demangle(name: &str) -> String {
    let name = &name[..name.floor_char_boundary(LONGEST_NAME)];
    let options = cpp_demangle::DemangleOptions::new().no_params();
    let mut plain = BoundedText::default();
    cpp_demangle::Symbol::new(name)
        .ok()
        .and_then(|symbol| symbol.structured_demangle(&mut plain, &options).ok())
        .map_or_else(|| name.to_owned(), |()| plain.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source_unless_these_are_huge() {
        assert_eq!(demangle("_ZN5space3fooEv"), "space::foo");
        assert_eq!(demangle("memcpy"), "memcpy");
        assert_eq!(demangle(&"x".repeat(1 << 20)).len(), LONGEST_NAME);
        // Each argument is a template of two of the previous one.
        let nested = |depth| {
            let more = "123456789ABC".chars().take(depth);
            let more: String = more.map(|n| format!("S0_IS{n}_S{n}_E")).collect();
            format!("_Z1fI1AIiiE{more}Evv")
        };
        assert!(demangle(&nested(1)).contains("f<A<int, int>, A<A<int, int>, A<int, int> > >"));
        assert_eq!(demangle(&nested(12)), nested(12));
    }

    #[test]
    fn libraries_share_one_bound() {
        let path = std::env::current_exe().unwrap();
        let path = path.to_str().unwrap();
        let mut room = 10_000;
        let library = Library::read(path, &mut room).unwrap();
        assert!(!library.functions.is_empty());
        assert_eq!(room, 0);
        assert!(Library::read(path, &mut room).is_none());
    }
}
