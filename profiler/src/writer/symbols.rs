//! Names of native frames, from the symbol tables of their libraries. Only the writer does this, so
//! that samplers stay small.

use std::collections::HashMap;
use std::fs::File;

use object::read::elf::{FileHeader, ProgramHeader};
use object::read::{ReadCache, ReadRef};
use object::{Object, ObjectSymbol, SymbolKind};
use unfuse_format::Frame;

use crate::wire::WireFrame;

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
        // Of a large library only its tables are read.
        let bytes = ReadCache::new(File::open(path).ok()?);
        let file = object::File::parse(&bytes).ok()?;
        let mut functions: Vec<_> = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() != 0)
            .filter_map(|symbol| {
                Some((
                    symbol.address(),
                    symbol.size(),
                    symbol.name().ok()?.to_owned(),
                ))
            })
            .collect();
        functions.sort();
        functions.dedup_by_key(|(address, _, _)| *address);
        Some(Self {
            functions,
            segments: code_segments(&bytes).unwrap_or_default(),
        })
    }

    fn function(&self, file_offset: u64) -> Option<&str> {
        let (offset, _, address) = self
            .segments
            .iter()
            .find(|(offset, size, _)| (*offset..offset + size).contains(&file_offset))?;
        let address = address + (file_offset - offset);
        let after = self
            .functions
            .partition_point(|(start, _, _)| *start <= address);
        let (start, size, name) = self.functions.get(after.checked_sub(1)?)?;
        // Hand-written assembly has symbols without a size; they reach to the next one.
        (*size == 0 || address < start + size).then_some(name)
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
