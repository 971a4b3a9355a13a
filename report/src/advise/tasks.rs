//! Stages with too many or too few tasks.

use std::collections::HashMap;
use std::iter::successors;

use unfuse_format::{TaskRow, counted};
use unfuse_postprocess::{Plan, PlanNode, median};

use super::facts::{Facts, stage_name, task_s};
use super::found::Found;
use crate::stages::Attempt;
use crate::what_if::{Remedy, Saving};
use crate::words::count;

/// Tasks are tiny if half of them take less, s.
const TINY_S: f64 = 0.1;
/// There are many if there are so many for each slot.
const MANY: usize = 4;
/// What counts as work for a record that a tiny task reads, at most, s: much for most operators.
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
            let record_s = record_s(tasks, facts.operators_s(*attempt));
            let work: f64 = tasks.iter().map(|task| work_s(task, record_s)).sum();
            let enough = ((work / ENOUGH_S).ceil() as usize).max(facts.slots);
            let fewer = 1.0 - (enough as f64 / tasks.len() as f64).min(1.0);
            let more = tasks
                .iter()
                .map(|task| (task.task, (task_s(task) - work_s(task, record_s)) * fewer))
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

/// What counts as work for a record, s. Whatever the records are, operators worked on them for no longer than they computed, s, if that
/// is known.
fn record_s(tasks: &[TaskRow], operators_s: f64) -> f64 {
    let records = tasks
        .iter()
        .map(|task| task.shuffle_read_records.max(0) as f64);
    let computed = operators_s / records.sum::<f64>();
    if computed > 0.0 {
        computed.min(RECORD_S)
    } else {
        RECORD_S
    }
}

/// What a task takes for its records, s: the rest is for the task itself.
fn work_s(task: &TaskRow, record_s: f64) -> f64 {
    let work = task.shuffle_read_records.max(0) as f64 * record_s;
    work.min(task_s(task))
}

/// Stages that `coalesce(N)` leaves with fewer tasks than free slots.
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
        let coalesce = coalesce_in(facts.plan, facts.nodes_in(*attempt))?;
        let whole: f64 = tasks.iter().map(task_s).sum();
        let worth = (whole / ENOUGH_S) as usize;
        let free = (facts.slots as f64 - facts.busy_beside(*attempt, tasks)).floor() as usize;
        let better = worth.min(free);
        (tasks.len() < better).then(|| {
            let idle = 1.0 - tasks.len() as f64 / better as f64;
            let spread = tasks.iter().map(|task| (task.task, task_s(task) * idle));
            Found {
                subject: format!("coalesce({coalesce}) in {}", stage_name(*attempt)),
                detail: format!(
                    "the stage has {} on {}",
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

/// The number of partitions of a `Coalesce` that gets the rows of some nodes in the same stage.
fn coalesce_in(plan: &Plan, nodes: impl Iterator<Item = usize>) -> Option<&str> {
    let is_exchange = |node: &PlanNode| node.operator.ends_with("Exchange");
    let coalesce_above = |at: usize| {
        let above = successors(plan.nodes.get(at), |node| plan.nodes.get(node.parent?));
        // No plan is deeper than it is large. An exchange also has samples in the stage that reads it.
        let mut above = above
            .take(plan.nodes.len())
            .take_while(|node| !is_exchange(node));
        let coalesce = above.find(|node| node.operator == "Coalesce")?;
        coalesce.detail.split_whitespace().nth(1)
    };
    nodes.into_iter().find_map(coalesce_above)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_take_no_longer_than_operators_computed() {
        let task = TaskRow {
            shuffle_read_records: 1_000_000,
            ..TaskRow::default()
        };
        let tasks = [task.clone(), task];
        for (operators_s, expected) in [(1.0, 5e-7), (20.0, RECORD_S), (0.0, RECORD_S)] {
            let found = record_s(&tasks, operators_s);
            assert!((found - expected).abs() < 1e-12, "{operators_s}: {found}");
        }
    }

    #[test]
    fn a_coalesce_counts_in_its_own_stage() {
        let nodes = [
            ("Project", None, ""),
            ("Coalesce", Some(0), "Coalesce 3"),
            ("Exchange", Some(1), "Exchange hashpartitioning(a#1, 200)"),
            ("Scan parquet", Some(2), ""),
        ];
        let nodes = nodes.map(|(operator, parent, detail)| PlanNode {
            id: 0,
            parent,
            operator: operator.to_owned(),
            detail: detail.to_owned(),
            codegen_stage: None,
            region: None,
            metrics: Vec::new(),
        });
        let plan = Plan {
            planned: nodes.len(),
            nodes: nodes.into(),
        };
        for (at, expected) in [(0, None), (1, Some("3")), (2, None), (3, None)] {
            assert_eq!(coalesce_in(&plan, [at].into_iter()), expected, "{at}");
        }
    }
}
