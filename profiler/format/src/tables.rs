//! The tables, one row type each. Adding an optional column keeps old profiles readable
//! (`#[serde(default)]`); anything else raises [`crate::FORMAT_VERSION`].

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use arrow_schema::{FieldRef, Schema};
use serde::{Deserialize, Serialize};

use crate::segment::fields_of;

/// A row type that is stored as a table.
pub trait Table: Serialize + for<'a> Deserialize<'a> + Send {
    /// The folder under the profile directory.
    const NAME: &'static str;

    /// Numbers only, in such an order that the differences of neighbours are small: stored as these.
    const DELTAS: bool = false;

    /// The Arrow fields of the table.
    fn fields() -> Vec<FieldRef>;

    /// The rows in columns.
    ///
    /// # Errors
    /// If they do not fit the fields.
    fn batch(fields: &[FieldRef], rows: &[Self]) -> std::io::Result<RecordBatch>
    where
        Self: Sized;

    /// The rows of columns.
    ///
    /// # Errors
    /// What the columns lack.
    fn rows(batch: &RecordBatch) -> Result<Vec<Self>, String>
    where
        Self: Sized;
}

/// What serde says of a row type. These are no defaults of the trait: as functions of each type they are compiled once,
/// here, and not again in every crate that reads a profile.
macro_rules! by_serde {
    (fields) => {
        fn fields() -> Vec<FieldRef> {
            fields_of::<Self>()
        }
    };
    (batch) => {
        fn batch(fields: &[FieldRef], rows: &[Self]) -> std::io::Result<RecordBatch> {
            serde_arrow::to_record_batch(fields, &rows).map_err(std::io::Error::other)
        }
    };
    (rows) => {
        fn rows(batch: &RecordBatch) -> Result<Vec<Self>, String> {
            serde_arrow::from_record_batch(batch).map_err(|e| e.to_string())
        }
    };
}

macro_rules! tables {
    ($($row:ty => $name:literal),+ $(,)?) => {
        $(impl Table for $row {
            const NAME: &'static str = $name;

            by_serde!(fields);
            by_serde!(batch);
            by_serde!(rows);
        })+
        #[cfg(test)]
        mod tests {
            use super::*;
            #[test]
            fn every_table_has_an_arrow_schema() {
                $(assert!(!<$row>::fields().is_empty(), $name);)+
            }

            #[test]
            fn every_table_is_among_all() {
                let all = crate::every_table!(names);
                $(assert!(all.contains(&$name), $name);)+
            }
        }
    };
}

/// Tables of very many rows of numbers: their columns are made without looking at each field of each row by name.
macro_rules! tables_of_numbers {
    ($($row:ident { $($column:ident: $array:ty),+ } => $name:literal),+ $(,)?) => {
        $(impl Table for $row {
            const NAME: &'static str = $name;
            const DELTAS: bool = true;

            by_serde!(fields);
            by_serde!(rows);

            fn batch(fields: &[FieldRef], rows: &[Self]) -> std::io::Result<RecordBatch> {
                // Without rest: a new column has to come here too.
                let _complete = |row: Self| {
                    let Self { $($column: _),+ } = row;
                };
                let columns: Vec<ArrayRef> = vec![
                    $(Arc::new(<$array>::from_iter_values(rows.iter().map(|row| row.$column)))),+
                ];
                RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), columns).map_err(std::io::Error::other)
            }
        })+
    };
}

/// The names of tables.
#[cfg(test)]
macro_rules! names {
    ($($row:ty),+) => { [$(<$row>::NAME),+] };
}

#[cfg(test)]
mod number_tests {
    use super::*;

    /// Each column must be under its own name: many have the same type.
    #[test]
    fn columns_are_those_that_serde_finds() {
        let row = RecordInRow {
            tap: 1,
            source: 2,
            position: 3,
            id: -4,
            ns: i64::MAX,
        };
        same(&[row, RecordInRow::default()]);
        let row = RecordOutRow {
            tap: 1,
            output: 2,
            position: 3,
            key: -4,
            whole: i64::MIN,
            ns: 6,
            alone_ns: 5,
            source: 7,
            first: 8,
            count: 9,
        };
        same(&[row, RecordOutRow::default()]);
    }

