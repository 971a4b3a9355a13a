//! Unwinds native code by its call frame information (`.eh_frame`).
//!
//! Libraries such as libc are built without frame pointers. Their tables say for each instruction where the return address
//! and the caller's frame pointer are. The tables are read from the JVM's memory: its files may be in another container or
//! have changed. libjvm keeps frame pointers, so its large tables are not read, except where frame pointers do not give the
//! caller's stack pointer (aarch64) and it is needed.
//!
//! The JVM's owner decides what is in that memory, so sizes are bounded, and expressions, which could loop, are not
//! evaluated.

mod tables;

use std::collections::BTreeMap;

use self::tables::{Rule, UnwindTables};
use super::stack::return_address;
use crate::arch::{self, Registers};
use crate::maps::{Mapping, Maps};
use crate::memory::Memory;
use crate::perf_event::Sample;
use ahash::HashMap;

/// Longest chain, frames.
const MAX_FRAMES: usize = 127;
/// Largest frame, bytes.
const LARGEST_FRAME: u64 = 1 << 20;
/// Maximum size of the tables of all libraries, bytes.
const MOST_TABLES: usize = 16 << 20;
/// Maximum number of libraries that are remembered.
const MOST_LIBRARIES: usize = 256;
/// Maximum number of addresses whose rules are remembered.
const MOST_RULES: usize = 4096;

/// A frame to unwind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    /// The leaf's current address, or a return address.
    pub(super) pc: u64,
    /// Stack pointer: for the leaf its current value, else the value after the return to `pc`.
    pub(super) sp: u64,
    /// The frame pointer, with any content.
    pub(super) fp: u64,
    /// The leaf's link register, with any content; 0 in other frames.
    pub(super) link: u64,
}

impl From<Registers> for Frame {
    fn from(Registers { pc, sp, fp, link }: Registers) -> Self {
        Self { pc, sp, fp, link }
    }
}

impl From<Frame> for Registers {
    fn from(Frame { pc, sp, fp, link }: Frame) -> Self {
        Self { pc, sp, fp, link }
    }
}

/// Where a chain has its first frame pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FirstFrame {
    /// Its index in the chain, leaf first.
    pub(super) depth: usize,
    /// The frame pointer.
    pub(super) frame: u64,
}

/// The tables of the libraries that samples were in.
pub(super) struct NativeUnwinder {
    memory: Memory,
    /// By the start of the executable mapping.
    libraries: BTreeMap<u64, Library>,
    /// The rules of addresses; none where no rule is known.
    rules: HashMap<u64, Option<Rule>>,
}

struct Library {
    mapping: Mapping,
    tables: Option<UnwindTables>,
}

impl NativeUnwinder {
    /// Reads tables from the memory of a process.
    pub(super) fn new(memory: Memory) -> Self {
        Self {
            memory,
            libraries: BTreeMap::new(),
            rules: HashMap::default(),
        }
    }

    /// The caller of a frame in a library. `None` in libjvm on x86-64, where the library has no table that says it, where
    /// the stack cannot be read, and at the start of the thread. `word` is the word of the stack at an address.
    pub(super) fn caller(
        &mut self,
        frame: Frame,
        innermost: bool,
        maps: &Maps,
        mut word: impl FnMut(u64) -> Option<u64>,
    ) -> Option<Frame> {
        // A call may be the last instruction of its function.
        let address = frame.pc.checked_sub(u64::from(!innermost))?;
        if arch::FRAMES_END_AT_LINKS && maps.in_jvm(address) {
            return None;
        }
        let rule = self.rule(address, maps.find(address)?)?;
        let caller = rule.resolve(frame)?;
        let pc = match caller.return_slot {
            Some(slot) => word(slot)?,
            // Only the leaf's register is known, which may have no frame.
            None if innermost => frame.link,
            None => return None,
        };
        let is_above =
            caller.sp > frame.sp || caller.sp == frame.sp && caller.return_slot.is_none();
        if !is_above || caller.sp - frame.sp > LARGEST_FRAME {
            return None;
        }
        Some(Frame {
            pc: arch::code_address(pc),
            sp: caller.sp,
            fp: match caller.fp_slot {
                Some(slot) => word(slot)?,
                None => frame.fp,
            },
            link: 0,
        })
    }

