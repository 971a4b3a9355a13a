//! What tasks did by Spark's own metrics, for profiles without samples, such as those from event logs.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use unfuse_format::TaskRow;
use unfuse_postprocess::{Plan, Profile, WaitReason};

use super::parts::{Cause, Sampled};
use crate::stages;
use crate::words::name;

/// Operators that the name of a part has.
const MOST_NAMES: usize = 6;
/// Nodes of a plan that only wrap others.
const WRAPPERS: [&str; 4] = [
    "WholeStageCodegen",
    "InputAdapter",
    "AdaptiveSparkPlan",
    "ColumnarToRow",
];

/// What the time of tasks is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Basis {
    /// Samples and recorded waits.
    Samples,
    /// Spark's metrics.
    Metrics,
}

impl Basis {
    /// The best that a profile has.
    pub(crate) fn from_profile(profile: &Profile) -> Self {
        match profile.groups.is_empty() && profile.waits.is_empty() {
            true => Self::Metrics,
            false => Self::Samples,
        }
    }

    /// What both have, so that their parts can be compared.
    pub(crate) fn common(self, other: Self) -> Self {
        match (self, other) {
            (Self::Samples, Self::Samples) => Self::Samples,
            _ => Self::Metrics,
        }
    }
}

/// CPU time and waits of a stage's tasks that did not fail. A metric counts as far as the run time of its task has room for
/// it: shuffle writes also use the CPU, and the collector can run beside a task.
pub(super) fn causes(operators: &str, tasks: &[TaskRow]) -> BTreeMap<Cause, Sampled> {
    let causes = [
        Cause::StageCpu(operators.to_owned()),
        Cause::Wait(WaitReason::Safepoint),
        Cause::Wait(WaitReason::ShuffleFetch),
        Cause::Wait(WaitReason::DiskWrite),
    ];
    let mut sums = [0.0; 4];
    let ns = |ms: i64| ms.max(0).unsigned_abs().saturating_mul(1_000_000);
    for task in tasks.iter().filter(|task| !stages::has_failed(task)) {
        let mut left = ns(task.run_ms).saturating_add(ns(task.deserialize_ms));
        let metrics = [
            stages::cpu_ns(task),
            ns(task.gc_ms),
            ns(task.shuffle_fetch_wait_ms),
            task.shuffle_write_ns.max(0).unsigned_abs(),
        ];
        for (sum, ns) in sums.iter_mut().zip(metrics) {
            let ns = ns.min(left);
            left -= ns;
            *sum += ns as f64;
        }
    }
    let sampled = |ns| Sampled { ns, samples: 0.0 };
    let sums = causes.into_iter().zip(sums).filter(|(_, ns)| *ns > 0.0);
    sums.map(|(cause, ns)| (cause, sampled(ns))).collect()
}

/// The operators of a plan by the accumulators of their metrics.
pub(super) struct Updated<'a> {
    plan: Option<&'a Plan>,
    by_accumulator: HashMap<i64, Vec<usize>>,
}

impl<'a> Updated<'a> {
    pub(super) fn new(plan: Option<&'a Plan>) -> Self {
        let mut by_accumulator: HashMap<i64, Vec<usize>> = HashMap::new();
        for (at, node) in plan.iter().flat_map(|plan| &plan.nodes).enumerate() {
            let is_wrapper = WRAPPERS
                .iter()
                .any(|wrapper| node.operator.starts_with(wrapper));
            for (id, _) in node.metrics.iter().filter(|_| !is_wrapper) {
                by_accumulator.entry(*id).or_default().push(at);
            }
        }
        Self {
            plan,
            by_accumulator,
        }
    }

    /// The operators that a stage ran, in the order of the data: those whose metrics its tasks changed.
    pub(super) fn operators(&self, accumulators: Option<&HashSet<i64>>) -> String {
        let ids = accumulators.into_iter().flatten();
        let ran = ids.filter_map(|id| self.by_accumulator.get(id)).flatten();
        let ran: BTreeSet<usize> = ran.copied().collect();
        let nodes = self.plan.map_or(&[][..], |plan| &plan.nodes);
        let mut names: Vec<String> = ran
            .iter()
            .rev()
            .map(|at| name(&nodes[*at].operator))
            .collect();
        names.dedup();
        let more = names.len().saturating_sub(MOST_NAMES);
        names.truncate(MOST_NAMES);
        let mut text = names.join(", ");
        if more > 0 {
            text += &format!(" and {more} more");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_count_as_far_as_the_task_ran() {
        let task = TaskRow {
            status: "SUCCESS".to_owned(),
            run_ms: 100,
            cpu_ns: 70_000_000,
            gc_ms: 20,
            shuffle_fetch_wait_ms: 5,
            shuffle_write_ns: 30_000_000,
            ..TaskRow::default()
        };
        let failed = TaskRow {
            status: "FAILED".to_owned(),
            ..task.clone()
        };
        let found: Vec<(Cause, f64)> = causes("Filter", &[task, failed])
            .into_iter()
            .map(|(cause, sampled)| (cause, sampled.ns / 1e6))
            .collect();
        let mut expected = vec![
            (Cause::StageCpu("Filter".to_owned()), 70.0),
            (Cause::Wait(WaitReason::Safepoint), 20.0),
            (Cause::Wait(WaitReason::ShuffleFetch), 5.0),
            (Cause::Wait(WaitReason::DiskWrite), 5.0),
        ];
        expected.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(found, expected);
    }
}
