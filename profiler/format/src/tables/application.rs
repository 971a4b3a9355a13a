//! What Spark's driver reports of an application: its jobs, stages and tasks.

table! {
    /// A Spark application: a row when it starts and one when it ends.
    pub struct ApplicationRow in Applications {
        /// Spark application id.
        pub app: String,
        /// Its name; in the row of its start, as are its settings.
        pub name: String,
        /// Start, ms since the epoch.
        pub started_ms: Option<i64>,
        /// End, ms since the epoch.
        pub ended_ms: Option<i64>,
        /// Those of `spark.task.cpus`, `spark.unfuse.iterations` and `spark.unfuse.bytes` that are set.
        pub settings: Vec<Setting> => Setting,
    }
}

part! {
    /// A property of Spark that was set.
    pub struct Setting {
        /// Such as `spark.task.cpus`.
        pub name: String,
        /// Its value.
        pub value: String,
    }
}

table! {
    /// An executor: a row when it is added and one when it is removed. Executors that stay to the end have no second row.
    pub struct ExecutorRow in Executors {
        /// Spark application id.
        pub app: String,
        /// Executor id; `driver` in local mode.
        pub executor: String,
        /// Host; empty in the row of its removal.
        pub host: String,
        /// Cores for tasks; 0 in the row of its removal.
        pub cores: u32,
        /// Addition, ms since the epoch.
        pub added_ms: Option<i64>,
        /// Removal, ms since the epoch.
        pub removed_ms: Option<i64>,
    }
}

table! {
    /// A Spark job: a row when it starts and one when it ends.
    pub struct JobRow in Jobs {
        /// Spark application id.
        pub app: String,
        /// Job id.
        pub job: i64,
        /// Ids of its stages, including those that are skipped; in the row of its start.
        pub stages: Vec<i32>,
        /// Start, ms since the epoch.
        pub started_ms: Option<i64>,
        /// End, ms since the epoch.
        pub ended_ms: Option<i64>,
        /// First line of the reason why it failed; null if it did not.
        pub failure: Option<String>,
    }
}

table! {
    /// A SQL execution: a row when it starts and one when it ends.
    pub struct ExecutionRow in Executions {
        /// Spark application id.
        pub app: String,
        /// SQL execution id.
        pub execution: i64,
        /// Its description: SQL text or call site.
        pub description: String,
        /// Start, ms since the epoch.
        pub started_ms: Option<i64>,
        /// End, ms since the epoch.
        pub ended_ms: Option<i64>,
        /// Why it failed.
        pub error: Option<String>,
    }
}

table! {
    /// A stage attempt: a row when it is submitted and one when it completes. The later row counts; a column that only one of them
    /// has counts from that one.
    pub struct StageRow in Stages {
        /// Spark application id.
        pub app: String,
        /// Stage id.
        pub stage: i32,
        /// Attempt number.
        pub attempt: i32,
        /// SQL execution it belongs to.
        pub execution: Option<i64>,
        /// Spark's name for it (the call site).
        pub name: String,
        /// Number of tasks.
        pub tasks: i32,
        /// Submission, ms since the epoch.
        pub submitted_ms: Option<i64>,
        /// Completion, ms since the epoch.
        pub completed_ms: Option<i64>,
        /// Why it failed.
        pub failure: Option<String>,
        /// RDD operation scopes (names of plan nodes) in the stage.
        pub scopes: Vec<String>,
        /// Its RDDs from the last to the first, each by the operation that made it or else by its name. Neighbours of the same name
        /// are merged, and long lineages are cut. At submission only.
        pub rdds: Vec<String>,
        /// Distinct packages of the methods on the stack that submitted it. At submission only.
        pub packages: Vec<String>,
        /// Final values of the accumulators its tasks updated.
        pub accumulators: Vec<Accumulator> => Accumulator,
        /// Stages that it reads from, by the ids under which they ran: Spark gives a skipped stage another id in each job. At
        /// submission only.
        pub parents: Vec<i32>,
        /// Scheduler pool (`spark.scheduler.pool`); empty if none was set.
        pub pool: String,
        /// The pool's weight under fair scheduling. At completion only.
        pub pool_weight: Option<i32>,
        /// The user of a Spark Connect session; empty otherwise.
        pub user: String,
    }
}

part! {
    /// The value of an accumulator.
    pub struct Accumulator {
        /// Accumulator id.
        pub id: i64,
        /// Value as Spark prints it.
        pub value: String,
    }
}

table! {
    /// A finished task attempt with its metrics.
    pub struct TaskRow in Tasks {
        /// Spark application id.
        pub app: String,
        /// Stage id.
        pub stage: i32,
        /// Stage attempt number.
        pub attempt: i32,
        /// Task attempt id (unique in the application).
        pub task: i64,
        /// Index in the stage.
        pub index: i32,
        /// Attempt number of this index.
        pub task_attempt: i32,
        /// Executor id.
        pub executor: String,
        /// Host.
        pub host: String,
        /// Launch, ms since the epoch.
        pub launched_ms was launched: i64,
        /// Finish, ms since the epoch.
        pub finished_ms was finished: i64,
        /// `SUCCESS`, `FAILED`, `KILLED` …
        pub status: String,
        /// Whether it was a speculative copy.
        pub speculative: bool,
        /// `executorCpuTime`, ns.
        pub cpu_ns: i64,
        /// `executorRunTime`, ms.
        pub run_ms: i64,
        /// `executorDeserializeCpuTime`, ns.
        pub deserialize_cpu_ns: i64,
        /// `executorDeserializeTime`, ms.
        pub deserialize_ms: i64,
        /// `jvmGCTime`, ms.
        pub gc_ms: i64,
        /// `resultSerializationTime`, ms.
        pub result_serialize_ms: i64,
        /// Bytes of the result.
        pub result_bytes: i64,
        /// Bytes read from input.
        pub input_bytes: i64,
        /// Records read from input.
        pub input_records: i64,
        /// Bytes written to output.
        pub output_bytes: i64,
        /// Records written to output.
        pub output_records: i64,
        /// Shuffle bytes read, local and remote.
        pub shuffle_read_bytes: i64,
        /// Shuffle records read.
        pub shuffle_read_records: i64,
        /// Time blocked on shuffle fetches, ms.
        pub shuffle_fetch_wait_ms: i64,
        /// Shuffle bytes written.
        pub shuffle_write_bytes: i64,
        /// Shuffle records written.
        pub shuffle_write_records: i64,
        /// Time in shuffle writes, ns.
        pub shuffle_write_ns: i64,
        /// Bytes spilled, in memory size.
        pub memory_spilled_bytes was memory_spilled: i64,
        /// Bytes spilled to disk.
        pub disk_spilled_bytes was disk_spilled: i64,
        /// Peak execution memory, bytes.
        pub peak_memory_bytes was peak_memory: i64,
    }
}
