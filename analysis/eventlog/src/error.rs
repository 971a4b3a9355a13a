//! Why a log cannot be read at all.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why an event log is rejected. Errors further inside it are [`Damage`](crate::Damage).
#[derive(Debug, Error)]
pub enum EventLogError {
    /// The file system returned an error.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is empty.
    #[error("{} is empty: the application has written no event yet, or it ended before it did", .0.display())]
    Empty(PathBuf),
    /// Neither JSON lines nor a compression that Spark writes.
    #[error(
        "{} is no event log of Spark: it begins neither with an event (JSON) nor as zstd, LZ4, Snappy, LZF or gzip",
        .0.display()
    )]
    NotAnEventLog(PathBuf),
    /// A directory without `events_N_…` files.
    #[error(
        "{} has no events_N_… files, so it is no rolling event log; name one log, or its eventlog_v2_… directory",
        .0.display()
    )]
    NoEvents(PathBuf),
}
