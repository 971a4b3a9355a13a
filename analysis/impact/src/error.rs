//! Inputs that cannot have happened, and files that cannot be read.

use std::path::PathBuf;

use thiserror::Error;

use crate::Scheme;

/// Why runs were refused.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum InputError {
    /// NaN, infinite, zero or negative, or beyond what any job takes.
    #[error("a run at {scheme}: {seconds} s is no possible running time")]
    Time {
        /// Where.
        scheme: Scheme,
        /// What was given.
        seconds: f64,
    },
    /// NaN, infinite, zero or negative.
    #[error("{0} is no possible speed of a CPU")]
    Speed(f64),
    /// NaN, negative or beyond what any processor does.
    #[error("{0} is no possible number of instructions for each cycle")]
    InstructionsPerCycle(f64),
    /// Not within 0 and 1.
    #[error("a run at {scheme}: {value} is no possible {what} part; it is a number, from 0 to 1")]
    Utilisation {
        /// Where.
        scheme: Scheme,
        /// Of what.
        what: &'static str,
        /// What was given.
        value: f64,
    },
    /// There is nothing to compare with.
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
        /// The slower one.
        slower: f64,
    },
    /// The CPU was never changed.
    #[error(
        "no run with a faster CPU than the base scheme's {base}, on the same disk and network; without one no indicator can be computed"
    )]
    NoFaster {
        /// The base scheme.
        base: Scheme,
    },
}

/// Why a table could not be read.
#[derive(Debug, Error)]
pub enum TableError {
    /// The file cannot be read, or is no such table.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the line where it is known.
        reason: String,
    },
    /// There are no rows.
    #[error("{}: no rows; it needs a row for each run, with the columns {}", .0.display(), crate::COLUMNS)]
    Empty(PathBuf),
    /// It is known which workload cannot be.
    #[error("{}{}: {reason}", path.display(), for_workload(workload))]
    Impossible {
        /// The file.
        path: PathBuf,
        /// The workload, empty where there is only one.
        workload: String,
        /// Why not.
        reason: Box<InputError>,
    },
}

fn for_workload(workload: &str) -> String {
    match workload {
        "" => String::new(),
        name => format!(", workload {name}"),
    }
}
