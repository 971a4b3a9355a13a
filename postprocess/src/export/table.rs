//! Tables of distinct values that others refer to by index, as in most profile formats.

use std::hash::Hash;

use indexmap::IndexSet;

/// Distinct values in the order of insertion.
#[derive(Debug)]
pub(super) struct Table<T>(IndexSet<T>);

impl<T: Eq + Hash> Table<T> {
    pub(super) fn new() -> Self {
        Self(IndexSet::new())
    }

    /// A table with a first value, for formats whose index 0 means "none".
    pub(super) fn starting_with(value: T) -> Self {
        Self(IndexSet::from([value]))
    }

    /// The index of a value, which is inserted if it is new.
    pub(super) fn index(&mut self, value: T) -> usize {
        self.0.insert_full(value).0
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &T> {
        self.0.iter()
    }

    pub(super) fn into_values(self) -> Vec<T> {
        self.0.into_iter().collect()
    }
}
