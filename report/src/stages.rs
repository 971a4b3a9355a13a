//! Stage attempts and their tasks.

use std::collections::BTreeMap;

use unfuse_format::TaskRow;

use crate::model::{Cost, Stage, StageMetrics, Tasks};
use unfuse_postprocess::Stage as KnownStage;

/// Stage and attempt.
pub(super) type Attempt = (i32, i32);

/// Describes one stage attempt.
pub(super) fn stage(
    (stage, attempt): Attempt,
    known: Option<&KnownStage>,
    tasks: &[TaskRow],
    cost: Cost,
) -> Stage {
    Stage {
        stage,
        attempt,
        name: known.map_or_else(String::new, |known| known.name.clone()),
        tasks: known.map_or(0, |known| known.tasks),
        submitted_ms: known.and_then(|known| known.submitted_ms),
        completed_ms: known.and_then(|known| known.completed_ms),
        failure: known.and_then(|known| known.failure.clone()),
        cost,
        metrics: (!tasks.is_empty()).then(|| metrics(tasks)),
    }
}

fn metrics(tasks: &[TaskRow]) -> StageMetrics {
    let mut durations: Vec<i64> = tasks.iter().map(duration_ms).collect();
    durations.sort_unstable();
    let median = durations[durations.len() / 2];
    let mut sum = StageMetrics {
        finished: tasks.len(),
        failed: tasks.iter().filter(|task| task.status != "SUCCESS").count(),
        task_ms: [durations[0], median, durations[durations.len() - 1]],
        ..StageMetrics::default()
    };
    for task in tasks {
        let add = |sum: &mut u64, ns: u64| *sum = sum.saturating_add(ns);
        add(&mut sum.run_ns, ns(task.run_ms));
        add(&mut sum.cpu_ns, task.cpu_ns.max(0).unsigned_abs());
        add(&mut sum.waiting_ns, waiting_ns(task));
        add(&mut sum.fetch_wait_ns, ns(task.shuffle_fetch_wait_ms));
        add(&mut sum.gc_ns, ns(task.gc_ms));
        let add = |sum: &mut i64, bytes: i64| *sum = sum.saturating_add(bytes);
        add(&mut sum.input_bytes, task.input_bytes);
        add(&mut sum.shuffle_read_bytes, task.shuffle_read_bytes);
        add(&mut sum.shuffle_write_bytes, task.shuffle_write_bytes);
        add(&mut sum.spilled_bytes, task.disk_spilled_bytes);
    }
    sum
}

/// Time in which the task ran without using CPU, ns.
pub(super) fn waiting_ns(task: &TaskRow) -> u64 {
    ns(task.run_ms).saturating_sub(task.cpu_ns.max(0).unsigned_abs())
}

fn ns(ms: i64) -> u64 {
    ms.max(0).unsigned_abs().saturating_mul(1_000_000)
}

/// CPU time of a task with its deserialization, ns.
pub(super) fn cpu_ns(task: &TaskRow) -> u64 {
    let of = |ns: i64| ns.max(0).unsigned_abs();
    of(task.cpu_ns).saturating_add(of(task.deserialize_cpu_ns))
}

/// From launch to end.
pub(super) fn duration_ms(task: &TaskRow) -> i64 {
    task.finished_ms.saturating_sub(task.launched_ms).max(0)
}

/// The part of its duration in which it did not run yet, or had ended and the driver did not know.
pub(super) fn delay_ms(task: &TaskRow) -> i64 {
    let ran = [task.run_ms, task.deserialize_ms, task.result_serialize_ms];
    let ran = ran
        .iter()
        .fold(0i64, |sum, ms| sum.saturating_add((*ms).max(0)));
    duration_ms(task).saturating_sub(ran).max(0)
}

/// Whether it ended without success.
pub(super) fn has_failed(task: &TaskRow) -> bool {
    !["SUCCESS", "RUNNING", ""].contains(&task.status.as_str())
}

/// The tasks of some stages as columns, each stage with its index in the query.
pub(super) fn columns<'a>(stages: impl Iterator<Item = (usize, &'a [TaskRow])>) -> Tasks {
    let mut columns = Tasks::default();
    let mut executors = BTreeMap::new();
    let mut statuses = BTreeMap::new();
    for (stage, tasks) in stages {
        for task in tasks {
            let executor = number(&mut executors, (task.executor.as_str(), task.host.as_str()));
            if executor == columns.executors.len() {
                let text = format!("{} ({})", task.executor, task.host);
                columns.executors.push(text);
            }
            let status = number(&mut statuses, (task.status.as_str(), task.speculative));
            if status == columns.statuses.len() {
                let speculative = if task.speculative {
                    ", speculative"
                } else {
                    ""
                };
                columns
                    .statuses
                    .push(format!("{}{speculative}", task.status));
            }
            columns.stage.push(stage);
            columns.index.push(task.index);
            columns.attempt.push(task.task_attempt);
            columns.executor.push(executor);
            columns.launched_ms.push(task.launched_ms);
            columns.duration_ms.push(duration_ms(task));
            columns.cpu_ms.push(task.cpu_ns / 1_000_000);
            columns
                .waiting_ms
                .push((waiting_ns(task) / 1_000_000).cast_signed());
            columns.gc_ms.push(task.gc_ms);
            let read = task.input_bytes.saturating_add(task.shuffle_read_bytes);
            columns.read_bytes.push(read);
            let written = task.output_bytes.saturating_add(task.shuffle_write_bytes);
            columns.written_bytes.push(written);
            columns.spilled_bytes.push(task.disk_spilled_bytes);
            columns.status.push(status);
        }
    }
    columns
}

fn number<K: Ord>(known: &mut BTreeMap<K, usize>, key: K) -> usize {
    let next = known.len();
    *known.entry(key).or_insert(next)
}
