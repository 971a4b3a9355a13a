//! Exports a profile for other tools, one file for each format. All take their stacks from `stacks.rs` and write the
//! same bytes for the same directory. `docs/exports.md` maps the fields.

mod firefox;
mod json;
mod otlp;
mod pprof;
mod prometheus;
mod speedscope;
mod table;

pub use firefox::firefox;
pub use json::json;
pub use otlp::otlp;
pub use pprof::pprof;
pub use prometheus::prometheus;
pub use speedscope::speedscope;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::profile::{Profile, Selection, Weight};

/// When the selection's applications were profiled, and how often, for formats that state this once for each file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    /// Earliest start, ns since the epoch.
    start_ns: i64,
    /// Latest end, ns since the epoch.
    end_ns: i64,
    /// CPU time between two samples, ns; 0 where unknown.
    period_ns: i64,
}

impl Span {
    /// Of one application, or of all.
    fn new(profile: &Profile, app: Option<&str>) -> Self {
        let processes = || {
            let all = profile.processes.iter();
            all.filter(|process| app.is_none_or(|app| process.app == app))
        };
        let start_ns = processes().map(|process| process.start_ns).min();
        let end_ns = processes().map(|process| process.end_ns).max();
        let rate = processes().map(|process| process.rate_hz).max();
        Self {
            start_ns: start_ns.unwrap_or(0),
            end_ns: end_ns.unwrap_or(0),
            period_ns: match rate {
                Some(hertz @ 1..) => 1_000_000_000 / i64::from(hertz),
                _ => 0,
            },
        }
    }

    fn duration_ns(self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns).max(0)
    }
}

/// Application ids of a selection, empty outside Spark; most CPU time first.
fn apps(profile: &Profile, selection: Selection) -> Vec<&str> {
    let mut sums: BTreeMap<&str, Weight> = BTreeMap::new();
    for (group, weight) in profile.selected(selection) {
        sums.entry(&group.app).or_default().add(weight);
    }
    let mut apps: Vec<_> = sums.into_iter().collect();
    apps.sort_by_key(|(_, weight)| Reverse(weight.ns));
    apps.into_iter().map(|(app, _)| app).collect()
}

/// The title: the names of the profile's Spark applications.
fn title(profile: &Profile) -> String {
    let mut names: Vec<&str> = profile
        .processes
        .iter()
        .map(|process| process.name.as_str())
        .filter(|name| !name.is_empty())
        .collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        names.push("Java");
    }
    names.join(", ")
}

/// For formats with signed numbers; a damaged row may contain any number.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// For formats with 32-bit indices; a table of that size would not fit into memory.
fn index32(index: usize) -> i32 {
    i32::try_from(index).unwrap_or(i32::MAX)
}
