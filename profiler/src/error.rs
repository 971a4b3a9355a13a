//! Why profiling cannot start.

use std::io;

use unfuse_format::FormatError;

/// Why profiling cannot start. The JVM continues without it.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// An error with the profile directory.
    #[error(transparent)]
    Directory(#[from] FormatError),
    /// A failed system call, with its purpose.
    #[error("cannot {0}: {1}")]
    System(&'static str, #[source] io::Error),
    /// `source=perf` was requested, but perf_event is not allowed.
    #[error("perf_event_open is not allowed here ({0}); leave out source=perf to use CPU timers")]
    PerfDenied(#[source] io::Error),
}

/// Why a recording cannot be paused or resumed.
#[derive(Debug, thiserror::Error)]
pub enum PauseError {
    /// There is no such process.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// Nobody profiles it.
    #[error("process {0} is not being profiled")]
    NotProfiled(u32),
    /// The profiler does not listen to this user.
    #[error("process {0} is another user's: pause and resume it as that user or as root")]
    NotAllowed(u32),
    /// Another user's process listens in the place of the profiler's.
    #[error("a process of user {user} listens in the place of the profiler of process {pid}")]
    Impostor {
        /// Of the JVM.
        pid: u32,
        /// Who listens.
        user: u32,
    },
    /// Samplers do not follow in time.
    #[error("the profiler of process {0} did not follow in time; try again")]
    Late(u32),
    /// A system call.
    #[error("cannot reach the profiler of process {0}: {1}")]
    System(u32, #[source] io::Error),
}

impl LaunchError {
    /// The system's error number.
    pub(crate) fn errno(&self) -> i32 {
        match self {
            Self::System(_, e) | Self::PerfDenied(e) => e.raw_os_error(),
            Self::Directory(_) => None,
        }
        .unwrap_or(libc::EIO)
    }
}
