//! perf_event_open: a task-clock event on one thread and one that records its context switches, read from one ring; and
//! the context switches of all CPUs.

mod counters;
mod event;
mod host;
mod record;
mod ring;

pub use counters::{Counters, Counts};
pub use event::{PerfEvent, probe, probe_switches};
pub(crate) use host::{CpuRecord, HostSwitches};
pub(crate) use record::NO_ADDRESS;
pub use record::{Handover, HostThread, Record, Sample, Switch, SwitchTarget};
