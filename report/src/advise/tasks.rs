//! Stages with too many or too few tasks.

use std::collections::HashMap;

use unfuse_format::{TaskRow, counted};
use unfuse_postprocess::{Plan, PlanNode, is_exchange, median};

use super::facts::{Facts, stage_name, task_s};
use super::found::Found;
use crate::stages::Attempt;
use crate::what_if::{Remedy, Saving};
use crate::words::count;

/// Tasks are tiny if half of them take less, s.
const TINY_S: f64 = 0.1;
/// There are many if there are so many for each slot.
const MANY: usize = 4;
/// The most that counts as work for each record that a tiny task reads, s: much for most operators.
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
            takes_launches: true,
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

/// Work for each record, s: [`RECORD_S`], but no more than what operators computed, s, by the number of records; [`RECORD_S`] if that
/// is not known.
fn record_s(tasks: &[TaskRow], operators_s: Option<f64>) -> f64 {
    let records = tasks.iter().map(|task| task.shuffle_read_records.max(0));
    let records = records.fold(0, i64::saturating_add).max(1) as f64;
    operators_s.map_or(RECORD_S, |computed| (computed / records).min(RECORD_S))
}

/// What a task takes for its records, s: the rest is for the task itself.
fn work_s(task: &TaskRow, record_s: f64) -> f64 {
    let work = task.shuffle_read_records.max(0) as f64 * record_s;
    work.min(task_s(task))
}

/// Stages that `coalesce(N)` limits to fewer tasks than there are free slots.
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
        let own: Vec<usize> = facts.nodes_in(*attempt).collect();
        if !is_coalesced(facts.plan, &own, tasks.len()) {
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
                subject: format!("coalesce({}) in {}", tasks.len(), stage_name(*attempt)),
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

/// Whether a `Coalesce` into as many partitions as a stage has tasks is in that stage, by the nodes with samples in it. If the stage
/// reads a single partition, which a global sort, aggregate or limit needs, the call limits nothing.
fn is_coalesced(plan: &Plan, in_stage: &[usize], tasks: usize) -> bool {
    let partitions = |node: &PlanNode| node.detail.split_whitespace().nth(1)?.parse::<usize>().ok();
    let is_call = |at: &usize| {
        let node = &plan.nodes[*at];
        node.operator == "Coalesce" && partitions(node) == Some(tasks)
    };
    let mut calls = (0..plan.nodes.len()).filter(is_call);
    calls.any(|call| {
        let below = plan.below(call);
        let is_single = |at: &usize| {
            let node = &plan.nodes[*at];
            is_exchange(&node.operator)
                && node.detail.contains("SinglePartition")
                && !node.detail.contains("REPARTITION")
        };
        // An exchange also has samples in the stage that reads it.
        let own = plan.above(call).into_iter().chain(below.iter().copied());
        let mut own = own.filter(|at| !is_exchange(&plan.nodes[*at].operator));
        !below.iter().any(is_single) && own.any(|at| in_stage.contains(&at))
    })
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
        for (operators_s, expected) in [
            (Some(1.0), 5e-7),
            (Some(20.0), RECORD_S),
            (Some(0.0), 0.0),
            (None, RECORD_S),
        ] {
            let found = record_s(&tasks, operators_s);
            assert!((found - expected).abs() < 1e-12, "{operators_s:?}: {found}");
        }
    }

    /// Of nodes with their parents, in order.
    fn plan(nodes: &[(&str, Option<usize>)]) -> Plan {
        let nodes: Vec<PlanNode> = nodes
            .iter()
            .map(|(detail, parent)| PlanNode {
                id: 0,
                parent: *parent,
                operator: detail.split(' ').next().unwrap_or_default().to_owned(),
                detail: (*detail).to_owned(),
                codegen_stage: None,
                region: None,
                metrics: Vec::new(),
            })
            .collect();
        Plan {
            planned: nodes.len(),
            nodes,
        }
    }

    #[test]
    fn a_coalesce_counts_in_its_own_stage() {
        let plan = plan(&[
            ("Project", None),
            ("Exchange SinglePartition, REPARTITION_BY_NUM", Some(0)),
            ("Project", Some(1)),
            ("Coalesce 3", Some(2)),
            ("Filter", Some(3)),
            ("Exchange hashpartitioning(a#1, 200)", Some(4)),
            ("Scan", Some(5)),
            ("Subquery", Some(4)),
            ("HashAggregate", Some(7)),
        ]);
        for (at, expected) in [
            (0, false),
            (1, false),
            (2, true),
            (3, true),
            (4, true),
            (5, false),
            (6, false),
            (8, false),
        ] {
            assert_eq!(is_coalesced(&plan, &[at], 3), expected, "{at}");
            assert!(!is_coalesced(&plan, &[at], 2), "{at}: another number");
        }
    }

    #[test]
    fn a_coalesce_of_one_partition_limits_nothing() {
        let of = |exchange| {
            let plan = plan(&[
                ("Coalesce 1", None),
                ("HashAggregate", Some(0)),
                (exchange, Some(1)),
            ]);
            is_coalesced(&plan, &[1], 1)
        };
        assert!(!of("Exchange SinglePartition, ENSURE_REQUIREMENTS"));
        assert!(of(
            "Exchange hashpartitioning(a#1, 200), ENSURE_REQUIREMENTS"
        ));
    }
}
