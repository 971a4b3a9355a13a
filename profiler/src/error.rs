//! Why profiling cannot start.

use std::io;

use unfuse_format::FormatError;

/// Why profiling cannot start. The JVM runs on without it.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The profile directory.
    #[error(transparent)]
    Directory(#[from] FormatError),
    /// A system call, with what it was for.
    #[error("cannot {0}: {1}")]
    System(&'static str, #[source] io::Error),
    /// perf_event was demanded (`source=perf`) and is not allowed.
    #[error("perf_event_open is not allowed here ({0}); leave out source=perf to use CPU timers")]
    PerfDenied(#[source] io::Error),
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
