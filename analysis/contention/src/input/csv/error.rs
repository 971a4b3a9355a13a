//! Errors in CSV files.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why CSV files cannot be read.
#[derive(Debug, Error)]
pub enum CsvError {
    /// A file cannot be read, or a row has the wrong columns or a text in place of a number.
    #[error("{}: {reason}", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// The error, with the line.
        reason: String,
    },
    /// An unknown word.
    #[error("{}, row {row}: {what} {word:?} is not known; there are: {known}", path.display())]
    Word {
        /// The file.
        path: PathBuf,
        /// The number of the row after the heading, from 1.
        row: usize,
        /// What the word stands for.
        what: &'static str,
        /// The word.
        word: String,
        /// The known words.
        known: String,
    },
    /// An impossible row.
    #[error("{}, row {row}: {reason}", path.display())]
    Impossible {
        /// The file.
        path: PathBuf,
        /// The number of the row after the heading, from 1.
        row: usize,
        /// The reason.
        reason: String,
    },
    /// There are no rows.
    #[error("{}: no rows", .0.display())]
    Empty(PathBuf),
}

impl CsvError {
    /// An impossible row; `index` is from 0.
    pub(super) fn impossible(path: &Path, index: usize, reason: impl Into<String>) -> CsvError {
        CsvError::Impossible {
            path: path.to_owned(),
            row: index + 1,
            reason: reason.into(),
        }
    }

    /// An unknown word in a row; `index` is from 0.
    pub(super) fn word(
        path: &Path,
        index: usize,
        what: &'static str,
        word: String,
        known: &[&str],
    ) -> CsvError {
        CsvError::Word {
            path: path.to_owned(),
            row: index + 1,
            what,
            word,
            known: known.join(", "),
        }
    }
}
