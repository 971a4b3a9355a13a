//! Samples a JVM from outside: the manager, the samplers and the writer.
//!
//! ```text
//! JVM ──fork──▶ manager ──fork──▶ writer            (Parquet segments, sources)
//!                  └─────fork──▶ sampler per thread (perf_event ring → callchains → frames)
//! ```
//!
//! The JVM only writes: to the code map (shared memory), to a socket that announces threads to profile, and to a socket
//! for events. Samplers only read the code map. Every process ends with the JVM (or the recording): all watch its
//! pidfd, and a SIGKILL of the JVM loses no samples.
//!
//! The agent calls [`launch`]; everything else follows from it. For a JVM that already runs, `unfuse record` forks the
//! processes instead, see [`attach`].

mod arch;
pub mod attach;
pub mod clock;
pub mod config;
mod error;
pub mod identity;
pub mod interpreter;
mod launch;
mod launch_plan;
mod loaded;
mod manager;
pub mod maps;
mod memory;
mod metrics;
mod names;
pub mod options;
mod pause;
pub mod perf_event;
mod process;
mod python;
mod recent;
mod running;
mod sampler;
mod samplers;
mod session;
mod share;
mod status;
mod task_spans;
pub mod timer;
mod waiting;
/// Public for `unfuse-fuzz` only.
#[doc(hidden)]
pub mod wire;
mod writer;

pub use config::{Config, PythonDetail, SourceChoice, Threads};
pub use error::{LaunchError, PauseError};
pub use launch::{Launch, launch};
pub use metrics::Metric;
pub use pause::{RecordingState, running_tasks, set_recording};
pub use running::RunningTask;
pub use session::{Session, Shipment};
pub use share::TaskShare;
pub use unfuse_format::{Retention, is_uri};
#[doc(hidden)]
pub use writer::{take_events, take_records};
