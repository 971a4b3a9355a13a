//! Rows of events, one for each.

use unfuse_eventlog::{ExecutorAdded, ExecutorRemoved, JobEnd, JobStart, Outcome, TaskEnd};
use unfuse_format::{ExecutorRow, IntervalRow, JobRow, TaskRow};

pub(crate) fn added(added: &ExecutorAdded) -> ExecutorRow {
    ExecutorRow {
        executor: added.executor.to_string(),
        host: added.host.to_string(),
        cores: added.cores,
        added_ms: Some(added.time_ms),
        ..ExecutorRow::default()
    }
}

pub(crate) fn removed(removed: &ExecutorRemoved) -> ExecutorRow {
    ExecutorRow {
        executor: removed.executor.to_string(),
        removed_ms: Some(removed.time_ms),
        ..ExecutorRow::default()
    }
}

pub(crate) fn job_start(app: String, start: JobStart) -> JobRow {
    JobRow {
        app,
        job: start.job,
        stages: start.stages,
        started_ms: Some(start.time_ms),
        ..JobRow::default()
    }
}

pub(crate) fn job_end(app: String, end: JobEnd) -> JobRow {
    let first_line = |text: String| text.lines().next().unwrap_or_default().to_owned();
    JobRow {
        app,
        job: end.job,
        ended_ms: Some(end.time_ms),
        failure: end.failure.map(first_line),
        ..JobRow::default()
    }
}

pub(crate) fn task(app: String, end: &TaskEnd) -> TaskRow {
    let metrics = end.metrics.unwrap_or_default();
    let signed = |of: u64| i64::try_from(of).unwrap_or(i64::MAX);
    TaskRow {
        app,
        stage: end.task.stage,
        attempt: end.task.stage_attempt,
        task: end.task.task,
        index: end.task.index,
        task_attempt: end.task.attempt,
        executor: end.task.executor.to_string(),
        host: end.task.host.to_string(),
        launched_ms: end.task.launched_ms,
        finished_ms: end.finished_ms,
        status: status(end.outcome).to_owned(),
        speculative: end.task.speculative,
        cpu_ns: signed(metrics.cpu_ns),
        run_ms: signed(metrics.run_ms),
        deserialize_cpu_ns: signed(metrics.deserialize_cpu_ns),
        deserialize_ms: signed(metrics.deserialize_ms),
        gc_ms: signed(metrics.gc_ms),
        result_serialize_ms: signed(metrics.result_serialize_ms),
        result_bytes: signed(metrics.result_bytes),
        input_bytes: signed(metrics.input_bytes),
        input_records: signed(metrics.input_records),
        output_bytes: signed(metrics.output_bytes),
        output_records: signed(metrics.output_records),
        shuffle_read_bytes: signed(metrics.shuffle_read_bytes()),
        shuffle_read_records: signed(metrics.shuffle_read_records),
        shuffle_fetch_wait_ms: signed(metrics.fetch_wait_ms),
        shuffle_write_bytes: signed(metrics.shuffle_write_bytes),
        shuffle_write_records: signed(metrics.shuffle_write_records),
        shuffle_write_ns: signed(metrics.shuffle_write_ns),
        memory_spilled_bytes: signed(metrics.memory_spilled_bytes),
        disk_spilled_bytes: signed(metrics.disk_spilled_bytes),
        peak_memory_bytes: signed(metrics.peak_memory_bytes),
    }
}

/// What a task used of each resource and how long it waited for it, by its metrics, while it ran. Whether its input was on the
/// same host is not known, so input is in none of them.
pub(crate) fn intervals(app: &str, end: &TaskEnd) -> Vec<IntervalRow> {
    let Some(metrics) = end.metrics else {
        return Vec::new();
    };
    let ns = |ms: i64| ms.saturating_mul(1_000_000);
    let (start_ns, end_ns) = (ns(end.task.launched_ms), ns(end.finished_ms));
    let longest = end_ns.saturating_sub(start_ns).max(0).unsigned_abs();
    let cpu_ns = metrics.cpu_ns.saturating_add(metrics.deserialize_cpu_ns);
    let written = metrics
        .shuffle_write_bytes
        .saturating_add(metrics.output_bytes)
        .saturating_add(metrics.disk_spilled_bytes);
    let uses = [
        ("cpu", cpu_ns as f64 / 1e9, 0),
        ("io-read", metrics.local_bytes as f64, 0),
        ("io-write", written as f64, metrics.shuffle_write_ns),
        (
            "network",
            metrics.remote_bytes as f64,
            metrics.fetch_wait_ms.saturating_mul(1_000_000),
        ),
    ];
    let used = uses
        .into_iter()
        .filter(|(_, units, ns)| *units > 0.0 || *ns > 0);
    let row = |(kind, units, blocked_ns): (&str, f64, u64)| IntervalRow {
        app: app.to_owned(),
        host: end.task.host.to_string(),
        executor: end.task.executor.to_string(),
        stage: end.task.stage,
        attempt: end.task.stage_attempt,
        task: end.task.task,
        kind: kind.to_owned(),
        start_ns,
        end_ns,
        units,
        blocked_ns: i64::try_from(blocked_ns.min(longest)).unwrap_or(i64::MAX),
    };
    used.map(row).collect()
}

/// Spark's word for how a task ended.
fn status(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Success | Outcome::Resubmitted => "SUCCESS",
        Outcome::Killed => "KILLED",
        _ => "FAILED",
    }
}
