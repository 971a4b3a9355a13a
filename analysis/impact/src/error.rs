//! Errors in runs and tables.

use std::path::PathBuf;

use thiserror::Error;

use crate::Scheme;

/// Why runs are rejected.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum InputError {
    /// NaN, infinite, zero or negative, or longer than any job.
    #[error("a run at {scheme}: {seconds} s is no possible running time")]
    Time {
        /// The scheme.
        scheme: Scheme,
        /// The time, s.
        seconds: f64,
    },
    /// NaN, infinite, zero or negative.
    #[error("{0} is no possible speed of a CPU")]
    Speed(f64),
    /// NaN, negative or beyond any processor.
    #[error("{0} is no possible number of instructions for each cycle")]
    InstructionsPerCycle(f64),
    /// Not between 0 and 1.
    #[error("a run at {scheme}: {value} is no possible {what} part; it is a number, from 0 to 1")]
    Utilisation {
        /// The scheme.
        scheme: Scheme,
        /// The quantity.
        what: &'static str,
        /// The value.
        value: f64,
    },
    /// There is no run at the base scheme.
    #[error(
        "no run at the base scheme {base}; every indicator compares with it. There are runs at {there}"
    )]
    NoBase {
        /// The base scheme.
        base: Scheme,
        /// Schemes with runs.
        there: String,
    },
    /// Eq. 3 divides by 1 − c_b / c, which must be positive.
    #[error(
        "the base scheme's CPU speed {base} is above {slower}, at which there are runs too; the base must have the slowest CPU"
    )]
    BaseNotSlowest {
        /// c_b.
        base: f64,
        /// The slower CPU.
        slower: f64,
    },
    /// The CPU never varies.
    #[error(
        "no run with a faster CPU than the base scheme's {base}, on the same disk and network; without one no indicator can be computed"
    )]
    NoFaster {
        /// The base scheme.
        base: Scheme,
    },
}

/// Why a table is rejected.
#[derive(Debug, Error)]
pub enum TableError {
    /// The file cannot be read, or is not such a table.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error, with the line if known.
        reason: String,
    },
    /// There are no rows.
    #[error("{}: no rows; it needs a row for each run, with the columns {}", .0.display(), crate::COLUMNS)]
    Empty(PathBuf),
    /// A workload of the table is impossible.
    #[error("{}{}: {reason}", path.display(), for_workload(workload))]
    Impossible {
        /// The file.
        path: PathBuf,
        /// The workload, empty if there is only one.
        workload: String,
        /// The reason.
        reason: Box<InputError>,
    },
}

fn for_workload(workload: &str) -> String {
    match workload {
        "" => String::new(),
        name => format!(", workload {name}"),
    }
}
