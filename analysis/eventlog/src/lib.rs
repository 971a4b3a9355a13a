//! Spark's event logs as a stream of typed events.
//!
//! With `spark.eventLog.enabled` a driver writes each event of its listener bus as a line of JSON: a job or stage
//! starts, a task ends, an executor is lost. [`EventLog`] reads the logs of Spark 2.4 to 4.3: one file or a rolling
//! directory (`eventlog_v2_…`), of an ended or a running application (`.inprogress`), plain or compressed by any of
//! Spark's codecs. The first bytes of a file decide its format, not its name.
//!
//! ```no_run
//! use unfuse_eventlog::{Event, EventLog};
//!
//! let mut log = EventLog::open("spark-events/app-20260101120000-0001.zstd".as_ref())?;
//! let mut cpu_ns = 0;
//! for event in &mut log {
//!     if let Event::TaskEnd(task) = event {
//!         cpu_ns += task.metrics.map_or(0, |metrics| metrics.cpu_ns);
//!     }
//! }
//! println!("{} s of CPU time", cpu_ns as f64 / 1e9);
//! for note in log.damage().notes() {
//!     eprintln!("note: {note}");
//! }
//! # Ok::<(), unfuse_eventlog::EventLogError>(())
//! ```
//!
//! * **Memory** is one line and one block, whatever the log's size: an event is not kept after it is returned. Of a
//!   plan, nodes below a depth of 500 and those after the first 20,000 are left out.
//! * **Bad input** costs only itself. A line that is not an event is counted; if a file becomes unreadable, the part
//!   before counts, and reading continues with the next file of a rolling log. [`Damage`] has notes for users.
//! * **Order** is that of the listener bus: almost that of time. A task's end can come after its stage's, and a skipped
//!   stage has no events.
//!
//! Times are ms since the epoch, in the driver's clock. Numbers that Spark does not know (it writes -1) are 0.

mod codec;
mod damage;
mod error;
mod event;
mod files;
mod json;
mod lines;
mod log;

pub use damage::Damage;
pub use error::EventLogError;
pub use event::{
    ApplicationStart, Environment, Event, ExecutorAdded, ExecutorRemoved, JobEnd, JobStart,
    Outcome, PlanNode, Properties, Rdd, SqlEnd, SqlMetric, SqlPlan, SqlStart, Stage, Task, TaskEnd,
    TaskMetrics,
};
pub use files::is_event_log;
pub use log::EventLog;
