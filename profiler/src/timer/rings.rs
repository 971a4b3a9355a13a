//! A ring for each timed thread, in memory shared with the samplers.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous};

use unfuse_codemap::SharedMapping;

use super::thread::ThreadTimer;

/// Maximum number of timed threads; pages are only allocated when touched.
const SLOTS: usize = 1024;
/// Words of one slot: header and data.
const SLOT_WORDS: usize = 8192;
const HEADER_WORDS: usize = 8;
const DATA_WORDS: usize = SLOT_WORDS - HEADER_WORDS;

/// Words of the header.
const OWNER: usize = 0;
const HEAD: usize = 1;
const TAIL: usize = 2;
const LOST: usize = 3;
const STACK_END: usize = 4;
const CPU_AT_START: usize = 5;
const PAUSED: usize = 6;

/// Marks a slot whose thread has ended and whose sampler has not read the rest yet.
const RELEASED: u64 = u64::MAX;
/// Marks a slot without a reader, whose thread still ticks.
const ABANDONED: u64 = u64::MAX - 1;

/// All rings. The mapping is shared with forked processes and lives as long as the process.
#[derive(Debug, Clone, Copy)]
pub struct TimerRings {
    words: &'static [AtomicU64],
}

impl TimerRings {
    /// Reserves the memory.
    pub fn create() -> io::Result<Self> {
        let bytes = NonZeroUsize::MIN.saturating_add(SLOTS * SLOT_WORDS * 8 - 1);
        let flags = MapFlags::MAP_SHARED | MapFlags::MAP_NORESERVE;
        // SAFETY: a fresh mapping chosen by the kernel aliases nothing.
        let base = unsafe {
            mmap_anonymous(
                None,
                bytes,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                flags,
            )
        }?;
        // SAFETY: the mapping is page-aligned, zeroed, never unmapped, and only accessed atomically.
        let words = unsafe { std::slice::from_raw_parts(base.as_ptr().cast(), SLOTS * SLOT_WORDS) };
        Ok(Self { words })
    }

    /// Reserves the memory, and returns it with the descriptor by which another process maps it.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn create_for_another() -> io::Result<(Self, OwnedFd)> {
        let (mapping, memory) = SharedMapping::create_sealed(SLOTS * SLOT_WORDS * 8)?;
        Ok((Self::from_mapping(mapping), memory))
    }

    /// The rings behind a descriptor of [`Self::create_for_another`].
    ///
    /// # Errors
    /// If the memory is too small, or could be made so while it is in use.
    pub(crate) fn from_descriptor(memory: OwnedFd) -> io::Result<Self> {
        let mapping = SharedMapping::open_sealed(memory, SLOTS * SLOT_WORDS * 8)?;
        Ok(Self::from_mapping(mapping))
    }

    fn from_mapping(mapping: SharedMapping) -> Self {
        // Signal handlers use the memory until the process ends.
        let words = &Box::leak(Box::new(mapping)).words()[..SLOTS * SLOT_WORDS];
        Self { words }
    }

    /// Takes a free slot for the calling thread and starts its timer. `None` if no slot is free or the system refuses
    /// the timer.
    pub fn start(&self, tid: u32, period_ns: u64) -> Option<ThreadTimer> {
        let (stack, stack_end) = super::thread::stack_bounds()?;
        let index = (0..SLOTS as u32).find(|index| {
            let owner = &self.slot(*index).words[OWNER];
            owner
                .compare_exchange(0, u64::from(tid), Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        })?;
        let slot = self.slot(index);
        slot.words[TAIL].store(slot.words[HEAD].load(Ordering::Relaxed), Ordering::Relaxed);
        slot.words[STACK_END].store(stack_end, Ordering::Relaxed);
        slot.words[PAUSED].store(0, Ordering::Relaxed);
        slot.words[CPU_AT_START].store(crate::clock::thread_cpu_ns(), Ordering::Relaxed);
        debug_assert!(stack < stack_end);
        let timer = ThreadTimer::start(*self, index, tid, period_ns);
        if timer.is_none() {
            slot.words[OWNER].store(0, Ordering::Release);
        }
        timer
    }

    /// A slot. An index out of range is the last one.
    pub fn slot(&self, index: u32) -> Slot<'static> {
        let start = (index as usize).min(SLOTS - 1) * SLOT_WORDS;
        Slot {
            words: &self.words[start..start + SLOT_WORDS],
        }
    }
}

/// A sample as the handler wrote it.
#[derive(Debug)]
pub struct TimerSample {
    /// CLOCK_MONOTONIC ns.
    pub time: u64,
    /// CPU time of the thread, ns.
    pub cpu_time: u64,
    /// The top of the stack (`TOP_WORDS` words), then addresses, leaf first.
    pub chain: Vec<u64>,
}

/// The ring of one thread: one producer (its signal handler), one consumer (its sampler).
#[derive(Debug, Clone, Copy)]
pub struct Slot<'a> {
    words: &'a [AtomicU64],
}

