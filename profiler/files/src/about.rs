//! The owner, kind, size and permissions of a file, without opening it.

use std::time::{Duration, SystemTime};

use nix::sys::stat::{FileStat, SFlag};
use nix::unistd::{Uid, geteuid};

/// What other users may do with a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    Private,
    /// Read it.
    Readable,
}

impl Access {
    /// The permission bits that nobody else may have.
    pub(crate) fn forbidden(self) -> u32 {
        match self {
            Self::Private => 0o077,
            Self::Readable => 0o022,
        }
    }
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A pipe, a device or a socket.
    Special,
}

impl Kind {
    pub(crate) fn classify(stat: &FileStat) -> Self {
        match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
            SFlag::S_IFREG => Self::File,
            SFlag::S_IFDIR => Self::Directory,
            SFlag::S_IFLNK => Self::Link,
            _ => Self::Special,
        }
    }
}

/// What is known of a name without opening it.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// What it stands for.
    pub kind: Kind,
    /// Whose it is.
    pub owner: Uid,
    /// Its length, bytes.
    pub bytes: u64,
    /// When it was last written to.
    pub modified: SystemTime,
}

impl About {
    pub(crate) fn from_stat(stat: &FileStat) -> Self {
        let since = Duration::from_secs(stat.st_mtime.max(0).cast_unsigned())
            + Duration::from_nanos(stat.st_mtime_nsec.max(0).cast_unsigned());
        Self {
            kind: Kind::classify(stat),
            owner: Uid::from_raw(stat.st_uid),
            bytes: stat.st_size.max(0).cast_unsigned(),
            modified: SystemTime::UNIX_EPOCH + since,
        }
    }
}

/// Whether a user is one whose links and pipes may be followed: root, or who runs this.
pub fn is_trusted(owner: Uid) -> bool {
    owner.is_root() || owner == geteuid()
}
