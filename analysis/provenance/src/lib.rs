//! Finds the inputs of each result, and the records that took the time.
//!
//! With `--records`, a run stores for each task what it read and made, how long its code took for each record, and from
//! which inputs each output came. [`propagate()`] follows this from the program's inputs to its results, as in Teoh,
//! Gulzar, Xu, Kim: *PerfDebug: Performance Debugging of Computation Skew in Dataflow Systems* (SoCC 2019):
//!
//! * a record's latency in a stage is the time of the functions that processed it plus, after a shuffle, a part of the
//!   partition's shuffle latency in proportion to the number of records read for it;
//! * its end-to-end latency is that plus the largest end-to-end latency of its inputs;
//! * it comes with the first input of this path (the *expensive input*) and, as our addition, the slowest step of the
//!   path.
//!
//! Tables may be larger than memory: the outputs of one stage and the inputs of the next are joined in buckets of their
//! ids, on disk if necessary, and tasks are processed one by one. If a machine is too small, a job on Spark does the
//! same ([`spark`]).

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
