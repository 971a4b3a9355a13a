//! What rows refer to: applications, executions, stage attempts.

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
