//! What decides how many slots a stage gets, and how many tasks it has.

use unfuse_format::{ExecutionId, StageRow};
use unfuse_sizing::what_if::Pool;

use crate::Report;

/// The pool of a stage. Without a weight there are no fair pools.
pub(super) fn pool_of(row: &StageRow) -> Pool {
    match row.pool_weight.filter(|weight| *weight > 0) {
        Some(weight) => Pool {
            name: row.pool.clone(),
            weight: f64::from(weight),
        },
        None => Pool::default(),
    }
}

/// Whether Spark cuts the input of a stage by the number of slots, unless there is much of it: files, ranges of numbers, and with
/// adaptive execution a shuffle whose number of partitions the program does not give.
pub(super) fn is_cut_by_slots(report: &Report<'_>, row: &StageRow) -> bool {
    let query = row.execution.map(|query| ExecutionId::new(&row.app, query));
    let Some(plan) = query.and_then(|query| report.profile.plans.get(&query)) else {
        return false;
    };
    let has = |operator: &str, text: &str| {
        let mut nodes = plan.nodes.iter();
        nodes.any(|node| node.operator.starts_with(operator) && node.detail.contains(text))
    };
    if row.parents.is_empty() {
        return true;
    }
    let is_single = row.tasks == 1 && has("Exchange", "SinglePartition");
    has("AQEShuffleRead", "coalesced") && !has("Exchange", "REPARTITION_BY_NUM") && !is_single
}