    fn same<T: Table>(rows: &[T]) {
        let fields = T::fields();
        let by_serde = serde_arrow::to_record_batch(&fields, &rows).expect("a batch");
        assert_eq!(T::batch(&fields, rows).expect("a batch"), by_serde);
    }
}

tables_of_numbers! {
    RecordInRow {
        tap: Int64Array, source: Int32Array, position: Int64Array, id: Int64Array, ns: Int64Array
    } => "records_in",
    RecordOutRow {
        tap: Int64Array, output: Int32Array, position: Int64Array, key: Int64Array, whole: Int64Array, ns: Int64Array,
        alone_ns: Int64Array, source: Int32Array, first: Int64Array, count: Int64Array
    } => "records_out",
}

tables! {
    SampleRow => "samples",
    StackRow => "stacks",
    ProcessRow => "processes",
    SourceRow => "source_index",
    CodegenRow => "codegen",
    ApplicationRow => "applications",
    ExecutorRow => "executors",
    JobRow => "jobs",
    PlanRow => "plans",
    ExecutionRow => "executions",
    StageRow => "stages",
    TaskRow => "tasks",
    IntervalRow => "intervals",
    HostRow => "hosts",
    CachedRow => "cached",
    RecordSourceRow => "record_sources",
    RecordTargetRow => "record_targets",
    RecordTextRow => "record_texts",
}

/// Calls a macro with the row types of all tables.
#[macro_export]
macro_rules! every_table {
    ($call:ident) => {
        $call!(
            SampleRow,
            StackRow,
            ProcessRow,
            SourceRow,
            CodegenRow,
            ApplicationRow,
            ExecutorRow,
            JobRow,
            PlanRow,
            ExecutionRow,
            StageRow,
            TaskRow,
            IntervalRow,
            HostRow,
            CachedRow,
            RecordSourceRow,
            RecordTargetRow,
            RecordTextRow,
            RecordInRow,
            RecordOutRow
        )
    };
}

/// Samples of one thread in one time window that share stage attempt, task attempt and stack.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SampleRow {
    /// Spark application id; empty outside Spark.
    pub app: String,
    /// Host name.
    pub host: String,
    /// Executor id (`driver` in the driver); empty outside Spark.
    pub executor: String,
    /// The JVM's process id.
    pub pid: u32,
    /// The thread's id in the kernel.
    pub tid: u32,
    /// The thread's name.
    pub thread: String,
    /// Stage, where the thread ran a task.
    pub stage: Option<i32>,
    /// Attempt number of the stage.
    pub stage_attempt: Option<i32>,
    /// Task attempt id (unique in the application).
    pub task: Option<i64>,
    /// Time of the first sample, ns since the epoch; off the CPU, the beginning of the first wait.
    pub start_ns: i64,
    /// Time of the last sample, ns since the epoch; off the CPU, the end of the last wait.
    pub end_ns: i64,
    /// `cpu`, or `off-cpu` where the thread waited.
    pub kind: String,
    /// The callchain, see [`StackRow::stack`].
    pub stack: i64,
    /// Number of samples or waits.
    pub count: u64,
    /// CPU time they stand for, or time that was waited, ns.
    pub weight_ns: u64,
}

/// One distinct callchain. The id is a hash of the frames, so equal stacks of different processes
/// have equal ids; a stack may occur in several segments.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StackRow {
    /// Hash of the frames.
    pub stack: i64,
    /// Root first. Stacks share most of their frames, so whoever makes many of them need not copy these.
    pub frames: Vec<Arc<Frame>>,
}

impl StackRow {
    /// The row of these frames (root first).
    pub fn of(frames: Vec<Frame>) -> Self {
        let mut hasher = DefaultHasher::new();
        frames.hash(&mut hasher);
        Self {
            stack: hasher.finish().cast_signed(),
            frames: frames.into_iter().map(Arc::new).collect(),
        }
    }
}

/// [`Frame::method`] of code that the JVM had not described, or not yet; its kind is `unknown`.
pub const UNDESCRIBED: &str = "[code cache]";
/// [`Frame::method`] of the root where the callers further up are not known; its kind is `unknown`.
pub const NO_CALLERS: &str = "[callers unknown]";

