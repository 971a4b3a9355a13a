//! What could not be read, counted while it is skipped.

use std::path::PathBuf;

/// What was lost of a log, and what its files lack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Lines that are no event, or an event that lacks what identifies it.
    pub broken_lines: u64,
    /// Where the first of them is: file, line (from 1), what is wrong.
    pub first_broken: Option<(PathBuf, u64, String)>,
    /// Lines longer than [`MAX_LINE`](crate::EventLog::MAX_LINE).
    pub long_lines: u64,
    /// Files whose end is missing or not readable, with what was met there.
    pub cut_files: Vec<(PathBuf, String)>,
    /// Numbers of files that a rolling log should have and has not.
    pub missing_files: Vec<u64>,
}

impl Damage {
    /// Whether all was read.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The same for the person, a sentence each.
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
