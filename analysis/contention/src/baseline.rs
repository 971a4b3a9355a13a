//! What simpler methods say about the same workload (section 6.1), to compare with.

use std::collections::BTreeMap;

use crate::{HostId, QueryId, Resource, Span, StageId, Workload, windows};

/// Naive-Overlap: seconds for which each other query ran at the same time as the victim, first stage to last.
pub fn naive_overlap(workload: &Workload, victim: QueryId) -> BTreeMap<QueryId, f64> {
    let Some(span) = query_span(workload, victim) else {
        return BTreeMap::new();
    };
    let others = workload
        .tables()
        .queries
        .iter()
        .filter(|query| query.id != victim);
    others
        .filter_map(|query| {
            Some((
                query.id,
                query_span(workload, query.id)?
                    .intersection(span)?
                    .seconds(),
            ))
        })
        .collect()
}

/// Deep-Overlap: seconds of overlap summed over all pairs of a victim's task and another query's task on one host.
///
/// The paper does not say whether tasks on different hosts overlap; "executing in parallel on the same host"
/// (section 6.1) decides it. Counted window by window, so not quadratic in tasks.
pub fn deep_overlap(workload: &Workload, victim: QueryId) -> BTreeMap<QueryId, f64> {
    let mut overlap = BTreeMap::new();
    for host in &workload.tables().hosts {
        let mut changes = changes(workload, host.id).into_iter().peekable();
        let mut running: BTreeMap<QueryId, i64> = BTreeMap::new();
        for window in windows(workload, host.id) {
            while let Some((_, query, change)) = changes.next_if(|(at, ..)| *at <= window.start) {
                *running.entry(query).or_default() += change;
            }
            let victims = running.get(&victim).copied().unwrap_or(0);
            for (query, tasks) in running
                .iter()
                .filter(|(query, tasks)| **query != victim && **tasks > 0)
            {
                if victims > 0 {
                    *overlap.entry(*query).or_default() +=
                        (victims * tasks) as f64 * window.seconds();
                }
            }
        }
    }
    overlap
}

/// Blocked-time analysis: blocked seconds of each of the victim's stages on IO and network, whoever caused them.
pub fn blocked_time(
    workload: &Workload,
    victim: QueryId,
) -> BTreeMap<StageId, BTreeMap<Resource, f64>> {
    let mut blocked: BTreeMap<StageId, BTreeMap<Resource, f64>> = BTreeMap::new();
    for row in &workload.tables().intervals {
        let stage = workload
            .task(row.task)
            .expect("intervals were checked")
            .stage;
        let resource = row.kind.resource();
        if stage.query == victim && matches!(resource, Resource::Io | Resource::Network) {
            *blocked
                .entry(stage)
                .or_default()
                .entry(resource)
                .or_default() += row.blocked_ns as f64 / 1e9;
        }
    }
    blocked
}

fn query_span(workload: &Workload, query: QueryId) -> Option<Span> {
    let spans = workload.stages_of(query).map(|stage| stage.span);
    spans.reduce(|a, b| Span {
        start: a.start.min(b.start),
        end: a.end.max(b.end),
    })
}

/// Tasks that start (1) and end (-1) on a host, in time.
fn changes(workload: &Workload, host: HostId) -> Vec<(i64, QueryId, i64)> {
    let tasks = workload
        .tables()
        .tasks
        .iter()
        .filter(|task| task.host == host && task.runs);
    let both = tasks.flat_map(|task| {
        [
            (task.span.start, task.stage.query, 1),
            (task.span.end, task.stage.query, -1),
        ]
    });
    let mut changes: Vec<_> = both.collect();
    changes.sort_unstable();
    changes
}
