//! What is said of a stage.

use serde::Serialize;
use ts_rs::TS;

use super::stats::median;
use crate::{Stage, Task};

/// What counts as skew. These are choices of what is worth a person's time, not figures fitted to some runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// How often chance alone may make a task of a stage look slow, 0 to 1.
    pub chance: f64,
    /// The share of a stage's time that must be to be saved, 0 to 1.
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

/// Why a task takes longer than its like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// It has more data, in proportion.
    Data,
    /// As much data takes it longer, and nothing else that is known explains it.
    Computation,
    /// As [`Computation`](Self::Computation), but Spark counted no data of the stage, so it may be that too.
    DataOrComputation,
    /// Its JVM collected garbage.
    GarbageCollection,
    /// It waited for blocks of a shuffle.
    FetchWait,
    /// It wrote for a shuffle more slowly.
    ShuffleWrite,
    /// It spilled to disk.
    Spill,
    /// It is among the first tasks of its stage on its executor, and these are slower: they warm up. Code is loaded and compiled,
    /// broadcasts are fetched, Python workers started.
    WarmUp,
    /// All tasks of its host are slower; where a host has one executor, that may be it.
    Host,
    /// All tasks of its executor are slower, though not all of the host.
    Executor,
    /// Its data was on another machine, and all such tasks are slower.
    Locality,
    /// It took longer until it ran, or until its result was there: scheduling, deserialization, fetching a large result.
    Start,
}

impl Cause {
    /// In words.
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

/// What a stage's tasks are found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "kebab-case")]
#[ts(rename = "TaskVerdict")]
pub enum Verdict {
    /// Alike, as far as it matters.
    Even,
    /// Some are slow, for this reason above all.
    Skewed(Cause),
    /// Too few to say.
    TooFew,
}

/// What is counted of a task's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
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
    /// All, the first preferred where they explain as much.
    pub(super) const ALL: [Self; 4] = [
        Self::ReadRecords,
        Self::ReadBytes,
        Self::WrittenRecords,
        Self::WrittenBytes,
    ];

    /// In words.
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, TS)]
#[ts(rename = "CausePart")]
pub struct Part {
    /// The cause.
    pub cause: Cause,
    /// Of a task: how much longer it took for it; of a stage: how much sooner it ended without it; ms.
    pub ms: f64,
}

/// A task that is slow beyond chance.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct SlowTask {
    /// Which of the stage's tasks: the partition where that is known.
    pub index: i32,
    /// Its attempt's id in the application.
    pub task: i64,
    /// The executor.
    pub executor: String,
    /// The host.
    pub host: String,
    /// What it took, ms.
    pub duration_ms: f64,
    /// What it took beyond a typical task of the stage, ms.
    pub slower_ms: f64,
    /// How much more CPU time than a typical task its thread used, ms; Python workers are not in it.
    pub slower_cpu_ms: f64,
    /// How much it has of what the stage's data is measured by, and a typical task of it.
    pub amount: Option<(f64, f64)>,
    /// Bytes it spilled to disk.
    pub spilled_bytes: u64,
    /// How sure the first of the parts is, 0 to 1.
    pub sure: f64,
    /// Why, most first. They can exceed what it is slower by, where other things made it faster.
    pub parts: Vec<Part>,
}

/// A task that runs still, and has for longer than chance makes one of its stage take. What it took in the end can only be more.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct Hanging {
    /// Which of the stage's tasks: the partition where that is known.
    pub index: i32,
    /// The executor.
    pub executor: String,
    /// The host.
    pub host: String,
    /// For how long it has run, ms.
    pub running_ms: f64,
    /// How many times as long as the typical task that ended.
    pub times_typical: f64,
}

/// What is found of a stage.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct Finding {
    /// The application's id.
    pub app: String,
    /// The stage's number.
    pub stage: i32,
    /// Spark's name for it.
    pub name: String,
    /// The SQL execution it is of.
    pub sql: Option<i64>,
    /// What its job or SQL execution is called.
    pub description: String,
    /// What it is.
    pub verdict: Verdict,
    /// How sure that is, 0 to 1; of skew only.
    pub sure: f64,
    /// Tasks that count: each once, in the attempt that counted.
    pub counted: usize,
    /// Task attempts that do not count: failed, killed, superseded.
    pub uncounted: usize,
    /// Tasks that run still.
    pub running: usize,
    /// How long the longest of these has run, ms.
    pub longest_running_ms: f64,
    /// Those of them that it waits for, the longest first.
    pub hanging: Vec<Hanging>,
    /// The median of the tasks' times, ms.
    pub typical_ms: f64,
    /// The longest, ms.
    pub slowest_ms: f64,
    /// The most tasks that ran at once.
    pub slots: usize,
    /// How long the counted tasks take on so many slots, ms.
    pub stage_ms: f64,
    /// How much less, if slow tasks were as fast as typical ones, ms.
    pub saved_ms: f64,
    /// What data is measured by here.
    pub measure: Option<Measure>,
    /// How much less for each cause alone, ms, most first.
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
