//! Who still writes: a locked file for each writer at work.
//!
//! The writer process outlives the JVM by a moment. Whoever wants the whole profile (`unfuse run`)
//! waits until no marker is locked; a marker of a killed writer is unlocked by the kernel.
//!
//! A writer that could not write everything leaves its marker behind under a name that says why. Renaming
//! works on a full disk, where a message could not be written.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::dir::private_folder;
use crate::{FormatError, ProfileDir};

/// Between a marker's name and the errno of its writer.
const FAILED: &str = ".failed-";

/// Held by a writer for as long as it writes; dropping it says the profile is complete.
#[derive(Debug)]
pub struct LiveMarker {
    path: PathBuf,
    _locked: File,
}

impl LiveMarker {
    /// Announces the writer called `name` (`HOST-PID`).
    pub fn hold(dir: &ProfileDir, name: &str) -> Result<Self, FormatError> {
        let folder = dir.path().join("live");
        private_folder(&folder).map_err(FormatError::unwritable(&folder))?;
        let path = folder.join(name);
        let file = File::create(&path).map_err(FormatError::unwritable(&path))?;
        file.lock().map_err(FormatError::io(&path))?;
        Ok(Self {
            path,
            _locked: file,
        })
    }

    /// Says that the profile is not complete, and why.
    pub fn fail(self, errno: i32) {
        let mut name = self.path.clone().into_os_string();
        name.push(format!("{FAILED}{errno}"));
        let _ = fs::rename(&self.path, name);
    }

    /// Why writers of this directory could not start, or not write everything.
    pub fn failures(dir: &ProfileDir) -> Vec<io::Error> {
        let entries = fs::read_dir(dir.path().join("live")).into_iter().flatten();
        entries
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name();
                let (_, errno) = name.to_str()?.rsplit_once(FAILED)?;
                Some(io::Error::from_raw_os_error(errno.parse().ok()?))
            })
            .collect()
    }

    /// The writers of this directory that are at work.
    pub fn at_work(dir: &ProfileDir) -> HashSet<String> {
        let entries = fs::read_dir(dir.path().join("live")).into_iter().flatten();
        entries
            .flatten()
            .filter(|entry| is_locked(&entry.path()))
            .filter_map(|entry| entry.file_name().into_string().ok())
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
        let _ = fs::remove_file(&self.path);
    }
}

fn is_locked(marker: &Path) -> bool {
    File::open(marker).is_ok_and(|file| match file.try_lock() {
        Ok(()) => false,
        Err(fs::TryLockError::WouldBlock) => true,
        Err(fs::TryLockError::Error(_)) => false,
    })
}
