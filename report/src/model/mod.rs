//! The page's data, as JSON. Times are whole ns or ms, as their names say. The page's types in
//! `page/src/generated/model.ts` are generated from these.

mod comparison;
mod verdict;

use serde::Serialize;
use ts_rs::TS;

use unfuse_postprocess::{OperatorKind, Standing, Weight};

use crate::advise::Advice;

pub use comparison::{Comparison, Pair, PairRow, UnmatchedQuery};
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

/// The first block of the page: everything except details.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct Summary {
    /// The version of unfuse that made the report.
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
    /// Where the time went, what is unusual, and what to do next.
    pub verdict: Verdict,
    /// What to change, the change that saves most first; none if only a part of the time was asked for.
    pub advice: Option<Suggestions>,
    /// Notes on missing data.
    pub notes: Vec<String>,
    /// Whether there is a comparison.
    pub compared: bool,
    /// Whether contention was analysed.
    pub contention: bool,
    /// Whether skew was analysed.
    pub skew: bool,
}

/// What to change, as `unfuse advise` suggests it.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct Suggestions {
    /// The change that saves most first.
    pub all: Vec<Advice>,
    /// What the answer does not know.
    pub notes: Vec<String>,
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
    /// Requested samples a second and thread.
    pub rate_hz: u32,
    /// First time it was seen, ms since the epoch.
    pub started_ms: i64,
    /// Last time it was seen, ms since the epoch.
    pub ended_ms: i64,
}

/// A query in the list.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(rename = "Query")]
pub struct QuerySummary {
    /// Index into the applications.
    pub app: usize,
    /// SQL execution id; none for work outside queries.
    pub query: Option<i64>,
    /// Its name: one line of at most 100 characters, see [`unfuse_postprocess::query_name`].
    pub name: String,
    /// Text or call site, uncut.
    pub description: String,
    /// Index into the families; none for work outside queries.
    pub family: Option<usize>,
    /// Start, ms since the epoch.
    pub started_ms: Option<i64>,
    /// How long it ran, ms; none if it did not end.
    pub duration_ms: Option<i64>,
    /// Why it failed.
    pub error: Option<String>,
    /// CPU time and samples.
    pub cost: Cost,
    /// Time in which its tasks ran without using CPU, ns; none without task metrics.
    pub waiting_ns: Option<u64>,
    /// Stage attempts.
    pub stages: usize,
    /// Finished task attempts.
    pub tasks: usize,
    /// See [`unfuse_postprocess::Fingerprint`].
    pub fingerprint: String,
    /// Whether it has a contention block.
    pub contention: bool,
    /// Whether it has a block of what would help.
    pub what_if: bool,
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
    /// How certain the attribution of the tasks' CPU time is.
    pub placed: CostByStanding,
    /// Stage attempts in order.
    pub stages: Vec<Stage>,
    /// Finished task attempts, stage by stage.
    pub tasks: Tasks,
    /// Time that its tasks waited, ns; none if waits were not recorded.
    pub waiting_ns: Option<u64>,
    /// Flame graph of operators in the order of the plan: each operator is below the one that takes its rows, in
    /// whatever stage; the plan's root is first. Headings are roots.
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
    /// Whether it passes rows on and does no work of its own.
    pub passes: bool,
    /// The operator as the plan prints it.
    pub detail: String,
    /// Codegen stage it is fused into.
    pub codegen_stage: Option<i32>,
    /// Whether adaptive planning removed it after it ran.
    pub replanned: bool,
    /// Cost of its own work.
    pub own: Cost,
    /// Bounds of its own share of the query's CPU time.
    pub own_range: Range,
    /// Its own cost and that of all nodes below it.
    pub total: Cost,
    /// Its own waits, longest first.
    pub waits: Vec<Wait>,
    /// Waiting time of itself and all nodes below it, ns.
    pub total_waiting_ns: u64,
    /// Stages in which it has samples or waits.
    pub stages: Vec<i32>,
    /// Rows that it output: by its metric, or as many as it got if the operator does not change the number.
    pub rows: Option<i64>,
    /// Rows that it got, which its inputs output.
    pub rows_in: Option<i64>,
    /// Its own CPU time for each row that it output; none if their number is unknown or 0.
    pub ns_per_row_out: Option<PerRow>,
    /// Its own CPU time for each row that it got.
    pub ns_per_row_in: Option<PerRow>,
    /// The lines with most of its own CPU time: at most 3, each with at least 1% of the query's CPU time.
    pub hot_lines: Vec<HotLine>,
}

