//! The runtime of CPython in a process: which version it is, and where its interpreter and threads are.

use super::exports::Exports;
use super::layout::{FOREIGN, Holder, Instruction, LOCK, Layout, Minor, TABLE, layout};
use super::snapshot::Snapshot;
use crate::maps::Maps;
use crate::memory::Memory;

/// Most threads of an interpreter.
const MOST_THREADS: usize = 4_096;
/// Most frames of a stack that are walked.
const MOST_FRAMES: usize = 4_096;

/// Addresses in a process. Processes that were forked from the same one have the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct Runtime {
    pub(super) layout: Layout,
    interpreter: u64,
    /// What says which thread holds the lock.
    holder: HolderWords,
    /// The type of code objects.
    pub(super) code_type: u64,
}

/// Where a process notes the thread that holds the lock.
#[derive(Debug, Clone, Copy)]
enum HolderWords {
    Pointer(u64),
    /// The last holder, and whether it holds the lock still.
    Last(u64, u64),
}

/// A function call that is not resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RawFrame {
    pub(super) code: u64,
    pub(super) instruction: RawInstruction,
}

/// The instruction of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RawInstruction {
    /// An offset in the code, bytes.
    Offset(i64),
    Address(u64),
}

impl Runtime {
    /// Finds the runtime of a process. `None` if it has none of a known version, or is still starting.
    pub(super) fn find(maps: &Maps, memory: &Memory) -> Option<Self> {
        // The program itself, or its library.
        ["libpython", "python"]
            .into_iter()
            .flat_map(|begin| maps.files_named(begin))
            .find_map(|base| Self::in_file(&Exports::at(base, memory)?, memory))
    }

    fn in_file(exports: &Exports<'_>, memory: &Memory) -> Option<Self> {
        let runtime = exports.find("_PyRuntime")?;
        let layout = layout(minor(exports, memory)?, &memory.array::<TABLE>(runtime)?)?;
        let word = |address: u64| memory.array(address).map(u64::from_ne_bytes);
        let interpreter = word(runtime.checked_add(layout.interpreters)?)?;
        let after = |address: u64, offset: u64| address.checked_add(offset);
        let holder = match layout.holder {
            Holder::Runtime(at) => HolderWords::Pointer(after(runtime, at)?),
            Holder::Lock(at) => {
                let lock = word(after(interpreter, at)?)?;
                HolderWords::Last(after(lock, LOCK.0)?, after(lock, LOCK.1)?)
            }
            Holder::Interpreter { last, locked } => {
                HolderWords::Last(after(interpreter, last)?, after(interpreter, locked)?)
            }
        };
        Some(Self {
            layout,
            interpreter,
            holder,
            code_type: exports.find("PyCode_Type")?,
        })
    }

    /// The thread that holds the interpreter's lock; `None` if none does.
    pub(super) fn holder(&self, memory: &mut Snapshot) -> Option<u64> {
        let thread = match self.holder {
            HolderWords::Pointer(at) => memory.word(at)?,
            HolderWords::Last(last, locked) => {
                let is_locked = memory.get(locked, 4)? == 1_i32.to_ne_bytes().as_slice();
                memory.word(last).filter(|_| is_locked)?
            }
        };
        self.is_thread(thread, memory).then_some(thread)
    }

    /// Whether an address is that of a thread of the interpreter.
    fn is_thread(&self, thread: u64, memory: &mut Snapshot) -> bool {
        let of = thread.checked_add(self.layout.thread.interpreter);
        thread != 0 && of.and_then(|of| memory.word(of)) == Some(self.interpreter)
    }

    /// Whether an address is that of the main thread: new threads come before it.
    pub(super) fn is_main(&self, thread: u64, memory: &mut Snapshot) -> bool {
        let next = thread.checked_add(self.layout.thread.next);
        self.is_thread(thread, memory) && next.and_then(|next| memory.word(next)) == Some(0)
    }

    /// The main thread.
    pub(super) fn main(&self, memory: &mut Snapshot) -> Option<u64> {
        let mut thread = memory.word(self.interpreter.checked_add(self.layout.threads)?)?;
        for _ in 0..MOST_THREADS {
            if self.is_main(thread, memory) {
                return Some(thread);
            }
            thread = memory.word(thread.checked_add(self.layout.thread.next)?)?;
        }
        None
    }

