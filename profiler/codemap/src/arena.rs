//! The shared memory: words that are only ever accessed atomically, and the layout of the first ones.
//!
//! No reference to plain shared bytes exists anywhere, so no race is undefined behaviour; what a
//! reader makes of words that change under it is decided by the checks in `reader`.

use crate::sync::{AtomicU64, Ordering, sized};

/// Words of the header.
pub(crate) mod header {
    use super::sized;

    /// First word not yet handed out.
    pub(crate) const BUMP: usize = 1;
    /// Raised by every insert and unload.
    pub(crate) const VERSION: usize = 2;
    /// Raised before recycled blocks may be overwritten.
    pub(crate) const RECLAIM_SEQ: usize = 3;
    /// Bytes of the largest range.
    pub(crate) const MAX_SIZE: usize = 4;
    /// Counters, see [`crate::Stats`].
    pub(crate) const INSERTED: usize = 5;
    pub(crate) const UNLOADED: usize = 6;
    pub(crate) const RECYCLED: usize = 7;
    pub(crate) const DROPPED_FULL: usize = 8;
    /// Not 0 when a record found no room in the index.
    pub(crate) const UNINDEXED: usize = 9;
    /// Status words.
    pub(crate) const STATUS: usize = sized(32, 10);
    pub(crate) const STATUS_WORDS: usize = sized(32, 1);
    /// Tower of the list's head.
    pub(crate) const HEAD: usize = sized(64, 11);
    /// The mark ring; smaller under miri, where the tests fill it word by word.
    pub(crate) const MARKS: usize = sized(128, 13);
    pub(crate) const MARK_ENTRIES: usize = sized(if cfg!(miri) { 1088 } else { 16_384 }, 2);
    pub(crate) const MARK_WORDS: usize = 8;
    /// The index's pages; more than HotSpot's largest code cache has (2 GiB).
    pub(crate) const DIRECTORY: usize = MARKS + 8 + MARK_ENTRIES * MARK_WORDS;
    pub(crate) const DIRECTORY_ENTRIES: usize = sized(2048, 2);
    /// First word of the blocks, at the start of a cache line.
    pub(crate) const BLOCKS: usize = DIRECTORY + DIRECTORY_ENTRIES;
}

/// Reading words at offsets that may be garbage: one out of range reads as zero.
pub(crate) trait Words {
    fn load(&self, index: usize) -> u64;

    /// As [`Words::load`], acquiring what was published with the word.
    fn acquire(&self, index: usize) -> u64;
}

impl Words for [AtomicU64] {
    fn load(&self, index: usize) -> u64 {
        self.get(index)
            .map_or(0, |word| word.load(Ordering::Relaxed))
    }

    fn acquire(&self, index: usize) -> u64 {
        self.get(index)
            .map_or(0, |word| word.load(Ordering::Acquire))
    }
}

/// The last block keeps this distance from the end, more than a node, which spares readers a check.
const SPARE: u64 = sized(32, 8) as u64;

/// Words never handed out before, all zero; none if the arena is full.
pub(crate) fn bump(words: &[AtomicU64], size: usize) -> Option<usize> {
    let (size, end) = (size as u64, words.len() as u64 - SPARE);
    words[header::BUMP]
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, |offset| {
            (offset.checked_add(size)? <= end).then_some(offset + size)
        })
        .ok()
        .map(|offset| offset as usize)
}
