//! Handles of what the tables describe.

use serde::{Deserialize, Serialize};

/// A query: Spark's SQL execution, or a job without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueryId(pub u64);

/// A machine: what has a capacity. Executors of one machine share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostId(pub u32);

/// A task attempt, unique in the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskId(pub u64);

/// A stage attempt of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StageId {
    /// The query it belongs to.
    pub query: QueryId,
    /// Spark's number of the stage.
    pub stage: u32,
    /// 0 for the first attempt.
    pub attempt: u32,
}

impl StageId {
    /// `stage 3`, or `stage 3.1` for its second attempt.
    pub fn name(self) -> String {
        format!("stage {}", self.number())
    }

    /// `3`, or `3.1` for its second attempt.
    pub fn number(self) -> String {
        match self.attempt {
            0 => self.stage.to_string(),
            attempt => format!("{}.{attempt}", self.stage),
        }
    }
}
