//! How long a recorded run would have taken if something were different.
//!
//! One run is enough. Its tasks are put on slots again by the same scheduler as in [`crate::Replay`], with what that model
//! fits from several runs taken from this one: which stages wait for which, the driver's time between them, how long each
//! task waits for its launch. A [`Change`] takes time out of the tasks, spreads it evenly, or gives them other slots.
//!
//! * [`Application`]: what a driver reported, from a profile or an event log ([`from_event_log`]).
//! * [`Recorded`]: one query or all of it: stages and tasks as measured, and which [`Part`]s of their time a change can take out.
//! * [`Model`]: the same, replayed. [`Estimate`]: the time after changes, with an interval.
//!
//! ```
//! use unfuse_sizing::what_if::*;
//!
//! // Four tasks of 2 s on two slots, of which each waits 1 s for a disk.
//! let task = |launched: f64| RecordedTask { launched, finished: launched + 2.0, parts: vec![0.0, 1.0] };
//! let stage = RecordedStage {
//!     own: true,
//!     submitted: Some(0.0),
//!     tasks: vec![task(0.0), task(0.0), task(2.0), task(2.0)],
//!     ..RecordedStage::default()
//! };
//! let recorded = Recorded {
//!     seconds: 4.5,
//!     slots: 2,
//!     parts: vec![Part::new(PartKind::Gc), Part::new(PartKind::Disk)],
//!     stages: vec![stage],
//!     ..Recorded::default()
//! };
//! let model = Model::new(&recorded);
//! assert_eq!(model.now(), 4.5);
//! let change: Change = "disk=inf".parse()?;
//! assert_eq!(model.estimate(&model.scenario(&[change])).then_s, 2.5);
//! let change: Change = "slots=4".parse()?;
//! assert_eq!(model.estimate(&model.scenario(&[change])).then_s, 2.5);
//! # Ok::<(), String>(())
//! ```

mod application;
mod change;
mod cpu_sharing;
mod crowding;
mod estimate;
mod event_log;
mod graph;
mod model;
mod random;
mod recorded;
#[cfg(test)]
mod tests;

pub use application::{Application, Executor, Query, Stage, Task};
pub use change::Change;
pub use estimate::Estimate;
pub use event_log::from_event_log;
pub use model::{Floor, Model, Scenario};
pub use recorded::{
    Group, Part, PartKind, Pool, Recorded, RecordedStage, RecordedTask, SharedCpus,
};
