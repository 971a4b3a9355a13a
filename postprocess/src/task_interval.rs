//! What tasks did in each interval, according to samples.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use unfuse_format::{
    Bounds, Columns, FormatError, Frame, ProfileDir, SampleKind, SampleRow, StackId, StageAttempt,
};

use crate::profile::{Profile, TextTable};
use crate::wait_reason::{StackWait, WaitReason};

/// All samples of a task with the same stack in one interval (a few seconds at most).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskInterval {
    /// Spark application id.
    pub app: Arc<str>,
    /// Host name.
    pub host: Arc<str>,
    /// Executor id.
    pub executor: Arc<str>,
    /// Stage id.
    pub stage: i32,
    /// Attempt number of the stage.
    pub attempt: i32,
    /// Task attempt id.
    pub task: i64,
    /// The stack.
    pub stack: StackId,
    /// Number of samples, or of waits.
    pub samples: u64,
    /// The beginning, ns since the epoch.
    pub start_ns: i64,
    /// The end, ns since the epoch.
    pub end_ns: i64,
    /// CPU time, or time that was waited, ns.
    pub ns: u64,
    /// The reason of a wait; `None` where the task ran.
    pub waiting: Option<WaitReason>,
    /// Whether another thread read a file for the task meanwhile.
    pub by_another_thread: bool,
    /// Whether the task did it to get memory from Spark: it evicted blocks or spilled data.
    pub for_memory: bool,
    /// Whether a Python process did it.
    pub in_python: bool,
}

impl TaskInterval {
    /// The stage attempt of the task.
    pub fn stage_attempt(&self) -> StageAttempt {
        StageAttempt::new(&*self.app, self.stage, self.attempt)
    }
}

/// What each stack says about its task, computed once for each stack.
#[derive(Debug, Default)]
pub struct StackMeanings(Mutex<HashMap<StackId, StackMeaning>>);

/// What a stack says about its task.
#[derive(Debug, Clone, Copy)]
struct StackMeaning {
    /// The wait, if it waits.
    wait: StackWait,
    for_memory: bool,
}

impl StackMeanings {
    fn get(&self, profile: &Profile, stack: StackId) -> StackMeaning {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&stack) {
            return *known;
        }
        let frames = profile.stacks.get(&stack).map_or(&[][..], Vec::as_slice);
        let meaning = StackMeaning {
            wait: profile.stack_wait(stack),
            for_memory: frames.iter().any(|frame| is_for_memory(frame)),
        };
        lock().insert(stack, meaning);
        meaning
    }
}

/// The columns that intervals are made of.
const COLUMNS: &[&str] = &[
    "app",
    "host",
    "executor",
    "thread",
    "stage",
    "stage_attempt",
    "task",
    "start_ns",
    "end_ns",
    "kind",
    "stack",
    "count",
    "weight_ns",
];

impl Profile {
    /// The intervals of tasks whose samples are within bounds. They are many and few questions need them, so they are read
    /// when asked for. What `needs` makes says for each segment which rows are needed, by application, stage and attempt, one
    /// after the other. Where `is_metered` says that a task of an application reported its CPU time, its running in the JVM is left
    /// out, other than for memory.
    ///
    /// # Errors
    /// The profile's samples cannot be read.
    pub fn task_intervals<N: FnMut(&str, i32, i32) -> bool>(
        &self,
        bounds: &Bounds,
        meanings: &StackMeanings,
        needs: &(impl Fn() -> N + Sync),
        is_metered: &(dyn Fn(&str, i64) -> bool + Sync),
    ) -> Result<Vec<TaskInterval>, FormatError> {
        let dir = ProfileDir::open(self.path())?;
        let read = dir.map_columns::<SampleRow, _>(COLUMNS, bounds, |parts| {
            let mut segment = Segment {
                profile: self,
                meanings,
                needs: needs(),
                is_metered,
                known: HashMap::new(),
                texts: TextTable::default(),
                intervals: Vec::new(),
            };
            parts.iter().try_for_each(|rows| segment.add(rows))?;
            Ok(segment.intervals)
        })?;
        Ok(read.rows)
    }
}

