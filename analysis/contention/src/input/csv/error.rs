//! Why CSV files could not be read.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why CSV files could not be read.
#[derive(Debug, Error)]
pub enum CsvError {
    /// A file cannot be read, or a row has the wrong columns or no number where one must be.
    #[error("{}: {reason}", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the line.
        reason: String,
    },
    /// A word that is none of those expected.
    #[error("{}, row {row}: {what} {word:?} is not known; there are: {known}", path.display())]
    Word {
        /// The file.
        path: PathBuf,
        /// Which row after the heading, from 1.
        row: usize,
        /// What the word should be.
        what: &'static str,
        /// The word.
        word: String,
        /// What it could be.
        known: String,
    },
    /// A row that cannot have happened.
    #[error("{}, row {row}: {reason}", path.display())]
    Impossible {
        /// The file.
        path: PathBuf,
        /// Which row after the heading, from 1.
        row: usize,
        /// Why not.
        reason: String,
    },
    /// There are no rows.
    #[error("{}: no rows", .0.display())]
    Empty(PathBuf),
}

impl CsvError {
    /// Of the row at a position, from 0.
    pub(super) fn impossible(path: &Path, at: usize, reason: impl Into<String>) -> CsvError {
        CsvError::Impossible {
            path: path.to_owned(),
            row: at + 1,
            reason: reason.into(),
        }
    }

    /// Of the row at a position, from 0.
    pub(super) fn word(
        path: &Path,
        at: usize,
        what: &'static str,
        word: String,
        known: &[&str],
    ) -> CsvError {
        CsvError::Word {
            path: path.to_owned(),
            row: at + 1,
            what,
            word,
            known: known.join(", "),
        }
    }
}
