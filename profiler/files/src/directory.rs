//! A directory that is open.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat, readlinkat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, mkdirat};
use nix::unistd::{Uid, UnlinkatFlags, geteuid, unlinkat};

use crate::{DirectoryError, NewFile, random_digits};

/// How often a temporary name is drawn again, or a directory that others remove meanwhile is made again.
const ATTEMPTS: usize = 8;

/// How deep a directory may be that is deleted: those that are made here have two levels.
const DEEPEST: usize = 8;

const DIRECTORY: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_CLOEXEC);

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
    fn forbidden(self) -> u32 {
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
    fn of(stat: &FileStat) -> Self {
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

/// Whether a user is one whose links and pipes may be followed: root, or who runs this.
pub fn is_trusted(owner: Uid) -> bool {
    owner.is_root() || owner == geteuid()
}

/// A directory that is open. Clones share the descriptor, which a forked process inherits; it is checked against the user
/// that the process has at that moment.
#[derive(Debug, Clone)]
pub struct Directory {
    path: PathBuf,
    descriptor: Arc<OwnedFd>,
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Directory {
    /// Opens a directory to read, or to put a file into. Whose it is does not matter, and links that lead to it are
    /// followed, since the user named it.
    ///
    /// # Errors
    /// The system's.
    pub fn open(path: &Path) -> io::Result<Self> {
        let named = match path.as_os_str().is_empty() {
            true => Path::new("."),
            false => path,
        };
        let descriptor = openat(AT_FDCWD, named, DIRECTORY, Mode::empty())?;
        Ok(Self::new(path, descriptor))
    }

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
        let path = self.path.join(name);
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
            Ok(stat) if Kind::of(&stat) == Kind::Link => DirectoryError::Link(path),
            Ok(stat) if Kind::of(&stat) != Kind::Directory => DirectoryError::NotADirectory(path),
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

    fn new(path: &Path, descriptor: OwnedFd) -> Self {
        Self {
            path: path.to_owned(),
            descriptor: Arc::new(descriptor),
        }
    }

    /// This directory, if it belongs to the user and others have no more access than this.
    ///
    /// # Errors
    /// Those of [`create`](Self::create).
    pub fn check(self, access: Access) -> Result<Self, DirectoryError> {
        let stat = fstat(&self).map_err(|e| DirectoryError::Io {
            path: self.path.clone(),
            source: e.into(),
        })?;
        let (owner, user) = (Uid::from_raw(stat.st_uid), geteuid());
        if owner != user {
            return Err(DirectoryError::OfAnotherUser {
                path: self.path,
                owner,
                user,
            });
        }
        if stat.st_mode & access.forbidden() != 0 {
            return Err(DirectoryError::OpenToOthers {
                path: self.path,
                mode: stat.st_mode & 0o7777,
                private: access == Access::Private,
            });
        }
        Ok(self)
    }

    /// Its path, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a folder of this directory to read.
    ///
    /// # Errors
    /// Where it is a link, and the system's.
    pub fn folder(&self, name: &str) -> io::Result<Self> {
        check_name(name)?;
        let flags = DIRECTORY | OFlag::O_NOFOLLOW;
        let descriptor = openat(self, name, flags, Mode::empty())
            .map_err(|e| self.about(name).map_or(e.into(), |about| reason(about, e)))?;
        Ok(Self::new(&self.path.join(name), descriptor))
    }

    /// What is known of a name. A link is a link.
    ///
    /// # Errors
    /// The system's.
    pub fn about(&self, name: impl AsRef<OsStr>) -> io::Result<About> {
        let name = name.as_ref();
        check_name(name)?;
        let stat = fstatat(self, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        let since = Duration::from_secs(stat.st_mtime.max(0).cast_unsigned())
            + Duration::from_nanos(stat.st_mtime_nsec.max(0).cast_unsigned());
        Ok(About {
            kind: Kind::of(&stat),
            owner: Uid::from_raw(stat.st_uid),
            bytes: stat.st_size.max(0).cast_unsigned(),
            modified: SystemTime::UNIX_EPOCH + since,
        })
    }

    /// Whether something has this name.
    pub fn has(&self, name: &str) -> bool {
        self.about(name).is_ok()
    }

    /// Where a link leads.
    ///
    /// # Errors
    /// The system's, also where it is no link.
    pub fn read_link(&self, name: impl AsRef<OsStr>) -> io::Result<PathBuf> {
        let name = name.as_ref();
        check_name(name)?;
        Ok(readlinkat(self, name)?.into())
    }

    /// The names in it, in no order.
    ///
    /// # Errors
    /// The system's.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        self.find(usize::MAX, |_| true)
    }

    /// The first names in it that are wanted, at most so many, in no order.
    ///
    /// # Errors
    /// The system's.
    pub fn find(&self, most: usize, wanted: impl Fn(&OsStr) -> bool) -> io::Result<Vec<OsString>> {
        let mut directory = Dir::openat(self, ".", DIRECTORY, Mode::empty())?;
        let mut names = Vec::new();
        for entry in directory.iter() {
            if names.len() == most {
                break;
            }
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." && wanted(name) {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Opens a regular file to read: no link, and nothing that could block or be without an end.
    ///
    /// # Errors
    /// Where it is something else, and the system's.
    pub fn open_file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        self.open_as(name.as_ref(), OFlag::O_RDONLY)
    }

    /// The same to read and write; one that is not there is created, with mode 0600.
    ///
    /// # Errors
    /// Those of [`open_file`](Self::open_file).
    pub fn open_or_create(&self, name: &str) -> io::Result<File> {
        match self.create_file(name) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                self.open_as(OsStr::new(name), OFlag::O_RDWR)
            }
            other => other,
        }
    }

    fn open_as(&self, name: &OsStr, how: OFlag) -> io::Result<File> {
        // Before it is opened: with devices even that may do something.
        let about = self.about(name)?;
        let flags =
            how | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        if about.kind != Kind::File {
            return Err(reason(about, Errno::EINVAL));
        }
        let file = File::from(openat(self, name, flags, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        Ok(file)
    }

    /// What is in a regular file.
    ///
    /// # Errors
    /// Those of [`open_file`](Self::open_file), and where it has more than `most` bytes.
    pub fn read(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self
            .open_file(name)?
            .take(most + 1)
            .read_to_end(&mut bytes)?;
        if read as u64 > most {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("it has more than {most} bytes"),
            ));
        }
        Ok(bytes)
    }

    /// Creates a file, with mode 0600.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] where something has the name, and the system's.
    pub fn create_file(&self, name: &str) -> io::Result<File> {
        check_name(name)?;
        let flags =
            OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        Ok(File::from(openat(self, name, flags, mode)?))
    }

    /// Creates a file, with mode 0600, that gets its name when it is complete.
    ///
    /// # Errors
    /// The system's.
    pub fn new_file(&self) -> io::Result<NewFile> {
        let mut attempt = 0;
        loop {
            let temporary = format!(".unfuse-{}.tmp", random_digits()?);
            match self.create_file(&temporary) {
                Ok(file) => return Ok(NewFile::new(self.clone(), temporary, file)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS => {
                    attempt += 1;
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Writes a file, whole or not at all, with mode 0600. Something else of that name, also a link, is replaced.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&self, name: impl AsRef<OsStr>, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.new_file()?;
        file.write_all(bytes)?;
        file.commit(name)
    }

    /// Renames something in this directory. Something else of the new name, also a link, is replaced.
    ///
    /// # Errors
    /// The system's.
    pub fn rename(&self, from: &str, to: impl AsRef<OsStr>) -> io::Result<()> {
        let to = to.as_ref();
        check_name(from)?;
        check_name(to)?;
        Ok(renameat(self, from, self, to)?)
    }

    /// Removes a file, or a link.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        let name = name.as_ref();
        check_name(name)?;
        Ok(unlinkat(self, name, UnlinkatFlags::NoRemoveDir)?)
    }

    /// Removes a folder, which must be empty.
    ///
    /// # Errors
    /// The system's.
    pub fn remove_folder(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        Ok(unlinkat(self, name, UnlinkatFlags::RemoveDir)?)
    }

    /// Deletes this directory and what is in it, whatever its path leads to by now. Links are removed, not followed, and a folder of
    /// another owner is removed only if it is empty. A directory that was moved loses what is in it, and stays.
    ///
    /// # Errors
    /// The first of the system's; the rest is deleted all the same. [`io::ErrorKind::NotFound`] where it was moved.
    pub fn delete(&self) -> io::Result<()> {
        self.clear(DEEPEST)?;
        let moved = || io::Error::new(io::ErrorKind::NotFound, "it was moved");
        let plain: PathBuf = self.path.components().collect();
        let name = plain.file_name().ok_or_else(moved)?;
        // Not by the path, of which any part may be another directory by now.
        let above = openat(self, "..", DIRECTORY, Mode::empty())?;
        let (this, named) = (
            fstat(self)?,
            fstatat(&above, name, AtFlags::AT_SYMLINK_NOFOLLOW)?,
        );
        if (this.st_dev, this.st_ino) != (named.st_dev, named.st_ino) {
            return Err(moved());
        }
        // One that gets the name at this moment is removed only if it is empty.
        Ok(unlinkat(&above, name, UnlinkatFlags::RemoveDir)?)
    }

    /// Removes what is in it, so many levels deep.
    fn clear(&self, levels: usize) -> io::Result<()> {
        let owner = fstat(self)?.st_uid;
        let mut done = Ok(());
        for name in self.names()? {
            done = done.and(self.clear_name(&name, owner, levels));
        }
        done
    }

    fn clear_name(&self, name: &OsStr, owner: u32, levels: usize) -> io::Result<()> {
        match unlinkat(self, name, UnlinkatFlags::NoRemoveDir) {
            Err(Errno::EISDIR) => {}
            other => return Ok(other?),
        }
        let flags = DIRECTORY | OFlag::O_NOFOLLOW;
        let descriptor = openat(self, name, flags, Mode::empty())?;
        let folder = Self::new(&self.path.join(name), descriptor);
        // Who may put a folder into this one must not have those of others deleted by it.
        if levels > 0 && fstat(&folder)?.st_uid == owner {
            folder.clear(levels - 1)?;
        }
        Ok(unlinkat(self, name, UnlinkatFlags::RemoveDir)?)
    }
}

/// Why something was not opened that is there.
fn reason(about: About, error: Errno) -> io::Error {
    match about.kind {
        Kind::Link => io::Error::other("it is a symbolic link, which is not followed"),
        Kind::Special => {
            io::Error::other("it is a pipe, a device or a socket, which is not opened")
        }
        Kind::Directory if error == Errno::EINVAL => Errno::EISDIR.into(),
        Kind::Directory | Kind::File => error.into(),
    }
}

/// A name must not lead elsewhere.
fn check_name(name: impl AsRef<OsStr>) -> io::Result<()> {
    let name = name.as_ref();
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(part)), None) if part == name => Ok(()),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a path, not a name",
        )),
    }
}
