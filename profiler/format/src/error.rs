//! What can be wrong with a profile directory, said for the person who has it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use unfuse_files::DirectoryError;

/// Why a profile directory cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The path exists not, or is no directory.
    #[error("{0}: no such directory; give the directory that `unfuse run` printed")]
    Missing(PathBuf),
    /// A directory without `unfuse.json`.
    #[error(
        "{0} is not an unfuse profile (it has no unfuse.json); give the directory that `unfuse run` printed"
    )]
    NotAProfile(PathBuf),
    /// `unfuse.json` cannot be parsed.
    #[error(
        "{path} is damaged ({reason}); the segments beside it may still be good: write {{\"format\":{}}} into it to read them",
        crate::FORMAT_VERSION
    )]
    DamagedManifest {
        /// The manifest file.
        path: PathBuf,
        /// What the parser said.
        reason: String,
    },
    /// Written by a newer unfuse.
    #[error(
        "{path} has profile format {found}, this unfuse reads up to {}; update unfuse to read it",
        crate::FORMAT_VERSION
    )]
    TooNew {
        /// The profile directory.
        path: PathBuf,
        /// The version it was written in.
        found: u32,
    },
    /// The directory cannot be made or written to.
    #[error(
        "cannot write the profile to {path}: {source}; choose another directory with -o (or dir=) or make this one writable"
    )]
    Unwritable {
        /// The directory or file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The directory is not one to write to.
    #[error("cannot write the profile: {0} (with -o or dir=)")]
    Refused(DirectoryError),
    /// Any other failing file operation.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl From<DirectoryError> for FormatError {
    fn from(error: DirectoryError) -> Self {
        match error {
            DirectoryError::Io { path, source } => Self::Unwritable { path, source },
            // Only a profile may be read by others.
            DirectoryError::OpenToOthers { path, mode, .. } => {
                Self::Refused(DirectoryError::OpenToOthers {
                    path,
                    mode,
                    private: true,
                })
            }
            refused => Self::Refused(refused),
        }
    }
}

impl FormatError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Unwritable {
            path: path.to_owned(),
            source,
        }
    }
}

/// One file of a profile that could not be used; the rest of the profile could.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file left out.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: left out, {}", self.path.display(), self.reason)
    }
}