/// One frame of a callchain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Frame {
    /// `java`, `interpreted`, `native`, `kernel`, `stub`, `wait` (what is waited for: `[run queue]`, a CPU;
    /// `[waiting]`, not known as the stack is only the last one on the CPU) or `unknown`.
    pub kind: String,
    /// Binary class name with dots; empty where the frame is no Java frame.
    pub class: String,
    /// Method name, native symbol or stub name.
    pub method: String,
    /// JVM signature of the method.
    pub signature: String,
    /// Source file of a Java frame, library of a native one.
    pub file: String,
    /// Source line, 0 where unknown.
    pub line: u32,
    /// Bytecode index, -1 where unknown.
    pub bci: i32,
    /// Whether the JIT compiler inlined this frame into the one before it.
    pub inlined: bool,
    /// Of compiled code that ran: the line that the compiler described just before it, where that is another line of the
    /// same method; 0 otherwise. The code may belong to any line between the two.
    pub line_before: u32,
}

impl Frame {
    /// Whether it stands for code that the JVM had not described, or for callers that are not known.
    pub fn is_undescribed(&self) -> bool {
        self.kind == "unknown" && [UNDESCRIBED, NO_CALLERS].contains(&self.method.as_str())
    }
}

/// One profiled JVM.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessRow {
    /// Spark application id; empty outside Spark.
    pub app: String,
    /// Spark application name; empty outside Spark.
    pub name: String,
    /// Spark version; empty outside Spark.
    pub spark: String,
    /// Host name.
    pub host: String,
    /// Executor id (`driver` in the driver); empty outside Spark.
    pub executor: String,
    /// Process id.
    pub pid: u32,
    /// Samples a second and thread that were asked for.
    pub rate_hz: u32,
    /// `perf` (perf_event task-clock) or `timer` (per-thread CPU timer in the process).
    pub source: String,
    /// The part of the tasks that was profiled, where it was not all; their samples' weights are divided by it.
    pub task_fraction: Option<f64>,
    /// When profiling began, ns since the epoch.
    pub start_ns: i64,
    /// When this row was written, ns since the epoch; the latest row of a process counts.
    pub end_ns: i64,
    /// Whether the process was at its end and everything was written; older profiles do not say.
    pub ended: Option<bool>,
    /// Samples taken.
    pub samples: u64,
    /// Samples the kernel had to drop.
    pub lost_samples: u64,
    /// Code ranges that did not fit into the code map.
    pub lost_ranges: u64,
    /// Task marks that were overwritten before a sampler read them.
    pub lost_marks: u64,
    /// Events (plans, stages, sources) that were dropped.
    pub lost_events: u64,
    /// Callchains that ended before the thread's first frame.
    pub broken_chains: u64,
    /// Of a JVM that ran before it was profiled: the earliest time, ns since the epoch, from which on at most 1% of the
    /// samples are incomplete, whenever the profile is ended. Empty in others and in older profiles.
    pub complete_from_ns: Option<i64>,
    /// Of such a JVM: samples in code that it had not described, or whose callers are not known.
    pub incomplete_samples: u64,
    /// Threads that ended before they could be sampled.
    pub brief_threads: u64,
    /// CPU time of such threads, as far as it is known, ns.
    pub brief_ns: u64,
    /// Time of all waits that were recorded, ns.
    pub waiting_ns: u64,
    /// Of it, that of waits whose stack is that of the CPU sample before, ns.
    pub guessed_ns: u64,
    /// And that of waits whose stack nobody knows, ns.
    pub stackless_ns: u64,
}

/// Which generated class was compiled from which text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceRow {
    /// Spark application id.
    pub app: String,
    /// Hash of the text; the file is `sources/HASH.java`.
    pub hash: String,
    /// Simple name of the generated class.
    pub class: String,
    /// Codegen stage id in the class name.
    pub codegen_stage: Option<i32>,
    /// Hash of Spark's class body, under which `codegen` has the operators; empty where it is `hash`.
    pub body: String,
}

/// One Spark application, told by its driver; a row when it starts and one when it ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ApplicationRow {
    /// Spark application id.
    pub app: String,
    /// Its name; of the row of its start, as are its settings.
    pub name: String,
    /// Start, ms since the epoch.
    pub started_ms: Option<i64>,
    /// End, ms since the epoch.
    pub ended_ms: Option<i64>,
    /// Properties that were set, of those that say how large it is: `spark.task.cpus`, `spark.unfuse.iterations`,
    /// `spark.unfuse.bytes`.
    pub settings: Vec<Setting>,
}