/// The intervals of a segment.
struct Segment<'a, N> {
    profile: &'a Profile,
    meanings: &'a StackMeanings,
    needs: N,
    is_metered: &'a (dyn Fn(&str, i64) -> bool + Sync),
    known: HashMap<StackId, StackMeaning>,
    texts: TextTable,
    intervals: Vec<TaskInterval>,
}

impl<N: FnMut(&str, i32, i32) -> bool> Segment<'_, N> {
    fn add(&mut self, rows: &Columns) -> Result<(), String> {
        let text_columns = [
            rows.texts("app")?,
            rows.texts("host")?,
            rows.texts("executor")?,
        ];
        let (threads, kinds) = (rows.texts("thread")?, rows.texts("kind")?);
        let (stages, attempts) = (rows.i32s("stage")?, rows.i32s("stage_attempt")?);
        let (tasks, stacks) = (rows.i64s("task")?, rows.i64s("stack")?);
        let (starts, ends) = (rows.i64s("start_ns")?, rows.i64s("end_ns")?);
        let (counts, weights) = (rows.u64s("count")?, rows.u64s("weight_ns")?);
        let mut texts: Option<[Arc<str>; 3]> = None;
        let mut metered: Option<(i64, bool)> = None;
        let (mut waits, mut in_python) = (false, false);
        for row in 0..rows.rows() {
            if !text_columns.iter().all(|column| column.repeats(row)) {
                (texts, metered) = (None, None);
            }
            if !kinds.repeats(row) {
                waits = SampleKind::from(kinds.get(row)) == SampleKind::OffCpu;
            }
            if !threads.repeats(row) {
                in_python = threads.get(row) == PYTHON_THREAD;
            }
            let (Some(stage), Some(attempt), Some(task)) =
                (stages.get(row), attempts.get(row), tasks.get(row))
            else {
                continue;
            };
            if !(self.needs)(text_columns[0].get(row), stage, attempt) {
                continue;
            }
            let [app, host, executor] = texts
                .get_or_insert_with(|| text_columns.map(|column| self.texts.get(column.get(row))));
            let (profile, meanings, stack) =
                (self.profile, self.meanings, StackId(stacks.or_zero(row)));
            let known = self.known.entry(stack);
            let meaning = *known.or_insert_with(|| meanings.get(profile, stack));
            if !waits && !in_python && !meaning.for_memory {
                let (_, is_metered) = match metered.filter(|(known, _)| *known == task) {
                    Some(known) => known,
                    None => *metered.insert((task, (self.is_metered)(app, task))),
                };
                if is_metered {
                    continue;
                }
            }
            self.intervals.push(TaskInterval {
                app: Arc::clone(app),
                host: Arc::clone(host),
                executor: Arc::clone(executor),
                stage,
                attempt,
                task,
                stack,
                samples: counts.or_zero(row),
                start_ns: starts.or_zero(row),
                end_ns: ends.or_zero(row),
                ns: weights.or_zero(row),
                waiting: waits.then(|| profile.reason(app, meaning.wait)),
                by_another_thread: waits && meaning.wait.by_another_thread,
                for_memory: meaning.for_memory,
                in_python,
            });
        }
        Ok(())
    }
}

/// The writer's name for the thread of Python processes.
pub const PYTHON_THREAD: &str = "Python worker";

/// Methods that a task runs only because memory is scarce.
fn is_for_memory(frame: &Frame) -> bool {
    let named = |class: &str, methods: &[&str]| {
        frame.class.starts_with(class) && methods.contains(&frame.method.as_str())
    };
    named(
        "org.apache.spark.memory.TaskMemoryManager",
        &["acquireExecutionMemory"],
    ) || named(
        "org.apache.spark.memory.UnifiedMemoryManager",
        &["acquireExecutionMemory", "acquireStorageMemory"],
    ) || named(
        "org.apache.spark.storage.memory.MemoryStore",
        &["evictBlocksToFreeSpace"],
    )
}
