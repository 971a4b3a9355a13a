//! The unwind tables of one library.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, RegisterRule,
    UnwindContext, UnwindSection,
};
use object::elf::{PT_GNU_EH_FRAME, PT_LOAD};
use object::read::elf::ProgramHeader;

use super::Frame;
use crate::arch;
use crate::loaded::LoadedFile;
use crate::maps::Mapping;
use crate::memory::Memory;

/// Longest description of a function, bytes: it is interpreted for each new address.
const LONGEST_ENTRY: usize = 64 << 10;

/// How to find the caller at one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rule {
    /// Whether the canonical frame address (CFA) is relative to the frame pointer, else to the stack pointer.
    by_frame_pointer: bool,
    /// Its distance, bytes.
    cfa_offset: i64,
    /// The place of the return address, bytes from the CFA; none if it is in the link register.
    return_offset: Option<i64>,
    /// The place of the caller's frame pointer, bytes from the CFA; none if the register still has the caller's value.
    frame_pointer_offset: Option<i64>,
}

/// Where a frame has the state of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallerState {
    /// The CFA, which is the caller's stack pointer.
    pub(super) sp: u64,
    /// The address of the return address; none if it is in the link register.
    pub(super) return_slot: Option<u64>,
    /// The address of the caller's frame pointer; none if the register still has it.
    pub(super) fp_slot: Option<u64>,
}

impl Rule {
    /// The state of a frame's caller.
    pub(super) fn resolve(self, frame: Frame) -> Option<CallerState> {
        let base = if self.by_frame_pointer {
            frame.fp
        } else {
            frame.sp
        };
        let cfa = base.checked_add_signed(self.cfa_offset)?;
        let slot = |offset: Option<i64>| match offset {
            Some(offset) => cfa.checked_add_signed(offset).map(Some),
            None => Some(None),
        };
        Some(CallerState {
            sp: cfa,
            return_slot: slot(self.return_offset)?,
            fp_slot: slot(self.frame_pointer_offset)?,
        })
    }
}

/// The tables of one library, and their addresses as the library states them.
pub(super) struct UnwindTables {
    /// Actual minus stated addresses.
    bias: u64,
    /// `.eh_frame_hdr`, which is sorted by address, and `.eh_frame`.
    index: Vec<u8>,
    frames: Vec<u8>,
    bases: BaseAddresses,
    context: UnwindContext<usize>,
}

impl UnwindTables {
    /// Reads the tables of a library from memory, if they have at most `room` bytes.
    pub(super) fn read(mapping: &Mapping, memory: &Memory, room: usize) -> Option<Self> {
        let file = LoadedFile::read(mapping.header?, memory)?;
        let (bias, endian) = (file.bias, file.endian);
        let index = file.segment(PT_GNU_EH_FRAME)?;
        let mut left = room;
        let mut read = |start: u64, length: u64| {
            let length = usize::try_from(length).ok()?;
            left = left.checked_sub(length)?;
            let mut bytes = vec![0; length];
            let read = memory.read(&mut bytes, bias.checked_add(start)?);
            (read == length).then_some(bytes)
        };
        let index_start = index.p_vaddr(endian);
        let index = read(index_start, index.p_memsz(endian))?;
        let frames_start = frames_address(&index, index_start)?;
        // No header gives its length. It ends with its segment, or where the index begins.
        let mut loaded = file.segments.iter().filter(|s| s.p_type(endian) == PT_LOAD);
        let segment_end = loaded.find_map(|s| {
            let end = s.p_vaddr(endian).checked_add(s.p_filesz(endian))?;
            (s.p_vaddr(endian)..end)
                .contains(&frames_start)
                .then_some(end)
        })?;
        let frames_end = if (frames_start..segment_end).contains(&index_start) {
            index_start
        } else {
            segment_end
        };
        let frames = read(frames_start, frames_end - frames_start)?;
        Some(Self {
            bias,
            index,
            frames,
            bases: BaseAddresses::default()
                .set_eh_frame(frames_start)
                .set_eh_frame_hdr(index_start),
            context: UnwindContext::new(),
        })
    }

    /// Their size, bytes.
    pub(super) fn bytes(&self) -> usize {
        self.index.len() + self.frames.len()
    }

