//! When victims ran or waited.

use std::collections::{BTreeMap, BTreeSet};

use crate::{QueryId, Span, StageId, Workload};

/// From when to when the tasks of each query in these stages ran or waited.
pub(crate) fn lives(workload: &Workload, stages: &BTreeSet<StageId>) -> BTreeMap<QueryId, Span> {
    let mut lives: BTreeMap<QueryId, Span> = BTreeMap::new();
    for task in workload.tasks_of(stages) {
        let rows = workload.intervals_of(task.id).iter();
        let waits = rows.filter(|row| row.blocked_ns > 0).map(|row| row.span);
        for span in task.runs.then_some(task.span).into_iter().chain(waits) {
            let life = lives.entry(task.stage.query).or_insert(span);
            *life = life.hull(span);
        }
    }
    lives
}
