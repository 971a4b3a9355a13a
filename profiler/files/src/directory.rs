//! A directory that is open.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat, readlinkat, renameat};
use nix::sys::stat::{Mode, fstat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use crate::about::{About, Kind};
use crate::{NewFile, random_digits};

/// How often a temporary name is drawn again, or a directory that others remove meanwhile is made again.
pub(crate) const ATTEMPTS: usize = 8;

/// How deep a directory may be that is deleted: those that are made here have two levels.
const DEEPEST: usize = 8;

pub(crate) const DIRECTORY: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_CLOEXEC);

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

    pub(crate) fn new(path: &Path, descriptor: OwnedFd) -> Self {
        Self {
            path: path.to_owned(),
            descriptor: Arc::new(descriptor),
        }
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
        Ok(About::from_stat(&stat))
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
pub(crate) fn check_name(name: impl AsRef<OsStr>) -> io::Result<()> {
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
