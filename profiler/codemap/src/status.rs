//! A few words by which our processes tell the JVM how they are.

use crate::arena::header::{STATUS, STATUS_WORDS};
use crate::sync::{AtomicU64, Ordering};

/// Status words; what each means is the users' business. A slot out of range is no slot.
#[derive(Clone, Copy)]
pub struct Status<'a> {
    words: &'a [AtomicU64],
}

impl<'a> Status<'a> {
    pub(crate) fn new(words: &'a [AtomicU64]) -> Self {
        Self {
            words: &words[STATUS..STATUS + STATUS_WORDS],
        }
    }

    /// The value of a slot.
    pub fn get(&self, slot: usize) -> u64 {
        self.words
            .get(slot)
            .map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Sets a slot.
    pub fn set(&self, slot: usize, value: u64) {
        if let Some(word) = self.words.get(slot) {
            word.store(value, Ordering::Release);
        }
    }

    /// Adds to a slot.
    pub fn add(&self, slot: usize, value: u64) {
        if let Some(word) = self.words.get(slot) {
            word.fetch_add(value, Ordering::AcqRel);
        }
    }
}
