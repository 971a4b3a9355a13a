//! What happened, as far as analyses ask for it.

use std::collections::BTreeMap;
use std::sync::Arc;

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The log begins; the version of Spark.
    LogStart(String),
    /// The application has started.
    ApplicationStart(ApplicationStart),
    /// It has ended; ms since the epoch.
    ApplicationEnd(i64),
    /// Its configuration; again where it changed.
    Environment(Environment),
    /// An executor is there.
    ExecutorAdded(ExecutorAdded),
    /// An executor is gone.
    ExecutorRemoved(ExecutorRemoved),
    /// A job has started.
    JobStart(JobStart),
    /// A job has ended.
    JobEnd(JobEnd),
    /// A stage attempt has started.
    StageSubmitted(Stage),
    /// A stage attempt has ended, well or not.
    StageCompleted(Stage),
    /// A task attempt has started.
    TaskStart(Task),
    /// A task attempt has ended, well or not.
    TaskEnd(Box<TaskEnd>),
    /// A SQL execution has started.
    SqlStart(SqlStart),
    /// A SQL execution has ended.
    SqlEnd(SqlEnd),
}

/// Which application.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplicationStart {
    /// Its id; some masters of Spark 2 give none.
    pub id: Option<String>,
    /// The attempt, on cluster managers that have several (YARN).
    pub attempt: Option<String>,
    /// Its name.
    pub name: String,
    /// Who runs it.
    pub user: String,
    /// ms since the epoch.
    pub time_ms: i64,
}

/// How it is configured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Environment {
    /// All `spark.*` properties that were set. Spark has struck out secrets.
    pub spark: BTreeMap<String, String>,
    /// Such as `17.0.9 (Debian)`.
    pub java_version: String,
}

/// An executor that came.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutorAdded {
    /// Its id; `driver` in local mode.
    pub executor: Arc<str>,
    /// Its host.
    pub host: Arc<str>,
    /// Cores that tasks get.
    pub cores: u32,
    /// ms since the epoch.
    pub time_ms: i64,
}

/// An executor that went.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutorRemoved {
    /// Its id.
    pub executor: Arc<str>,
    /// Why.
    pub reason: String,
    /// ms since the epoch.
    pub time_ms: i64,
}

/// What the thread that started a job or stage had set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Properties {
    /// The SQL execution it is of (`spark.sql.execution.id`).
    pub sql: Option<i64>,
    /// The execution that this is a part of, if of another (`spark.sql.execution.root.id`).
    pub root_sql: Option<i64>,
    /// The scheduler pool.
    pub pool: Option<String>,
    /// The job group.
    pub group: Option<String>,
    /// The job's description.
    pub description: Option<String>,
    /// Tags, comma-separated; Spark Connect names the user here.
    pub tags: Option<String>,
}

/// A job that started.
#[derive(Clone, Debug, PartialEq)]
pub struct JobStart {
    /// Its id.
    pub job: i64,
    /// ms since the epoch.
    pub time_ms: i64,
    /// Ids of its stages; those whose output is still there will not run.
    pub stages: Vec<i32>,
    /// The same with what is known of them before they run.
    pub infos: Vec<Stage>,
    /// What was set.
    pub properties: Properties,
}

/// A job that ended.
#[derive(Clone, Debug, PartialEq)]
pub struct JobEnd {
    /// Its id.
    pub job: i64,
    /// ms since the epoch.
    pub time_ms: i64,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

/// A stage attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stage {
    /// Its id.
    pub stage: i32,
    /// Its attempt, from 0.
    pub attempt: i32,
    /// The call site in short, such as `count at Job.scala:12`.
    pub name: String,
    /// The call site's stack.
    pub details: String,
    /// How many tasks it has; a retry has only those that are missing.
    pub tasks: u32,
    /// Its RDDs, which tell the library and operators that made it.
    pub rdds: Vec<Rdd>,
    /// Stages it reads from.
    pub parents: Vec<i32>,
    /// When it was submitted, ms since the epoch.
    pub submitted_ms: Option<i64>,
    /// When it was completed, ms since the epoch.
    pub completed_ms: Option<i64>,
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// What was set; only of [`Event::StageSubmitted`].
    pub properties: Properties,
}

/// An RDD of a stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Rdd {
    /// Its id.
    pub rdd: i32,
    /// Its class or the name it was given.
    pub name: String,
    /// The name of the operation that made it (`Exchange`, `WholeStageCodegen (1)`, `textFile`).
    pub scope: Option<String>,
    /// The call site in short.
    pub call_site: String,
    /// RDDs it is computed from.
    pub parents: Vec<i32>,
    /// Its partitions.
    pub partitions: u32,
    /// Of them, those that were in the cache.
    pub cached_partitions: u32,
    /// Whether it shall be cached, in memory or on disk.
    pub persisted: bool,
}

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

/// A SQL execution that started.
#[derive(Clone, Debug, PartialEq)]
pub struct SqlStart {
    /// Its id.
    pub sql: i64,
    /// The execution that this is a part of, if of another.
    pub root: Option<i64>,
    /// Text or call site.
    pub description: String,
    /// ms since the epoch.
    pub time_ms: i64,
}

/// A SQL execution that ended.
#[derive(Clone, Debug, PartialEq)]
pub struct SqlEnd {
    /// Its id.
    pub sql: i64,
    /// ms since the epoch.
    pub time_ms: i64,
    /// Why it failed, if it did; Spark 2 and 3.0 to 3.3 do not say.
    pub failure: Option<String>,
}