/// A property of Spark that was set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setting {
    /// Such as `spark.task.cpus`.
    pub name: String,
    /// As it was set.
    pub value: String,
}

/// One executor, told by the driver; a row when it comes and one when it goes. Those that stay to the end have no second one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecutorRow {
    /// Spark application id.
    pub app: String,
    /// Executor id; `driver` in local mode.
    pub executor: String,
    /// Host; empty in the row of its end.
    pub host: String,
    /// Cores that tasks get; 0 in the row of its end.
    pub cores: u32,
    /// When it came, ms since the epoch.
    pub added_ms: Option<i64>,
    /// When it went, ms since the epoch.
    pub removed_ms: Option<i64>,
}

/// One Spark job; a row when it starts and one when it ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobRow {
    /// Spark application id.
    pub app: String,
    /// Job id.
    pub job: i64,
    /// Ids of its stages, those too that do not run as their output is there; of the row of its start.
    pub stages: Vec<i32>,
    /// Start, ms since the epoch.
    pub started_ms: Option<i64>,
    /// End, ms since the epoch.
    pub ended_ms: Option<i64>,
    /// Why it failed, the first line.
    pub failure: Option<String>,
}

/// What one codegen stage of one execution generated, seen on the driver.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CodegenRow {
    /// Spark application id.
    pub app: String,
    /// SQL execution id.
    pub execution: Option<i64>,
    /// Codegen stage id.
    pub codegen_stage: i32,
    /// Hash of the text.
    pub hash: String,
    /// The operators, by region id.
    pub nodes: Vec<RegionNode>,
}

/// The operator behind a region id.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RegionNode {
    /// Pre-order position in the codegen stage, 0 for WholeStageCodegen itself.
    pub region: i32,
    /// Name, such as `HashAggregate`.
    pub operator: String,
    /// The operator as the plan prints it.
    pub detail: String,
}

/// One node of one execution's plan. The rows with the highest version of an execution count.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanRow {
    /// Spark application id.
    pub app: String,
    /// SQL execution id.
    pub execution: i64,
    /// Raised by each adaptive re-planning.
    pub version: i32,
    /// Pre-order position in the plan, 0 for the root.
    pub node: i32,
    /// The parent's position.
    pub parent: Option<i32>,
    /// Name, such as `HashAggregate`.
    pub operator: String,
    /// The operator as the plan prints it.
    pub detail: String,
    /// Codegen stage it is fused into.
    pub codegen_stage: Option<i32>,
    /// Its region id in that stage.
    pub region: Option<i32>,
    /// Its SQL metrics.
    pub metrics: Vec<Metric>,
}

/// A SQL metric of a plan node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metric {
    /// Accumulator id; [`StageRow::accumulators`] has the values.
    pub id: i64,
    /// Name, such as `number of output rows`.
    pub name: String,
    /// Spark's metric type, such as `sum` or `nsTiming`.
    pub kind: String,
}

/// One SQL execution; a row when it starts and one when it ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecutionRow {
    /// Spark application id.
    pub app: String,
    /// SQL execution id.
    pub execution: i64,
    /// Text or call site.
    pub description: String,
    /// Start, ms since the epoch.
    pub started_ms: Option<i64>,
    /// End, ms since the epoch.
    pub ended_ms: Option<i64>,
    /// Why it failed.
    pub error: Option<String>,
}

/// One stage attempt; a row when it is submitted and one when it completes, the later one counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StageRow {
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
    /// Its RDDs from the last to the first, each by the operation that made it or else by its name; neighbours of one name
    /// are one, and long lineages are cut. At submission only.
    pub rdds: Vec<String>,
    /// Packages of the methods on the stack that started it, each once. At submission only.
    pub packages: Vec<String>,
    /// Final values of the accumulators its tasks updated.
    pub accumulators: Vec<Accumulator>,
    /// Stages it reads from, by the ids under which they ran: Spark gives a stage whose output is there already another
    /// id in each job.
    pub parents: Vec<i32>,
    /// Scheduler pool (`spark.scheduler.pool`); empty where none was set.
    pub pool: String,
    /// The pool's weight under fair scheduling.
    pub pool_weight: Option<i32>,
    /// Who asked for it, where a server says so (Spark Connect).
    pub user: String,
}

/// The value of an accumulator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Accumulator {
    /// Accumulator id.
    pub id: i64,
    /// Value as Spark prints it.
    pub value: String,
}

