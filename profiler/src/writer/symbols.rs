//! Names of native frames, from the symbol tables of their libraries. Only the writer does this, so
//! that samplers stay small.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;

use object::read::elf::{FileHeader, ProgramHeader};
use object::read::{ReadCache, ReadRef};
use object::{Object, ObjectSymbol, SymbolKind};
use unfuse_format::Frame;

use crate::wire::WireFrame;

/// Larger files are no libraries, bytes.
const LARGEST_LIBRARY: u64 = 1 << 30;
/// The functions of one library in memory, at most, bytes.
const LARGEST_NAMES: usize = 256 << 20;

/// Symbols of the libraries met so far.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    libraries: HashMap<String, Library>,
}

/// Functions of one library by address, and where its code segments lie in the file.
#[derive(Debug, Default)]
struct Library {
    functions: Vec<(u64, u64, String)>,
    /// (file offset, size, address)
    segments: Vec<(u64, u64, u64)>,
}

impl Symbols {
    /// The frame with its native symbol filled in; `[libname]` where there is none.
    pub(super) fn name(&mut self, wire: WireFrame) -> Frame {
        let WireFrame { mut frame, address } = wire;
        if frame.kind != "native" || !frame.method.is_empty() {
            return frame;
        }
        let library = self
            .libraries
            .entry(frame.file.clone())
            .or_insert_with(|| Library::read(&frame.file).unwrap_or_default());
        frame.method = library.function(address).map_or_else(
            || format!("[{}]", frame.file.rsplit('/').next().unwrap_or(&frame.file)),
            demangle,
        );
        frame
    }
}

impl Library {
    fn read(path: &str) -> Option<Self> {
        // The JVM says where its libraries are: a FIFO there must not block, a device not be read.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path)
            .ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || metadata.len() > LARGEST_LIBRARY {
            return None;
        }
        // Of a large library only its tables are read.
        let bytes = ReadCache::new(file);
        let file = object::File::parse(&bytes).ok()?;
        let mut room = LARGEST_NAMES;
        let mut functions: Vec<_> = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() != 0)
            .filter_map(|symbol| Some((symbol.address(), symbol.size(), symbol.name().ok()?)))
            .take_while(|(_, _, name)| {
                // Names may overlap in the file, but not here.
                let needed = name.len() + size_of::<(u64, u64, String)>();
                room = room.saturating_sub(needed);
                room > 0
            })
            .map(|(address, size, name)| (address, size, name.to_owned()))
            .collect();
        functions.sort();
        functions.dedup_by_key(|(address, _, _)| *address);
        Some(Self {
            functions,
            segments: code_segments(&bytes).unwrap_or_default(),
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
        // Hand-written assembly has symbols without a size; they reach to the next one.
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

fn demangle(name: &str) -> String {
    cpp_demangle::Symbol::new(name)
        .ok()
        .and_then(|symbol| {
            symbol
                .demangle_with_options(&cpp_demangle::DemangleOptions::new().no_params())
                .ok()
        })
        .unwrap_or_else(|| name.to_owned())
}
