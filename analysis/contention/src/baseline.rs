//! The results of simpler methods for the same workload (section 6.1), for comparison.

use std::collections::{BTreeMap, BTreeSet};

use crate::schedule::Reach;
use crate::windows::Sweep;
use crate::{QueryId, Resource, Span, Workload};

/// Seconds of each other query, by victim.
pub type Overlaps = BTreeMap<QueryId, BTreeMap<QueryId, f64>>;

/// Naive-Overlap: seconds for which each other query ran at the same time as the victim, first stage to last, in a
/// window or in all time.
pub fn naive_overlap(
    workload: &Workload,
    victims: &BTreeSet<QueryId>,
    within: Option<Span>,
) -> Overlaps {
    let queries = workload.tables().queries.iter();
    let spans: Vec<(QueryId, Span)> = queries
        .filter_map(|query| Some((query.id, workload.span_of(query.id)?.within(within)?)))
        .collect();
    let of = |victim: QueryId, span: Span| {
        let others = spans.iter().filter(|(query, _)| *query != victim);
        others
            .filter_map(|(query, other)| Some((*query, other.intersection(span)?.seconds())))
            .collect()
    };
    spans
        .iter()
        .filter(|(query, _)| victims.contains(query))
        .map(|(query, span)| (*query, of(*query, *span)))
        .collect()
}

/// Deep-Overlap: seconds of overlap summed over all pairs of a victim's task and another query's task on one host.
///
/// The paper does not define the overlap of tasks on different hosts; "executing in parallel on the same host" (section
/// 6.1) excludes it. Computed window by window, so the time is not quadratic in tasks.
pub fn deep_overlap(
    workload: &Workload,
    victims: &BTreeSet<QueryId>,
    within: Option<Span>,
) -> Overlaps {
    let mut overlaps = Overlaps::new();
    let tasks = || workload.tasks_of_queries(victims).filter(|task| task.runs);
    let Some(life) = tasks().map(|task| task.span).reduce(Span::hull) else {
        return overlaps;
    };
    let reach = Reach::new(life, tasks().map(|task| (task.host, task.span)));
    for (host, rows) in &workload.schedule().hosts {
        let mut here = Sweep::new(&rows.tasks);
        for window in reach.windows(*host, &rows.cuts, within) {
            let query = |at: usize| workload.tables().tasks[at].stage.query;
            let mut running: BTreeMap<QueryId, u64> = BTreeMap::new();
            for (query, _) in here.during(window, query) {
                *running.entry(query).or_default() += 1;
            }
            for (victim, own) in running.iter().filter(|(query, _)| victims.contains(query)) {
                let overlap = overlaps.entry(*victim).or_default();
                for (query, tasks) in running.iter().filter(|(query, _)| *query != victim) {
                    *overlap.entry(*query).or_default() += (own * tasks) as f64 * window.seconds();
                }
            }
        }
    }
    overlaps
}

/// Blocked-time analysis: blocked seconds of each victim on IO and network, whoever caused them.
pub fn blocked_time(
    workload: &Workload,
    victims: &BTreeSet<QueryId>,
    within: Option<Span>,
) -> BTreeMap<QueryId, BTreeMap<Resource, f64>> {
    let mut blocked: BTreeMap<QueryId, BTreeMap<Resource, f64>> = BTreeMap::new();
    for task in workload.tasks_of_queries(victims) {
        for row in workload.intervals_of(task.id) {
            let resource = row.kind.resource();
            if !matches!(resource, Resource::Io | Resource::Network) {
                continue;
            }
            let seconds = blocked.entry(task.stage.query).or_default();
            // Blocked evenly, as far as anybody knows.
            let inside = row.span.within(within).map_or(0.0, Span::seconds);
            let blocked = row.blocked_ns as f64 / 1e9;
            *seconds.entry(resource).or_default() += blocked * inside / row.span.seconds();
        }
    }
    blocked
}
