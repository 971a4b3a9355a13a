//! The directory itself: making it, opening it, its sources.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::segment::{Read, read_segment, read_table, segments};
use crate::{FormatError, Problem, Table};

/// The version of the profile format this crate writes; it reads this one and older ones.
pub const FORMAT_VERSION: u32 = 1;

/// The file that makes a directory a profile.
pub const MANIFEST: &str = "unfuse.json";

/// Longest hash of a source, in hexadecimal digits.
const LONGEST_HASH: usize = 64;

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

/// A profile directory that exists and has a format we can read.
#[derive(Debug, Clone)]
pub struct ProfileDir {
    root: PathBuf,
}

impl ProfileDir {
    /// Makes the directory (mode 0700) and its manifest, or opens it where it is a profile already:
    /// several processes and several applications may share one.
    pub fn create(root: &Path) -> Result<Self, FormatError> {
        private_dir(root).map_err(FormatError::unwritable(root))?;
        let manifest = root.join(MANIFEST);
        if manifest.exists() {
            return Self::open(root);
        }
        let text = serde_json::to_string(&Manifest {
            format: FORMAT_VERSION,
            writer: format!("unfuse {}", env!("CARGO_PKG_VERSION")),
        })
        .map_err(|e| FormatError::io(&manifest)(e.into()))?;
        // Written aside and renamed: executors that start together must never read half a manifest.
        let aside = root.join(format!(".{MANIFEST}.{}", std::process::id()));
        write_private(&aside, text.as_bytes())
            .and_then(|()| fs::rename(&aside, &manifest))
            .map_err(FormatError::unwritable(&manifest))?;
        Ok(Self {
            root: root.to_owned(),
        })
    }

    /// Opens an existing profile.
    ///
    /// # Errors
    /// [`FormatError::Missing`], [`FormatError::NotAProfile`], [`FormatError::DamagedManifest`],
    /// [`FormatError::TooNew`].
    pub fn open(root: &Path) -> Result<Self, FormatError> {
        if !root.is_dir() {
            return Err(FormatError::Missing(root.to_owned()));
        }
        let path = root.join(MANIFEST);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(FormatError::NotAProfile(root.to_owned()));
            }
            Err(e) => return Err(FormatError::Io { path, source: e }),
        };
        let manifest: Manifest =
            serde_json::from_str(&text).map_err(|e| FormatError::DamagedManifest {
                path,
                reason: e.to_string(),
            })?;
        if manifest.format > FORMAT_VERSION {
            return Err(FormatError::TooNew {
                path: root.to_owned(),
                found: manifest.format,
            });
        }
        Ok(Self {
            root: root.to_owned(),
        })
    }

    /// Whether the profile is still there. Who deletes the directory of a running job does not want it
    /// back, so writers ask before they write.
    pub fn is_there(&self) -> bool {
        Self::is_at(&self.root)
    }

    /// Whether a directory is a profile.
    pub fn is_at(root: &Path) -> bool {
        root.join(MANIFEST).exists()
    }

    /// The directory's path.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Where files with records wait until they are tables.
    pub fn records_waiting(&self) -> PathBuf {
        self.root.join("records.waiting")
    }

    /// Makes that folder, readable by the user only.
    pub fn make_records_waiting(&self) -> Result<PathBuf, FormatError> {
        let folder = self.records_waiting();
        private_folder(&folder).map_err(FormatError::unwritable(&folder))?;
        Ok(folder)
    }

    /// Whether anything was written of a table.
    pub fn has<T: Table>(&self) -> bool {
        fs::read_dir(self.root.join(T::NAME)).is_ok_and(|mut files| files.next().is_some())
    }

    /// Every row of one table, with the files that had to be left out.
    pub fn read<T: Table>(&self) -> Result<Read<T>, FormatError> {
        self.read_as(|rows| rows)
    }

    /// The same for tables that are large in memory: what is made of the rows of each segment, put together. Segments
    /// are read side by side.
    pub fn read_as<T: Table, R: Send>(
        &self,
        each: impl Fn(Vec<T>) -> Vec<R> + Sync,
    ) -> Result<Read<R>, FormatError> {
        read_table(&self.root.join(T::NAME), each)
    }

    /// The segments of a table, in the order of their names: those of a writer follow each other.
    pub fn segments<T: Table>(&self) -> Result<Vec<PathBuf>, FormatError> {
        segments(&self.root.join(T::NAME))
    }

    /// The rows of one segment, for tables that are larger than memory.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read_segment<T: Table>(&self, path: &Path) -> Result<Vec<T>, Problem> {
        read_segment(path).map_err(|reason| Problem {
            path: path.to_owned(),
            reason,
        })
    }

    /// Keeps the text of one generated source under its hash; a text already there is left alone.
    pub fn save_source(&self, hash: &str, text: &str) -> Result<(), FormatError> {
        let dir = self.root.join("sources");
        private_folder(&dir).map_err(FormatError::unwritable(&dir))?;
        let path = dir.join(format!("{hash}.java"));
        if path.exists() {
            return Ok(());
        }
        let aside = dir.join(format!(".{hash}.{}", std::process::id()));
        write_private(&aside, text.as_bytes())
            .and_then(|()| fs::rename(&aside, &path))
            .map_err(FormatError::unwritable(&path))
    }

    /// The text of one generated source, `None` where it was not saved.
    pub fn source(&self, hash: &str) -> Result<Option<String>, FormatError> {
        if !is_hash(hash) {
            return Ok(None);
        }
        let path = self.root.join("sources").join(format!("{hash}.java"));
        match fs::read(&path) {
            // A damaged byte costs its character, not the source.
            Ok(text) => Ok(Some(String::from_utf8_lossy(&text).into_owned())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(FormatError::Io { path, source }),
        }
    }
}

/// Whether a text can be a hash, and not a path that leads elsewhere or that no system takes.
fn is_hash(text: &str) -> bool {
    text.len() <= LONGEST_HASH && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Makes a directory and its parents, readable by the user only.
pub(crate) fn private_dir(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

/// Makes a folder of the profile, readable by the user only. The profile directory itself must exist.
pub(crate) fn private_folder(path: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
        _ => Ok(()),
    }
}

pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)
}
