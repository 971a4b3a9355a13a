//! Culprits beyond single tasks.

use serde::{Deserialize, Serialize};

use crate::{KnownProcess, QueryId, StageId, TaskId};

/// A source of blame at level 4: a stage, or a process without stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Source {
    /// A stage attempt.
    Stage(StageId),
    /// A known process.
    Known(KnownProcess),
    /// Unknown.
    Unknown,
}

/// A thread that held a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Holder {
    /// Of a task.
    Task(TaskId),
    /// Of a known process.
    Known(KnownProcess),
}

/// A source of blame at level 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Culprit {
    /// A query; the victim itself if its own tasks blocked each other.
    Query(QueryId),
    /// A known process.
    Known(KnownProcess),
    /// Unknown.
    Unknown,
}

impl Source {
    /// The stage that used the resource, or for which garbage was collected.
    pub fn stage(self) -> Option<StageId> {
        match self {
            Source::Stage(stage) | Source::Known(KnownProcess::GcFor(stage)) => Some(stage),
            Source::Known(_) | Source::Unknown => None,
        }
    }

    /// The culprit of the source.
    pub fn culprit(self) -> Culprit {
        match self {
            Source::Stage(stage) | Source::Known(KnownProcess::GcFor(stage)) => {
                Culprit::Query(stage.query)
            }
            Source::Known(process) => Culprit::Known(process),
            Source::Unknown => Culprit::Unknown,
        }
    }
}
