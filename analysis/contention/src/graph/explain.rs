//! Candidate explanations: the paths from a culprit to a victim (section 4.2).

use std::sync::Arc;

use serde::Serialize;

use super::{Edge, Graph, Key};
use crate::{Culprit, HostId, Kind, QueryId, Resource, StageId};

/// Expl(vq, vs, res, res', host, cs, cq, P): one path through the graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// vq: the victim query.
    pub victim: QueryId,
    /// vs: its stage.
    pub stage: StageId,
    /// res: the resource that it waited for.
    pub resource: Resource,
    /// res': the kind of wait.
    pub kind: Kind,
    /// The host.
    pub host: HostId,
    /// cs: the culprit's stage, if it has stages.
    pub culprit_stage: Option<StageId>,
    /// The operator of that stage, if shares by operator are known; or the garbage collection for that stage.
    pub operator: Option<Arc<str>>,
    /// cq: who made it wait.
    pub culprit: Culprit,
    /// P, 0 to 1: the product of IF along the path. Over all paths to a victim they sum to 1.
    pub weight: f64,
    /// The blocked seconds of the path.
    pub seconds: f64,
}

impl Graph {
    /// All paths from culprits to victims, strongest first. Linear in their number, except for sorting.
    pub fn explanations(&self) -> Vec<Explanation> {
        let is_cause = |edge: &&Edge| matches!(self.node(edge.to).key, Key::Cause(..));
        let mut into: Vec<&Edge> = self.edges.iter().filter(is_cause).collect();
        into.sort_by_key(|edge| edge.to);
        let mut into = into.into_iter().peekable();
        let mut explanations = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let Key::Cause(stage, kind, host, source) = node.key else {
                continue;
            };
            let victim = stage.query;
            let responsibility = node.impact[&victim].responsibility;
            // One edge for each operator of the culprit stage, or a single one.
            while let Some(edge) = into.next_if(|edge| edge.to.0 as usize == index) {
                let flow = edge.flow[&victim];
                let operator = match &self.node(edge.from).key {
                    Key::CulpritStage(_, operator) => operator.clone(),
                    _ => None,
                };
                explanations.push(Explanation {
                    victim,
                    stage,
                    resource: kind.resource(),
                    kind,
                    host,
                    culprit_stage: source.stage(),
                    operator,
                    culprit: source.culprit(),
                    // A level-5 vertex has one level-6 vertex, whose edge has factor 1.
                    weight: flow.factor * responsibility,
                    seconds: flow.seconds,
                });
            }
        }
        explanations.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        explanations
    }
}
