//! What the page gets, as JSON. Times are whole ns or ms, as the names say; the page's types in
//! `page/src/generated/model.ts` are made from these.

mod comparison;
mod verdict;

use serde::Serialize;
use ts_rs::TS;

use unfuse_postprocess::{OperatorKind, Standing, Weight};

pub use comparison::{Comparison, Pair, PairRow, Unmatched};
pub use verdict::{Evidence, PartKind, Sentence, SentenceKind, Verdict, VerdictPart};

/// Samples and CPU time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, TS)]
pub struct Cost {
    /// CPU time, ns.
    pub cpu_ns: u64,
    /// Number of samples.
    pub samples: u64,
}

impl From<Weight> for Cost {
    fn from(weight: Weight) -> Self {
        Self {
            cpu_ns: weight.ns,
            samples: weight.samples,
        }
    }
}

impl Cost {
    pub(super) fn add(&mut self, other: Self) {
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.samples = self.samples.saturating_add(other.samples);
    }
}

/// The first thing the page shows: everything but the details.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct Summary {
    /// The unfuse that made the report.
    pub unfuse: String,
    /// The profile directory.
    pub profile: String,
    /// All samples.
    pub total: Cost,
    /// Applications and other JVMs, by start.
    pub applications: Vec<Application>,
    /// Queries, most CPU first; work outside queries at the end.
    pub queries: Vec<QuerySummary>,
    /// Queries with their runs, most CPU first.
    pub families: Vec<Family>,
    /// Where the time went, what is unusual, and what to look at next.
    pub verdict: Verdict,
    /// What is not in the numbers.
    pub notes: Vec<String>,
    /// Whether there is a comparison.
    pub compared: bool,
    /// Whether it is known who slowed whom down.
    pub contention: bool,
    /// Whether stages were searched for slow tasks.
    pub skew: bool,
}

/// A Spark application, or JVMs without Spark.
#[derive(Debug, Clone, Default, PartialEq, Serialize, TS)]
pub struct Application {
    /// Spark application id; empty outside Spark.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Spark version.
    pub spark: String,
    /// Profiled JVMs.
    pub processes: usize,
    /// Samples a second and thread that were asked for.
    pub rate_hz: u32,
    /// First and last time it was seen, ms since the epoch.
    pub started_ms: i64,
    /// The last one.
    pub ended_ms: i64,
}

/// A line of the list.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(rename = "Query")]
pub struct QuerySummary {
    /// Index into the applications.
    pub app: usize,
    /// SQL execution id; none for work outside queries.
    pub query: Option<i64>,
    /// What to call it: one line of at most 100 characters, see [`unfuse_postprocess::query_name`].
    pub name: String,
    /// Text or call site, whole.
    pub description: String,
    /// Index into the families; none for work outside queries.
    pub family: Option<usize>,
    /// Start, ms since the epoch.
    pub started_ms: Option<i64>,
    /// How long it ran; none where it did not end.
    pub duration_ms: Option<i64>,
    /// Why it failed.
    pub error: Option<String>,
    /// CPU time and samples.
    pub cost: Cost,
    /// Time in which its tasks ran and used no CPU, ns; none where no task metrics came.
    pub waiting_ns: Option<u64>,
    /// Stage attempts.
    pub stages: usize,
    /// Finished task attempts.
    pub tasks: usize,
    /// See [`unfuse_postprocess::Fingerprint`].
    pub fingerprint: String,
    /// Whether it is known who slowed it down.
    pub contention: bool,
    /// Whether it has slow tasks or slow records.
    pub skew: bool,
}

/// Everything about one query.
#[derive(Debug, Clone, Default, PartialEq, Serialize, TS)]
#[ts(rename = "Detail")]
pub struct QueryDetail {
    /// The plan's nodes, parents before children.
    pub nodes: Vec<Node>,
    /// Work that no operator does.
    pub headings: Vec<Heading>,
    /// What is known of whose the tasks' CPU time is.
    pub placed: Placed,
    /// Stage attempts in order.
    pub stages: Vec<Stage>,
    /// Finished task attempts, stage by stage.
    pub tasks: Tasks,
    /// Time that its tasks waited, ns; none where waits were not recorded.
    pub waiting_ns: Option<u64>,
    /// Flame graph of operators in the order of the plan: each below the operator that takes its rows, with the plan's root first,
    /// whatever the stage. Headings are roots.
    pub operators: Flame,
    /// Flame graph of operators in the order of the code: stages first, then operators as the code calls them.
    pub operators_by_code: Flame,
    /// Flame graph of all frames.
    pub frames: Flame,
    /// Generated sources with samples, most first.
    pub sources: Vec<HotSource>,
}

