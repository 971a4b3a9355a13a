//! Decides whether a stage is skewed, and why.
//!
//! The time of each task is divided into what Spark measured (waiting to start, garbage collection, fetches, writing)
//! and the rest, its work. A robust regression ([`slope`]) finds the part of each that depends on the task's data. The
//! rest of the work may depend on spilled bytes, on the host, the executor or the locality. What remains is
//! computation. Its spread over all tasks is the effect of chance, which decides which tasks are slow beyond chance.

mod causes;
mod finding;
mod groups;
mod hanging;
mod parts;
mod schedule;
mod slope;
mod stats;
#[cfg(test)]
mod tests;
mod warm_up;

use std::collections::HashSet;

use self::causes::Explanation;
pub use self::finding::{Cause, Finding, HangingTask, Measure, Options, Part, SlowTask, Verdict};
use self::hanging::hanging;
use self::schedule::Schedule;
use crate::{Stage, Task};

/// With fewer tasks there is no middle from which one could differ.
const FEWEST: usize = 3;

impl Stage {
    /// How much earlier it would have ended if each of its tasks had taken `saved_ms` less, ms. Tasks are scheduled on
    /// the same number of slots, in the order of their launch.
    pub fn sooner_ms(&self, saved_ms: impl Fn(&Task) -> f64) -> f64 {
        let tasks = in_order(self);
        Schedule::new(&tasks).sooner(|index| saved_ms(tasks[index]))
    }
}

/// Tasks that count, in order of launch.
fn in_order(stage: &Stage) -> Vec<&Task> {
    let mut tasks = stage.tasks();
    tasks.sort_by_key(|task| (task.launched_ms, task.task));
    tasks
}

/// Judges a stage by its ended tasks.
pub fn detect(stage: &Stage, options: &Options) -> Finding {
    let tasks = in_order(stage);
    let mut finding = Finding::about(stage, &tasks);
    let schedule = Schedule::new(&tasks);
    finding.slots = schedule.slots;
    finding.stage_ms = schedule.length_ms;
    if tasks.len() < FEWEST {
        finding.verdict = Verdict::TooFew;
        return finding;
    }
    finding.hanging = hanging(stage, &tasks, &finding, options);
    let explained = Explanation::new(&tasks, options.chance);
    finding.measure = explained.measure;
    let slow = explained.slow(options.chance);
    let without = |saved: &dyn Fn(usize) -> f64| {
        let mut of_slow = vec![0.0; tasks.len()];
        for index in &slow {
            of_slow[*index] = saved(*index);
        }
        schedule.sooner(|index| of_slow[index])
    };
    let mut parts: Vec<Part> = explained
        .causes()
        .map(|cause| Part {
            cause,
            ms: without(&|index| explained.part(index, cause)),
        })
        .filter(|part| part.ms > 0.0)
        .collect();
    parts.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    finding.saved_ms = without(&|index| explained.excess(index));
    let least = options.worth * finding.stage_ms;
    let sure = |cause: Cause| {
        let part = |index: &&usize| explained.part(**index, cause);
        let most = slow.iter().max_by(|a, b| part(a).total_cmp(&part(b)));
        most.map_or(0.0, |index| explained.sure(*index, cause))
    };
    // A cause that is less probable than not is no reason, however large.
    let worst = parts
        .iter()
        .map(|part| (*part, sure(part.cause)))
        .find(|(part, sure)| part.ms >= least && *sure > 0.5);
    finding.verdict = match worst {
        Some((part, _)) => Verdict::Skewed(part.cause),
        None if slow.is_empty() && may_be_slow(&explained, &schedule, options) => Verdict::TooFew,
        None => Verdict::Even,
    };
    finding.tasks = slow_tasks(&tasks, &explained, &slow);
    finding.sure = worst.map_or(0.0, |(_, sure)| sure);
    finding.parts = parts;
    finding
}

/// Whether a task would be slow beyond chance, and cost enough, with more tasks to compare it with.
fn may_be_slow(explained: &Explanation, schedule: &Schedule, options: &Options) -> bool {
    let slow: HashSet<usize> = explained
        .slow_if_spread_known(options.chance)
        .into_iter()
        .collect();
    let saved = |index: usize| match slow.contains(&index) {
        true => explained.excess(index),
        false => 0.0,
    };
    let sooner = schedule.sooner(saved);
    sooner > 0.0 && sooner >= options.worth * schedule.length_ms
}

fn slow_tasks(tasks: &[&Task], explained: &Explanation, slow: &[usize]) -> Vec<SlowTask> {
    let typical_cpu = stats::median(tasks.iter().map(|task| cpu_ms(task)));
    let mut rows: Vec<SlowTask> = slow
        .iter()
        .map(|index| {
            let task = tasks[*index];
            let mut parts: Vec<Part> = explained
                .causes()
                .map(|cause| Part {
                    cause,
                    ms: explained.part(*index, cause),
                })
                .filter(|part| part.ms > 0.0)
                .collect();
            parts.sort_by(|a, b| b.ms.total_cmp(&a.ms));
            SlowTask {
                index: task.number(),
                task: task.task,
                executor: task.executor.to_string(),
                host: task.host.to_string(),
                duration_ms: task.duration_ms(),
                slower_ms: explained.excess(*index),
                slower_cpu_ms: cpu_ms(task) - typical_cpu,
                amount: explained.amount(*index),
                spilled_bytes: task.spilled_bytes,
                sure: parts
                    .first()
                    .map_or(0.0, |part| explained.sure(*index, part.cause)),
                parts,
            }
        })
        .collect();
    rows.sort_by(|a, b| b.slower_ms.total_cmp(&a.slower_ms));
    rows
}

fn cpu_ms(task: &Task) -> f64 {
    task.cpu_ns as f64 / 1e6
}
