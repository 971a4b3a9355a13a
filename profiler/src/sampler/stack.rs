//! The stack of a sample: the copy that came with it, and above that what the thread's memory holds
//! now. Frames that far up change slowly; whoever reads there checks that the links still fit.

use crate::memory::Memory;
use crate::perf_event::{NO_ADDRESS, Sample};

/// Bytes read at once.
const CHUNK: usize = 4096;

/// The return address of a frame. In HotSpot's stub for the barrier at a method's entry, -1 stands between
/// it and the saved frame pointer.
pub(super) fn return_address(frame: u64, mut word: impl FnMut(u64) -> Option<u64>) -> Option<u64> {
    match word(frame.checked_add(8)?)? {
        NO_ADDRESS => word(frame.checked_add(16)?),
        address => Some(address),
    }
}

/// Words of a stack by address.
pub(super) struct Stack<'a> {
    sample: &'a Sample<'a>,
    memory: Option<&'a Memory>,
    /// Empty until something is read: most samples' copies reach far enough.
    chunk: Vec<u8>,
    /// Address and length of what is in the chunk.
    held: (u64, usize),
}

impl<'a> Stack<'a> {
    pub(super) fn new(sample: &'a Sample<'a>, memory: Option<&'a Memory>) -> Self {
        Self {
            sample,
            memory,
            chunk: Vec::new(),
            held: (0, 0),
        }
    }

    /// The first address above the copy.
    pub(super) fn copy_end(&self) -> u64 {
        self.sample.stack_pointer + 8 * self.sample.stack().count() as u64
    }

    /// The return address of a frame.
    pub(super) fn return_address(&mut self, frame: u64) -> Option<u64> {
        return_address(frame, |address| self.word(address))
    }

    /// The word at an address, from the copy or from memory.
    pub(super) fn word(&mut self, address: u64) -> Option<u64> {
        if let Some(word) = self.sample.stack_word(address) {
            return Some(word);
        }
        let memory = self
            .memory
            .filter(|_| address >= self.sample.stack_pointer && address.is_multiple_of(8))?;
        let inside = |held: (u64, usize)| {
            let at = usize::try_from(address.checked_sub(held.0)?).ok()?;
            (at + 8 <= held.1).then_some(at)
        };
        if inside(self.held).is_none() {
            let from = address & !(CHUNK as u64 - 1);
            self.chunk.resize(CHUNK, 0);
            self.held = (from, memory.read(&mut self.chunk, from));
        }
        let at = inside(self.held)?;
        let word = self.chunk.get(at..at + 8)?;
        word.try_into().ok().map(u64::from_ne_bytes)
    }
}
