//! Task attempts and their metrics.

use std::sync::Arc;

/// A task attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its stage.
    pub stage: i32,
    /// The stage's attempt.
    pub stage_attempt: i32,
    /// Id of the attempt, unique in the application.
    pub task: i64,
    /// Index of the task in the stage attempt.
    pub index: i32,
    /// The partition. In a retried stage it stays the same, unlike the index. Known since Spark 3.3.
    pub partition: Option<i32>,
    /// Number of the attempt in the stage attempt, from 0.
    pub attempt: i32,
    /// The executor.
    pub executor: Arc<str>,
    /// The host.
    pub host: Arc<str>,
    /// Locality: `PROCESS_LOCAL`, `NODE_LOCAL`, `RACK_LOCAL`, `NO_PREF` or `ANY`.
    pub locality: Arc<str>,
    /// Whether it is a copy of a slow task.
    pub speculative: bool,
    /// Launch, ms since the epoch.
    pub launched_ms: i64,
}

/// A task attempt that ended.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskEnd {
    /// The task attempt.
    pub task: Task,
    /// `ShuffleMapTask` or `ResultTask`.
    pub kind: Arc<str>,
    /// End, ms since the epoch.
    pub finished_ms: i64,
    /// When the driver began to fetch its result, ms since the epoch, if that was too large for the message.
    pub getting_result_ms: Option<i64>,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it failed, if it did; a long text is cut off.
    pub message: String,
    /// Its metrics; missing for some failed attempts.
    pub metrics: Option<TaskMetrics>,
}

impl TaskEnd {
    /// From launch to end, ms.
    pub fn duration_ms(&self) -> i64 {
        self.finished_ms
            .saturating_sub(self.task.launched_ms)
            .max(0)
    }
}

/// How a task attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// It succeeded.
    Success,
    /// It had succeeded, but its output was lost with an executor. An event for its first end came before.
    Resubmitted,
    /// The output of an earlier stage was missing.
    FetchFailed,
    /// It threw an exception.
    Exception,
    /// Its result was lost.
    ResultLost,
    /// It was killed: another copy was faster, or its stage was cancelled.
    Killed,
    /// It was denied to commit its output, because another attempt was allowed to.
    CommitDenied,
    /// Its executor was lost.
    ExecutorLost,
    /// A reason that this version does not know; the message has Spark's name of it.
    Other,
}

/// The metrics of a task attempt (`TaskMetrics`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskMetrics {
    /// CPU time without deserialization, ns.
    pub cpu_ns: u64,
    /// Wall time on the executor without deserialization, ms.
    pub run_ms: u64,
    /// CPU time of deserialization, ns.
    pub deserialize_cpu_ns: u64,
    /// Wall time of deserialization, ms.
    pub deserialize_ms: u64,
    /// Garbage collection in its JVM while it ran, ms; each concurrent task has all of it.
    pub gc_ms: u64,
    /// Wall time of serializing its result, ms.
    pub result_serialize_ms: u64,
    /// Size of its result, bytes.
    pub result_bytes: u64,
    /// Spilled bytes, by their size in memory.
    pub memory_spilled_bytes: u64,
    /// Spilled bytes, by their size on disk.
    pub disk_spilled_bytes: u64,
    /// Peak memory of shuffles, aggregations and joins, bytes.
    pub peak_memory_bytes: u64,
    /// Bytes read from sources or the cache.
    pub input_bytes: u64,
    /// Records read from sources or the cache.
    pub input_records: u64,
    /// Bytes written to sinks.
    pub output_bytes: u64,
    /// Records written to sinks.
    pub output_records: u64,
    /// Shuffle blocks read from other executors.
    pub remote_blocks: u64,
    /// Shuffle blocks read from its own executor.
    pub local_blocks: u64,
    /// Shuffle bytes read from other executors.
    pub remote_bytes: u64,
    /// Of these, bytes that went to disk first.
    pub remote_bytes_to_disk: u64,
    /// Shuffle bytes read from its own executor.
    pub local_bytes: u64,
    /// Shuffle records read.
    pub shuffle_read_records: u64,
    /// Time blocked on shuffle fetches, ms.
    pub fetch_wait_ms: u64,
    /// Bytes written for a shuffle.
    pub shuffle_write_bytes: u64,
    /// Records written for a shuffle.
    pub shuffle_write_records: u64,
    /// Time of writing for a shuffle, ns.
    pub shuffle_write_ns: u64,
}

impl TaskMetrics {
    /// Shuffle bytes read from all executors.
    pub fn shuffle_read_bytes(&self) -> u64 {
        self.remote_bytes.saturating_add(self.local_bytes)
    }
}
