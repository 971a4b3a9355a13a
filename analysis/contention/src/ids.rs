//! Ids of the things that tables describe.

use serde::{Deserialize, Serialize};

use crate::Resource;

/// A query: Spark's SQL execution, or a job without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueryId(pub u64);

/// A machine with capacities. Executors on one machine share them, except memory and slots (see [`Executor`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostId(pub u32);

/// A JVM of an application in which tasks run.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Executor {
    /// The application's number.
    pub application: u32,
    /// The JVM's number in the application.
    pub number: u32,
}

impl Executor {
    /// The key of contention for a resource of a host: tasks contend if their executors have the same key. Spark
    /// manages the memory of each JVM separately, and only tasks of the same application get a slot.
    pub fn contending(self, resource: Resource) -> Executor {
        match resource {
            Resource::Memory => self,
            Resource::Slots => Executor { number: 0, ..self },
            Resource::Cpu | Resource::Io | Resource::Network => Executor::default(),
        }
    }
}

/// A process outside Spark that has a name, or several with the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessId(pub u32);

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
