//! Whether a stage is skewed, and why.
//!
//! The time of each task is taken apart into what Spark measured (waiting to start, collection of garbage, fetches, writing) and
//! the rest, its work. What of each goes with the task's data is found by a robust regression ([`slope`]). What is left
//! of the work may go with what the task spilled, with its host, its executor or where its data was. What is left then is
//! computation. The spread of that rest over all tasks says what chance does, and so which tasks are slow beyond chance.

mod causes;
mod finding;
mod groups;
mod parts;
mod schedule;
mod slope;
mod stats;
#[cfg(test)]
mod tests;

use self::causes::Explained;
pub use self::finding::{Cause, Finding, Measure, Options, Part, SlowTask, Verdict};
use self::schedule::{makespan, slots};
use crate::{Stage, Task};

/// Fewer have no middle that one of them could differ from.
const FEWEST: usize = 3;

/// Judges a stage by its tasks that have ended.
pub fn detect(stage: &Stage, options: &Options) -> Finding {
    let mut tasks = stage.tasks();
    tasks.sort_by_key(|task| (task.launched_ms, task.task));
    let mut finding = Finding::about(stage, &tasks);
    let durations: Vec<f64> = tasks.iter().map(|task| task.duration_ms()).collect();
    let slots = slots(&tasks);
    finding.slots = slots;
    finding.stage_ms = makespan(durations.iter().copied(), slots);
    if tasks.len() < FEWEST {
        finding.verdict = Verdict::TooFew;
        return finding;
    }
    let explained = Explained::of(&tasks, options.chance);
    finding.measure = explained.measure;
    let slow = explained.slow(options.chance);
    let without = |saved: &dyn Fn(usize) -> f64| {
        let spared = slow.iter().map(|at| (*at, saved(*at).max(0.0)));
        let mut shorter = durations.clone();
        for (at, saved) in spared {
            shorter[at] = (shorter[at] - saved).max(0.0);
        }
        (finding.stage_ms - makespan(shorter.into_iter(), slots)).max(0.0)
    };
    let mut parts: Vec<Part> = explained
        .causes()
        .map(|cause| Part {
            cause,
            ms: without(&|at| explained.part(at, cause)),
        })
        .filter(|part| part.ms > 0.0)
        .collect();
    parts.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    finding.saved_ms = without(&|at| explained.excess(at));
    let least = options.worth * finding.stage_ms;
    let sure = |cause: Cause| {
        let part = |at: &&usize| explained.part(**at, cause);
        let most = slow.iter().max_by(|a, b| part(a).total_cmp(&part(b)));
        most.map_or(0.0, |at| explained.sure(*at, cause))
    };
    // What is less probable than not is no reason, however much it is.
    let worst = parts
        .iter()
        .map(|part| (*part, sure(part.cause)))
        .find(|(part, sure)| part.ms >= least && *sure > 0.5);
    finding.verdict = match worst {
        Some((part, _)) => Verdict::Skewed(part.cause),
        None if slow.is_empty() && may_be_slow(&explained, &durations, slots, options) => {
            Verdict::TooFew
        }
        None => Verdict::Even,
    };
    finding.tasks = slow_tasks(&tasks, &explained, &slow);
    finding.sure = worst.map_or(0.0, |(_, sure)| sure);
    finding.parts = parts;
    finding
}

/// Whether a task would be slow beyond chance, and cost enough, if only there were more tasks to compare it with.
fn may_be_slow(explained: &Explained, durations: &[f64], slots: usize, options: &Options) -> bool {
    let slow = explained.slow_if_spread_known(options.chance);
    let mut shorter = durations.to_vec();
    for at in slow {
        shorter[at] = (shorter[at] - explained.excess(at).max(0.0)).max(0.0);
    }
    let now = makespan(durations.iter().copied(), slots);
    let then = makespan(shorter.into_iter(), slots);
    now - then > 0.0 && now - then >= options.worth * now
}

fn slow_tasks(tasks: &[&Task], explained: &Explained, slow: &[usize]) -> Vec<SlowTask> {
    let typical_cpu = stats::median(tasks.iter().map(|task| cpu_ms(task)));
    let mut rows: Vec<SlowTask> = slow
        .iter()
        .map(|at| {
            let task = tasks[*at];
            let mut parts: Vec<Part> = explained
                .causes()
                .map(|cause| Part {
                    cause,
                    ms: explained.part(*at, cause),
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
                slower_ms: explained.excess(*at),
                slower_cpu_ms: cpu_ms(task) - typical_cpu,
                amount: explained.amount(*at),
                spilled_bytes: task.spilled_bytes,
                sure: parts
                    .first()
                    .map_or(0.0, |part| explained.sure(*at, part.cause)),
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
