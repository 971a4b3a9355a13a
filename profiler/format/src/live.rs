//! Who still writes: a locked file for each writer at work.
//!
//! The writer process outlives the JVM by a moment. Whoever wants the whole profile (`unfuse run`)
//! waits until no marker is locked; a marker of a killed writer is unlocked by the kernel.
//!
//! A writer that could not write everything leaves its marker behind under a name that says why. Renaming
//! works on a full disk, where a message could not be written.

use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::io;
use std::time::{Duration, Instant};

use unfuse_files::Directory;

use crate::{FormatError, ProfileDir};

/// The folder of the markers.
const LIVE: &str = "live";

/// Between a marker's name and the errno of its writer.
const FAILED: &str = ".failed-";

/// Held by a writer for as long as it writes; dropping it says the profile is complete.
#[derive(Debug)]
pub struct LiveMarker {
    folder: Directory,
    name: String,
    _locked: File,
}

impl LiveMarker {
    /// Announces the writer called `name` (`HOST-PID`).
    ///
    /// # Errors
    /// Where the marker cannot be made or locked.
    pub fn hold(dir: &ProfileDir, name: &str) -> Result<Self, FormatError> {
        let folder = dir.make_folder(LIVE)?;
        let path = folder.path().join(name);
        let file = folder
            .open_or_create(name)
            .map_err(FormatError::unwritable(&path))?;
        file.lock().map_err(FormatError::io(&path))?;
        Ok(Self {
            folder,
            name: name.to_owned(),
            _locked: file,
        })
    }

    /// Says that the profile is not complete, and why.
    pub fn fail(self, errno: i32) {
        let _ = self
            .folder
            .rename(&self.name, format!("{}{FAILED}{errno}", self.name));
    }

    /// Whether a writer has announced itself, be it at work or not.
    pub fn any(dir: &ProfileDir) -> bool {
        dir.folder(LIVE)
            .and_then(|folder| folder.names())
            .is_ok_and(|names| !names.is_empty())
    }

    /// Why writers of this directory could not start, or not write everything.
    pub fn failures(dir: &ProfileDir) -> Vec<io::Error> {
        let names = dir.folder(LIVE).and_then(|folder| folder.names());
        let names = names.unwrap_or_default();
        names
            .iter()
            .filter_map(|name| {
                let (_, errno) = name.to_str()?.rsplit_once(FAILED)?;
                Some(io::Error::from_raw_os_error(errno.parse().ok()?))
            })
            .collect()
    }

    /// The writers of this directory that are at work.
    pub fn at_work(dir: &ProfileDir) -> HashSet<String> {
        let Ok(folder) = dir.folder(LIVE) else {
            return HashSet::new();
        };
        let names = folder.names().unwrap_or_default().into_iter();
        names
            .filter_map(|name| name.into_string().ok())
            .filter(|name| is_locked(&folder, name))
            .collect()
    }

    /// Waits until no writer of this directory is at work, at most `patience`.
    /// Returns whether all are done.
    pub fn wait_for_all(dir: &ProfileDir, patience: Duration) -> bool {
        let give_up = Instant::now() + patience;
        loop {
            if Self::at_work(dir).is_empty() {
                return true;
            }
            if Instant::now() >= give_up {
                return false;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for LiveMarker {
    fn drop(&mut self) {
        // The lock goes with the file; a marker left behind is unlocked and so means nothing.
        let _ = self.folder.remove(&self.name);
    }
}

fn is_locked(folder: &Directory, marker: &str) -> bool {
    folder
        .open_file(marker)
        .is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}