/// A node of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(rename = "PlanNode")]
pub struct Node {
    /// Its number in the plan.
    pub id: i32,
    /// Index of its parent.
    pub parent: Option<usize>,
    /// Name.
    pub operator: String,
    /// What it does.
    #[ts(
        type = "\"scan\" | \"filter\" | \"project\" | \"aggregate\" | \"join\" | \"exchange\" | \"sort\" | \"window\" | \"generate\" | \"python\" | \"write\" | \"other\""
    )]
    pub kind: OperatorKind,
    /// Whether it hands rows on and does no work of its own.
    pub passes: bool,
    /// The operator as the plan prints it.
    pub detail: String,
    /// Codegen stage it is fused into.
    pub codegen_stage: Option<i32>,
    /// Whether adaptive planning dropped it after it ran.
    pub replanned: bool,
    /// Its own work.
    pub own: Cost,
    /// Bounds of its own share of the query's CPU time.
    pub own_range: Range,
    /// Its own and that of everything below it.
    pub total: Cost,
    /// What it waited for itself, longest first.
    pub waits: Vec<Wait>,
    /// How long it and everything below it waited, ns.
    pub total_waiting_ns: u64,
    /// Stages in which it has samples or waits.
    pub stages: Vec<i32>,
    /// Rows it put out: by its metric, or as many as it got where the operator does not change the number.
    pub rows: Option<i64>,
    /// Rows it got: those that its inputs put out.
    pub rows_in: Option<i64>,
    /// Its own CPU time for each row that it put out; none where these are unknown or 0.
    pub ns_per_row_out: Option<PerRow>,
    /// Its own CPU time for each row that it got.
    pub ns_per_row_in: Option<PerRow>,
    /// The lines where its own CPU time was sampled most: at most 3, each with at least 1% of the query's CPU time.
    pub hot_lines: Vec<HotLine>,
}

/// CPU time for each row, ns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, TS)]
pub struct PerRow {
    /// CPU time divided by rows.
    pub ns: f64,
    /// Lower bound, as of [`Node::own_range`].
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// A line of code where an operator's own CPU time was sampled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, TS)]
pub struct HotLine {
    /// Hash of the generated source; none for a line of a class that was not generated.
    pub hash: Option<String>,
    /// `generated.java:212`, `TimSort.java:355`.
    pub place: String,
    /// Line number, 0 where it is unknown.
    pub line: u32,
    /// Text of the line of generated code, empty where it is unknown; else the method. At most 120 characters.
    pub text: String,
    /// The method that the line's samples are in most, if it is another one than that of the line.
    pub callee: Option<String>,
    /// What was sampled there.
    pub cost: Cost,
}

/// Runs of one query: the same application name, description and plan.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct Family {
    /// What to call it, as [`QuerySummary::name`].
    pub name: String,
    /// See [`unfuse_postprocess::Fingerprint`].
    pub fingerprint: String,
    /// Positions of its runs in the list of queries, by start.
    pub runs: Vec<usize>,
    /// How many of the runs failed.
    pub failed: usize,
    /// Shortest, median and longest run, ms; none where no run ended.
    pub duration_ms: Option<[i64; 3]>,
    /// CPU time of the median run, ns.
    pub median_cpu_ns: u64,
    /// All runs.
    pub cost: Cost,
}

/// Bounds of a share, 0 to 1: with 95% certainty it lies between them, see [`unfuse_postprocess::Total::share_low`].
pub type Range = [f64; 2];

/// Work that no operator does.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct Heading {
    /// What it is.
    pub name: String,
    /// How much.
    pub cost: Cost,
    /// Bounds of its share of the query's CPU time.
    pub range: Range,
    /// What it waited for, longest first.
    pub waits: Vec<Wait>,
    /// Stages with samples or waits of it.
    pub stages: Vec<i32>,
}

/// CPU time of tasks by what the rule is worth that placed it, see [`unfuse_postprocess::Standing`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, TS)]
pub struct Placed {
    /// Of the operators that it was given to.
    pub proved: Cost,
    /// Of operators, possibly of others.
    pub guessed: Cost,
    /// No operator's.
    pub headings: Cost,
    /// Not known whose.
    pub unattributed: Cost,
}

impl Placed {
    pub(super) fn add(&mut self, standing: Standing, cost: Cost) {
        match standing {
            Standing::Proved => self.proved.add(cost),
            Standing::Guessed => self.guessed.add(cost),
            Standing::Heading => self.headings.add(cost),
            Standing::Unattributed => self.unattributed.add(cost),
            Standing::OutsideTasks => {}
        }
    }
}

/// Waiting for one thing.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct Wait {
    /// What for.
    pub what: &'static str,
    /// How long, ns.
    pub ns: u64,
}

