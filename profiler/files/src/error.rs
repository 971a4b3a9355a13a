//! Why a directory cannot be used.

use std::io;
use std::path::PathBuf;

use nix::unistd::Uid;

/// Why a directory is not one to write to. The text says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// Somebody else could change or replace what is written.
    #[error(
        "{path} belongs to another user (uid {owner}; this is uid {user}): choose a directory of your own"
    )]
    OfAnotherUser {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: Uid,
        /// Who runs this.
        user: Uid,
    },
    /// Its mode lets others in.
    #[error(
        "other users can {} {path} (mode {mode:04o}): run `chmod {} {path}`, or choose another directory",
        access(.mode),
        change(.private)
    )]
    OpenToOthers {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// Whether others may not read it either.
        private: bool,
    },
    /// Somebody else may decide where it leads.
    #[error("{0} is a symbolic link, which is not followed: give the directory that it leads to")]
    Link(PathBuf),
    /// Something else has the name.
    #[error("{0} is not a directory: choose another name")]
    NotADirectory(PathBuf),
    /// The system refuses.
    #[error("{path}: {source}")]
    Io {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What others may do that they should not.
fn access(mode: &u32) -> &'static str {
    match mode & 0o022 {
        0 => "read",
        _ => "write to",
    }
}

/// What `chmod` is to change.
fn change(private: &bool) -> &'static str {
    match private {
        true => "go-rwx",
        false => "go-w",
    }
}
