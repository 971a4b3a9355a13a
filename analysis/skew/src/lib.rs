//! Finds slow tasks and their causes.
//!
//! A stage ends with its last task. If one of a hundred tasks takes ten times as long as the others, most of the
//! cluster waits for it. It may have ten times the data (*data skew*); or as much data as the others, but some
//! expensive records (*computation skew*, Teoh, Gulzar, Xu, Kim: *PerfDebug: Performance Debugging of Computation Skew
//! in Dataflow Systems*, SoCC 2019); or its JVM collected garbage, its host is slow, its blocks came late. Each cause
//! needs another remedy.
//!
//! * [`Run`]: data on a run's stages and tasks, from an event log ([`from_event_log`]) or a profile ([`from_profile`]).
//! * [`detect()`]: for each stage a [`Finding`]: whether it is skewed, the cause, its certainty, the slow tasks, and
//!   the cost.
//!
//! ```
//! use unfuse_skew::*;
//!
//! let mut stage = Stage { stage: 3, ..Stage::default() };
//! for index in 0..32 {
//!     let ms = if index == 7 { 9000 } else { 1000 + 7 * (index as i64 % 5) };
//!     stage.attempts.push(Task {
//!         index,
//!         task: index.into(),
//!         succeeded: true,
//!         finished_ms: ms,
//!         run_ms: ms as u64,
//!         cpu_ns: ms as u64 * 1_000_000,
//!         read_records: 1000,
//!         read_bytes: 80_000,
//!         ..Task::default()
//!     });
//! }
//! let finding = detect(&stage, &Options::default());
//! assert_eq!(finding.verdict, Verdict::Skewed(Cause::Computation));
//! assert_eq!(finding.tasks[0].index, 7);
//! assert!(finding.tasks[0].slower_ms > 7900.0);
//! ```

mod detect;
mod facts;
mod input;

pub use detect::{Cause, Finding, HangingTask, Measure, Options, Part, SlowTask, Verdict, detect};
pub use facts::{Run, RunningTask, Stage, Task};
pub use input::{from_event_log, from_profile};
