//! The choices of `unfuse blame`, and what they are to the libraries.

use clap::ValueEnum;
use unfuse_contention::{BlockedTime, Resource, Split, VictimStages};
use unfuse_report::blame;

/// What tasks wait for.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum What {
    Cpu,
    Memory,
    Io,
    Network,
    Slots,
}

impl From<What> for Resource {
    fn from(what: What) -> Self {
        match what {
            What::Cpu => Self::Cpu,
            What::Memory => Self::Memory,
            What::Io => Self::Io,
            What::Network => Self::Network,
            What::Slots => Self::Slots,
        }
    }
}

/// What to rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Rank {
    /// Queries and processes
    Culprit,
    /// Their stages
    Stage,
    /// Their operators, as far as CPU time goes
    Operator,
    /// CPU, memory, IO, network, slots
    Resource,
    /// Ways of waiting
    Kind,
    /// Hosts
    Host,
}

impl From<Rank> for blame::Rank {
    fn from(rank: Rank) -> Self {
        match rank {
            Rank::Culprit => Self::Culprit,
            Rank::Stage => Self::Stage,
            Rank::Operator => Self::Operator,
            Rank::Resource => Self::Resource,
            Rank::Kind => Self::Kind,
            Rank::Host => Self::Host,
        }
    }
}

/// Which of a victim's stages count.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Stages {
    /// Those on the critical path
    Critical,
    /// All
    All,
}

impl From<Stages> for VictimStages {
    fn from(value: Stages) -> Self {
        match value {
            Stages::Critical => Self::CriticalPath,
            Stages::All => Self::All,
        }
    }
}

/// How a stage's blocked time is shared out.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Sharing {
    Pooled,
    Window,
}

impl From<Sharing> for Split {
    fn from(value: Sharing) -> Self {
        match value {
            Sharing::Pooled => Self::Pooled,
            Sharing::Window => Self::ByWindow,
        }
    }
}

/// Where blocked times come from.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Blocked {
    Measured,
    Paper,
}

impl From<Blocked> for BlockedTime {
    fn from(value: Blocked) -> Self {
        match value {
            Blocked::Measured => Self::Measured,
            Blocked::Paper => Self::Paper,
        }
    }
}

/// How the graph is written.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum GraphFormat {
    /// Nodes and edges, JSON
    Json,
    /// For Gephi, yEd, NetworkX
    Graphml,
    /// For Neo4j
    Cypher,
}