/// One finished task attempt with its metrics.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskRow {
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
    pub launched: i64,
    /// Finish, ms since the epoch.
    pub finished: i64,
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
    pub memory_spilled: i64,
    /// Bytes spilled to disk.
    pub disk_spilled: i64,
    /// Peak execution memory, bytes.
    pub peak_memory: i64,
}

/// What one task did with one resource in one span of time.
///
/// With [`HostRow`] the contract of contention analysis: who writes these tables can be analysed, whatever the engine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IntervalRow {
    /// Application id.
    pub app: String,
    /// Host name, as in [`HostRow`].
    pub host: String,
    /// Executor id.
    pub executor: String,
    /// Stage id.
    pub stage: i32,
    /// Attempt number of the stage.
    pub attempt: i32,
    /// Task attempt id (unique in the application).
    pub task: i64,
    /// What was used or waited for: `cpu`, `io-read`, `io-write`, `network` or `execution-memory`.
    pub kind: String,
    /// Begin, ns since the epoch.
    pub start_ns: i64,
    /// End, ns since the epoch.
    pub end_ns: i64,
    /// What the task got: CPU seconds, bytes, or of memory the bytes it held times the seconds it held them.
    pub units: f64,
    /// Time in which it could not go on for want of it, as far as Spark itself measures it, ns.
    pub blocked_ns: i64,
}

/// What a host gave in one span of time, whoever used it, and what the profiled JVM had of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostRow {
    /// Application id.
    pub app: String,
    /// Host name.
    pub host: String,
    /// Process id of the profiled JVM; of several on a host each writes rows.
    pub pid: u32,
    /// Begin, ns since the epoch.
    pub start_ns: i64,
    /// End, ns since the epoch.
    pub end_ns: i64,
    /// CPUs of the host.
    pub cpus: u32,
    /// CPU time of all processes, s.
    pub cpu_s: f64,
    /// CPU time of the JVM and its children, s.
    pub jvm_cpu_s: f64,
    /// Of it, that of garbage collection, s.
    pub gc_cpu_s: f64,
    /// CPUs that the tightest limit (CFS quota) of the JVM's control groups allows; none without a limit.
    pub cpu_limit: Option<f64>,
    /// The directory of the group with that limit, with its inode after a #.
    pub cpu_group: Option<String>,
    /// CPU time of all processes of that group, s.
    pub group_cpu_s: Option<f64>,
    /// The part of the limit's periods in which it was used up, 0 to 1.
    pub throttled_part: Option<f64>,
    /// Bytes read from disks.
    pub disk_read_bytes: u64,
    /// Bytes written to disks.
    pub disk_write_bytes: u64,
    /// Bytes that the JVM and its children caused to be read from disks.
    pub jvm_disk_read_bytes: u64,
    /// Bytes that they caused to be written to disks.
    pub jvm_disk_write_bytes: u64,
    /// The busiest disk's time with requests under way, s.
    pub disk_busy_s: f64,
    /// Bytes received from other machines.
    pub network_in_bytes: u64,
    /// Bytes sent to other machines.
    pub network_out_bytes: u64,
    /// What the network cards say they can do, bytes a second in each direction; none where they do not say.
    pub network_bytes_per_s: Option<u64>,
    /// Time in which a process of the host waited for a CPU, s (pressure stall information); none where the kernel has
    /// none.
    pub cpu_pressure_s: Option<f64>,
    /// The same for disks.
    pub io_pressure_s: Option<f64>,
    /// The same for memory.
    pub memory_pressure_s: Option<f64>,
    /// Memory that Spark manages in this JVM, bytes; none where no tasks run.
    pub memory_bytes: Option<u64>,
}

/// Memory that the blocks of a cached RDD hold on an executor, from this row on until the next one of both.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CachedRow {
    /// Spark application id.
    pub app: String,
    /// Executor id.
    pub executor: String,
    /// RDD id.
    pub rdd: i32,
    /// The stage that filled the cache.
    pub stage: Option<i32>,
    /// Since when, ms since the epoch.
    pub since_ms: i64,
    /// Bytes in memory.
    pub memory_bytes: u64,
}