    /// The rule at an address; none if there is none, or another one than compilers make.
    pub(super) fn rule(&mut self, address: u64) -> Option<Rule> {
        let address = address.checked_sub(self.bias)?;
        let index = EhFrameHdr::new(&self.index, LittleEndian);
        let index = index.parse(&self.bases, 8).ok()?;
        let table = index.table()?;
        let entry = table.lookup(address, &self.bases).ok()?;
        let offset = table.pointer_to_offset(entry).ok()?;
        let mut frames: EhFrame<EndianSlice<'_, LittleEndian>> =
            EhFrame::new(&self.frames, LittleEndian);
        frames.set_vendor(arch::DWARF_VENDOR);
        let function = frames
            .fde_from_offset(&self.bases, offset, EhFrame::cie_from_offset)
            .ok()?;
        let is_short = |length: usize| length <= LONGEST_ENTRY;
        if !is_short(function.entry_len())
            || !is_short(function.cie().entry_len())
            || function.is_signal_trampoline()
        {
            return None;
        }
        let row = function
            .unwind_info_for_address(&frames, &self.bases, &mut self.context, address)
            .ok()?;
        let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else {
            return None;
        };
        let by_frame_pointer = match register {
            arch::DWARF_FRAME_POINTER => true,
            arch::DWARF_STACK_POINTER => false,
            _ => return None,
        };
        let return_offset = match row.register(arch::DWARF_RETURN_ADDRESS) {
            Some(RegisterRule::Offset(offset)) => Some(offset),
            None | Some(RegisterRule::SameValue) if arch::HAS_LINK => None,
            _ => return None,
        };
        let frame_pointer_offset = match row.register(arch::DWARF_FRAME_POINTER) {
            None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => None,
            Some(RegisterRule::Offset(offset)) => Some(offset),
            Some(_) => return None,
        };
        Some(Rule {
            by_frame_pointer,
            cfa_offset: offset,
            return_offset,
            frame_pointer_offset,
        })
    }
}

/// The address of `.eh_frame`, from its index at `start`: version 1, three encodings, then the address, which linkers encode
/// as a distance of four bytes from its own place.
fn frames_address(index: &[u8], start: u64) -> Option<u64> {
    const RELATIVE_TO_PLACE_4_BYTES: u8 = 0x1b;
    let [1, RELATIVE_TO_PLACE_4_BYTES, _, _, a, b, c, d, ..] = *index else {
        return None;
    };
    let distance = i32::from_ne_bytes([a, b, c, d]);
    start.checked_add(4)?.checked_add_signed(distance.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps::Maps;

    fn libc() -> (Memory, Mapping) {
        let own = std::process::id();
        let maps = Maps::open(own).unwrap();
        let libc = maps.find(libc::getpid as *const () as u64).unwrap();
        (Memory::open(own).unwrap(), libc.clone())
    }

    #[test]
    fn tables_are_read_if_they_fit() {
        let (memory, libc) = libc();
        let tables = UnwindTables::read(&libc, &memory, 1 << 20).unwrap();
        let needed = tables.bytes();
        assert!(UnwindTables::read(&libc, &memory, needed).is_some());
        assert!(UnwindTables::read(&libc, &memory, needed - 1).is_none());
        let without_start = Mapping {
            header: None,
            ..libc
        };
        assert!(UnwindTables::read(&without_start, &memory, needed).is_none());
    }

    #[test]
    fn at_its_first_instruction_a_function_has_only_a_return_address() {
        let (memory, libc) = libc();
        let mut tables = UnwindTables::read(&libc, &memory, 1 << 20).unwrap();
        let rule = tables.rule(libc::qsort as *const () as u64).unwrap();
        let frame = Frame {
            pc: 0,
            sp: 0x1000,
            fp: 0,
            link: 0,
        };
        let expected = CallerState {
            sp: if arch::HAS_LINK { 0x1000 } else { 0x1008 },
            return_slot: (!arch::HAS_LINK).then_some(0x1000),
            fp_slot: None,
        };
        assert_eq!(rule.resolve(frame), Some(expected));
    }

    /// They may have wrong rules.
    #[test]
    fn damaged_tables_do_not_panic() {
        let (memory, libc) = libc();
        let address = libc::qsort as *const () as u64;
        let mut seed = 1u64;
        for _ in 0..500 {
            let mut tables = UnwindTables::read(&libc, &memory, 1 << 20).unwrap();
            for _ in 0..2000 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = (seed >> 16) as usize;
                let (index, frames) = (tables.index.len(), tables.frames.len());
                tables.index[at % index] ^= (seed >> 8) as u8;
                tables.frames[at % frames] ^= seed as u8;
            }
            for offset in 0..64 {
                let _ = tables.rule(address + offset);
            }
        }
    }
}
