//! The files of a log.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::EventLogError;

/// A log's files in the order of writing, and the missing numbers between them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Files {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) missing: Vec<u64>,
}

/// Whether a path is an event log: a file, or a directory with files `events_N_…`. Also true for pipes and devices, so
/// that [`EventLog::open`](crate::EventLog::open) can explain why it does not open them.
pub fn is_event_log(path: &Path) -> bool {
    let is_no_directory = fs::metadata(path).is_ok_and(|about| !about.is_dir());
    is_no_directory || rolling(path).is_ok_and(|files| !files.paths.is_empty())
}

/// The files of a log.
pub(crate) fn find(path: &Path) -> Result<Files, EventLogError> {
    let failed = |source| EventLogError::Io {
        path: path.to_owned(),
        source,
    };
    if !fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(Files {
            paths: vec![path.to_owned()],
            missing: Vec::new(),
        });
    }
    let files = rolling(path).map_err(failed)?;
    if files.paths.is_empty() {
        return Err(EventLogError::NoEvents(path.to_owned()));
    }
    Ok(files)
}

/// Files `events_N_ID[.CODEC][.compact]` by number. A compacted file replaces all files up to its number.
fn rolling(dir: &Path) -> io::Result<Files> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        // The author of a directory must not select other files with a link.
        if !entry.file_type()?.is_file() {
            continue;
        }
        let path = entry.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(rest) = name.and_then(|name| name.strip_prefix("events_")) else {
            continue;
        };
        let number = rest.split('_').next().and_then(|text| text.parse().ok());
        if let Some(number) = number {
            let number: u64 = number;
            found.push((number, rest.ends_with(".compact"), path));
        }
    }
    found.sort();
    if let Some(compacted) = found.iter().rposition(|(_, compacted, _)| *compacted) {
        found.drain(..compacted);
    } else if let Some((first, ..)) = found.first() {
        // Spark counts from 1.
        let before = 1..*first;
        return Ok(gaps(found, before));
    }
    Ok(gaps(found, 0..0))
}

fn gaps(found: Vec<(u64, bool, PathBuf)>, before: std::ops::Range<u64>) -> Files {
    /// Maximum number of missing files that are listed.
    const MOST: usize = 100;
    let between = found
        .windows(2)
        .flat_map(|pair| pair[0].0.saturating_add(1)..pair[1].0);
    Files {
        missing: before.chain(between).take(MOST).collect(),
        paths: found.into_iter().map(|(.., path)| path).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> (Vec<String>, Vec<u64>) {
        let dir = tempfile::tempdir().unwrap();
        for name in names {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let files = find(dir.path()).unwrap();
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        (files.paths.iter().map(name).collect(), files.missing)
    }

    #[test]
    fn files_are_in_order_of_their_numbers() {
        let (paths, missing) = names(&[
            "events_10_app-1_2.zstd",
            "events_9_app-1_2.zstd",
            "appstatus_app-1_2.inprogress",
            ".events_9_app-1_2.zstd.crc",
        ]);
        assert_eq!(paths, ["events_9_app-1_2.zstd", "events_10_app-1_2.zstd"]);
        assert_eq!(missing, [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn a_compacted_file_stands_for_those_before() {
        let (paths, missing) = names(&[
            "events_1_a",
            "events_2_a",
            "events_2_a.compact",
            "events_3_a",
            "events_5_a",
        ]);
        assert_eq!(paths, ["events_2_a.compact", "events_3_a", "events_5_a"]);
        assert_eq!(missing, [4]);
    }

    #[test]
    fn links_and_pipes_are_no_files_of_a_log() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("events_1_a")).unwrap();
        assert!(matches!(find(dir.path()), Err(EventLogError::NoEvents(_))));
    }

    #[test]
    fn a_directory_of_something_else_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(find(dir.path()), Err(EventLogError::NoEvents(_))));
        assert!(!is_event_log(dir.path()));
        let gone = dir.path().join("gone");
        assert!(matches!(find(&gone), Err(EventLogError::Io { .. })));
    }
}
