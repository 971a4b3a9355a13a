//! What tasks did with their time, span by span.

use std::collections::HashMap;

use unfuse_format::{FormatError, Frame, ProfileDir, SampleKind, SampleRow};

use crate::profile::Profile;
use crate::wait_reason::WaitReason;

/// What a task did in one span of time (a few seconds at most), with all the others of that span that did the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spell {
    /// Spark application id.
    pub app: String,
    /// Host name.
    pub host: String,
    /// Executor id.
    pub executor: String,
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

impl Profile {
    /// The spells of all tasks that were sampled. They are many and few questions need them, so they are read when asked
    /// for.
    pub fn spells(&self) -> Result<Vec<Spell>, FormatError> {
        let mut known: HashMap<i64, (WaitReason, bool)> = HashMap::new();
        let rows = ProfileDir::open(self.path())?.read::<SampleRow>()?.rows;
        let spell = |row: SampleRow| {
            let (waiting, for_memory) = *known.entry(row.stack).or_insert_with(|| {
                let frames = self.stacks.get(&row.stack).map_or(&[][..], Vec::as_slice);
                (
                    WaitReason::of_stack(frames),
                    frames.iter().any(|frame| is_for_memory(frame)),
                )
            });
            Some(Spell {
                stage: row.stage?,
                attempt: row.stage_attempt?,
                task: row.task?,
                waiting: (row.kind == SampleKind::OffCpu).then_some(waiting),
                for_memory,
                in_python: row.thread == PYTHON,
                app: row.app,
                host: row.host,
                executor: row.executor,
                start_ns: row.start_ns,
                end_ns: row.end_ns,
                ns: row.weight_ns,
            })
        };
        Ok(rows.into_iter().filter_map(spell).collect())
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
