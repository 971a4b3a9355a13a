//! Unwinds native code by its call frame information (`.eh_frame`).
//!
//! Libraries such as libc are built without frame pointers. Their tables say for each instruction where the return address
//! and the caller's rbp are. The tables are read from the JVM's memory: its files may be in another container or have
//! changed. libjvm keeps frame pointers, so its large tables are not read.

use std::collections::HashMap;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};
use object::Endianness;
use object::elf::{FileHeader64, PT_GNU_EH_FRAME, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};

use super::leaf;
use super::stack::Stack;
use crate::maps::{Mapping, Maps};
use crate::memory::Memory;
use crate::perf_event::Sample;

/// Longest native part of a chain.
const MAX_FRAMES: usize = 127;
/// Most bytes at the start of a library that are read for its program headers.
const HEADER_BYTES: usize = 4096;
/// Maximum size of the tables of all libraries, bytes.
const MOST_TABLES: usize = 16 << 20;
/// Maximum number of libraries with tables, including unloaded ones.
const MOST_LIBRARIES: usize = 256;

/// A frame to unwind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    /// The leaf's current address, or a return address.
    pub(super) pc: u64,
    /// Stack pointer: for the leaf its current value, else the value after the return to `pc`.
    pub(super) sp: u64,
    /// rbp with any content.
    pub(super) fp: u64,
}

/// The tables of the libraries that samples were in.
pub(super) struct NativeUnwinder {
    memory: Memory,
    unwinder: UnwinderX86_64<Vec<u8>>,
    cache: CacheX86_64,
    /// By the start of the executable mapping: the mapping, and whether the library has tables.
    libraries: HashMap<u64, (Mapping, bool)>,
    /// Remaining memory for tables, bytes.
    room: usize,
}

impl NativeUnwinder {
    /// Reads tables from the memory of a process.
    pub(super) fn new(memory: Memory) -> Self {
        Self {
            memory,
            unwinder: UnwinderX86_64::new(),
            cache: CacheX86_64::new(),
            libraries: HashMap::new(),
            room: MOST_TABLES,
        }
    }

    /// The caller of a frame in a library; `None` if the library has no tables, or at the start of the thread. `word` is the
    /// word of the stack at an address.
    pub(super) fn caller(
        &mut self,
        frame: Frame,
        innermost: bool,
        maps: &Maps,
        mut word: impl FnMut(u64) -> Option<u64>,
    ) -> Option<Frame> {
        let address = if innermost {
            FrameAddress::from_instruction_pointer(frame.pc)
        } else {
            FrameAddress::from_return_address(frame.pc)?
        };
        if maps.in_jvm(frame.pc) || !self.has_tables(maps.find(address.address_for_lookup())?) {
            return None;
        }
        let mut registers = UnwindRegsX86_64::new(frame.pc, frame.sp, frame.fp);
        let mut read = |address| word(address).ok_or(());
        let cache = &mut self.cache;
        let found = self
            .unwinder
            .unwind_frame(address, &mut registers, cache, &mut read);
        let pc = found.ok()??;
        let (sp, fp) = (registers.sp(), registers.bp());
        (sp > frame.sp).then_some(Frame { pc, sp, fp })
    }

    /// Replaces `chain` (leaf first) if its leaf is in a library whose tables lead to libjvm or generated code, and from
    /// there frame pointers lead to generated code. Returns whether they do.
    pub(super) fn unwind(
        &mut self,
        chain: &mut Vec<u64>,
        sample: &Sample<'_>,
        maps: &Maps,
        memory: Option<&Memory>,
    ) -> bool {
        let Some(leaf) = chain.first().copied() else {
            return false;
        };
        let keeps_pointers = |pc: u64| maps.in_code_cache(pc) || maps.in_jvm(pc);
        let mut frame = Frame {
            pc: leaf,
            sp: sample.stack_pointer,
            fp: sample.frame_pointer,
        };
        let mut callers = Vec::new();
        while !keeps_pointers(frame.pc) {
            callers.push(frame.pc);
            let innermost = callers.len() == 1;
            // Memory above the copy may have changed since.
            let next = self.caller(frame, innermost, maps, |address| sample.stack_word(address));
            match next {
                Some(next) if callers.len() < MAX_FRAMES => frame = next,
                _ => return false,
            }
        }
        if callers.is_empty() {
            return false;
        }
        callers.push(frame.pc);
        callers.extend(leaf::walk(frame.fp, &mut Stack::new(sample, memory)));
        let reaches_code = callers.iter().any(|ip| maps.in_code_cache(*ip));
        if reaches_code {
            *chain = callers;
        }
        reaches_code
    }

    /// Whether the library of a mapping has tables. Reads them when the mapping is new.
    fn has_tables(&mut self, mapping: &Mapping) -> bool {
        match self.libraries.get(&mapping.start) {
            Some((known, has_tables)) if known == mapping => return *has_tables,
            Some(_) => self.unwinder.remove_module(mapping.start),
            None if self.libraries.len() >= MOST_LIBRARIES => return false,
            None => {}
        }
        let module = read_tables(mapping, &self.memory, &mut self.room);
        let has_tables = module.is_some();
        if let Some(module) = module {
            self.unwinder.add_module(module);
        }
        let known = (mapping.clone(), has_tables);
        self.libraries.insert(mapping.start, known);
        has_tables
    }
}

