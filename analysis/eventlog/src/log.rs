//! Reads a log from its first event to its last.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use unfuse_files::open_given;

use crate::codec::{self, Budget, FileStart, Text};
use crate::json::{self, Names};
use crate::lines::{self, Line};
use crate::{Damage, Event, EventLogError, files};

/// A log being read: an iterator over its events.
///
/// A running application may write meanwhile; events end where it was.
pub struct EventLog {
    /// Files that are not read yet.
    files: VecDeque<PathBuf>,
    /// The current file, with its path and the number of the last line.
    current: Option<(Text, PathBuf, u64)>,
    line: Vec<u8>,
    bytes: u64,
    budget: Budget,
    names: Names,
    damage: Damage,
}

impl EventLog {
    /// Longer lines are skipped, bytes. Real lines with plans of thousands of nodes have a few MiB.
    pub const MAX_LINE: usize = 16 << 20;

    /// Opens a log: a file, or the directory of a rolling log.
    ///
    /// # Errors
    /// If it does not exist, is empty, or is not an event log.
    pub fn open(path: &Path) -> Result<Self, EventLogError> {
        let files = files::find(path)?;
        let mut log = Self::new(files.paths.into());
        log.damage.missing_files = files.missing;
        log.next_file().map_err(|error| match error {
            EventLogError::Empty(_) => EventLogError::Empty(path.to_owned()),
            other => other,
        })?;
        Ok(log)
    }

    /// Reads a log that is not a file; `name` is for messages.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_reader(
        reader: impl Read + Send + 'static,
        name: &Path,
    ) -> Result<Self, EventLogError> {
        let mut log = Self::new(VecDeque::new());
        log.begin_with(reader, name.to_owned())?;
        Ok(log)
    }

    /// The unreadable parts so far; after the last event, of the whole log.
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// Amount of unpacked text read so far, bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn new(files: VecDeque<PathBuf>) -> Self {
        Self {
            files,
            current: None,
            line: Vec::new(),
            bytes: 0,
            budget: Budget::default(),
            names: Names::default(),
            damage: Damage::default(),
        }
    }

    fn begin(&mut self, path: PathBuf) -> Result<(), EventLogError> {
        match open_given(&path) {
            Ok(file) => self.begin_with(file, path),
            Err(source) => Err(EventLogError::Io { path, source }),
        }
    }

    fn begin_with(
        &mut self,
        reader: impl Read + Send + 'static,
        path: PathBuf,
    ) -> Result<(), EventLogError> {
        match codec::text(reader, &self.budget) {
            Ok(FileStart::Text(text)) => self.current = Some((text, path, 0)),
            Ok(FileStart::Empty) => return Err(EventLogError::Empty(path)),
            Ok(FileStart::Unknown) => return Err(EventLogError::NotAnEventLog(path)),
            Err(source) => return Err(EventLogError::Io { path, source }),
        }
        Ok(())
    }

    /// Opens the next non-empty file: Spark creates files before it writes to them. Returns an error if none is left.
    fn next_file(&mut self) -> Result<(), EventLogError> {
        let mut refused = EventLogError::Empty(PathBuf::new());
        while let Some(path) = self.files.pop_front() {
            match self.begin(path.clone()) {
                Ok(()) => return Ok(()),
                Err(EventLogError::Empty(_)) => continue,
                Err(error) => refused = error,
            }
            let why = match &refused {
                EventLogError::Io { source, .. } => why(source),
                _ => "it is no event log".to_owned(),
            };
            self.cut(path, why);
        }
        Err(refused)
    }

    fn cut(&mut self, path: PathBuf, why: String) {
        self.damage.cut_files.push((path, why));
    }

    fn broken(&mut self, error: &serde_json::Error) {
        self.damage.broken_lines += 1;
        if self.damage.first_broken.is_none()
            && let Some((_, path, number)) = &self.current
        {
            self.damage.first_broken = Some((path.clone(), *number, error.to_string()));
        }
    }
}

impl Iterator for EventLog {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            if self.current.is_none() {
                self.next_file().ok()?;
            }
            let (text, path, number) = self.current.as_mut()?;
            let found = lines::next(text.as_mut(), &mut self.line, Self::MAX_LINE);
            *number += 1;
            self.bytes += self.line.len() as u64 + 1;
            match found {
                Ok(Line::Whole) => match json::event(&self.line, &mut self.names) {
                    Ok(Some(event)) => return Some(event),
                    Ok(None) => {}
                    Err(error) => self.broken(&error),
                },
                Ok(Line::Last) => match json::event(&self.line, &mut self.names) {
                    Ok(Some(event)) => return Some(event),
                    Ok(None) => {}
                    Err(_) => {
                        let path = path.clone();
                        self.cut(path, "its last line is cut off".into());
                    }
                },
                Ok(Line::TooLong) => self.damage.long_lines += 1,
                Ok(Line::End) => self.current = None,
                Err(error) => {
                    let path = path.clone();
                    self.current = None;
                    // The budget of the log is exhausted, and the other files share it.
                    if error.kind() == io::ErrorKind::FileTooLarge {
                        self.files.clear();
                    }
                    self.cut(path, why(&error));
                }
            }
        }
    }
}

/// The message of a read error.
fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "it ends within a compressed block".into(),
        io::ErrorKind::FileTooLarge => error.to_string(),
        io::ErrorKind::InvalidData => format!("a compressed block is broken ({error})"),
        _ => format!("it cannot be read on ({error})"),
    }
}
