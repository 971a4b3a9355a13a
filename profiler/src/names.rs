//! Names that several processes use for the same thing.

use std::path::Path;

/// Longest thread name that is kept, bytes.
pub(crate) const LONGEST_THREAD_NAME: usize = 512;

/// This machine's name.
pub(crate) fn host() -> String {
    nix::unistd::gethostname().map_or_else(
        |_| "localhost".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// The prefix of the file names of a JVM's writer.
pub(crate) fn writer_name(host: &str, jvm: u32) -> String {
    format!("{host}-{jvm}")
}

/// The unique part of a spool's path.
pub(crate) fn spool_tag(spool: &Path) -> Option<&str> {
    spool.file_name()?.to_str()?.rsplit('-').next()
}
