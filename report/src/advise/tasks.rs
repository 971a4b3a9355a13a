//! Stages with too many or too few tasks.

use std::collections::HashMap;

use unfuse_format::{TaskRow, counted};
use unfuse_postprocess::median;

use super::facts::{Facts, stage_name, task_s};
use super::found::Found;
use crate::stages::Attempt;
use crate::what_if::{Remedy, Saving};
use crate::words::count;

/// Tasks are tiny if half of them take less, s.
const TINY_S: f64 = 0.1;
/// There are many if there are so many for each slot.
const MANY: usize = 4;
/// What counts as work for a record that a tiny task reads, s: much for most operators.
const RECORD_S: f64 = 5e-6;
/// What a task should at least do, s.
const ENOUGH_S: f64 = 0.5;

/// Stages that read a shuffle in many tasks, which do little.
pub(super) fn tiny(facts: &Facts<'_>) -> Vec<Found> {
    let stages = facts.stages.iter().filter_map(|(attempt, tasks)| {
        let reads = tasks.iter().any(|task| task.shuffle_read_bytes > 0);
        let mut seconds: Vec<f64> = tasks.iter().map(task_s).collect();
        let middle = median(&mut seconds);
        let is_tiny = reads && middle < TINY_S && tasks.len() >= MANY * facts.slots;
        is_tiny.then(|| {
            let beside: f64 = tasks.iter().map(beside_s).sum();
            let work = seconds.iter().sum::<f64>() - beside;
            let enough = ((work / ENOUGH_S).ceil() as usize).max(facts.slots);
            let fewer = 1.0 - (enough as f64 / tasks.len() as f64).min(1.0);
            let more = tasks
                .iter()
                .map(|task| (task.task, beside_s(task) * fewer))
                .collect();
            TinyTasks {
                attempt: *attempt,
                tasks: tasks.len(),
                middle,
                enough,
                more,
            }
        })
    });
    // One setting is for all stages of a query, and their sum is what it saves.
    let all: Vec<TinyTasks> = stages.collect();
    let Some(most) = all
        .iter()
        .max_by(|a, b| a.seconds().total_cmp(&b.seconds()))
    else {
        return Vec::new();
    };
    let also = match all.len() {
        1 => String::new(),
        several => format!(" and {} like it", counted(several - 1, "more stage")),
    };
    let found = Found {
        subject: format!("{}{also}", stage_name(most.attempt)),
        detail: format!(
            "half of its {} take less than {:.0} ms",
            count(most.tasks, "task"),
            (most.middle * 1e3).max(1.0)
        ),
        value: all
            .iter()
            .map(|one| one.enough)
            .fold(0, usize::max)
            .to_string(),
        stage: Some(most.attempt.0),
        seconds: all.iter().map(TinyTasks::seconds).sum(),
        remedy: Remedy::Saving(Saving {
            tasks: all.iter().flat_map(|one| one.more.clone()).collect(),
            ..Saving::default()
        }),
    };
    vec![found]
}

/// A stage with many tiny tasks.
struct TinyTasks {
    attempt: Attempt,
    tasks: usize,
    /// Median time of a task, s.
    middle: f64,
    /// A better number of tasks.
    enough: usize,
    /// Seconds of each task that fewer tasks would not take.
    more: HashMap<i64, f64>,
}

impl TinyTasks {
    fn seconds(&self) -> f64 {
        self.more.values().sum()
    }
}

/// What a task takes beside the work on its records, s.
fn beside_s(task: &TaskRow) -> f64 {
    let work = task.shuffle_read_records.max(0) as f64 * RECORD_S;
    (task_s(task) - work).max(0.0)
}

/// Stages with fewer tasks than slots, which had nothing else to do.
pub(super) fn few(facts: &Facts<'_>) -> Vec<Found> {
    let takes_first_rows = |operator: &str| operator == "CollectLimit" || operator == "GlobalLimit";
    if facts
        .plan
        .nodes
        .iter()
        .any(|node| takes_first_rows(&node.operator))
    {
        // A program that shows some rows reads few partitions on purpose.
        return Vec::new();
    }
    let found = facts.stages.iter().filter_map(|(attempt, tasks)| {
        let reads = tasks.iter().any(|task| task.shuffle_read_bytes > 0);
        if reads && tasks.len() == 1 && is_single_by_need(facts, *attempt) {
            return None;
        }
        let whole: f64 = tasks.iter().map(task_s).sum();
        let worth = (whole / ENOUGH_S) as usize;
        let free = (facts.slots as f64 - facts.busy_beside(*attempt, tasks)).floor() as usize;
        let better = worth.min(free);
        (tasks.len() < better).then(|| {
            let idle = 1.0 - tasks.len() as f64 / better as f64;
            let spread = tasks.iter().map(|task| (task.task, task_s(task) * idle));
            Found {
                subject: stage_name(*attempt),
                detail: format!(
                    "it has {} on {}",
                    count(tasks.len(), "task"),
                    count(facts.slots, "slot")
                ),
                value: better.to_string(),
                stage: Some(attempt.0),
                seconds: whole,
                remedy: Remedy::Saving(Saving {
                    tasks: spread.collect(),
                    ..Saving::default()
                }),
            }
        })
    });
    found.collect()
}

/// Whether the query needs a single task there: a global sort, aggregate or limit.
fn is_single_by_need(facts: &Facts<'_>, attempt: Attempt) -> bool {
    let mut nodes = facts.nodes_in(attempt);
    nodes.any(|at| {
        let node = &facts.plan.nodes[at];
        node.operator.starts_with("Exchange")
            && node.detail.contains("SinglePartition")
            && !node.detail.contains("REPARTITION")
    })
}
