//! The directory itself: making it, opening it, its sources.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use unfuse_files::{Access, Directory, Kind};

use crate::bounds::Bounds;
use crate::columns::Columns;
use crate::parquet_rows::SegmentPart;
use crate::room::Room;
use crate::segment::{
    TableRows, fold_table, map_table, read_chosen, read_new, read_segment, read_table, segments,
};
use crate::{FormatError, Problem, Table, TableId};

/// The version of the profile format this crate writes; it reads this one and older ones.
pub const FORMAT_VERSION: u32 = 1;

/// The file that makes a directory a profile.
pub const MANIFEST: &str = "unfuse.json";

/// Longest hash of a source, in hexadecimal digits.
const LONGEST_HASH: usize = 64;

/// The largest manifest and the largest source that are read, bytes.
const LARGEST_MANIFEST: u64 = 64 << 10;
const LARGEST_SOURCE: u64 = 64 << 20;

/// Folders beside those of the tables.
const SOURCES: &str = "sources";
const RECORDS_WAITING: &str = "records.waiting";

#[derive(Serialize, Deserialize)]
struct Manifest {
    format: u32,
    #[serde(default)]
    writer: String,
}

/// Whether a directory is named by a URI, on one of Hadoop's file systems.
pub fn is_uri(dir: &str) -> bool {
    dir.split_once(":/").is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    })
}

/// A profile directory that exists and has a format we can read. It is open: whatever happens to its path, this is the
/// directory that is read and written.
#[derive(Debug, Clone)]
pub struct ProfileDir {
    files: Directory,
}

impl AsFd for ProfileDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.files.as_fd()
    }
}

impl ProfileDir {
    /// Makes the directory (mode 0700) and its manifest, or opens it where it is a profile already:
    /// several processes and several applications may share one.
    ///
    /// # Errors
    /// [`FormatError::Refused`] for a directory of another user or one that others can write to, and for one that others
    /// can read, unless it is a profile already: then its owner has made it so. Those of [`open`](Self::open), and
    /// [`FormatError::Unwritable`].
    pub fn create(root: &Path) -> Result<Self, FormatError> {
        Self::create_in(Directory::create(root, Access::Readable)?)
    }

    /// The same in a directory that is open, such as one that another process has opened and handed over.
    ///
    /// # Errors
    /// Those of [`create`](Self::create).
    pub fn create_in(files: Directory) -> Result<Self, FormatError> {
        if files.has(MANIFEST) {
            return Self::open_in(files);
        }
        let files = files.check(Access::Private)?;
        let manifest = files.path().join(MANIFEST);
        let text = serde_json::to_vec(&Manifest {
            format: FORMAT_VERSION,
            writer: format!("unfuse {}", env!("CARGO_PKG_VERSION")),
        })
        .map_err(|e| FormatError::io(&manifest)(e.into()))?;
        // Written aside and renamed: executors that start together must never read half a manifest.
        files
            .write(MANIFEST, &text)
            .map_err(FormatError::unwritable(&manifest))?;
        Ok(Self { files })
    }

