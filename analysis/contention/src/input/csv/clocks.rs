//! Clocks of hosts that do not agree.

use std::collections::BTreeMap;

use super::rows::{HostRow, IntervalRow};
use crate::Span;

/// With more between them, hosts do not work on the same queries at the same time by one clock, ns.
const APART: i64 = 1_000_000_000;

/// Where nothing runs between the times of some hosts and those of others, has the times of each host count from the same
/// moment, its first row; says so.
///
/// Blame is only found among tasks of one host, so it does not change. What compares hosts would make no sense by the times
/// as they are: how long a query ran, parts of the time, overlap.
pub(super) fn align(rows: &mut [IntervalRow], hosts: &mut [HostRow]) -> Option<String> {
    let mut worked: BTreeMap<String, Span> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.start_ns < row.end_ns) {
        match worked.get_mut(&row.host) {
            Some(span) => *span = span.hull(row.span()),
            None => {
                worked.insert(row.host.clone(), row.span());
            }
        }
    }
    let mut by_start: Vec<(&String, Span)> =
        worked.iter().map(|(host, span)| (host, *span)).collect();
    by_start.sort_by_key(|(_, span)| span.start);
    let (early, late, gap) = first_gap(&by_start)?;
    let note = format!(
        "the times of hosts do not overlap ({early} ends {:.1} s before {late} begins): their clocks differ, or they worked one after \
         the other. The times of each host count from its first row. The order of events on different hosts is unknown, so running \
         times and overlaps of queries are partial",
        gap as f64 / 1e9
    );
    // The latest, as nothing may begin before 0.
    let origin = by_start.last()?.1.start;
    let later = |host: &str, at: &mut i64| {
        if let Some(span) = worked.get(host) {
            *at = at.saturating_add(origin - span.start);
        }
    };
    for row in rows {
        later(&row.host, &mut row.start_ns);
        later(&row.host, &mut row.end_ns);
    }
    for row in hosts {
        later(&row.host, &mut row.start_ns);
        later(&row.host, &mut row.end_ns);
    }
    Some(note)
}

/// The host that ends last before a gap, the one that begins after it, and its length, ns.
fn first_gap<'a>(by_start: &[(&'a String, Span)]) -> Option<(&'a str, &'a str, i64)> {
    let mut last = *by_start.first()?;
    for (host, span) in by_start {
        // Times are not negative, so this is no overflow.
        let gap = span.start - last.1.end;
        if gap > APART {
            return Some((last.0, host, gap));
        }
        if span.end > last.1.end {
            last = (host, *span);
        }
    }
    None
}
