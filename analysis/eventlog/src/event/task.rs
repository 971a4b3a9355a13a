//! Task attempts and what they used.

use std::sync::Arc;

/// A task attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its stage.
    pub stage: i32,
    /// The stage's attempt.
    pub stage_attempt: i32,
    /// Unique in the application.
    pub task: i64,
    /// Which of the stage's tasks.
    pub index: i32,
    /// The partition, which is the same in a retried stage, where the index is not; Spark tells it since 3.3.
    pub partition: Option<i32>,
    /// Its attempt in the stage attempt, from 0.
    pub attempt: i32,
    /// The executor.
    pub executor: Arc<str>,
    /// The host.
    pub host: Arc<str>,
    /// How near its data is: `PROCESS_LOCAL`, `NODE_LOCAL`, `RACK_LOCAL`, `NO_PREF` or `ANY`.
    pub locality: Arc<str>,
    /// Whether it is a copy of one that was slow.
    pub speculative: bool,
    /// When it was launched, ms since the epoch.
    pub launched_ms: i64,
}

/// A task attempt that ended.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskEnd {
    /// Which.
    pub task: Task,
    /// `ShuffleMapTask` or `ResultTask`.
    pub kind: Arc<str>,
    /// When it ended, ms since the epoch.
    pub finished_ms: i64,
    /// When the driver began to fetch its result, ms since the epoch, if that was too large to come along.
    pub getting_result_ms: Option<i64>,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it failed, if it did; the beginning of a long text.
    pub message: String,
    /// What it used; some that failed have none.
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
    /// It ran through.
    Success,
    /// It had ended well, but its output went with an executor. Its first end came before as an event of its own.
    Resubmitted,
    /// Output of an earlier stage was not there.
    FetchFailed,
    /// It threw an exception.
    Exception,
    /// Its result was lost on the way.
    ResultLost,
    /// It was killed: another copy was faster, or its stage was given up.
    Killed,
    /// Another attempt was allowed to commit its output.
    CommitDenied,
    /// Its executor was lost.
    ExecutorLost,
    /// Something that this version does not know; the message has Spark's word for it.
    Other,
}

/// What a task attempt used (`TaskMetrics`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskMetrics {
    /// CPU time, ns, without that to deserialize it.
    pub cpu_ns: u64,
    /// Wall time on the executor, ms, without that to deserialize it.
    pub run_ms: u64,
    /// CPU time to deserialize it, ns.
    pub deserialize_cpu_ns: u64,
    /// Wall time to deserialize it, ms.
    pub deserialize_ms: u64,
    /// Collection of garbage in its JVM while it ran, ms; of tasks at the same time each has all of it.
    pub gc_ms: u64,
    /// Wall time to serialize its result, ms.
    pub result_serialize_ms: u64,
    /// The result, bytes.
    pub result_bytes: u64,
    /// Spilled, bytes as they were in memory.
    pub memory_spilled_bytes: u64,
    /// Spilled, bytes as they are on disk.
    pub disk_spilled_bytes: u64,
    /// Peak of memory for shuffles, aggregations and joins, bytes.
    pub peak_memory_bytes: u64,
    /// Read from sources or the cache, bytes.
    pub input_bytes: u64,
    /// Read from sources or the cache, records.
    pub input_records: u64,
    /// Written to sinks, bytes.
    pub output_bytes: u64,
    /// Written to sinks, records.
    pub output_records: u64,
    /// Blocks of shuffles read from other executors.
    pub remote_blocks: u64,
    /// Blocks of shuffles read from its own.
    pub local_blocks: u64,
    /// Shuffled bytes read from other executors.
    pub remote_bytes: u64,
    /// Of them, those that went to disk first, bytes.
    pub remote_bytes_to_disk: u64,
    /// Shuffled bytes read from its own executor.
    pub local_bytes: u64,
    /// Shuffled records read.
    pub shuffle_read_records: u64,
    /// Time blocked on fetches of shuffled blocks, ms.
    pub fetch_wait_ms: u64,
    /// Bytes written for a shuffle.
    pub shuffle_write_bytes: u64,
    /// Records written for a shuffle.
    pub shuffle_write_records: u64,
    /// Time to write them, ns.
    pub shuffle_write_ns: u64,
}

impl TaskMetrics {
    /// Shuffled bytes read, from wherever.
    pub fn shuffle_read_bytes(&self) -> u64 {
        self.remote_bytes.saturating_add(self.local_bytes)
    }
}
