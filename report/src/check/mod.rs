//! Whether queries became slower: the answer of `unfuse check` as data ([`Answer`]), as text ([`render`]), and for CI
//! ([`junit()`], [`markdown()`]).
//!
//! Each query that both sides have is compared by wall time, CPU time and the CPU time of its operators. A measure is a
//! regression only if the whole interval of its change is above the limit, and so is that for each row if the rows are known.
//! The intervals hold together with 95% probability, however many comparisons there are (Bonferroni).

mod answer;
mod baseline;
mod change;
mod compared;
mod junit;
mod limit;
mod markdown;
mod runs;
#[cfg(test)]
mod tests;
mod text;

pub use answer::{Answer, Comparison, Measure, MissingQuery, Query, Status};
pub use baseline::Baseline;
pub use change::Change;
pub use junit::junit;
pub use limit::Limit;
pub use markdown::markdown;
pub use text::render;

use crate::{Report, ReportError};
use runs::{QueryRuns, queries};

/// What to compare.
#[derive(Debug, Clone, Copy)]
pub struct Question {
    /// By how much a measure may grow.
    pub limit: Limit,
    /// How many first runs of each query in each application to leave out.
    pub warm_up: usize,
}

/// The runs of a profile's queries.
#[derive(Debug)]
pub struct ProfileRuns {
    /// The profile.
    profile: String,
    queries: Vec<QueryRuns>,
    notes: Vec<String>,
    /// Versions of Spark.
    spark: Vec<String>,
}

impl ProfileRuns {
    /// Of a profile that is compared with another one: the name of the application does not matter.
    pub fn new(report: &Report<'_>, warm_up: usize) -> Self {
        Self::from_report(report, false, warm_up)
    }

    /// Of a profile that is compared with a baseline, in which each application has its own queries.
    pub fn by_application(report: &Report<'_>, warm_up: usize) -> Self {
        Self::from_report(report, true, warm_up)
    }

    fn from_report(report: &Report<'_>, by_application: bool, warm_up: usize) -> Self {
        let profile = report.summary.profile.clone();
        let notes = report.summary.notes.iter();
        let mut spark: Vec<String> = report
            .summary
            .applications
            .iter()
            .map(|app| app.spark.clone())
            .filter(|version| !version.is_empty())
            .collect();
        spark.sort();
        spark.dedup();
        Self {
            queries: queries(report, by_application, warm_up),
            notes: notes.map(|note| format!("{profile}: {note}")).collect(),
            profile,
            spark,
        }
    }

    /// Why there is nothing to compare.
    fn check_not_empty(&self) -> Result<(), ReportError> {
        if self.queries.is_empty() {
            return Err(ReportError::Refused(format!(
                "{} has no SQL query that ended, and `unfuse check` compares queries; profile a job with queries until it ends",
                self.profile
            )));
        }
        Ok(())
    }
}