/// What a task read, of a run that followed records: a partition of a source, a shuffle or a cached RDD.
///
/// Only of attempts that succeeded; `tap` tells an attempt from all others of the profile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordSourceRow {
    /// Spark application id.
    pub app: String,
    /// Stage id.
    pub stage: i32,
    /// Stage attempt number.
    pub attempt: i32,
    /// Task attempt id.
    pub task: i64,
    /// Index of the task's partition in its stage.
    pub partition: i32,
    /// The task attempt, in one number: what the rows of records name it by.
    pub tap: i64,
    /// Number among the sources of the task.
    pub source: i32,
    /// `file`, `other` (made in place, a database …), `shuffle` or `cached`.
    pub kind: String,
    /// What its records are told by: `key`, `whole` (all of a record) or `position`.
    pub by: String,
    /// Where its records were written: the links of [`RecordTargetRow`].
    pub links: Vec<String>,
    /// RDD id.
    pub rdd: i32,
    /// How Spark prints the RDD.
    pub name: String,
    /// Partition of that RDD.
    pub source_partition: i32,
    /// Records read.
    pub count: i64,
    /// Time in reading, merging of values included, ns: the shuffle latency of the partition where it is a shuffle.
    pub read_ns: i64,
    /// False where another thread read it, for a Python process: times of its records are not known.
    pub timed: bool,
    /// Whether the ids of its records are where lines begin in a text file, bytes; profiles before 2026-11-22 do not say.
    pub lines: Option<bool>,
    /// The output of the task that its records go into; -1 where that is the last one.
    pub output: i32,
    /// Files, as they were read one after the other.
    pub files: Vec<String>,
    /// Where the part of each file that was read begins, bytes.
    pub file_starts: Vec<i64>,
    /// The position of the first record of each.
    pub file_positions: Vec<i64>,
}

/// What a task made, of a run that followed records.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordTargetRow {
    /// Spark application id.
    pub app: String,
    /// Stage id.
    pub stage: i32,
    /// Stage attempt number.
    pub attempt: i32,
    /// Task attempt id.
    pub task: i64,
    /// Index of the task's partition in its stage.
    pub partition: i32,
    /// The task attempt, as in [`RecordSourceRow`].
    pub tap: i64,
    /// Number among the outputs of the task.
    pub output: i32,
    /// `result`, `shuffle ID` or `cache RDD`.
    pub link: String,
    /// Values of a key are merged before they are written.
    pub combined: bool,
    /// Records.
    pub count: i64,
    /// Time in writing that is no record's doing, ns.
    pub write_ns: i64,
    /// Time of the task that is neither a record's doing nor in reading, ns; the same in all rows of a task.
    pub unowned_ns: i64,
}

/// A record that a task read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordInRow {
    /// The task attempt.
    pub tap: i64,
    /// The source.
    pub source: i32,
    /// Position in the source, from 0.
    pub position: i64,
    /// What it is told by, 64 bits; of text files the offset of its line, 0 where nothing is known.
    pub id: i64,
    /// Time that the task's code took because of it, ns.
    pub ns: i64,
}

/// A record that a task made, once for each source that it came from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordOutRow {
    /// The task attempt.
    pub tap: i64,
    /// The output.
    pub output: i32,
    /// Position in the output, from 0.
    pub position: i64,
    /// Hash of its key, 0 where it has none.
    pub key: i64,
    /// Hash of all of it, 0 where that does not tell it from others.
    pub whole: i64,
    /// Time since the record before it was consumed until this one was, ns.
    pub ns: i64,
    /// Of it, of a record that comes from the same as the one before it, what is no record's doing that was read, ns. Such are made of
    /// all that was sorted, aggregated or joined before.
    pub alone_ns: i64,
    /// The source.
    pub source: i32,
    /// The first of the records that were read for it.
    pub first: i64,
    /// How many there were.
    pub count: i64,
}

/// What one of the slowest records of a source or an output of a task looked like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordTextRow {
    /// The task attempt.
    pub tap: i64,
    /// The source; -1 for a record of an output.
    pub source: i32,
    /// The output; -1 for a record of a source.
    pub output: i32,
    /// Position there.
    pub position: i64,
    /// Its time, ns.
    pub ns: i64,
    /// When it was read, ns since the epoch.
    pub began_ns: i64,
    /// When it was done with, ns since the epoch.
    pub ended_ns: i64,
    /// Its content, or the beginning of it; none where contents were not to be kept.
    pub text: Option<String>,
    /// Whether there was more.
    pub cut: bool,
}