    /// Opens an existing profile to read. It may belong to somebody else: no link in it is followed, and only regular files
    /// are opened.
    ///
    /// # Errors
    /// [`FormatError::Missing`], [`FormatError::NotAProfile`], [`FormatError::DamagedManifest`],
    /// [`FormatError::TooNew`].
    pub fn open(root: &Path) -> Result<Self, FormatError> {
        match Directory::open(root) {
            Ok(files) => Self::open_in(files),
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Err(FormatError::Missing(root.to_owned()))
            }
            Err(e) => Err(FormatError::io(root)(e)),
        }
    }

    fn open_in(files: Directory) -> Result<Self, FormatError> {
        let path = files.path().join(MANIFEST);
        let text = match files.read(MANIFEST, LARGEST_MANIFEST) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(FormatError::NotAProfile(files.path().to_owned()));
            }
            Err(e) => return Err(FormatError::Io { path, source: e }),
        };
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|e| FormatError::DamagedManifest {
                path,
                reason: e.to_string(),
            })?;
        if manifest.format > FORMAT_VERSION {
            return Err(FormatError::TooNew {
                path: files.path().to_owned(),
                found: manifest.format,
            });
        }
        Ok(Self { files })
    }

    /// Whether the profile is still there. Who deletes the directory of a running job does not want it
    /// back, so writers ask before they write.
    pub fn is_there(&self) -> bool {
        is_profile(&self.files)
    }

    /// Whether a directory is a profile.
    pub fn is_at(root: &Path) -> bool {
        Directory::open(root).is_ok_and(|files| is_profile(&files))
    }

    /// The directory's path.
    pub fn path(&self) -> &Path {
        self.files.path()
    }

    /// The directory itself, which is open.
    pub fn files(&self) -> &Directory {
        &self.files
    }

    /// Where files with records wait until they are tables.
    ///
    /// # Errors
    /// The system's, also where it is not there.
    pub fn records_waiting(&self) -> io::Result<Directory> {
        self.files.folder(RECORDS_WAITING)
    }

    /// Makes that folder, readable by the user only.
    ///
    /// # Errors
    /// As for a folder of a table.
    pub fn make_records_waiting(&self) -> Result<PathBuf, FormatError> {
        let folder = self.files.create_folder(RECORDS_WAITING, Access::Private)?;
        Ok(folder.path().to_owned())
    }

    /// Removes that folder, if nothing waits.
    pub fn remove_records_waiting(&self) {
        let _ = self.files.remove_folder(RECORDS_WAITING);
    }

    /// Opens a folder to write to; makes it if it is not there. One that others can read was made so by its owner.
    pub(crate) fn make_folder(&self, name: &str) -> Result<Directory, FormatError> {
        Ok(self.files.create_folder(name, Access::Readable)?)
    }

    /// Opens a folder to read.
    pub(crate) fn folder(&self, name: &str) -> io::Result<Directory> {
        self.files.folder(name)
    }

    /// The folder of a table, to look at its segments.
    ///
    /// # Errors
    /// The system's, also where nothing was written of it.
    pub fn folder_of<T: Table>(&self) -> io::Result<Directory> {
        self.folder(T::NAME)
    }

    /// Whether anything was written of a table.
    pub fn has<T: Table>(&self) -> bool {
        let names = self.folder(T::NAME).and_then(|folder| folder.names());
        names.is_ok_and(|names| !names.is_empty())
    }

    /// Every row of one table, with the files that had to be left out.
    ///
    /// # Errors
    /// The folder of the table cannot be read.
    pub fn read<T: Table>(&self) -> Result<TableRows<T>, FormatError> {
        self.read_within(&Bounds::ALL)
    }

    /// The rows of one table that are within bounds, with the files that had to be left out.
    ///
    /// # Errors
    /// As for `read`.
    pub fn read_within<T: Table>(&self, bounds: &Bounds) -> Result<TableRows<T>, FormatError> {
        read_table(self, bounds, |rows| rows)
    }

    /// The same for tables that are large in memory: what `each` makes of the rows of a segment, in the order of segments.
    /// Segments are read in parallel.
    ///
    /// # Errors
    /// As for `read`.
    pub fn read_as<T: Table, R: Send>(
        &self,
        bounds: &Bounds,
        each: impl Fn(Vec<T>) -> Vec<R> + Sync,
    ) -> Result<TableRows<R>, FormatError> {
        read_table(self, bounds, each)
    }

    /// The rows of one table that `choose` takes by some of their columns. It also gets rows out of bounds that are near others.
    ///
    /// # Errors
    /// As for `read`. A segment of which `choose` says what is wrong is among the problems.
    pub fn read_chosen<T: Table>(
        &self,
        columns: &[&str],
        bounds: &Bounds,
        choose: impl Fn(&Columns) -> Result<Vec<bool>, String> + Sync,
    ) -> Result<TableRows<T>, FormatError> {
        read_chosen(self, columns, bounds, choose)
    }

    /// The same of some columns, without making rows.
    ///
    /// # Errors
    /// As for `read`. A segment of which `each` says what is wrong is among the problems.
    pub fn map_columns<T: Table, R: Send>(
        &self,
        columns: &[&str],
        bounds: &Bounds,
        each: impl Fn(&[Columns]) -> Result<Vec<R>, String> + Sync,
    ) -> Result<TableRows<R>, FormatError> {
        let columns = Some(columns);
        let wanted = SegmentPart {
            columns,
            bounds,
            ..SegmentPart::ALL
        };
        map_table::<T, R>(self, wanted, each)
    }

    /// Sums up some columns of a table without making rows: `add` adds those of one segment to a sum that `new` has made.
    /// There are as many sums as threads at most, in no order.
    ///
    /// # Errors
    /// As for `read`. A segment of which `add` says what is wrong is among the problems; what was added of it stays.
    pub fn fold<T: Table, A: Send>(
        &self,
        columns: &[&str],
        bounds: &Bounds,
        new: impl Fn() -> A + Sync,
        add: impl Fn(&mut A, &[Columns]) -> Result<(), String> + Sync,
    ) -> Result<TableRows<A>, FormatError> {
        let columns = Some(columns);
        let wanted = SegmentPart {
            columns,
            bounds,
            ..SegmentPart::ALL
        };
        fold_table::<T, A>(self, wanted, new, add)
    }

    /// The rows of a table whose id in `id_column` `is_new`, for tables in which many segments hold the same rows. `take`
    /// gets those of a segment; segments are read side by side.
    ///
    /// # Errors
    /// As for `read`. Segments that cannot be read are returned.
    pub fn read_new<T: Table>(
        &self,
        id_column: &'static str,
        is_new: impl Fn(i64) -> bool + Sync,
        take: impl Fn(Vec<T>) + Sync,
    ) -> Result<Vec<Problem>, FormatError> {
        read_new(self, id_column, is_new, take)
    }

    /// The folders with finished files, in an order in which a profile that is being read can be copied: generated sources and
    /// what explains samples, then samples, and the rows on whole processes last.
    pub fn folders_to_copy() -> Vec<&'static str> {
        let is_late = |table: &TableId| matches!(table, TableId::Samples | TableId::Processes);
        let (late, early): (Vec<TableId>, Vec<TableId>) =
            TableId::ALL.iter().copied().partition(is_late);
        let tables = early.into_iter().chain(late).map(TableId::name);
        std::iter::once(SOURCES).chain(tables).collect()
    }

    /// The segments of a table, in the order of their names: those of a writer follow each other.
    ///
    /// # Errors
    /// Where its folder cannot be read.
    pub fn segments<T: Table>(&self) -> Result<Vec<PathBuf>, FormatError> {
        let names = segments(self, T::NAME).map_err(FormatError::io(&self.path().join(T::NAME)))?;
        let folder = self.path().join(T::NAME);
        Ok(names.iter().map(|name| folder.join(name)).collect())
    }

    /// The rows of one segment, for tables that are larger than memory.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read_segment<T: Table>(&self, path: &Path) -> Result<Vec<T>, Problem> {
        let name = path.file_name().unwrap_or_default();
        let folder = self.folder(T::NAME).map_err(|e| e.to_string());
        folder
            .and_then(|folder| read_segment(&folder, name, &Room::default()))
            .map_err(|reason| Problem {
                path: path.to_owned(),
                reason,
            })
    }

    /// Keeps the text of one generated source under its hash; a text already there is left alone.
    ///
    /// # Errors
    /// As for a folder of a table, and [`FormatError::Unwritable`].
    pub fn save_source(&self, hash: &str, text: &str) -> Result<(), FormatError> {
        let folder = self.make_folder(SOURCES)?;
        let name = format!("{hash}.java");
        if folder.has(&name) {
            return Ok(());
        }
        folder
            .write(&name, text.as_bytes())
            .map_err(FormatError::unwritable(&folder.path().join(&name)))
    }

    /// The text of one generated source, `None` where it was not saved.
    ///
    /// # Errors
    /// [`FormatError::Io`].
    pub fn source(&self, hash: &str) -> Result<Option<String>, FormatError> {
        if !is_hash(hash) {
            return Ok(None);
        }
        let name = format!("{hash}.java");
        let read = self
            .folder(SOURCES)
            .and_then(|folder| folder.read(&name, LARGEST_SOURCE));
        match read {
            // A damaged byte costs its character, not the source.
            Ok(text) => Ok(Some(String::from_utf8_lossy(&text).into_owned())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(FormatError::Io {
                path: self.path().join(SOURCES).join(name),
                source,
            }),
        }
    }
}

/// Whether an open directory is a profile.
fn is_profile(files: &Directory) -> bool {
    files
        .about(MANIFEST)
        .is_ok_and(|about| about.kind == Kind::File)
}

/// Whether a text can be a hash, and not a path that leads elsewhere or that no system takes.
fn is_hash(text: &str) -> bool {
    text.len() <= LONGEST_HASH && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
