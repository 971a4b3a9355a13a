//! Sampling from outside the JVM: the manager, the samplers and the writer.
//!
//! ```text
//! JVM ──fork──▶ manager ──fork──▶ writer            (Parquet segments, sources)
//!                  └─────fork──▶ sampler per thread (perf_event ring → callchains → frames)
//! ```
//!
//! The JVM only writes: to the code map (shared memory), to a socket that names threads to profile,
//! and to a socket that carries events. Samplers only read the code map. Every process ends with the
//! JVM (or the recording): all of them watch its pidfd, and a SIGKILL of the JVM loses nothing that was sampled.
//!
//! [`launch`] is the door the agent uses; everything else follows from it. For a JVM that runs already,
//! `unfuse record` forks the processes instead, see [`attach`].

pub mod attach;
pub mod clock;
pub mod config;
mod error;
pub mod identity;
pub mod interpreter;
mod launch;
mod launch_plan;
mod manager;
pub mod maps;
mod memory;
mod names;
pub mod options;
mod pause;
pub mod perf_event;
mod process;
mod recent;
mod sampler;
mod samplers;
mod session;
mod share;
mod status;
pub mod timer;
mod waiting;
/// Public for `unfuse-fuzz` only.
#[doc(hidden)]
pub mod wire;
mod writer;

pub use config::{Config, SampleSource, Threads};
pub use error::{LaunchError, PauseError};
pub use launch::{Launch, launch};
pub use pause::{RecordingState, set_recording};
pub use session::{Session, Shipment};
pub use share::TaskShare;
pub use unfuse_format::{Retention, is_uri};
#[doc(hidden)]
pub use writer::{take_events, take_records};
