//! What the code stands on: the standard library's atomics, or loom's in the models (`--cfg loom`).

#[cfg(not(loom))]
pub(crate) use {
    crossbeam_queue::SegQueue,
    std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence},
};

#[cfg(loom)]
pub(crate) use {
    self::stand_in::{AtomicU64, SegQueue},
    loom::sync::atomic::{AtomicUsize, Ordering, fence},
};

/// A size, and what it is in the models, which create and explore every word.
pub(crate) const fn sized(real: usize, in_models: usize) -> usize {
    if cfg!(loom) { in_models } else { real }
}

#[cfg(loom)]
mod stand_in {
    use std::collections::VecDeque;
    use std::ops::Deref;

    use loom::sync::Mutex;
    use loom::sync::atomic::{self, AtomicBool, Ordering};

    /// loom's, but two loads count as depending on their order. loom remembers only the last access to
    /// a word, so where one thread loads it and another then loads and changes it, it would not think
    /// of trying the change before the first load.
    pub(crate) struct AtomicU64 {
        word: atomic::AtomicU64,
        turn: AtomicBool,
    }

    impl AtomicU64 {
        pub(crate) fn new(value: u64) -> Self {
            Self {
                word: atomic::AtomicU64::new(value),
                turn: AtomicBool::new(false),
            }
        }

        pub(crate) fn load(&self, order: Ordering) -> u64 {
            // Nobody reads it: it orders nothing.
            self.turn.store(true, Ordering::Relaxed);
            self.word.load(order)
        }

        pub(crate) fn fetch_update(
            &self,
            set: Ordering,
            fetch: Ordering,
            mut change: impl FnMut(u64) -> Option<u64>,
        ) -> Result<u64, u64> {
            let mut known = self.load(fetch);
            while let Some(next) = change(known) {
                match self.word.compare_exchange(known, next, set, fetch) {
                    Ok(_) => return Ok(known),
                    Err(other) => known = other,
                }
            }
            Err(known)
        }
    }

    impl Default for AtomicU64 {
        fn default() -> Self {
            Self::new(0)
        }
    }

    impl Deref for AtomicU64 {
        type Target = atomic::AtomicU64;

        fn deref(&self) -> &Self::Target {
            &self.word
        }
    }

    /// crossbeam's queue is not made of loom's atomics, so loom would not see what it orders. The lock
    /// orders more: a `pop` before later `push`es too, which nothing here relies on.
    pub(crate) struct SegQueue<T>(Mutex<VecDeque<T>>);

    impl<T> SegQueue<T> {
        pub(crate) fn new() -> Self {
            Self(Mutex::new(VecDeque::new()))
        }

        pub(crate) fn push(&self, value: T) {
            self.0.lock().unwrap().push_back(value);
        }

        pub(crate) fn pop(&self) -> Option<T> {
            self.0.lock().unwrap().pop_front()
        }

        pub(crate) fn is_empty(&self) -> bool {
            self.0.lock().unwrap().is_empty()
        }
    }
}
