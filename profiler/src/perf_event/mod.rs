//! perf_event_open: one task-clock event on one thread, read through its ring.

mod event;
mod record;
mod ring;

pub use event::{PerfEvent, probe};
pub(crate) use record::NO_ADDRESS;
pub use record::{Record, Sample};
