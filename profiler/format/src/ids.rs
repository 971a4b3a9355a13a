//! What rows refer to: applications, executions, stage attempts.

use serde::{Deserialize, Serialize};

use crate::{ExecutionRow, IntervalRow, StageRow, TaskRow};

/// A SQL execution of an application.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExecutionId {
    /// Spark application id.
    pub app: String,
    /// SQL execution id.
    pub execution: i64,
}

impl ExecutionId {
    /// The execution of an application.
    pub fn new(app: impl Into<String>, execution: i64) -> Self {
        Self {
            app: app.into(),
            execution,
        }
    }
}

/// An attempt at a stage of an application. They are ordered by application, stage and attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StageAttempt {
    /// Spark application id.
    pub app: String,
    /// Stage id.
    pub stage: i32,
    /// Attempt number, from 0.
    pub attempt: i32,
}

impl StageAttempt {
    /// The attempt at a stage of an application.
    pub fn new(app: impl Into<String>, stage: i32, attempt: i32) -> Self {
        Self {
            app: app.into(),
            stage,
            attempt,
        }
    }

    /// Whether it is an attempt at this stage.
    pub fn is_of(&self, app: &str, stage: i32) -> bool {
        self.app == app && self.stage == stage
    }
}

/// A distinct callchain: the hash of its frames.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct StackId(pub i64);

/// A task attempt as one number, unique in a profile. Spark's numbers are unique in an application.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct TaskKey(pub i64);

impl TaskKey {
    /// The key of an application's task attempt: the FNV-1a hash of both.
    pub fn new(app: &str, task: i64) -> Self {
        let bytes = app.bytes().chain(task.to_le_bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        Self(hash.cast_signed())
    }
}

impl ExecutionRow {
    /// The execution.
    pub fn id(&self) -> ExecutionId {
        ExecutionId::new(&self.app, self.execution)
    }
}

impl StageRow {
    /// The stage attempt.
    pub fn id(&self) -> StageAttempt {
        StageAttempt::new(&self.app, self.stage, self.attempt)
    }
}

impl IntervalRow {
    /// The stage attempt that the task belongs to.
    pub fn stage_attempt(&self) -> StageAttempt {
        StageAttempt::new(&self.app, self.stage, self.attempt)
    }
}

impl TaskRow {
    /// The stage attempt that the task belongs to.
    pub fn stage_attempt(&self) -> StageAttempt {
        StageAttempt::new(&self.app, self.stage, self.attempt)
    }
}
