//! Candidate explanations: the paths from a culprit to a victim (section 4.2).

use std::sync::Arc;

use serde::Serialize;

use crate::operators::Operators;
use crate::{Blame, Culprit, HostId, Kind, QueryId, Resource, StageId, Workload};

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
    /// P, 0 to 1: the product of IF along the path through the graph. What the victim lost by the path is P of all that it
    /// lost, as the factors are parts of what a vertex received. Over all paths to a victim they sum to 1.
    pub weight: f64,
    /// The blocked seconds of the path.
    pub seconds: f64,
}

/// The `k` strongest of some explanations, strongest first.
pub fn strongest(explanations: &[Explanation], k: usize) -> Vec<Explanation> {
    let mut order: Vec<usize> = (0..explanations.len()).collect();
    let stronger = |a: &usize, b: &usize| {
        let weight = |at: &usize| explanations[*at].weight;
        weight(b).total_cmp(&weight(a)).then(a.cmp(b))
    };
    if k < order.len() {
        order.select_nth_unstable_by(k, stronger);
        order.truncate(k);
    }
    order.sort_unstable_by(stronger);
    let of_order = order.into_iter();
    of_order.map(|at| explanations[at].clone()).collect()
}

/// Makes the explanations of what was attributed.
pub struct Explainer<'a> {
    blame: &'a Blame,
    operators: Operators<'a>,
}

impl<'a> Explainer<'a> {
    /// For some victims of a workload.
    pub fn new(workload: &'a Workload, blame: &'a Blame) -> Self {
        Self {
            blame,
            operators: Operators::new(workload),
        }
    }

    /// Replaces `paths` by the paths from culprits to a victim, by stage, kind of wait, host and source; see [`strongest`].
    pub fn explain(&mut self, victim: QueryId, paths: &mut Vec<Explanation>) {
        let rows = self.blame.of(victim);
        let sources = || rows.iter().flat_map(|(_, sources)| sources);
        let all: f64 = sources().map(|(_, seconds)| seconds).sum();
        paths.clear();
        paths.reserve(sources().count());
        for ((stage, kind, host), sources) in rows {
            for (source, seconds) in sources {
                for (operator, share) in self.operators.of(*source, kind.resource()) {
                    let seconds = seconds * share;
                    paths.push(Explanation {
                        victim: stage.query,
                        stage: *stage,
                        resource: kind.resource(),
                        kind: *kind,
                        host: *host,
                        culprit_stage: source.stage(),
                        operator: operator.clone(),
                        culprit: source.culprit(),
                        weight: if all > 0.0 { seconds / all } else { 0.0 },
                        seconds,
                    });
                }
            }
        }
    }
}
