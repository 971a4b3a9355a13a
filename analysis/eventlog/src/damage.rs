//! Counts unreadable parts while they are skipped.

use std::path::PathBuf;

/// The unreadable parts of a log, and missing files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Lines that are not an event, or an event without its key fields.
    pub broken_lines: u64,
    /// The first of them: file, line (from 1), error.
    pub first_broken: Option<(PathBuf, u64, String)>,
    /// Lines longer than [`MAX_LINE`](crate::EventLog::MAX_LINE).
    pub long_lines: u64,
    /// Files whose end is missing or unreadable, each with the error.
    pub cut_files: Vec<(PathBuf, String)>,
    /// Numbers of missing files of a rolling log.
    pub missing_files: Vec<u64>,
}

impl Damage {
    /// Whether everything was read.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Notes for users, a sentence each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for (file, why) in &self.cut_files {
            notes.push(format!(
                "{}: {why}; what came before counts",
                file.display()
            ));
        }
        if !self.missing_files.is_empty() {
            let numbers: Vec<String> = self.missing_files.iter().map(u64::to_string).collect();
            notes.push(format!(
                "the rolling log lacks its files {}; what was in them is not counted",
                numbers.join(", ")
            ));
        }
        if let Some((file, line, why)) = &self.first_broken {
            notes.push(format!(
                "{} lines are no events and were skipped; the first is {}:{line} ({why})",
                self.broken_lines,
                file.display()
            ));
        }
        if self.long_lines > 0 {
            notes.push(format!(
                "{} events were longer than {} MiB and were skipped",
                self.long_lines,
                crate::EventLog::MAX_LINE >> 20
            ));
        }
        notes
    }
}
