//! The stack of a sample: its copy in the sample and, above that, the thread's current memory. Frames that far up
//! change slowly; callers check that the links still match.

use crate::arch;
use crate::memory::Pages;
use crate::perf_event::{NO_ADDRESS, Sample};

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
    /// The process's memory since the start of the batch of samples.
    memory: Option<&'a mut Pages>,
}

impl<'a> Stack<'a> {
    pub(super) fn new(sample: &'a Sample<'a>, memory: Option<&'a mut Pages>) -> Self {
        Self { sample, memory }
    }

    /// The first address above the copy.
    pub(super) fn copy_end(&self) -> u64 {
        self.sample.stack_pointer + 8 * self.sample.stack().count() as u64
    }

    /// The code from an address on, if memory can be read. Code that the JVM has not changed since.
    pub(super) fn code<const N: usize>(&mut self, address: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        let read = self.memory.as_mut()?.read(&mut bytes, address);
        (read == N).then_some(bytes)
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
        let is_above = address >= self.sample.stack_pointer && address.is_multiple_of(8);
        let memory = self.memory.as_mut().filter(|_| is_above)?;
        memory.word(address)
    }
}
