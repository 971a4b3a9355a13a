//! What the agent's options ask for.

use std::path::PathBuf;
use std::time::Duration;

use unfuse_format::Retention;

use crate::share::TaskShare;

/// Which threads get a sampler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Threads {
    /// All Java threads, until the JVM turns out to run Spark tasks: then task threads.
    #[default]
    Auto,
    /// All Java threads.
    All,
    /// Threads that run Spark tasks.
    Task,
}

/// Settings of one profiled JVM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The profile directory.
    pub dir: PathBuf,
    /// A profile on a file system of Hadoop, by its URI. `dir` is not used then: segments are written to a
    /// spool of this JVM's own, and Spark's plugin copies them.
    pub uri: Option<String>,
    /// Where spools are made; the directory for temporary files if not said.
    pub spools: Option<PathBuf>,
    /// Samples a second of CPU time, for each thread. 0 takes none (events are still recorded).
    pub rate_hz: u32,
    /// Which threads to profile.
    pub threads: Threads,
    /// Virtual size of the code map, MiB.
    pub map_mib: u32,
    /// Which way samples are taken, see [`SampleSource`].
    pub source: SampleSource,
    /// How large and how old the profile directory may become.
    pub retention: Retention,
    /// The part of Spark's tasks that is profiled.
    pub tasks: TaskShare,
    /// Whether waits are recorded too.
    pub waits: bool,
    /// How often what tasks and the host use is reported; none: never.
    pub heartbeat: Option<Duration>,
}

/// The ways to take a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SampleSource {
    /// perf_event where the kernel allows it, else the timer.
    #[default]
    Auto,
    /// perf_event task-clock, read by the sampler process.
    Perf,
    /// A CPU timer for each thread, in the JVM process.
    Timer,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            dir: PathBuf::from("unfuse-profile"),
            uri: None,
            spools: None,
            rate_hz: 200,
            threads: Threads::Auto,
            map_mib: 256,
            source: SampleSource::Auto,
            retention: Retention::default(),
            tasks: TaskShare::default(),
            waits: true,
            heartbeat: Some(Duration::from_secs(2)),
        }
    }
}
