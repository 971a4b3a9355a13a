//! Event logs of Spark as profiles without samples: in the cache directory, and made again if a log has changed.

use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use unfuse_eventlog::EventLog;
use unfuse_files::{Access, Directory};
use unfuse_format::ProfileDir;
use unfuse_import::import;
use unfuse_machine as machine;

/// Name of a file with notes on damage of the log, one on each line.
const NOTES: &str = "event-log.notes";
/// Notes that are kept, and bytes of each.
const MOST_NOTES: usize = 100;
const LONGEST_NOTE: usize = 500;
/// Changes when the same log gives other tables.
const TABLES: u32 = 1;
/// A profile of a log is made again after this time. Until then another command may read it.
const OLD: Duration = Duration::from_secs(7 * 86_400);

/// The local directory of a profile of the application in a log. Prints what of the log is not readable.
///
/// # Errors
/// If it is not an event log, or the cache directory cannot be used.
pub fn as_profile(log: &Path) -> Result<PathBuf> {
    let cannot_read = || format!("cannot read {}", log.display());
    let path = fs::canonicalize(log).with_context(cannot_read)?;
    let cache = machine::cache_folder("event-logs", Access::Private)?;
    let state = state(&path).with_context(cannot_read)?;
    let current = hash(&(env!("CARGO_PKG_VERSION"), TABLES, &path, state));
    if !cache.has(&current) {
        // In a temporary directory first, so that an interrupted command leaves no incomplete profile.
        let aside = tempfile::Builder::new()
            .prefix(".new-")
            .tempdir_in(cache.path())
            .with_context(|| format!("cannot write to {}", cache.path().display()))?;
        let made = aside.path().join("profile");
        let profile = ProfileDir::create(&made)?;
        let mut events = EventLog::open(log)?;
        let notes = import(&mut events, &profile)?;
        let notes: Vec<&str> = notes
            .iter()
            .take(MOST_NOTES)
            .map(|note| first(note))
            .collect();
        profile.files().write(NOTES, notes.join("\n").as_bytes())?;
        forget_old(&cache)?;
        match fs::rename(&made, cache.path().join(&current)) {
            Err(_) if cache.has(&current) => {}
            renamed => renamed.context("cannot keep the profile of the log")?,
        }
    }
    let profile = cache.folder(&current)?;
    let notes = profile.read(NOTES, (MOST_NOTES * (LONGEST_NOTE + 1)) as u64)?;
    for note in String::from_utf8_lossy(&notes).lines() {
        crate::say!("unfuse: {}: {note}", log.display());
    }
    Ok(profile.path().to_owned())
}

/// The begin of a note, in one line.
fn first(note: &str) -> &str {
    let line = note.lines().next().unwrap_or_default();
    &line[..line.floor_char_boundary(LONGEST_NOTE)]
}

/// Removes profiles of logs that have changed or are gone.
fn forget_old(cache: &Directory) -> Result<()> {
    for name in cache.names()? {
        let path = cache.path().join(name);
        let made = fs::symlink_metadata(&path).and_then(|about| about.modified());
        if made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > OLD)) {
            // Another command may have been faster.
            let _ = fs::remove_dir_all(path);
        }
    }
    Ok(())
}

/// Name, number, size and time of change of a file.
type FileState = (String, u64, u64, i64, i64);

/// The state of each file of a log.
fn state(path: &Path) -> io::Result<Vec<FileState>> {
    let of = |name: String, about: &Metadata| {
        (
            name,
            about.ino(),
            about.len(),
            about.ctime(),
            about.ctime_nsec(),
        )
    };
    let about = fs::metadata(path)?;
    if !about.is_dir() {
        return Ok(vec![of(String::new(), &about)]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        files.push(of(
            entry.file_name().to_string_lossy().into_owned(),
            &entry.metadata()?,
        ));
    }
    files.sort_unstable();
    Ok(files)
}

fn hash(of: &impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
