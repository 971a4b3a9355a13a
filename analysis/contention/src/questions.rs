//! Answers the questions of appendix E from explanations.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Culprit, Explanation, HostId, Kind, QueryId, Resource, Source, StageId, Workload};

/// Selects explanations; a field that is `None` matches all.
///
/// It has no time window: a graph is built for one, see [`Options::within`](crate::Options::within).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// The victim query.
    pub victim: Option<QueryId>,
    /// The victim stage.
    pub stage: Option<StageId>,
    /// The resource that was waited for.
    pub resource: Option<Resource>,
    /// The kind of wait.
    pub kind: Option<Kind>,
    /// The host of the wait.
    pub host: Option<HostId>,
    /// The culprit.
    pub culprit: Option<Culprit>,
    /// The culprit query's user.
    pub user: Option<String>,
    /// The culprit query's pool.
    pub pool: Option<String>,
    /// Only culprits other than the victim query itself.
    pub others_only: bool,
}

impl Filter {
    /// Whether an explanation matches.
    pub fn accepts(&self, workload: &Workload, explanation: &Explanation) -> bool {
        let query = || match explanation.culprit {
            Culprit::Query(id) => workload.query(id),
            _ => None,
        };
        same(&self.victim, &explanation.victim)
            && same(&self.stage, &explanation.stage)
            && same(&self.resource, &explanation.resource)
            && same(&self.kind, &explanation.kind)
            && same(&self.host, &explanation.host)
            && same(&self.culprit, &explanation.culprit)
            && self
                .user
                .as_ref()
                .is_none_or(|user| query().is_some_and(|query| query.user == *user))
            && self
                .pool
                .as_ref()
                .is_none_or(|pool| query().is_some_and(|query| query.pool == *pool))
            && !(self.others_only && explanation.culprit == Culprit::Query(explanation.victim))
    }
}

fn same<T: PartialEq>(asked: &Option<T>, given: &T) -> bool {
    asked.as_ref().is_none_or(|asked| asked == given)
}

/// What to rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Resources (level 2).
    Resource,
    /// Kinds of waits.
    Kind,
    /// Hosts (level 3).
    Host,
    /// Culprit stages (level 5); each process is one entity.
    CulpritStage,
    /// Culprit queries and processes (level 6).
    Culprit,
}

/// The entity of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Entity {
    /// A resource.
    Resource(Resource),
    /// A kind of wait.
    Kind(Kind),
    /// A host.
    Host(HostId),
    /// A culprit stage or process.
    Source(Source),
    /// A culprit query or process.
    Culprit(Culprit),
}

impl Entity {
    /// The entity of an explanation.
    pub fn from_explanation(explanation: &Explanation, by: By) -> Self {
        match by {
            By::Resource => Self::Resource(explanation.resource),
            By::Kind => Self::Kind(explanation.kind),
            By::Host => Self::Host(explanation.host),
            By::Culprit => Self::Culprit(explanation.culprit),
            By::CulpritStage => {
                Self::Source(match (explanation.culprit_stage, explanation.culprit) {
                    (Some(stage), _) => Source::Stage(stage),
                    (None, Culprit::Known(process)) => Source::Known(process),
                    (None, _) => Source::Unknown,
                })
            }
        }
    }
}

/// One line of a ranking.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RankingRow {
    /// The entity.
    pub entity: Entity,
    /// DOR, summed over the victims that the filter accepts: 0 to 1 for each.
    pub responsibility: f64,
    /// Blocked seconds.
    pub seconds: f64,
}

/// The `k` entities with the highest DOR among explanations that the filter accepts, highest first.
pub fn top(
    workload: &Workload,
    explanations: &[Explanation],
    filter: &Filter,
    by: By,
    k: usize,
) -> Vec<RankingRow> {
    let mut sums: BTreeMap<Entity, (f64, f64)> = BTreeMap::new();
    for explanation in explanations
        .iter()
        .filter(|explanation| filter.accepts(workload, explanation))
    {
        let (responsibility, seconds) = sums
            .entry(Entity::from_explanation(explanation, by))
            .or_default();
        *responsibility += explanation.weight;
        *seconds += explanation.seconds;
    }
    let ranked = |(entity, (responsibility, seconds))| RankingRow {
        entity,
        responsibility,
        seconds,
    };
    let mut ranked: Vec<RankingRow> = sums.into_iter().map(ranked).collect();
    ranked.sort_by(|a, b| b.responsibility.total_cmp(&a.responsibility));
    ranked.truncate(k);
    ranked
}

/// Hosts by their impact on all victims.
pub fn slow_nodes(workload: &Workload, explanations: &[Explanation]) -> Vec<RankingRow> {
    top(
        workload,
        explanations,
        &Filter::default(),
        By::Host,
        usize::MAX,
    )
}

/// Resources by their impact on all victims.
pub fn hot_resources(workload: &Workload, explanations: &[Explanation]) -> Vec<RankingRow> {
    top(
        workload,
        explanations,
        &Filter::default(),
        By::Resource,
        usize::MAX,
    )
}

/// Queries and processes by their impact on all victims other than themselves.
///
/// This includes processes outside queries: if they are first, concurrency did not make queries slow.
pub fn culprits(workload: &Workload, explanations: &[Explanation]) -> Vec<RankingRow> {
    let others = Filter {
        others_only: true,
        ..Filter::default()
    };
    top(workload, explanations, &others, By::Culprit, usize::MAX)
}
