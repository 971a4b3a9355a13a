//! The page's data on two profiles.

use serde::Serialize;
use ts_rs::TS;

use super::Cost;

/// The comparison of this profile with an earlier one, by query.
#[derive(Debug, Clone, Default, PartialEq, Serialize, TS)]
pub struct Comparison {
    /// The earlier profile's directory.
    pub before: String,
    /// All samples of the earlier profile.
    pub before_total: Cost,
    /// Queries in both profiles.
    pub pairs: Vec<Pair>,
    /// Queries in the earlier profile only.
    pub only_before: Vec<UnmatchedQuery>,
    /// Queries in this profile only.
    pub only_after: Vec<UnmatchedQuery>,
}

/// A query in both profiles. Costs are means of its runs.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct Pair {
    /// Text or call site.
    pub description: String,
    /// Fingerprint in this profile.
    pub fingerprint: String,
    /// Whether the plans differ, and only the descriptions are equal.
    pub replanned: bool,
    /// Runs in the earlier profile.
    pub before_runs: usize,
    /// Runs in this profile.
    pub after_runs: usize,
    /// CPU time of a run in the earlier profile, ns.
    pub before_ns: u64,
    /// CPU time of a run in this profile, ns.
    pub after_ns: u64,
    /// Operators and headings.
    pub rows: Vec<PairRow>,
}

/// An operator or heading in both profiles.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct PairRow {
    /// Name of the operator or heading.
    pub name: String,
    /// The operator as the plan prints it.
    pub detail: String,
    /// Whether it is a heading.
    pub heading: bool,
    /// Depth in the plan.
    pub depth: usize,
    /// Own CPU time of a run in the earlier profile, ns; none if that plan does not have the operator.
    pub before_ns: Option<u64>,
    /// The same in this profile.
    pub after_ns: Option<u64>,
    /// Own CPU time for each row that the operator got or, if it got none, output, ns; none if the number of rows is
    /// unknown.
    pub before_ns_per_row: Option<f64>,
    /// The same in this profile.
    pub after_ns_per_row: Option<f64>,
}

/// A query in only one of the profiles.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct UnmatchedQuery {
    /// Text or call site.
    pub description: String,
    /// Its fingerprint.
    pub fingerprint: String,
    /// Number of runs.
    pub runs: usize,
    /// CPU time of a run, ns.
    pub cpu_ns: u64,
}
