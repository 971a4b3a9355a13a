//! The path to a record, with its latency.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

/// A record that a task read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordRef {
    /// The task attempt, as an index in [`TaskTraces`](crate::TaskTraces).
    pub trace: u32,
    /// Its source.
    pub source: i32,
    /// The record's position in the source, from 0; [`SEVERAL`] for an output of several records.
    pub position: i64,
}

/// The position of an output of several records.
pub const SEVERAL: i64 = -1;

/// The slowest path from an input of the program to a record, with its latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordPath {
    /// The largest end-to-end latency of its inputs, ns.
    pub base_ns: i64,
    /// Its latency in the stage that made it, ns.
    pub own_ns: i64,
    /// The input of the program at which the path begins.
    pub root: RecordRef,
    /// Time at that input, ns.
    pub root_ns: i64,
    /// The slowest step.
    pub peak: RecordRef,
    /// Its time, ns.
    pub peak_ns: i64,
    /// Number of the program's inputs that it came from; an input on several paths counts several times.
    pub lineage: u64,
}

impl RecordPath {
    /// End-to-end latency, ns.
    pub fn ns(&self) -> i64 {
        self.base_ns.saturating_add(self.own_ns)
    }

    /// The path of an input of the program, with its time.
    pub(crate) fn from_input(record: RecordRef, own_ns: i64) -> Self {
        Self {
            base_ns: 0,
            own_ns,
            root: record,
            root_ns: own_ns,
            peak: record,
            peak_ns: own_ns,
            lineage: 1,
        }
    }

    /// Adds a step to the path.
    pub(crate) fn then(&self, record: RecordRef, own_ns: i64) -> Self {
        Self {
            base_ns: self.ns(),
            ..self.by_itself(record, own_ns)
        }
    }

    /// The path to one of several outputs of the same records, with its own time.
    pub(crate) fn by_itself(&self, record: RecordRef, own_ns: i64) -> Self {
        let (peak, peak_ns) = if own_ns > self.peak_ns {
            (record, own_ns)
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

    /// The slower of two paths, with the inputs of both.
    pub(crate) fn or(&self, other: &Self) -> Self {
        let lineage = self.lineage.saturating_add(other.lineage);
        let slower = if other.rank() < self.rank() {
            other
        } else {
            self
        };
        Self { lineage, ..*slower }
    }

    /// The slowest path is the least. Among equally long paths the order of input does not matter; the Spark job orders
    /// its structs in the same way.
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

/// Values of a key that a task merges before it writes them: the time of all functions, after the slowest value.
pub(crate) struct MergedPath {
    /// The slowest single value, which is responsible.
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
