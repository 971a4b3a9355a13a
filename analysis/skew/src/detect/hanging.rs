//! Tasks that still run and should have ended.

use std::collections::HashSet;

use super::causes::ROUNDING_MS;
use super::finding::{Finding, HangingTask, Options};
use super::stats::{chance_of_outlier, spread};
use crate::{Stage, Task};

/// Running tasks of the stage that have taken longer than chance explains for one of `tasks`, if the delay is worth
/// reporting. The cause is unknown before a task ends.
pub(super) fn hanging(
    stage: &Stage,
    tasks: &[&Task],
    finding: &Finding,
    options: &Options,
) -> Vec<HangingTask> {
    let durations: Vec<f64> = tasks.iter().map(|task| task.duration_ms()).collect();
    let scale = spread(&durations).hypot(ROUNDING_MS);
    let least = options.worth * finding.stage_ms;
    // The stage does not wait for a task whose copy has ended.
    let done: HashSet<(i32, i32)> = tasks
        .iter()
        .map(|task| (task.stage_attempt, task.number()))
        .collect();
    let waited_for = |index, attempt| !done.contains(&(attempt, index));
    let mut hanging: Vec<HangingTask> = stage
        .running
        .iter()
        .filter(|running| waited_for(running.index, running.stage_attempt))
        .map(|running| {
            let running_ms = stage.now_ms.saturating_sub(running.launched_ms).max(0) as f64;
            HangingTask {
                index: running.index,
                executor: running.executor.to_string(),
                host: running.host.to_string(),
                running_ms,
                times_typical: running_ms / finding.typical_ms.max(1.0),
            }
        })
        .filter(|task| {
            let longer = task.running_ms - finding.typical_ms;
            longer >= least && chance_of_outlier(longer / scale, tasks.len()) < options.chance
        })
        .collect();
    hanging.sort_by(|a, b| b.running_ms.total_cmp(&a.running_ms));
    hanging
}
