//! The finding on a stage.

use schemars::JsonSchema;
use serde::Serialize;
use ts_rs::TS;

use super::stats::median;
use crate::{Stage, Task};

/// What counts as skew. These are choices of what is worth a user's time, not values fitted to runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Maximum probability that chance makes a task of a stage look slow, 0 to 1.
    pub chance: f64,
    /// The least share of a stage's time that must be saved, 0 to 1.
    pub worth: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            chance: 0.01,
            worth: 0.05,
        }
    }
}

/// Why a task is slower than the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, TS, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// It has more data, in proportion.
    Data,
    /// It takes longer for the same amount of data, and nothing else that is known explains it.
    Computation,
    /// As [`Computation`](Self::Computation), but Spark counted no data for the stage, so it may also be
    /// [`Data`](Self::Data).
    DataOrComputation,
    /// Its JVM collected garbage.
    GarbageCollection,
    /// It waited for blocks of a shuffle.
    FetchWait,
    /// It was slower at writing for a shuffle.
    ShuffleWrite,
    /// It spilled to disk.
    Spill,
    /// It is among the first tasks of its stage on its executor, and these are slower because they warm up: code is
    /// loaded and compiled, broadcasts are fetched, Python workers are started.
    WarmUp,
    /// All tasks on its host are slower; if the host has one executor, it may be the executor.
    Host,
    /// All tasks on its executor are slower, but not all on the host.
    Executor,
    /// Its data was on another machine, and all such tasks are slower.
    Locality,
    /// The time before it ran or until its result arrived was longer: scheduling, deserialization, fetching a large
    /// result.
    Start,
}

impl Cause {
    /// Its name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data skew",
            Self::Computation => "computation skew",
            Self::DataOrComputation => "data or computation skew",
            Self::GarbageCollection => "garbage collection",
            Self::FetchWait => "shuffle fetch wait",
            Self::ShuffleWrite => "slow shuffle write",
            Self::Spill => "spill",
            Self::WarmUp => "warm-up",
            Self::Host => "slow host",
            Self::Executor => "slow executor",
            Self::Locality => "remote data",
            Self::Start => "slow start",
        }
    }
}

/// The verdict on a stage's tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[ts(rename = "TaskVerdict")]
pub enum Verdict {
    /// They are alike, as far as it matters.
    Even,
    /// Some are slow, mainly for this reason.
    Skewed(Cause),
    /// There are too few to judge.
    TooFew,
}

/// A measure of a task's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Records from sources, cache and shuffles.
    ReadRecords,
    /// Bytes from sources, cache and shuffles.
    ReadBytes,
    /// Records to sinks and shuffles.
    WrittenRecords,
    /// Bytes to sinks and shuffles.
    WrittenBytes,
}

impl Measure {
    /// All measures; of equally good ones the first is preferred.
    pub(super) const ALL: [Self; 4] = [
        Self::ReadRecords,
        Self::ReadBytes,
        Self::WrittenRecords,
        Self::WrittenBytes,
    ];

    /// Its name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadRecords => "records read",
            Self::ReadBytes => "bytes read",
            Self::WrittenRecords => "records written",
            Self::WrittenBytes => "bytes written",
        }
    }

    pub(super) fn value(self, task: &Task) -> f64 {
        let amount = match self {
            Self::ReadRecords => task.read_records,
            Self::ReadBytes => task.read_bytes,
            Self::WrittenRecords => task.written_records,
            Self::WrittenBytes => task.written_bytes,
        };
        amount as f64
    }
}

/// Time by cause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, TS, JsonSchema)]
#[ts(rename = "CausePart")]
pub struct Part {
    /// The cause.
    pub cause: Cause,
    /// For a task: how much longer it took because of it; for a stage: how much earlier it would have ended without it;
    /// ms.
    pub ms: f64,
}