impl Slot<'_> {
    /// End address of the thread's stack.
    pub(super) fn stack_end(&self) -> u64 {
        self.words[STACK_END].load(Ordering::Relaxed)
    }

    /// Whether ticks are to be ignored.
    pub(super) fn is_paused(&self) -> bool {
        self.words[PAUSED].load(Ordering::Relaxed) != 0
    }

    /// Has the handler ignore ticks, or not.
    pub fn set_paused(&self, paused: bool) {
        self.words[PAUSED].store(u64::from(paused), Ordering::Relaxed);
    }

    /// CPU time of the thread when its timer started, ns.
    pub fn cpu_time_at_start(&self) -> u64 {
        self.words[CPU_AT_START].load(Ordering::Relaxed)
    }

    /// Whether the thread has ended.
    pub fn is_released(&self) -> bool {
        self.words[OWNER].load(Ordering::Acquire) == RELEASED
    }

    /// Marks the thread as ended; the sampler frees the slot after reading the rest.
    pub(super) fn release(&self) {
        self.leave(ABANDONED, RELEASED);
    }

    /// Marks the sampler as ended; the slot is free for another thread once its own has ended, too.
    pub fn free(&self) {
        self.leave(RELEASED, ABANDONED);
    }

    /// The last of the two to leave frees the slot.
    fn leave(&self, other_left: u64, left: u64) {
        let _ = self.words[OWNER].fetch_update(Ordering::AcqRel, Ordering::Acquire, |owner| {
            Some(if owner == other_left { 0 } else { left })
        });
    }

    /// Samples lost for lack of space since the last call.
    pub fn take_lost(&self) -> u64 {
        self.words[LOST].swap(0, Ordering::Relaxed)
    }

    fn data(&self, position: u64) -> &AtomicU64 {
        &self.words[HEADER_WORDS + position as usize % DATA_WORDS]
    }

    /// Adds a sample. Async-signal-safe; called by the owning thread only.
    pub(super) fn push(&self, time: u64, cpu_time: u64, chain: &[u64]) {
        let head = self.words[HEAD].load(Ordering::Relaxed);
        let used = head.wrapping_sub(self.words[TAIL].load(Ordering::Acquire));
        let needed = 3 + chain.len() as u64;
        if used + needed > DATA_WORDS as u64 {
            self.words[LOST].fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.data(head).store(chain.len() as u64, Ordering::Relaxed);
        self.data(head + 1).store(time, Ordering::Relaxed);
        self.data(head + 2).store(cpu_time, Ordering::Relaxed);
        for (position, address) in (head + 3..).zip(chain) {
            self.data(position).store(*address, Ordering::Relaxed);
        }
        self.words[HEAD].store(head + needed, Ordering::Release);
    }

    /// Reads every sample and frees its space.
    pub fn drain(&self, mut each: impl FnMut(TimerSample)) {
        let head = self.words[HEAD].load(Ordering::Acquire);
        let mut tail = self.words[TAIL].load(Ordering::Relaxed);
        while tail < head {
            let frames = self.data(tail).load(Ordering::Relaxed);
            if tail + 3 + frames > head {
                tail = head;
                break;
            }
            each(TimerSample {
                time: self.data(tail + 1).load(Ordering::Relaxed),
                cpu_time: self.data(tail + 2).load(Ordering::Relaxed),
                chain: (tail + 3..tail + 3 + frames)
                    .map(|position| self.data(position).load(Ordering::Relaxed))
                    .collect(),
            });
            tail += 3 + frames;
        }
        self.words[TAIL].store(tail, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_free_when_both_its_thread_and_its_sampler_have_ended() {
        let rings = TimerRings::create().unwrap();
        let slot = rings.slot(0);
        for sampler_first in [true, false] {
            slot.words[OWNER].store(42, Ordering::Relaxed);
            let owner = || slot.words[OWNER].load(Ordering::Relaxed);
            if sampler_first {
                slot.free();
                assert_ne!(owner(), 0, "its thread still writes");
                slot.release();
            } else {
                slot.release();
                assert!(slot.is_released());
                slot.free();
            }
            assert_eq!(owner(), 0);
        }
    }

    #[test]
    fn another_mapping_of_the_memory_has_the_same_samples() {
        let (rings, memory) = TimerRings::create_for_another().unwrap();
        let other = TimerRings::from_descriptor(memory).unwrap();
        other.slot(5).push(1, 2, &[3, 4]);
        let mut read = Vec::new();
        rings
            .slot(5)
            .drain(|sample| read.push((sample.time, sample.cpu_time, sample.chain)));
        assert_eq!(read, [(1, 2, vec![3, 4])]);
        let (_, small) = SharedMapping::create_sealed(4096).unwrap();
        assert!(TimerRings::from_descriptor(small).is_err());
    }

    #[test]
    fn samples_come_out_as_they_went_in_and_a_full_ring_counts() {
        let rings = TimerRings::create().unwrap();
        let slot = rings.slot(3);
        for round in 0..5u64 {
            let mut pushed = 0;
            while slot.take_lost() == 0 {
                slot.push(pushed, round, &[pushed, 7, 9]);
                pushed += 1;
            }
            let mut read = 0;
            slot.drain(|sample| {
                assert_eq!((sample.time, sample.cpu_time), (read, round));
                assert_eq!(sample.chain, [read, 7, 9]);
                read += 1;
            });
            assert_eq!(read + 1, pushed, "all but the one that found no room");
        }
    }
}
