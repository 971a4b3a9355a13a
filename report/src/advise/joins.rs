//! Joins that sort and shuffle both sides though one of them is small, and joins of few large partitions.

use std::collections::HashMap;

use unfuse_postprocess::Operator;
use unfuse_skew::{Cause, Finding, Verdict};

use super::facts::{Facts, node_name, stage_name, sum, task_s};
use super::found::Found;
use crate::stages::Attempt;
use crate::what_if::{Remedy, Saving};
use crate::words;

/// A side above this is too large to broadcast, bytes.
const MOST_BROADCAST: i64 = 256 << 20;
const MIB: i64 = 1 << 20;
/// Spark splits partitions above this without settings, if they are five times the median, bytes.
const SPLIT_BY_DEFAULT: i64 = 256 << 20;
/// The largest limit that is suggested, MiB: Spark's own size of what a task should read.
const MOST_LIMIT: i64 = 64;
/// The join that this is about.
const SORT_MERGE: &str = "SortMergeJoin";

/// A side of a join: its sort, its shuffle, and the size of its rows, bytes.
pub(super) struct Side {
    pub(super) sort: Option<usize>,
    pub(super) exchange: usize,
    pub(super) bytes: i64,
}

/// Sort merge joins with a side that could be broadcast.
pub(super) fn broadcast(facts: &Facts<'_>) -> Vec<Found> {
    let nodes = facts.plan.nodes.iter().enumerate();
    let joins = nodes.filter(|(_, node)| node.operator.starts_with(SORT_MERGE));
    joins
        .filter_map(|(at, node)| {
            let mut children = facts.children(at);
            let left = side(facts, children.next()?)?;
            let right = side(facts, children.next()?)?;
            let (small, large) = broadcast_side(&node.detail, left, right)?;
            let merged = [Some(at), small.sort, large.sort, Some(large.exchange)];
            let merged: Vec<usize> = merged.into_iter().flatten().collect();
            let (stacks, cpu_s) = sum(facts.of_nodes(&merged));
            let bytes = small.bytes.max(0).unsigned_abs();
            let limit = (bytes + 1).max(10 << 20).next_power_of_two() >> 20;
            Some(Found {
                subject: node_name(node),
                detail: words::bytes(bytes),
                value: limit.to_string(),
                seconds: facts.with_cpu_waits(cpu_s),
                remedy: Remedy::Saving(Saving {
                    stacks,
                    ..Saving::default()
                }),
                ..Found::default()
            })
        })
        .collect()
}

/// The side that can be broadcast, and the other one, by the kind of the join at the end of its text: a side whose rows must
/// all come out cannot.
pub(super) fn broadcast_side(detail: &str, left: Side, right: Side) -> Option<(Side, Side)> {
    let has = |kind: &str| detail.contains(kind);
    let (small, large) = if has("RightOuter") {
        (left, right)
    } else if has("LeftOuter") || has("LeftSemi") || has("LeftAnti") || has("ExistenceJoin") {
        (right, left)
    } else if !has("Inner") && !has("Cross") {
        return None;
    } else if left.bytes <= right.bytes {
        (left, right)
    } else {
        (right, left)
    };
    (small.bytes <= MOST_BROADCAST && small.bytes.saturating_mul(2) <= large.bytes)
        .then_some((small, large))
}

/// From the join down to the shuffle, through nodes that put out at most the rows that they get.
fn side(facts: &Facts<'_>, mut at: usize) -> Option<Side> {
    let mut sort = None;
    loop {
        let node = facts.plan.nodes.get(at)?;
        if node.operator.starts_with("Exchange") {
            return Some(Side {
                sort,
                exchange: at,
                bytes: facts.metric(node, "data size")?,
            });
        }
        match node.operator.as_str() {
            "Sort" => sort = sort.or(Some(at)),
            "Filter" | "Project" => {}
            name if Operator::from_name(name).passes => {}
            _ => return None,
        }
        let mut children = facts.children(at);
        at = children.next()?;
        if children.next().is_some() {
            return None;
        }
    }
}

/// Stages whose slow tasks have more data, of a join.
pub(super) fn skewed(facts: &Facts<'_>, findings: &[Finding]) -> Vec<Found> {
    let skewed = findings.iter().filter(|finding| {
        matches!(finding.verdict, Verdict::Skewed(Cause::Data | Cause::Spill))
            && !finding.tasks.is_empty()
    });
    skewed
        .filter_map(|finding| {
            let (attempt, tasks) = facts
                .stages
                .iter()
                .rfind(|((stage, _), _)| *stage == finding.stage)?;
            is_join(facts, *attempt).then_some(())?;
            // Of both sides together; Spark compares each side by itself.
            let mut read: Vec<i64> = tasks.iter().map(|task| task.shuffle_read_bytes).collect();
            read.sort_unstable();
            let (median, largest) = (read[read.len() / 2], *read.last()?);
            if largest > SPLIT_BY_DEFAULT && largest / 5 > median {
                // Something else than the limits keeps Spark from splitting it.
                return None;
            }
            let limit = (largest / 8 / MIB).clamp(1, MOST_LIMIT);
            let mean = tasks.iter().map(task_s).sum::<f64>() / tasks.len() as f64;
            let more = tasks
                .iter()
                .map(|task| (task.task, (task_s(task) - mean).max(0.0)));
            let more: HashMap<i64, f64> = more.collect();
            let size = |bytes: i64| words::bytes(bytes.max(0).unsigned_abs());
            Some(Found {
                subject: stage_name(*attempt),
                detail: format!(
                    "its largest partition is {}, the median {}",
                    size(largest),
                    size(median)
                ),
                value: limit.to_string(),
                stage: Some(finding.stage),
                seconds: more.values().sum(),
                remedy: Remedy::Saving(Saving {
                    tasks: more,
                    ..Saving::default()
                }),
            })
        })
        .collect()
}

fn is_join(facts: &Facts<'_>, attempt: Attempt) -> bool {
    let mut nodes = facts.nodes_in(attempt);
    nodes.any(|at| is_shuffled(&facts.plan.nodes[at].operator))
}

/// Whether an operator joins two sides of which each was shuffled.
pub(super) fn is_shuffled(operator: &str) -> bool {
    operator.starts_with(SORT_MERGE) || operator.starts_with("ShuffledHashJoin")
}
