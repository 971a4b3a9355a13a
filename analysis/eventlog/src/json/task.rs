//! Events of tasks, by far the most frequent ones.

use serde::Deserialize;

use super::text::{Names, Text, amount, bounded, moment};
use crate::event::{Event, Outcome, Task, TaskEnd, TaskMetrics};

#[derive(Deserialize)]
pub(super) struct Start<'a> {
    #[serde(rename = "Stage ID")]
    stage: i32,
    #[serde(rename = "Stage Attempt ID", default)]
    stage_attempt: i32,
    #[serde(rename = "Task Info", borrow)]
    info: Info<'a>,
}

impl Start<'_> {
    pub(super) fn event(self, names: &mut Names) -> Event {
        Event::TaskStart(self.info.task(self.stage, self.stage_attempt, names))
    }
}

#[derive(Deserialize)]
pub(super) struct End<'a> {
    #[serde(rename = "Stage ID")]
    stage: i32,
    #[serde(rename = "Stage Attempt ID", default)]
    stage_attempt: i32,
    #[serde(rename = "Task Type", borrow, default)]
    kind: Text<'a>,
    #[serde(rename = "Task End Reason", borrow)]
    reason: Reason<'a>,
    #[serde(rename = "Task Info", borrow)]
    info: Info<'a>,
    #[serde(rename = "Task Metrics")]
    metrics: Option<Metrics>,
}

impl End<'_> {
    pub(super) fn event(self, names: &mut Names) -> Event {
        Event::TaskEnd(Box::new(TaskEnd {
            kind: names.intern(&self.kind),
            finished_ms: self.info.finished_ms,
            getting_result_ms: moment(self.info.getting_result_ms),
            outcome: self.reason.outcome(),
            message: self.reason.message(),
            metrics: self.metrics.map(Metrics::metrics),
            task: self.info.task(self.stage, self.stage_attempt, names),
        }))
    }
}

#[derive(Deserialize)]
struct Info<'a> {
    #[serde(rename = "Task ID")]
    task: i64,
    #[serde(rename = "Index")]
    index: i32,
    #[serde(rename = "Partition ID")]
    partition: Option<i32>,
    #[serde(rename = "Attempt", default)]
    attempt: i32,
    #[serde(rename = "Launch Time", default)]
    launched_ms: i64,
    #[serde(rename = "Finish Time", default)]
    finished_ms: i64,
    #[serde(rename = "Getting Result Time", default)]
    getting_result_ms: i64,
    #[serde(rename = "Executor ID", borrow, default)]
    executor: Text<'a>,
    #[serde(rename = "Host", borrow, default)]
    host: Text<'a>,
    #[serde(rename = "Locality", borrow, default)]
    locality: Text<'a>,
    #[serde(rename = "Speculative", default)]
    speculative: bool,
}

impl Info<'_> {
    fn task(&self, stage: i32, stage_attempt: i32, names: &mut Names) -> Task {
        Task {
            stage,
            stage_attempt,
            task: self.task,
            index: self.index,
            // Spark writes -1 for an unknown partition.
            partition: self.partition.filter(|id| *id >= 0),
            attempt: self.attempt,
            executor: names.intern(&self.executor),
            host: names.intern(&self.host),
            locality: names.intern(&self.locality),
            speculative: self.speculative,
            launched_ms: self.launched_ms,
        }
    }
}

#[derive(Deserialize)]
struct Reason<'a> {
    #[serde(rename = "Reason", borrow)]
    reason: Text<'a>,
    #[serde(rename = "Class Name", borrow)]
    class: Option<Text<'a>>,
    #[serde(rename = "Description", borrow)]
    description: Option<Text<'a>>,
    #[serde(rename = "Message", borrow)]
    message: Option<Text<'a>>,
    #[serde(rename = "Kill Reason", borrow)]
    kill: Option<Text<'a>>,
    #[serde(rename = "Loss Reason", borrow)]
    loss: Option<Text<'a>>,
}

impl Reason<'_> {
    fn outcome(&self) -> Outcome {
        match &*self.reason {
            "Success" => Outcome::Success,
            "Resubmitted" => Outcome::Resubmitted,
            "FetchFailed" => Outcome::FetchFailed,
            "ExceptionFailure" => Outcome::Exception,
            "TaskResultLost" => Outcome::ResultLost,
            "TaskKilled" => Outcome::Killed,
            "TaskCommitDenied" => Outcome::CommitDenied,
            "ExecutorLostFailure" => Outcome::ExecutorLost,
            _ => Outcome::Other,
        }
    }

    fn message(&self) -> String {
        match (&self.class, &self.description, self.outcome()) {
            (Some(class), Some(text), _) => bounded(&format!("{}: {}", &**class, &**text)),
            (Some(class), None, _) => bounded(class),
            (None, _, Outcome::Other) => bounded(&self.reason),
            _ => {
                let texts = [&self.message, &self.kill, &self.loss, &self.description];
                let first = texts.into_iter().flatten().next();
                first.map_or_else(String::new, |text| bounded(text))
            }
        }
    }
}

