//! What the code stands on: the standard library's atomics, or loom's in the models (`--cfg loom`).

#[cfg(not(loom))]
pub(crate) use {
    crossbeam_queue::SegQueue,
    std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence},
};

#[cfg(loom)]
pub(crate) use {
    self::stand_in::SegQueue,
    loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence},
};

/// A size, and what it is in the models, which create and explore every word.
pub(crate) const fn sized(real: usize, in_models: usize) -> usize {
    if cfg!(loom) { in_models } else { real }
}

#[cfg(loom)]
mod stand_in {
    use std::collections::VecDeque;

    use loom::sync::Mutex;

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
