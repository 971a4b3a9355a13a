//! The choices of `unfuse blame`, and their values in the libraries.

use clap::ValueEnum;
use unfuse_contention::{BlockedTime, Resource, Split, VictimStages};
use unfuse_report::blame::{self, Request, Window};

use super::Blame;

/// What tasks wait for.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum What {
    /// Time on a CPU
    Cpu,
    /// Memory of executors
    Memory,
    /// Reading and writing disks
    Io,
    /// Sending and receiving data
    Network,
    /// Room for tasks
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
    /// Queries, and processes outside Spark
    Culprit,
    /// Their stages
    Stage,
    /// Their operators, by CPU time
    Operator,
    /// CPU, memory, IO, network and slots
    Resource,
    /// Reasons of waits
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
    /// Those on its critical path
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

/// How the blocked time of a stage is divided.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum SplitMode {
    /// By the blame summed over all time windows (equation 10 of the paper)
    Pooled,
    /// In each time window by itself
    Window,
}

impl From<SplitMode> for Split {
    fn from(value: SplitMode) -> Self {
        match value {
            SplitMode::Pooled => Self::Pooled,
            SplitMode::Window => Self::ByWindow,
        }
    }
}

/// Where blocked times come from.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum BlockedSource {
    /// From context switches with their stacks
    Measured,
    /// From Spark's metrics, as in the paper
    Paper,
}

impl From<BlockedSource> for BlockedTime {
    fn from(value: BlockedSource) -> Self {
        match value {
            BlockedSource::Measured => Self::Measured,
            BlockedSource::Paper => Self::Paper,
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

impl Blame {
    /// Builds the request for the library from the options.
    pub(super) fn request(&self, window: Option<Window>) -> Request<'_> {
        Request {
            place: self.dir.display().to_string(),
            victim: self.victim.as_deref(),
            window,
            resources: self.resource.iter().map(|what| (*what).into()).collect(),
            hosts: &self.host,
            user: self.user.as_deref(),
            pool: self.pool.as_deref(),
            stages: self.stages.into(),
            split: self.split.into(),
            weighted: self.weighted,
        }
    }
}
