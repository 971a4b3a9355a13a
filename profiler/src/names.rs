//! Names that several processes give to the same thing.

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

/// The name that the files of a JVM's writer begin with.
pub(crate) fn writer_name(host: &str, jvm: u32) -> String {
    format!("{host}-{jvm}")
}

/// The part of a spool's path that no other spool has.
pub(crate) fn spool_tag(spool: &Path) -> Option<&str> {
    spool.file_name()?.to_str()?.rsplit('-').next()
}
