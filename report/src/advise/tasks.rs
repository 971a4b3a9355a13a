//! Stages with too many or too few tasks, and tasks that wait for garbage collection.

use std::collections::HashMap;

use unfuse_format::counted;
use unfuse_postprocess::median;
use unfuse_sizing::what_if::PartKind;

use super::facts::{Facts, stage_name, task_s};
use super::found::Found;
use crate::stages::Attempt;
use crate::what_if::Saving;

/// Tasks are tiny if half of them take less, s.
const TINY_S: f64 = 0.1;
/// There are many if there are so many for each slot.
const MANY: usize = 4;
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
            let whole: f64 = seconds.iter().sum();
            let work = facts.operators_s(*attempt).min(whole);
            let enough = ((work / ENOUGH_S).ceil() as usize).max(facts.slots);
            let fewer = 1.0 - (enough as f64 / tasks.len() as f64).min(1.0);
            let share = (whole - work) / whole.max(f64::MIN_POSITIVE) * fewer;
            let more = tasks.iter().map(|task| (task.task, task_s(task) * share));
            let more: HashMap<i64, f64> = more.collect();
            (*attempt, tasks.len(), middle, enough, more)
        })
    });
    // One setting is for all stages of a query, and their sum is what it saves.
    let all: Vec<_> = stages.collect();
    let Some((attempt, tasks, middle, enough, _)) = all
        .iter()
        .max_by(|a, b| a.4.values().sum::<f64>().total_cmp(&b.4.values().sum()))
    else {
        return Vec::new();
    };
    let also = match all.len() {
        1 => String::new(),
        several => format!(", and {} more like it", counted(several - 1, "stage")),
    };
    let most = all.iter().map(|stage| stage.3).max().unwrap_or(*enough);
    let found = Found {
        subject: format!("{}{also}", stage_name(*attempt)),
        detail: format!(
            "its {} take {:.0} ms each",
            counted(*tasks, "task"),
            middle * 1e3
        ),
        value: most.to_string(),
        stage: Some(attempt.0),
        seconds: all.iter().flat_map(|stage| stage.4.values()).sum(),
        saving: Saving {
            tasks: all.iter().flat_map(|stage| stage.4.clone()).collect(),
            ..Saving::default()
        },
    };
    vec![found]
}

/// Stages with fewer tasks than slots.
pub(super) fn few(facts: &Facts<'_>) -> Vec<Found> {
    let stages = facts.stages.iter().filter(|(attempt, tasks)| {
        let reads = tasks.iter().any(|task| task.shuffle_read_bytes > 0);
        tasks.len() < facts.slots && !(reads && is_single_by_need(facts, **attempt))
    });
    let found = stages.map(|(attempt, tasks)| {
        let idle = 1.0 - tasks.len() as f64 / facts.slots as f64;
        let spread = tasks.iter().map(|task| (task.task, task_s(task) * idle));
        Found {
            subject: stage_name(*attempt),
            detail: format!(
                "it has {} on {}",
                counted(tasks.len(), "task"),
                counted(facts.slots, "slot")
            ),
            value: facts.slots.to_string(),
            stage: Some(attempt.0),
            seconds: tasks.iter().map(task_s).sum(),
            saving: Saving {
                tasks: spread.collect(),
                ..Saving::default()
            },
        }
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

/// Waits for garbage collection.
pub(super) fn heap(facts: &Facts<'_>) -> Vec<Found> {
    let seconds = facts.waited_s(PartKind::Gc, &[]);
    vec![Found {
        subject: "the executors".to_owned(),
        seconds,
        saving: Saving {
            waits: vec![PartKind::Gc],
            ..Saving::default()
        },
        ..Found::default()
    }]
}