    /// Adds the frames of a thread, innermost first. `None` if they cannot be read, or are no list that ends.
    pub(super) fn frames(
        &self,
        thread: u64,
        memory: &mut Snapshot,
        frames: &mut Vec<RawFrame>,
    ) -> Option<()> {
        let of = &self.layout.frame;
        let mut frame = memory.word(thread.checked_add(self.layout.thread.frame)?)?;
        if let Some(at) = self.layout.thread.in_c_frame {
            frame = memory.word(frame.checked_add(at)?)?;
        }
        for _ in 0..MOST_FRAMES {
            if frame == 0 {
                return Some(());
            }
            let bytes = memory.get(frame, of.size())?;
            let word = |at: u64| {
                let bytes = bytes.get(at as usize..at as usize + 8)?;
                bytes.try_into().ok().map(u64::from_ne_bytes)
            };
            let owner = of.owner.and_then(|at| bytes.get(at as usize));
            if owner.is_none_or(|owner| *owner < FOREIGN) {
                let instruction = match of.instruction {
                    Instruction::Pointer(at) => RawInstruction::Address(word(at)?),
                    Instruction::Index(at, unit) => {
                        let index = bytes.get(at as usize..at as usize + 4)?;
                        let index = i32::from_ne_bytes(index.try_into().ok()?);
                        RawInstruction::Offset(i64::from(index) * unit)
                    }
                };
                frames.push(RawFrame {
                    code: word(of.code)?,
                    instruction,
                });
            }
            frame = word(of.previous)?;
        }
        None
    }
}

impl RawFrame {
    /// The offset of its instruction in the code, bytes.
    pub(super) fn offset(self, layout: &Layout) -> i64 {
        match self.instruction {
            RawInstruction::Offset(offset) => offset,
            RawInstruction::Address(address) => {
                let begin = self.code.wrapping_add(layout.code.begin);
                address.wrapping_sub(begin).cast_signed()
            }
        }
    }
}

/// The version of the interpreter in a file.
fn minor(exports: &Exports<'_>, memory: &Memory) -> Option<Minor> {
    if let Some(at) = exports.find("Py_Version") {
        let version = u32::from_ne_bytes(memory.array(at)?);
        let [major, minor, ..] = version.to_be_bytes();
        return (major == 3).then_some(minor);
    }
    // Functions that came with a version.
    let came = [("Py_Is", 10), ("PyObject_CallNoArgs", 9)];
    let newest = came.iter().find(|(name, _)| exports.find(name).is_some());
    newest.map(|(_, minor)| *minor)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::python::code::Codes;

    /// A word of memory that another process wrote.
    #[derive(Debug, Clone)]
    enum Word {
        /// A pointer to this word.
        To(usize),
        Number(u64),
    }

    fn word() -> impl Strategy<Value = Word> {
        prop_oneof![
            6 => (0..600_usize).prop_map(Word::To),
            2 => (0..300_u64).prop_map(Word::Number),
            1 => any::<u64>().prop_map(Word::Number),
        ]
    }

    proptest! {
        #[test]
        fn any_memory_is_walked_to_an_end(
            words in prop::collection::vec(word(), 600),
            minor in 9..=12_u8,
            lengths in prop::collection::vec((0..600_usize, 0..200_u64), 0..40),
        ) {
            let mut memory = vec![0_u64; 600];
            let begin = memory.as_ptr() as u64;
            for (to, word) in memory.iter_mut().zip(&words) {
                *to = match word {
                    Word::To(at) => begin + 8 * *at as u64,
                    Word::Number(number) => *number,
                };
            }
            for (at, length) in lengths {
                memory[at] = length;
            }
            let layout = layout(minor, &[0; TABLE]).unwrap();
            // Some words are the interpreter and the type of code, so that objects of them are found.
            let runtime = Runtime {
                layout,
                interpreter: memory[3],
                holder: match minor {
                    12 => HolderWords::Last(begin + 8, begin + 16),
                    _ => HolderWords::Pointer(begin + 8),
                },
                code_type: memory[5],
            };
            let own = std::process::id();
            let mut snapshot = Snapshot::new(own.cast_signed(), Memory::open(own).unwrap());
            let mut codes = Codes::default();
            for _ in 0..2 {
                snapshot.renew();
                runtime.holder(&mut snapshot);
                runtime.main(&mut snapshot);
                for at in 0..20 {
                    let mut frames = Vec::new();
                    runtime.frames(begin + 8 * at, &mut snapshot, &mut frames);
                    prop_assert!(frames.len() <= MOST_FRAMES);
                    for frame in frames.iter().take(50) {
                        if let Some(code) =
                            codes.get(frame.code, runtime.code_type, &layout, &mut snapshot)
                        {
                            code.line(frame.offset(&layout));
                        }
                    }
                }
            }
        }
    }
}