/// A stage attempt.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct Stage {
    /// Stage id.
    pub stage: i32,
    /// Attempt number.
    pub attempt: i32,
    /// Spark's name for it.
    pub name: String,
    /// Tasks it should have.
    pub tasks: i32,
    /// Submission, ms since the epoch.
    pub submitted_ms: Option<i64>,
    /// Completion, ms since the epoch.
    pub completed_ms: Option<i64>,
    /// Why it failed.
    pub failure: Option<String>,
    /// What was sampled in its tasks.
    pub cost: Cost,
    /// Sums over its finished tasks; none where no task metrics came.
    pub metrics: Option<StageMetrics>,
}

/// Sums of Spark's task metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, TS)]
pub struct StageMetrics {
    /// Finished task attempts.
    pub finished: usize,
    /// Of these, how many did not succeed.
    pub failed: usize,
    /// Shortest, median and longest task, ms.
    pub task_ms: [i64; 3],
    /// Executor run time, ns.
    pub run_ns: u64,
    /// Executor CPU time of the task threads, ns.
    pub cpu_ns: u64,
    /// Run time without CPU time, ns.
    pub waiting_ns: u64,
    /// Part of the waiting: blocked on shuffle fetches, ns.
    pub fetch_wait_ns: u64,
    /// JVM-wide GC pauses while its tasks ran, ns.
    pub gc_ns: u64,
    /// Bytes read from input.
    pub input_bytes: i64,
    /// Shuffle bytes read.
    pub shuffle_read_bytes: i64,
    /// Shuffle bytes written.
    pub shuffle_write_bytes: i64,
    /// Bytes spilled to disk.
    pub spilled_bytes: i64,
}

/// Task attempts, a column each: they are many.
#[derive(Debug, Clone, Default, PartialEq, Serialize, TS)]
pub struct Tasks {
    /// Index into the stages.
    pub stage: Vec<usize>,
    /// Index in the stage.
    pub index: Vec<i32>,
    /// Attempt number.
    pub attempt: Vec<i32>,
    /// Index into `executors`.
    pub executor: Vec<usize>,
    /// Launch, ms since the epoch.
    pub launched_ms: Vec<i64>,
    /// From launch to finish, ms.
    pub duration_ms: Vec<i64>,
    /// CPU time, ms.
    pub cpu_ms: Vec<i64>,
    /// Run time without CPU time, ms.
    pub waiting_ms: Vec<i64>,
    /// GC pauses, ms.
    pub gc_ms: Vec<i64>,
    /// Input and shuffle bytes read.
    pub read_bytes: Vec<i64>,
    /// Output and shuffle bytes written.
    pub written_bytes: Vec<i64>,
    /// Bytes spilled to disk.
    pub spilled_bytes: Vec<i64>,
    /// Index into `statuses`.
    pub status: Vec<usize>,
    /// Executor and host.
    pub executors: Vec<String>,
    /// `SUCCESS`, `FAILED` …
    pub statuses: Vec<String>,
}

/// A flame graph: frames in pre-order, widest sibling first, with what ends in each.
#[derive(Debug, Clone, Default, PartialEq, Serialize, TS)]
pub struct Flame {
    /// 0 for roots.
    pub depth: Vec<u32>,
    /// What `of` counts: see [`FlameKind`].
    pub kind: Vec<u8>,
    /// Index into stages, headings or nodes of the query, or into [`FrameNames`].
    pub of: Vec<u32>,
    /// CPU time of stacks that end here, ns.
    pub cpu_ns: Vec<u64>,
    /// Samples of stacks that end here.
    pub samples: Vec<u64>,
}

/// What a frame of a flame graph is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FlameKind {
    /// A stage attempt of the query.
    Stage = 0,
    /// A heading of the query.
    Heading = 1,
    /// A plan node.
    Operator = 2,
    /// A frame of a callchain, by [`FrameNames`].
    Frame = 3,
}

/// Names of frames, shared by all queries.
#[derive(Debug, Clone, Default, PartialEq, Serialize, TS)]
pub struct FrameNames {
    /// Methods, functions; generated code with lines.
    pub names: Vec<String>,
    /// `java`, `generated`, `native`, `kernel` …, an index into `kinds` each.
    pub kind: Vec<u8>,
    /// The kinds.
    pub kinds: Vec<String>,
}

/// A generated source with samples of one query.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct HotSource {
    /// Its hash; the text is a block of its own.
    pub hash: String,
    /// What ended in it and what it called outside generated code.
    pub cost: Cost,
    /// Lines with samples: number, ns, samples.
    pub lines: Vec<(u32, u64, u64)>,
    /// Node by region id.
    pub nodes: Vec<usize>,
}

/// The text of a generated source.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct Source {
    /// The generated class.
    pub class: String,
    /// The text as it was compiled.
    pub text: String,
    /// Runs of lines with one innermost region: first line, last line, region id, whether it produces.
    pub regions: Vec<(u32, u32, i32, bool)>,
}
