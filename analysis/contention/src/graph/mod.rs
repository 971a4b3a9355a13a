//! The seven-level graph of contention (iQC-Graph, section 4.1, appendix C).

mod build;
mod by_victim;
mod export;
mod responsibility;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use by_victim::ByVictim;

use crate::{CapacityBasis, Culprit, Executor, HostId, Kind, QueryId, Resource, Source, StageId};

/// A vertex. Variants are in the order of the levels, 0 to 6.
///
/// In the paper the kind of wait (res' of the explanations) has no level of its own, although it is part of a path.
/// Here it is part of level 3, so level 2 remains the resource, and all sums hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Key {
    /// Level 0: a victim query.
    Victim(QueryId),
    /// Level 1: a victim stage.
    Stage(StageId),
    /// Level 2: a resource that a victim stage waited for.
    Resource(StageId, Resource),
    /// Level 3: host and kind of the wait.
    Host(StageId, Kind, HostId),
    /// Level 4: the cause of the wait.
    Cause(StageId, Kind, HostId, Source),
    /// Level 5: a culprit stage; with operators known, for CPU, one operator of it.
    CulpritStage(StageId, Option<Arc<str>>),
    /// Level 6: a culprit query or process.
    Culprit(Culprit),
}

impl Key {
    /// The level, 0 to 6.
    pub fn level(&self) -> u8 {
        match self {
            Key::Victim(..) => 0,
            Key::Stage(..) => 1,
            Key::Resource(..) => 2,
            Key::Host(..) => 3,
            Key::Cause(..) => 4,
            Key::CulpritStage(..) => 5,
            Key::Culprit(..) => 6,
        }
    }
}

/// The impact of a vertex on one victim query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Impact {
    /// BC: blocked seconds of the victim, summed over its tasks, that the vertex accounts for.
    pub seconds: f64,
    /// DOR, 0 to 1: the part of the victim's whole blocked time.
    pub responsibility: f64,
}

/// A vertex with its impact on every victim: one victim for levels 0 to 4, possibly several for 5 and 6.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Node {
    /// Its key.
    pub key: Key,
    /// Its label for users.
    pub label: Arc<str>,
    /// By victim query.
    pub impact: ByVictim<Impact>,
}

/// An index into [`Graph::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeIndex(pub u32);

/// An edge from cause to effect, always to a lower level: by one, or from 6 to 4 for culprits without stages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Edge {
    /// The cause.
    pub from: NodeIndex,
    /// The effect.
    pub to: NodeIndex,
    /// By victim query.
    pub flow: ByVictim<Flow>,
}

/// The flow of an edge to one victim query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Blocked seconds.
    pub seconds: f64,
    /// IF, 0 to 1: the part of the effect's BC that came along this edge.
    ///
    /// The paper calls IF "the normalized impact received by each child node from its parents" but prints BC(child) ÷
    /// BC(parent), which exceeds 1 if a child has several parents, and for levels 4 to 6 divides by the *parent's*
    /// outgoing total. Neither makes DOR a share: with the latter, two paths of a culprit are weighted by size twice,
    /// and all DORs sum to less than 1. Here every edge is normalised by what the effect received, as the sentence
    /// says: the factors into a vertex sum to 1, and so do the DORs of a level.
    pub factor: f64,
}

/// A capacity that the analysis had to derive from the use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Note {
    /// The host.
    pub host: HostId,
    /// The resource.
    pub resource: Resource,
    /// The reason.
    pub basis: CapacityBasis,
    /// Number of windows.
    pub windows: u64,
    /// The highest rate in these windows, units a second.
    pub highest: f64,
    /// The tasks that contended in the window with this rate.
    #[serde(skip)]
    pub executor: Executor,
}

/// The contention graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Graph {
    /// Vertices by level.
    pub nodes: Vec<Node>,
    /// Edges by the level of their cause.
    pub edges: Vec<Edge>,
    /// Notes on assumptions behind the numbers.
    pub notes: Vec<Note>,
}

impl Graph {
    /// The vertex at an index.
    pub fn node(&self, index: NodeIndex) -> &Node {
        &self.nodes[index.0 as usize]
    }

    /// The vertex with this key, if there is one.
    pub fn find(&self, key: &Key) -> Option<&Node> {
        self.nodes
            .binary_search_by(|node| node.key.cmp(key))
            .ok()
            .map(|index| &self.nodes[index])
    }

    /// The vertices of a level, 0 to 6.
    pub fn level(&self, level: u8) -> impl Iterator<Item = &Node> {
        self.nodes
            .iter()
            .filter(move |node| node.key.level() == level)
    }

    /// The victims, by id.
    pub fn victims(&self) -> impl Iterator<Item = QueryId> {
        self.nodes.iter().map_while(|node| match node.key {
            Key::Victim(query) => Some(query),
            _ => None,
        })
    }
}
