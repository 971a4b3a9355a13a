//! The results of simpler methods, for comparison.

use std::collections::{BTreeMap, BTreeSet};

use unfuse_contention::baseline::{self, Overlaps};
use unfuse_contention::{QueryId, Resource, Span, Workload};

use super::answer::Baselines;
use super::names::label;
use super::victim_paths::sum;

/// The results of simpler methods for victims.
pub(super) struct Simple {
    naive: Overlaps,
    deep: Overlaps,
    blocked: BTreeMap<QueryId, BTreeMap<Resource, f64>>,
}

impl Simple {
    /// Computes them for some victims in a window of time.
    pub(super) fn new(
        workload: &Workload,
        victims: &BTreeSet<QueryId>,
        within: Option<Span>,
    ) -> Self {
        Self {
            naive: baseline::naive_overlap(workload, victims, within),
            deep: baseline::deep_overlap(workload, victims, within),
            blocked: baseline::blocked_time(workload, victims, within),
        }
    }

    /// The results for one victim.
    pub(super) fn about(&self, workload: &Workload, victim: QueryId) -> Baselines {
        let by_query = |overlaps: &Overlaps| {
            let rows = overlaps.get(&victim).into_iter().flatten();
            let mut rows: Vec<(String, f64)> = rows
                .filter(|(_, seconds)| **seconds > 0.0)
                .map(|(query, seconds)| (label(workload, *query), *seconds))
                .collect();
            rows.sort_by(|(_, a), (_, b)| b.total_cmp(a));
            rows
        };
        let blocked = self.blocked.get(&victim).into_iter();
        Baselines {
            naive_overlap: by_query(&self.naive),
            deep_overlap: by_query(&self.deep),
            blocked_io_network: sum(blocked.flat_map(BTreeMap::values).copied()),
        }
    }
}