/// A task that is slow beyond chance.
#[derive(Clone, Debug, PartialEq, Serialize, TS, JsonSchema)]
pub struct SlowTask {
    /// Number of the task in the stage: the partition, if known.
    pub index: i32,
    /// Its attempt's id in the application.
    pub task: i64,
    /// The executor.
    pub executor: String,
    /// The host.
    pub host: String,
    /// Its duration, ms.
    pub duration_ms: f64,
    /// Its time beyond a typical task's of the stage, ms.
    pub slower_ms: f64,
    /// CPU time of its thread beyond a typical task's, ms; without Python workers.
    pub slower_cpu_ms: f64,
    /// Its amount in the stage's measure of data, and that of a typical task.
    pub amount: Option<(f64, f64)>,
    /// Bytes that it spilled to disk.
    pub spilled_bytes: u64,
    /// Certainty of the first part, 0 to 1.
    pub sure: f64,
    /// Causes, most first. Their sum can exceed `slower_ms` if other effects made it faster.
    pub parts: Vec<Part>,
}

/// A task that still runs, for longer than chance explains. Its final time can only be longer.
#[derive(Clone, Debug, PartialEq, Serialize, TS, JsonSchema)]
pub struct HangingTask {
    /// Number of the task in the stage: the partition, if known.
    pub index: i32,
    /// The executor.
    pub executor: String,
    /// The host.
    pub host: String,
    /// Its running time so far, ms.
    pub running_ms: f64,
    /// Its running time divided by that of a typical ended task.
    pub times_typical: f64,
}

/// The finding on a stage.
#[derive(Clone, Debug, PartialEq, Serialize, TS, JsonSchema)]
pub struct Finding {
    /// The application's id.
    pub app: String,
    /// The stage's number.
    pub stage: i32,
    /// Spark's name for it.
    pub name: String,
    /// Its SQL execution.
    pub sql: Option<i64>,
    /// Description of its job or SQL execution.
    pub description: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Certainty of the verdict, 0 to 1; only for skew.
    pub sure: f64,
    /// Number of tasks that count: each once, in the attempt that counted.
    pub counted: usize,
    /// Number of task attempts that do not count: failed, killed, superseded.
    pub uncounted: usize,
    /// Number of tasks that still run.
    pub running: usize,
    /// Running time of the longest of these, ms.
    pub longest_running_ms: f64,
    /// Those of them that the stage waits for, the longest first.
    pub hanging: Vec<HangingTask>,
    /// The median of the tasks' times, ms.
    pub typical_ms: f64,
    /// The longest of the tasks' times, ms.
    pub slowest_ms: f64,
    /// The maximum number of tasks that ran at once.
    pub slots: usize,
    /// The time of the counted tasks on these slots, ms.
    pub stage_ms: f64,
    /// The time saved if slow tasks were as fast as typical ones, ms.
    pub saved_ms: f64,
    /// The measure of data.
    pub measure: Option<Measure>,
    /// The time saved without each cause alone, ms, most first.
    pub parts: Vec<Part>,
    /// Slow tasks, slowest first.
    pub tasks: Vec<SlowTask>,
}

impl Finding {
    pub(super) fn about(stage: &Stage, tasks: &[&Task]) -> Self {
        let durations = || tasks.iter().map(|task| task.duration_ms());
        let launches = stage.running.iter().map(|task| task.launched_ms);
        let longest = launches.map(|launched_ms| stage.now_ms.saturating_sub(launched_ms));
        Self {
            app: stage.app.to_string(),
            stage: stage.stage,
            name: stage.name.clone(),
            sql: stage.sql,
            description: stage.description.clone(),
            verdict: Verdict::Even,
            sure: 0.0,
            counted: tasks.len(),
            uncounted: stage.attempts.len() - tasks.len(),
            running: stage.running.len(),
            longest_running_ms: longest.max().unwrap_or(0).max(0) as f64,
            hanging: Vec::new(),
            typical_ms: median(durations()),
            slowest_ms: durations().fold(0.0, f64::max),
            slots: 0,
            stage_ms: 0.0,
            saved_ms: 0.0,
            measure: None,
            parts: Vec::new(),
            tasks: Vec::new(),
        }
    }
}