/// CPU time for each row, ns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, TS)]
pub struct PerRow {
    /// CPU time divided by rows.
    pub ns: f64,
    /// Lower bound, from [`Node::own_range`].
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// A line of code where an operator's own CPU time was sampled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, TS)]
pub struct HotLine {
    /// Hash of the generated source; none for other classes.
    pub hash: Option<String>,
    /// `generated.java:212`, `TimSort.java:355`.
    pub place: String,
    /// Line number; 0 if unknown.
    pub line: u32,
    /// For generated code the text of the line, empty if unknown; else the method. At most 120 characters.
    pub text: String,
    /// The method called from the line that has most of its samples, if not the line itself.
    pub callee: Option<String>,
    /// Cost of the line.
    pub cost: Cost,
}

/// Runs of one query: the same application name, description and plan.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct Family {
    /// Its name, as [`QuerySummary::name`].
    pub name: String,
    /// See [`unfuse_postprocess::Fingerprint`].
    pub fingerprint: String,
    /// Positions of its runs in the list of queries, by start.
    pub runs: Vec<usize>,
    /// Number of failed runs.
    pub failed: usize,
    /// Shortest, median and longest run, ms; none if no run ended.
    pub duration_ms: Option<[i64; 3]>,
    /// CPU time of the median run, ns.
    pub median_cpu_ns: u64,
    /// Cost of all runs.
    pub cost: Cost,
}

/// Bounds of a share, 0 to 1, that contain it with 95% certainty, see [`unfuse_postprocess::Total::share_low`].
pub type Range = [f64; 2];

/// Work that no operator does.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct Heading {
    /// Its name.
    pub name: String,
    /// Its cost.
    pub cost: Cost,
    /// Bounds of its share of the query's CPU time.
    pub range: Range,
    /// Its waits, longest first.
    pub waits: Vec<Wait>,
    /// Stages in which it has samples or waits.
    pub stages: Vec<i32>,
}

/// CPU time of tasks by what its attribution proves, see [`unfuse_postprocess::Standing`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, TS)]
pub struct CostByStanding {
    /// Time of the operators to which it is attributed.
    pub proved: Cost,
    /// Time of operators, possibly of others.
    pub guessed: Cost,
    /// Time of headings.
    pub headings: Cost,
    /// Time with an unknown owner.
    pub unattributed: Cost,
}

impl CostByStanding {
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

/// A sum of waits with one reason.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct Wait {
    /// The reason.
    pub what: &'static str,
    /// The time, ns.
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
    /// Number of its tasks.
    pub tasks: i32,
    /// Submission, ms since the epoch.
    pub submitted_ms: Option<i64>,
    /// Completion, ms since the epoch.
    pub completed_ms: Option<i64>,
    /// Why it failed.
    pub failure: Option<String>,
    /// Samples in its tasks.
    pub cost: Cost,
    /// Sums over its finished tasks; none without task metrics.
    pub metrics: Option<StageMetrics>,
}

/// Sums of Spark's task metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, TS)]
pub struct StageMetrics {
    /// Finished task attempts.
    pub finished: usize,
    /// Finished task attempts that did not succeed.
    pub failed: usize,
    /// Shortest, median and longest task, ms.
    pub task_ms: [i64; 3],
    /// Executor run time, ns.
    pub run_ns: u64,
    /// Executor CPU time of the task threads, ns.
    pub cpu_ns: u64,
    /// Run time without CPU time, ns.
    pub waiting_ns: u64,
    /// Part of `waiting_ns`: blocked on shuffle fetches, ns.
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

/// Task attempts as columns, because there are many.
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

/// A flame graph: frames in pre-order, widest sibling first, with the cost of the stacks that end in each.
#[derive(Debug, Clone, Default, PartialEq, Serialize, TS)]
pub struct Flame {
    /// 0 for roots.
    pub depth: Vec<u32>,
    /// What `of` refers to, see [`FlameKind`].
    pub kind: Vec<u8>,
    /// Index into stages, headings or nodes of the query, or into [`FrameNames`].
    pub of: Vec<u32>,
    /// CPU time of stacks that end here, ns.
    pub cpu_ns: Vec<u64>,
    /// Samples of stacks that end here.
    pub samples: Vec<u64>,
}

/// What a frame of a flame graph stands for.
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
    /// Methods and functions; generated code with lines.
    pub names: Vec<String>,
    /// Index into `kinds`: `java`, `generated`, `native`, `kernel` …
    pub kind: Vec<u8>,
    /// The kinds.
    pub kinds: Vec<String>,
}

/// A generated source with samples of one query.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct HotSource {
    /// Its hash; another block has the text.
    pub hash: String,
    /// Cost of stacks that end in it or in code outside generated code that it called.
    pub cost: Cost,
    /// Lines with samples: number, CPU time in ns, samples.
    pub lines: Vec<(u32, u64, u64)>,
    /// Index of the plan node, by region id.
    pub nodes: Vec<usize>,
}

/// The text of a generated source.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct Source {
    /// The generated class.
    pub class: String,
    /// The text as it was compiled.
    pub text: String,
    /// Ranges of lines with the same innermost region: first line, last line, region id, whether it produces.
    pub regions: Vec<(u32, u32, i32, bool)>,
}
