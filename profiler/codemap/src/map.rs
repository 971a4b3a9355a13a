//! The map as its creator holds it.

use std::io;

use crate::arena::{Words, header};
use crate::marks::Marks;
use crate::reader::Reader;
use crate::shared::SharedMapping;
use crate::status::Status;
use crate::sync::{Ordering, sized};
use crate::writer::{Local, Writer};

/// Smallest map that holds the header and some code.
const SMALLEST: usize = (header::BLOCKS + sized(32_768, 72)) * 8;

/// A code map in shared memory. Forked processes share it; only the creating process may write.
pub struct CodeMap {
    shared: SharedMapping,
    local: Local,
}

/// Counters of a map.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Ranges inserted.
    pub inserted: u64,
    /// Ranges unloaded.
    pub unloaded: u64,
    /// Blocks recycled.
    pub recycled: u64,
    /// Ranges that did not fit.
    pub dropped_full: u64,
    /// Bytes handed out so far, of all.
    pub used_bytes: u64,
}

impl Stats {
    /// Words at the start of a map that hold its counters.
    pub const WORDS: usize = header::STATUS;

    /// The counters in the first words of a map, as they were read from another process.
    pub fn from_words(words: &[u64]) -> Self {
        Self::from_counters(|index| words.get(index).copied().unwrap_or(0))
    }

    fn from_counters(word: impl Fn(usize) -> u64) -> Self {
        Self {
            inserted: word(header::INSERTED),
            unloaded: word(header::UNLOADED),
            recycled: word(header::RECYCLED),
            dropped_full: word(header::DROPPED_FULL),
            used_bytes: 8 * word(header::BUMP),
        }
    }
}

impl CodeMap {
    /// A map of `bytes` of address space; memory is used as it fills. At least 1.3 MiB.
    pub fn create(bytes: usize) -> io::Result<Self> {
        let shared = SharedMapping::create(bytes.max(SMALLEST))?;
        shared.words()[header::BUMP].store(header::BLOCKS as u64, Ordering::Release);
        Ok(Self {
            shared,
            local: Local::default(),
        })
    }

    /// A map of `bytes` that another process is to write: its memory can be handed over as the descriptor.
    #[cfg(not(any(loom, miri)))]
    pub fn create_for_another(bytes: usize) -> io::Result<(Self, std::os::fd::OwnedFd)> {
        let (shared, memory) = SharedMapping::create_sealed(bytes.max(SMALLEST))?;
        shared.words()[header::BUMP].store(header::BLOCKS as u64, Ordering::Release);
        let map = Self {
            shared,
            local: Local::default(),
        };
        Ok((map, memory))
    }

    /// The map behind a descriptor of [`CodeMap::create_for_another`]; the caller is its only writer.
    ///
    /// # Errors
    /// If the memory is too small, or could be made so while it is in use.
    #[cfg(not(any(loom, miri)))]
    pub fn from_descriptor(memory: std::os::fd::OwnedFd) -> io::Result<Self> {
        let shared = SharedMapping::open_sealed(memory, SMALLEST)?;
        Ok(Self {
            shared,
            local: Local::default(),
        })
    }

    /// The writing side; any thread of the creating process.
    pub fn writer(&self) -> Writer<'_> {
        Writer::new(self.shared.words(), &self.local)
    }

    /// The reading side; any process that shares the memory.
    pub fn reader(&self) -> Reader<'_> {
        Reader::new(self.shared.words())
    }

    /// The task marks.
    pub fn marks(&self) -> Marks<'_> {
        Marks::new(self.shared.words())
    }

    /// The status words.
    pub fn status(&self) -> Status<'_> {
        Status::new(self.shared.words())
    }

    /// Raised by every insert and unload.
    pub fn version(&self) -> u64 {
        self.shared.words().acquire(header::VERSION)
    }

    /// The counters.
    pub fn stats(&self) -> Stats {
        Stats::from_counters(|index| self.shared.words().load(index))
    }

    #[cfg(test)]
    pub(crate) fn words(&self) -> &[crate::sync::AtomicU64] {
        self.shared.words()
    }
}
