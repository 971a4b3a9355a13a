//! What the page gets of two profiles.

use serde::Serialize;
use ts_rs::TS;

use super::Cost;

/// This profile beside another one, per query.
#[derive(Debug, Clone, Default, PartialEq, Serialize, TS)]
pub struct Comparison {
    /// The other profile's directory.
    pub before: String,
    /// All samples of the other profile.
    pub before_total: Cost,
    /// Queries of both.
    pub pairs: Vec<Pair>,
    /// Queries of the other profile only.
    pub only_before: Vec<Unmatched>,
    /// Queries of this profile only.
    pub only_after: Vec<Unmatched>,
}

/// A query of both profiles. Costs are means of its runs.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct Pair {
    /// Text or call site.
    pub description: String,
    /// Fingerprint in this profile.
    pub fingerprint: String,
    /// Whether only the descriptions are equal and the plans differ.
    pub replanned: bool,
    /// Runs in the other profile.
    pub before_runs: usize,
    /// Runs in this profile.
    pub after_runs: usize,
    /// CPU time of a run before, ns.
    pub before_ns: u64,
    /// CPU time of a run after, ns.
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
    /// Own CPU time of a run before, ns; none where that plan does not have it.
    pub before_ns: Option<u64>,
    /// And after.
    pub after_ns: Option<u64>,
    /// Own CPU time for each row that the operator got, or that it put out if it got none, ns; none where the rows are unknown.
    pub before_ns_per_row: Option<f64>,
    /// And after.
    pub after_ns_per_row: Option<f64>,
}

/// A query of one profile only.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct Unmatched {
    /// Text or call site.
    pub description: String,
    /// Its fingerprint.
    pub fingerprint: String,
    /// How often it ran.
    pub runs: usize,
    /// CPU time of a run, ns.
    pub cpu_ns: u64,
}
