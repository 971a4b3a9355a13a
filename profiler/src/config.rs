//! The configuration from the agent's options.

use std::path::PathBuf;
use std::time::Duration;

use unfuse_format::Retention;

use crate::share::TaskShare;

/// Which threads get a sampler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Threads {
    /// All Java threads until Spark is detected in the JVM; then task threads.
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
    /// The URI of a profile on a Hadoop file system. `dir` is then unused: segments are written to a spool of this JVM,
    /// and Spark's plugin copies them.
    pub uri: Option<String>,
    /// The directory for spools; by default that for temporary files.
    pub spools: Option<PathBuf>,
    /// Samples a second of CPU time, for each thread. With 0 there are no samples, only events.
    pub rate_hz: u32,
    /// Which threads to profile.
    pub threads: Threads,
    /// Virtual size of the code map, MiB.
    pub map_mib: u32,
    /// The source of samples, see [`SourceChoice`].
    pub source: SourceChoice,
    /// Limits of size and age of the profile directory.
    pub retention: Retention,
    /// The share of Spark's tasks that is profiled.
    pub tasks: TaskShare,
    /// Whether waits are recorded.
    pub waits: bool,
    /// Whether the context switches of all CPUs are recorded.
    pub switches: bool,
    /// Whether the code at each sample's address is recorded, for measurements of unfuse itself.
    pub instructions: bool,
    /// What is recorded of Python workers.
    pub python: PythonDetail,
    /// Interval of reports on the resources used by tasks and the host; none if disabled.
    pub heartbeat: Option<Duration>,
}

/// What is recorded of the Python processes that work for Spark's tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PythonDetail {
    /// Their CPU time, and where in the Python code it was spent.
    #[default]
    Lines,
    /// Their CPU time.
    Total,
    /// Nothing.
    Off,
}

/// Sources of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SourceChoice {
    /// perf_event if the kernel allows it, else the timer.
    #[default]
    Auto,
    /// perf_event task-clock, read by the sampler process.
    Perf,
    /// A CPU timer for each thread, inside the JVM process.
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
            source: SourceChoice::Auto,
            retention: Retention::default(),
            tasks: TaskShare::default(),
            waits: true,
            switches: false,
            instructions: false,
            python: PythonDetail::Lines,
            heartbeat: Some(Duration::from_secs(2)),
        }
    }
}
