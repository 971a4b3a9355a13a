//! The seven-level graph of who slowed whom down (iQC-Graph, section 4.1, appendix C).

mod build;
mod by_victim;
mod explain;
mod export;
mod responsibility;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use by_victim::ByVictim;
pub use explain::Explanation;

use crate::{CapacityBasis, Culprit, Executor, HostId, Kind, QueryId, Resource, Source, StageId};

/// A vertex. Variants are in the order of the levels, 0 to 6.
///
/// The kind of waiting (res' of the explanations) has no level of its own in the paper although it is part of
/// a path. It is part of level 3 here, so that level 2 stays the resource, and sums hold either way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Key {
    /// Level 0: a victim query.
    Victim(QueryId),
    /// Level 1: a victim stage.
    Stage(StageId),
    /// Level 2: a resource that a victim stage waited for.
    Resource(StageId, Resource),
    /// Level 3: where and how it waited.
    Host(StageId, Kind, HostId),
    /// Level 4: what made it wait there.
    Cause(StageId, Kind, HostId, Source),
    /// Level 5: a culprit stage; with operators known, for CPU, one operator of it.
    CulpritStage(StageId, Option<Arc<str>>),
    /// Level 6: a culprit query or process.
    Culprit(Culprit),
}

impl Key {
    /// 0 to 6.
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

/// What a vertex did to one victim query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Impact {
    /// BC: seconds of the victim's blocked time, summed over its tasks, that the vertex accounts for.
    pub seconds: f64,
    /// DOR, 0 to 1: the part of all the victim's blocked time.
    pub responsibility: f64,
}

/// A vertex with its impact on every victim: one for levels 0 to 4, a map of several for 5 and 6.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Node {
    /// Which it is.
    pub key: Key,
    /// For people.
    pub label: Arc<str>,
    /// By victim query.
    pub impact: ByVictim<Impact>,
}

/// A position in [`Graph::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeIndex(pub u32);

/// An edge from cause to effect, always to a lower level: by one, or from 6 to 4 for what has no stages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Edge {
    /// The cause.
    pub from: NodeIndex,
    /// The effect.
    pub to: NodeIndex,
    /// By victim query.
    pub flow: ByVictim<Flow>,
}

/// What an edge carries toward one victim query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Blocked seconds.
    pub seconds: f64,
    /// IF, 0 to 1: the part of the effect's BC that came along this edge.
    ///
    /// The paper calls IF "the normalized impact received by each child node from its parents" but prints
    /// BC(child) ÷ BC(parent), which is over 1 wherever a child has several parents, and for levels 4 to 6 divides
    /// by the *parent's* outgoing total. Neither makes DOR a share: with the latter, a culprit's own two paths are
    /// weighted twice by size and all DORs together fall short of 1. Here every edge is normalised by what the
    /// effect received, as the sentence says: the factors into a vertex sum to 1, and so do the DORs of a level.
    pub factor: f64,
}

/// A capacity that the analysis had to take from what was used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Note {
    /// The host.
    pub host: HostId,
    /// The resource.
    pub resource: Resource,
    /// Why.
    pub basis: CapacityBasis,
    /// In how many windows.
    pub windows: u64,
    /// The highest rate of them, units a second.
    pub highest: f64,
    /// Whose tasks contended in the window of that rate.
    #[serde(skip)]
    pub executor: Executor,
}

/// Who slowed whom down.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Graph {
    /// Vertices by level.
    pub nodes: Vec<Node>,
    /// Edges by the level of their cause.
    pub edges: Vec<Edge>,
    /// What the numbers rest on besides the tables.
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
            .map(|at| &self.nodes[at])
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