/// Spark's groups of metrics.
#[derive(Deserialize)]
struct Metrics {
    #[serde(rename = "Executor CPU Time", deserialize_with = "amount", default)]
    cpu_ns: u64,
    #[serde(rename = "Executor Run Time", deserialize_with = "amount", default)]
    run_ms: u64,
    #[serde(
        rename = "Executor Deserialize CPU Time",
        deserialize_with = "amount",
        default
    )]
    deserialize_cpu_ns: u64,
    #[serde(
        rename = "Executor Deserialize Time",
        deserialize_with = "amount",
        default
    )]
    deserialize_ms: u64,
    #[serde(rename = "JVM GC Time", deserialize_with = "amount", default)]
    gc_ms: u64,
    #[serde(
        rename = "Result Serialization Time",
        deserialize_with = "amount",
        default
    )]
    result_serialize_ms: u64,
    #[serde(rename = "Result Size", deserialize_with = "amount", default)]
    result_bytes: u64,
    #[serde(rename = "Memory Bytes Spilled", deserialize_with = "amount", default)]
    memory_spilled_bytes: u64,
    #[serde(rename = "Disk Bytes Spilled", deserialize_with = "amount", default)]
    disk_spilled_bytes: u64,
    #[serde(rename = "Peak Execution Memory", deserialize_with = "amount", default)]
    peak_memory_bytes: u64,
    #[serde(rename = "Input Metrics", default)]
    input: Input,
    #[serde(rename = "Output Metrics", default)]
    output: Output,
    #[serde(rename = "Shuffle Read Metrics", default)]
    read: Read,
    #[serde(rename = "Shuffle Write Metrics", default)]
    write: Write,
}

#[derive(Default, Deserialize)]
struct Input {
    #[serde(rename = "Bytes Read", deserialize_with = "amount", default)]
    bytes: u64,
    #[serde(rename = "Records Read", deserialize_with = "amount", default)]
    records: u64,
}

#[derive(Default, Deserialize)]
struct Output {
    #[serde(rename = "Bytes Written", deserialize_with = "amount", default)]
    bytes: u64,
    #[serde(rename = "Records Written", deserialize_with = "amount", default)]
    records: u64,
}

#[derive(Default, Deserialize)]
struct Read {
    #[serde(rename = "Remote Blocks Fetched", deserialize_with = "amount", default)]
    remote_blocks: u64,
    #[serde(rename = "Local Blocks Fetched", deserialize_with = "amount", default)]
    local_blocks: u64,
    #[serde(rename = "Fetch Wait Time", deserialize_with = "amount", default)]
    fetch_wait_ms: u64,
    #[serde(rename = "Remote Bytes Read", deserialize_with = "amount", default)]
    remote_bytes: u64,
    #[serde(
        rename = "Remote Bytes Read To Disk",
        deserialize_with = "amount",
        default
    )]
    remote_bytes_to_disk: u64,
    #[serde(rename = "Local Bytes Read", deserialize_with = "amount", default)]
    local_bytes: u64,
    #[serde(rename = "Total Records Read", deserialize_with = "amount", default)]
    records: u64,
}

#[derive(Default, Deserialize)]
struct Write {
    #[serde(rename = "Shuffle Bytes Written", deserialize_with = "amount", default)]
    bytes: u64,
    #[serde(
        rename = "Shuffle Records Written",
        deserialize_with = "amount",
        default
    )]
    records: u64,
    #[serde(rename = "Shuffle Write Time", deserialize_with = "amount", default)]
    time_ns: u64,
}

impl Metrics {
    fn metrics(self) -> TaskMetrics {
        TaskMetrics {
            cpu_ns: self.cpu_ns,
            run_ms: self.run_ms,
            deserialize_cpu_ns: self.deserialize_cpu_ns,
            deserialize_ms: self.deserialize_ms,
            gc_ms: self.gc_ms,
            result_serialize_ms: self.result_serialize_ms,
            result_bytes: self.result_bytes,
            memory_spilled_bytes: self.memory_spilled_bytes,
            disk_spilled_bytes: self.disk_spilled_bytes,
            peak_memory_bytes: self.peak_memory_bytes,
            input_bytes: self.input.bytes,
            input_records: self.input.records,
            output_bytes: self.output.bytes,
            output_records: self.output.records,
            remote_blocks: self.read.remote_blocks,
            local_blocks: self.read.local_blocks,
            remote_bytes: self.read.remote_bytes,
            remote_bytes_to_disk: self.read.remote_bytes_to_disk,
            local_bytes: self.read.local_bytes,
            shuffle_read_records: self.read.records,
            fetch_wait_ms: self.read.fetch_wait_ms,
            shuffle_write_bytes: self.write.bytes,
            shuffle_write_records: self.write.records,
            shuffle_write_ns: self.write.time_ns,
        }
    }
}
