//! What tasks did, interval by interval, as samples show it.

use std::collections::HashMap;
use std::sync::Arc;

use unfuse_format::{Bounds, FormatError, Frame, ProfileDir, SampleKind, SampleRow, StageAttempt};

use crate::profile::{Profile, TextTable};
use crate::wait_reason::WaitReason;

/// What a task did in one interval of time (a few seconds at most): all its samples there with the same stack.
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
    /// The beginning, ns since the epoch.
    pub start_ns: i64,
    /// The end, ns since the epoch.
    pub end_ns: i64,
    /// CPU time, or time that was waited, ns.
    pub ns: u64,
    /// What was waited for; none where the task ran.
    pub waiting: Option<WaitReason>,
    /// Whether it was done to get memory from Spark: others' blocks were evicted, or data spilled.
    pub for_memory: bool,
    /// Whether a Python process did it.
    pub in_python: bool,
}

impl TaskInterval {
    /// The attempt of a stage whose task it was.
    pub fn stage_attempt(&self) -> StageAttempt {
        StageAttempt::new(&*self.app, self.stage, self.attempt)
    }
}

impl Profile {
    /// The intervals of tasks whose samples are within bounds. They are many and few questions need them, so they are read
    /// when asked for.
    ///
    /// # Errors
    /// The profile's samples cannot be read.
    pub fn task_intervals(&self, bounds: &Bounds) -> Result<Vec<TaskInterval>, FormatError> {
        let dir = ProfileDir::open(self.path())?;
        let read = dir.read_as::<SampleRow, _>(bounds, |rows| self.intervals_of(rows))?;
        Ok(read.rows)
    }

    /// Those of the rows of a segment.
    fn intervals_of(&self, rows: Vec<SampleRow>) -> Vec<TaskInterval> {
        let mut known: HashMap<i64, (WaitReason, bool)> = HashMap::new();
        let mut texts = TextTable::default();
        let interval = |row: SampleRow| {
            let (waiting, for_memory) = *known.entry(row.stack).or_insert_with(|| {
                let frames = self.stacks.get(&row.stack).map_or(&[][..], Vec::as_slice);
                (
                    WaitReason::of_stack(frames),
                    frames.iter().any(|frame| is_for_memory(frame)),
                )
            });
            Some(TaskInterval {
                stage: row.stage?,
                attempt: row.stage_attempt?,
                task: row.task?,
                waiting: (row.kind == SampleKind::OffCpu).then_some(waiting),
                for_memory,
                in_python: row.thread == PYTHON,
                app: texts.get(&row.app),
                host: texts.get(&row.host),
                executor: texts.get(&row.executor),
                start_ns: row.start_ns,
                end_ns: row.end_ns,
                ns: row.weight_ns,
            })
        };
        rows.into_iter().filter_map(interval).collect()
    }
}

/// What the writer calls the thread of Python processes.
const PYTHON: &str = "Python worker";

/// Methods under which a task works or waits for no other reason than that memory is scarce.
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