    /// Replaces `chain` (leaf first) if its leaf is in a library whose tables lead to libjvm or generated code, and from
    /// there frame pointers in the sample lead to generated code. Returns the first frame with a frame pointer then.
    pub(super) fn unwind(
        &mut self,
        chain: &mut Vec<u64>,
        sample: &Sample<'_>,
        maps: &Maps,
    ) -> Option<FirstFrame> {
        let keeps_pointers = |pc: u64| maps.in_code_cache(pc) || maps.in_jvm(pc);
        let mut frame = Frame::from(sample.registers(*chain.first()?));
        let mut callers = Vec::new();
        while !keeps_pointers(frame.pc) {
            callers.push(frame.pc);
            let innermost = callers.len() == 1;
            // Memory above the copy may have changed since.
            let word = |address| sample.stack_word(address);
            frame = self.caller(frame, innermost, maps, word)?;
            if callers.len() == MAX_FRAMES {
                return None;
            }
        }
        if callers.is_empty() {
            return None;
        }
        let first = FirstFrame {
            depth: callers.len(),
            frame: frame.fp,
        };
        callers.push(frame.pc);
        append_by_pointers(&mut callers, frame.fp, chain, sample);
        callers.iter().any(|ip| maps.in_code_cache(*ip)).then(|| {
            *chain = callers;
            first
        })
    }

    fn rule(&mut self, address: u64, mapping: &Mapping) -> Option<Rule> {
        // Other code has no file, so no tables.
        mapping.header?;
        let is_known = self.libraries.get(&mapping.start);
        if is_known.is_none_or(|library| library.mapping != *mapping) {
            self.read(mapping);
        }
        if let Some(rule) = self.rules.get(&address) {
            return *rule;
        }
        let tables = self.libraries.get_mut(&mapping.start)?.tables.as_mut();
        let rule = tables.and_then(|tables| tables.rule(address));
        if self.rules.len() >= MOST_RULES {
            self.rules.clear();
        }
        self.rules.insert(address, rule);
        rule
    }

    /// Reads the tables of a new mapping. Forgets those of mappings in whose place it is, and all if there is no more room.
    fn read(&mut self, mapping: &Mapping) {
        self.rules.clear();
        self.libraries
            .retain(|start, library| *start >= mapping.end || library.mapping.end <= mapping.start);
        if self.libraries.len() >= MOST_LIBRARIES {
            self.libraries.clear();
        }
        let used = self
            .libraries
            .values()
            .filter_map(|library| library.tables.as_ref());
        let room = MOST_TABLES - used.map(UnwindTables::bytes).sum::<usize>();
        let mut tables = UnwindTables::read(mapping, &self.memory, room);
        if tables.is_none() && room < MOST_TABLES / 2 {
            self.libraries.clear();
            tables = UnwindTables::read(mapping, &self.memory, MOST_TABLES);
        }
        let mapping = mapping.clone();
        self.libraries
            .insert(mapping.start, Library { mapping, tables });
    }
}

/// Appends the return addresses from a frame on: by the frame pointers in the copy of the stack, up to a frame that the
/// kernel has found too, and from there the kernel's (`walked`, leaf first). Memory above the copy may have changed since.
fn append_by_pointers(callers: &mut Vec<u64>, frame: u64, walked: &[u64], sample: &Sample<'_>) {
    let word = |address| sample.stack_word(address);
    let links = |from: u64| {
        std::iter::successors(Some(from), move |frame| {
            word(*frame).filter(|saved| saved > frame)
        })
        .map_while(move |frame| Some((frame, return_address(frame, word)?)))
        .take_while(|(_, address)| *address != 0)
    };
    // The kernel's frames, as far as the copy shows them.
    let of_kernel: Vec<u64> = links(sample.frame_pointer)
        .zip(walked.iter().skip(1))
        .take_while(|((_, address), walked)| address == *walked)
        .map(|((frame, _), _)| frame)
        .collect();
    for (frame, address) in links(frame) {
        if let Some(index) = of_kernel.iter().position(|of_kernel| *of_kernel == frame) {
            callers.extend_from_slice(&walked[index + 1..]);
            break;
        }
        if callers.len() >= MAX_FRAMES {
            break;
        }
        callers.push(address);
    }
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
        // The system call shows only these registers.
        let mut frame = Frame::from(Registers {
            pc,
            sp,
            ..Registers::default()
        });
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
}
