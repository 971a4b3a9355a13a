//! The path to a record: its latency, and where that comes from.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

/// A record that a task read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordRef {
    /// The task attempt, by its place in [`TaskTraces`](crate::TaskTraces).
    pub trace: u32,
    /// The source of it.
    pub source: i32,
    /// The record's position there, from 0; [`SEVERAL`] where it is what was made of several.
    pub position: i64,
}

/// The position of what was made of several records.
pub const SEVERAL: i64 = -1;

/// The slowest way from an input of the program to a record, with its latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordPath {
    /// End-to-end latency of what it came from, ns: the largest.
    pub base_ns: i64,
    /// Its latency in the stage that made it, ns.
    pub own_ns: i64,
    /// The input of the program that the slowest way begins with.
    pub root: RecordRef,
    /// Time at that input, ns.
    pub root_ns: i64,
    /// The step that took the most time.
    pub peak: RecordRef,
    /// Its time, ns.
    pub peak_ns: i64,
    /// How many inputs of the program it came from, those that it came from on several ways more than once.
    pub lineage: u64,
}

impl RecordPath {
    /// End-to-end latency, ns.
    pub fn ns(&self) -> i64 {
        self.base_ns.saturating_add(self.own_ns)
    }

    /// An input of the program that took so long.
    pub(crate) fn from_input(at: RecordRef, own_ns: i64) -> Self {
        Self {
            base_ns: 0,
            own_ns,
            root: at,
            root_ns: own_ns,
            peak: at,
            peak_ns: own_ns,
            lineage: 1,
        }
    }

    /// One more step behind this one.
    pub(crate) fn then(&self, at: RecordRef, own_ns: i64) -> Self {
        Self {
            base_ns: self.ns(),
            ..self.by_itself(at, own_ns)
        }
    }

    /// One of several that were made of the same, which took so long by itself.
    pub(crate) fn by_itself(&self, at: RecordRef, own_ns: i64) -> Self {
        let (peak, peak_ns) = if own_ns > self.peak_ns {
            (at, own_ns)
        } else {
            (self.peak, self.peak_ns)
        };
        Self {
            own_ns,
            peak,
            peak_ns,
            ..*self
        }
    }

    /// The slower of two ways; both count as ways.
    pub(crate) fn or(&self, other: &Self) -> Self {
        let lineage = self.lineage.saturating_add(other.lineage);
        let slower = if other.rank() < self.rank() {
            other
        } else {
            self
        };
        Self { lineage, ..*slower }
    }

    /// The slowest way is the least. Of ways that took as long it is the same one in whatever order they come; the Spark job has its
    /// structs in this order.
    fn rank(&self) -> impl Ord + use<> {
        (
            Reverse(self.ns()),
            self.root,
            self.peak,
            self.base_ns,
            self.root_ns,
            self.peak_ns,
        )
    }
}

/// Values of a key that a task merges before they are written: the functions of all, behind the slowest.
pub(crate) struct MergedPath {
    /// The slowest of them by itself: that one is responsible.
    slowest: RecordPath,
    base_ns: i64,
    own_ns: i64,
    lineage: u64,
}

impl MergedPath {
    pub(crate) fn new(first: RecordPath) -> Self {
        Self {
            slowest: first,
            base_ns: first.base_ns,
            own_ns: first.own_ns,
            lineage: first.lineage,
        }
    }

    pub(crate) fn add(&mut self, value: &RecordPath) {
        if value.rank() < self.slowest.rank() {
            self.slowest = *value;
        }
        self.base_ns = self.base_ns.max(value.base_ns);
        self.own_ns = self.own_ns.saturating_add(value.own_ns);
        self.lineage = self.lineage.saturating_add(value.lineage);
    }

    pub(crate) fn path(&self) -> RecordPath {
        RecordPath {
            base_ns: self.base_ns,
            own_ns: self.own_ns,
            lineage: self.lineage,
            ..self.slowest
        }
    }
}
