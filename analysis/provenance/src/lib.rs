//! Which records a result came from, and which of them took the time.
//!
//! A run with `--records` leaves, for each task, what it read and what it made, how long its code took for each record, and which
//! of those read each one made came from. [`propagate()`] follows that from the program's inputs to its results, as in Teoh, Gulzar, Xu,
//! Kim: *PerfDebug: Performance Debugging of Computation Skew in Dataflow Systems* (SoCC 2019):
//!
//! * a record's latency in a stage is the time of the functions it went through plus, behind a shuffle, the partition's shuffle
//!   latency in proportion to how many records were read for it;
//! * its end-to-end latency is that plus the largest end-to-end latency of those it came from;
//! * beside it goes the input that this path began with (the *expensive input*), and, which is ours, the step of the path that took most.
//!
//! Tables may be larger than memory: what one stage makes and the next one reads meets in buckets of its id, on disk where there is
//! much, and tasks are looked at one by one. Where they outgrow the machine, a job on Spark does the same ([`spark`]).

mod buckets;
mod error;
mod places;
mod propagate;
mod record_path;
pub mod spark;
mod stream;
mod traces;

pub use error::ProvenanceError;
pub use places::{Places, RecordPlace, Texts};
pub use propagate::{InputRecord, Options, Outcome, SlowOutput, propagate};
pub use record_path::{RecordPath, RecordRef, SEVERAL};
pub use traces::{TaskTrace, TaskTraces};
