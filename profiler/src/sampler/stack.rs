//! The stack of a sample: its copy in the sample and, above that, the thread's current memory. Frames that far up
//! change slowly; callers check that the links still match.

use crate::arch;
use crate::memory::Memory;
use crate::perf_event::{NO_ADDRESS, Sample};

/// Bytes for each read.
const CHUNK: usize = 4096;

/// The return address of a frame. It is the word above the saved frame pointer. HotSpot's stub for the barrier at a method's
/// entry has a -1 between the two on x86-64.
pub(super) fn return_address(frame: u64, mut word: impl FnMut(u64) -> Option<u64>) -> Option<u64> {
    match word(frame.checked_add(8)?)? {
        NO_ADDRESS => word(frame.checked_add(16)?).map(arch::code_address),
        address => Some(arch::code_address(address)),
    }
}

/// Words of a stack by address.
pub(super) struct Stack<'a> {
    sample: &'a Sample<'a>,
    memory: Option<&'a Memory>,
    /// Empty until something is read: most samples' copies are sufficient.
    chunk: Vec<u8>,
    /// Address and length of the content of `chunk`.
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

    /// The code from an address on, if memory can be read. Code that the JVM has not changed since.
    pub(super) fn code<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        self.memory?.array(address)
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
            let offset = usize::try_from(address.checked_sub(held.0)?).ok()?;
            (offset + 8 <= held.1).then_some(offset)
        };
        if inside(self.held).is_none() {
            let from = address & !(CHUNK as u64 - 1);
            self.chunk.resize(CHUNK, 0);
            self.held = (from, memory.read(&mut self.chunk, from));
        }
        let offset = inside(self.held)?;
        let word = self.chunk.get(offset..offset + 8)?;
        word.try_into().ok().map(u64::from_ne_bytes)
    }
}
