//! A program or library in the memory of its process, by its program headers.

use object::Endianness;
use object::elf::{FileHeader64, PT_LOAD, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};

use crate::memory::Memory;

/// Maximum number of bytes at the start of a file that are read for its program headers.
const HEADER_BYTES: usize = 4096;

/// The segments of a loaded file.
pub(crate) struct LoadedFile {
    pub(crate) segments: Vec<ProgramHeader64<Endianness>>,
    pub(crate) endian: Endianness,
    /// Actual minus stated addresses.
    pub(crate) bias: u64,
}

impl LoadedFile {
    /// The file whose header is at this address. `None` if there is no 64-bit ELF file, or none that is loaded.
    pub(crate) fn read(base: u64, memory: &Memory) -> Option<Self> {
        let mut bytes = vec![0; HEADER_BYTES];
        let length = memory.read(&mut bytes, base);
        bytes.truncate(length);
        let header = FileHeader64::<Endianness>::parse(&*bytes).ok()?;
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, &*bytes).ok()?.to_vec();
        let first = segments.iter().find(|s| s.p_type(endian) == PT_LOAD)?;
        let stated = first.p_vaddr(endian).checked_sub(first.p_offset(endian))?;
        let bias = base.checked_sub(stated)?;
        Some(Self {
            segments,
            endian,
            bias,
        })
    }

    /// The first segment of a type.
    pub(crate) fn segment(&self, kind: u32) -> Option<&ProgramHeader64<Endianness>> {
        self.segments
            .iter()
            .find(|segment| segment.p_type(self.endian) == kind)
    }
}
