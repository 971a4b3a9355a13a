//! Who can be blamed, beyond a single task.

use serde::{Deserialize, Serialize};

use crate::{KnownProcess, QueryId, StageId};

/// A source of blame as fine as level 4 knows it: a stage, or what has no stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Source {
    /// A stage attempt.
    Stage(StageId),
    /// A known process.
    Known(KnownProcess),
    /// Nobody known.
    Unknown,
}

/// A source of blame as level 6 knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Culprit {
    /// A query; the victim itself where its own tasks got in each other's way.
    Query(QueryId),
    /// A known process.
    Known(KnownProcess),
    /// Nobody known.
    Unknown,
}

impl Source {
    /// Whose it is.
    pub fn culprit(self) -> Culprit {
        match self {
            Source::Stage(stage) => Culprit::Query(stage.query),
            Source::Known(process) => Culprit::Known(process),
            Source::Unknown => Culprit::Unknown,
        }
    }
}
