//! Suggestions against skew.

use unfuse_skew::{Cause, Finding, SlowTask, Verdict};

/// Advice by cause for a stage that is skewed or waits for a task that still runs; `followed` if its records were
/// traced.
pub(super) fn advice(finding: &Finding, followed: bool) -> Option<String> {
    if let Some(task) = finding.hanging.first() {
        return Some(format!(
            "the thread dump of executor {} in Spark's UI shows what task {} does; spark.speculation would start a copy of it on another executor",
            task.executor, task.index
        ));
    }
    let Verdict::Skewed(cause) = finding.verdict else {
        return None;
    };
    let task = finding.tasks.iter().find(|task| {
        let first = task.parts.first();
        first.is_some_and(|part| part.cause == cause)
    })?;
    let records = if followed {
        SLOW_RECORDS
    } else {
        DEBUGGING_RUN
    };
    Some(match cause {
        Cause::Data => data_advice(finding),
        Cause::Computation => format!("{records} {}", look(finding, task)),
        Cause::DataOrComputation => format!(
            "check how much data it has, which Spark does not count here; or {records} {}",
            look(finding, task)
        ),
        Cause::GarbageCollection => "give executors more memory, or let fewer tasks run at once in each (spark.executor.memory, \
             spark.executor.cores); `unfuse blame` shows whose allocations fill the heap"
            .into(),
        Cause::FetchWait => "see with `unfuse blame` what else uses the network or disks of the hosts it fetches from".into(),
        Cause::ShuffleWrite => format!(
            "check the disk of {}: `unfuse blame --resource io` shows what else writes to it",
            task.host
        ),
        Cause::Spill => "use more, smaller partitions (spark.sql.shuffle.partitions), or more memory for each \
             (spark.executor.memory, spark.memory.fraction)"
            .into(),
        Cause::WarmUp => "each stage pays for it once on each executor: run fewer, longer stages (such as fewer jobs on more data), and keep executors \
             (spark.dynamicAllocation.executorIdleTimeout, minExecutors); no record causes it"
            .into(),
        Cause::Host => format!(
            "check the host {}: its disks, its clock rate, and what else runs there (`unfuse blame --host {}`)",
            task.host, task.host
        ),
        Cause::Executor => format!(
            "check executor {} on {}: its memory, its garbage collection, its cores",
            task.executor, task.host
        ),
        Cause::Locality => "let tasks wait longer for a slot near their data (spark.locality.wait), or spread the data over more hosts".into(),
        Cause::Start => "large closures, broadcasts or results make tasks slow to start and to end; the first tasks of a new \
             executor load classes"
            .into(),
    })
}

/// The debugging run that names the records.
const DEBUGGING_RUN: &str =
    "find the records: `unfuse run --records -- COMMAND` runs the job again and names them.";

/// The advice after a debugging run.
const SLOW_RECORDS: &str =
    "look at its slow records: can they be corrected, left out or processed with less work?";

/// How to find the time in a profile.
fn look(finding: &Finding, task: &SlowTask) -> String {
    let stage = finding.stage;
    // Threads wait, or another process works for them.
    if task.slower_cpu_ms < task.slower_ms / 2.0 {
        format!(
            "Its thread used little CPU time, so `unfuse top DIR --kind off-cpu --stage {stage}` shows what it waits for"
        )
    } else {
        format!(
            "Its thread used CPU time, so `unfuse top DIR --stage {stage} --by line` shows the code"
        )
    }
}

fn data_advice(finding: &Finding) -> String {
    if finding.sql.is_some() {
        "adaptive execution splits large partitions of joins (spark.sql.adaptive.skewJoin.enabled, …skewedPartitionFactor, \
         …skewedPartitionThresholdInBytes); for other shuffles, salt the key with the most rows, or aggregate before"
            .into()
    } else {
        "split the large partitions: salt the key with the most records, or aggregate before the shuffle; for files, use a format \
         that can be split, and smaller files"
            .into()
    }
}
