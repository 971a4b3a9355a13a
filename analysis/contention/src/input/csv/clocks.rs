//! Clocks of hosts that disagree.

use std::collections::BTreeMap;

use super::rows::{HostRow, IntervalRow};
use crate::Span;

/// With a larger gap between them, hosts do not work on the same queries at the same time by one clock, ns.
const APART: i64 = 1_000_000_000;

/// If nothing runs between the times of some hosts and those of others, shifts the times of all hosts so that their
/// first rows begin at the same moment. Returns a note.
///
/// Blame is only found among tasks of one host, so it does not change. Comparisons between hosts are meaningless with
/// the original times: how long a query ran, windows of time, overlap.
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
    // The latest one, because no time may become negative.
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

/// The host that ends last before a gap, the one that begins after it, and the length of the gap, ns.
fn first_gap<'a>(by_start: &[(&'a String, Span)]) -> Option<(&'a str, &'a str, i64)> {
    let mut last = *by_start.first()?;
    for (host, span) in by_start {
        // Times are not negative, so this does not overflow.
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