/// Reads the tables of a library from memory as far as they fit into `room`, and reduces it.
fn read_tables(mapping: &Mapping, memory: &Memory, room: &mut usize) -> Option<Module<Vec<u8>>> {
    let base = mapping.header?;
    let mut bytes = vec![0; HEADER_BYTES];
    let length = memory.read(&mut bytes, base);
    bytes.truncate(length);
    let header = FileHeader64::<Endianness>::parse(&*bytes).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, &*bytes).ok()?;
    let first = segments.iter().find(|s| s.p_type(endian) == PT_LOAD)?;
    let bias = base.checked_sub(first.p_vaddr(endian).checked_sub(first.p_offset(endian))?)?;
    let index = segments
        .iter()
        .find(|s| s.p_type(endian) == PT_GNU_EH_FRAME)?;
    let index_start = index.p_vaddr(endian);
    let holds = |address: u64| {
        segments.iter().find(|s| {
            s.p_type(endian) == PT_LOAD
                && (s.p_vaddr(endian)..s.p_vaddr(endian).saturating_add(s.p_filesz(endian)))
                    .contains(&address)
        })
    };
    let mut read = |start: u64, length: u64| {
        let length = usize::try_from(length).ok().filter(|l| *l <= *room)?;
        let mut bytes = vec![0; length];
        let read = memory.read(&mut bytes, bias.checked_add(start)?);
        *room -= length;
        (read == length).then_some(bytes)
    };
    let index_bytes = read(index_start, index.p_memsz(endian))?;
    let frames_start = frames_of(&index_bytes, index_start)?;
    // Its length is nowhere; the segment ends after it.
    let segment = holds(frames_start)?;
    let segment_end = segment
        .p_vaddr(endian)
        .checked_add(segment.p_filesz(endian))?;
    // Linkers put the index before the frames or after them.
    let frames_end = if index_start > frames_start && index_start < segment_end {
        index_start
    } else {
        segment_end
    };
    let frames = read(frames_start, frames_end - frames_start)?;
    let index_end = index_start + index_bytes.len() as u64;
    let sections = ExplicitModuleSectionInfo {
        eh_frame_svma: Some(frames_start..frames_end),
        eh_frame: Some(frames),
        eh_frame_hdr_svma: Some(index_start..index_end),
        eh_frame_hdr: Some(index_bytes),
        ..ExplicitModuleSectionInfo::default()
    };
    let range = mapping.start..mapping.end;
    Some(Module::new(mapping.path.clone(), range, bias, sections))
}

/// The address of `.eh_frame` in its index (`.eh_frame_hdr`), which is at `start`: version 1, three encodings, then the
/// address, which linkers encode as a distance of four bytes from its own place.
fn frames_of(index: &[u8], start: u64) -> Option<u64> {
    const RELATIVE_TO_PLACE_4_BYTES: u8 = 0x1b;
    let [1, RELATIVE_TO_PLACE_4_BYTES, _, _, a, b, c, d, ..] = *index else {
        return None;
    };
    let distance = i32::from_ne_bytes([a, b, c, d]);
    start.checked_add(4)?.checked_add_signed(distance.into())
}

#[cfg(test)]
mod tests {
    use std::io::PipeReader;
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Waits in libc until the other end of the pipe is closed.
    #[inline(never)]
    fn waits_in_libc(id: &Sender<i32>, pipe: &PipeReader) -> usize {
        id.send(nix::unistd::gettid().as_raw()).unwrap();
        let mut byte = [0];
        nix::unistd::read(pipe, &mut byte).unwrap() + usize::from(byte[0])
    }

    /// The stack pointer and address of a thread of this process that waits in a system call.
    fn registers(tid: i32) -> (u64, u64) {
        let read = libc::SYS_read.to_string();
        loop {
            let text = std::fs::read_to_string(format!("/proc/self/task/{tid}/syscall")).unwrap();
            let fields: Vec<&str> = text.split_whitespace().collect();
            let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
            match fields[..] {
                [call, _, _, _, _, _, _, sp, pc] if call == read => return (hex(sp), hex(pc)),
                _ => std::thread::yield_now(),
            }
        }
    }

    #[test]
    fn callers_of_libc_are_found_without_frame_pointers() {
        let (send_id, id) = channel();
        let (pipe, end) = std::io::pipe().unwrap();
        let thread = std::thread::spawn(move || waits_in_libc(&send_id, &pipe));
        let (sp, pc) = registers(id.recv().unwrap());
        let own = std::process::id();
        let memory = Memory::open(own).unwrap();
        let maps = Maps::open(own).unwrap();
        let mut native = NativeUnwinder::new(memory.try_clone().unwrap());
        // The system call does not show rbp. Neither libc's function nor its caller uses it as a frame pointer.
        let mut frame = Frame { pc, sp, fp: 0 };
        let mut chain = vec![frame.pc];
        while let Some(caller) = native.caller(frame, chain.len() == 1, &maps, |address| {
            memory.array(address).map(u64::from_ne_bytes)
        }) {
            frame = caller;
            chain.push(frame.pc);
        }
        drop(end);
        thread.join().unwrap();
        assert!(maps.find(chain[0]).unwrap().path.contains("libc.so"));
        let function = waits_in_libc as *const () as usize as u64;
        let is_in_function = |pc: &u64| (function..function + 1024).contains(pc);
        assert!(chain.iter().any(is_in_function), "{chain:x?}");
    }

    #[test]
    fn tables_share_one_bound() {
        let own = std::process::id();
        let memory = Memory::open(own).unwrap();
        let maps = Maps::open(own).unwrap();
        let libc = maps
            .find(libc::getpid as *const () as usize as u64)
            .unwrap();
        let mut room = MOST_TABLES;
        assert!(read_tables(libc, &memory, &mut room).is_some());
        let needed = MOST_TABLES - room;
        let mut room = needed - 1;
        assert!(read_tables(libc, &memory, &mut room).is_none());
        let without_start = Mapping {
            header: None,
            ..libc.clone()
        };
        assert!(read_tables(&without_start, &memory, &mut MOST_TABLES.clone()).is_none());
    }
}
