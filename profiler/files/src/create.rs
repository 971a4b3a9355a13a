//! Directories to write to: made where they are not there, and checked.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, fstat, fstatat, mkdirat};
use nix::unistd::{Uid, geteuid};

use crate::about::{Access, Kind, is_trusted};
use crate::directory::{ATTEMPTS, DIRECTORY, Directory, check_name};
use crate::error::DirectoryError;

impl Directory {
    /// Opens a directory to write to; makes it (mode 0700), and the directories above it, if it is not there.
    ///
    /// # Errors
    /// Where it belongs to another user, where other users have more access than `access`, where the last part of the
    /// path is a link or no directory, and where the system refuses.
    pub fn create(path: &Path, access: Access) -> Result<Self, DirectoryError> {
        let failed = |source| DirectoryError::Io {
            path: path.to_owned(),
            source,
        };
        // Without a trailing `/` or `/.`, behind which the system would follow a link.
        let plain: PathBuf = path.components().collect();
        let Some(name) = plain.file_name() else {
            // `/`, `.` or `..`: no link by itself.
            let directory = Self::open(&plain).map_err(failed)?;
            return directory.check(access);
        };
        Self::above(&plain)?.make(name, path, access)
    }

    /// Makes a directory (mode 0700), and the directories above it, and opens it; none if something has its name.
    ///
    /// # Errors
    /// Those of [`create`](Self::create).
    pub fn create_new(path: &Path) -> Result<Option<Self>, DirectoryError> {
        let failed = |source| DirectoryError::Io {
            path: path.to_owned(),
            source,
        };
        let plain: PathBuf = path.components().collect();
        let Some(name) = plain.file_name() else {
            return Ok(None);
        };
        let above = Self::above(&plain)?;
        match mkdirat(&above, name, Mode::S_IRWXU) {
            Ok(()) => {}
            Err(Errno::EEXIST) => return Ok(None),
            Err(e) => return Err(above.why_not(name, path, e)),
        }
        let made = above.make(name, path, Access::Private)?;
        // Another directory may have the name by now. Only an empty one is as good as the new one.
        let is_empty = made.find(1, |_| true).map_err(failed)?.is_empty();
        Ok(is_empty.then_some(made))
    }

    /// Opens the directory above a path; makes it if it is not there.
    fn above(path: &Path) -> Result<Self, DirectoryError> {
        let above = path.parent().unwrap_or(Path::new(""));
        match Self::open(above) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Self::create(above, Access::Readable),
            other => other.map_err(|source| DirectoryError::Io {
                path: path.to_owned(),
                source,
            }),
        }
    }

    /// Opens a directory in which several users make theirs, such as the one for temporary files; makes it (mode 0700) if
    /// it is not there. Links that lead to it are followed.
    ///
    /// # Errors
    /// Where it belongs neither to root nor to this user, where it is this user's and others could replace what is in it
    /// (others can write to it, and it is not sticky), and where the system refuses.
    pub fn create_shared(path: &Path) -> Result<Self, DirectoryError> {
        let failed = |source| DirectoryError::Io {
            path: path.to_owned(),
            source,
        };
        let shared = match Self::open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Self::create(path, Access::Private);
            }
            other => other.map_err(failed)?,
        };
        let stat = fstat(&shared).map_err(|e| failed(e.into()))?;
        let is_sticky = stat.st_mode & Mode::S_ISVTX.bits() != 0;
        match Uid::from_raw(stat.st_uid) {
            // Root has decided who may write to it: volumes of containers are often open to all users.
            owner if owner.is_root() || is_sticky && is_trusted(owner) => Ok(shared),
            _ => shared.check(Access::Readable),
        }
    }

    /// Opens a folder of this directory to write to; makes it if it is not there.
    ///
    /// # Errors
    /// Those of [`create`](Self::create).
    pub fn create_folder(&self, name: &str, access: Access) -> Result<Self, DirectoryError> {
        let path = self.path().join(name);
        check_name(name).map_err(|source| DirectoryError::Io {
            path: path.clone(),
            source,
        })?;
        self.make(OsStr::new(name), &path, access)
    }

    fn make(&self, name: &OsStr, path: &Path, access: Access) -> Result<Self, DirectoryError> {
        let mut error = Errno::ENOENT;
        for _ in 0..ATTEMPTS {
            let flags = DIRECTORY | OFlag::O_NOFOLLOW;
            error = match openat(self, name, flags, Mode::empty()) {
                Ok(descriptor) => return Self::new(path, descriptor).check(access),
                Err(Errno::ENOENT) => match mkdirat(self, name, Mode::S_IRWXU) {
                    // To be opened and checked: it may be another one already.
                    Ok(()) | Err(Errno::EEXIST) => continue,
                    Err(e) => e,
                },
                Err(e) => e,
            };
            break;
        }
        Err(self.why_not(name, path, error))
    }

    /// What is in the way, where a directory could not be opened.
    fn why_not(&self, name: &OsStr, path: &Path, error: Errno) -> DirectoryError {
        let user = geteuid();
        let path = path.to_owned();
        match fstatat(self, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) if Kind::classify(&stat) == Kind::Link => DirectoryError::Link(path),
            Ok(stat) if Kind::classify(&stat) != Kind::Directory => {
                DirectoryError::NotADirectory(path)
            }
            Ok(stat) if Uid::from_raw(stat.st_uid) != user => DirectoryError::OfAnotherUser {
                path,
                owner: Uid::from_raw(stat.st_uid),
                user,
            },
            _ => DirectoryError::Io {
                path,
                source: error.into(),
            },
        }
    }

    /// This directory, if it belongs to the user and others have no more access than this.
    ///
    /// # Errors
    /// Those of [`create`](Self::create).
    pub fn check(self, access: Access) -> Result<Self, DirectoryError> {
        let stat = fstat(&self).map_err(|e| DirectoryError::Io {
            path: self.path().to_owned(),
            source: e.into(),
        })?;
        let (owner, user) = (Uid::from_raw(stat.st_uid), geteuid());
        if owner != user {
            return Err(DirectoryError::OfAnotherUser {
                path: self.path().to_owned(),
                owner,
                user,
            });
        }
        if stat.st_mode & access.forbidden() != 0 {
            return Err(DirectoryError::OpenToOthers {
                path: self.path().to_owned(),
                mode: stat.st_mode & 0o7777,
                private: access == Access::Private,
            });
        }
        Ok(self)
    }
}
