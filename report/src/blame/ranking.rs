//! Ranks culprits.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use unfuse_contention::{
    By, Culprit, Entity, Explanation, HostId, Kind, QueryId, Source, StageId, Workload,
};

use super::answer::{Row, Sooner};
use super::names::{CulpritKind, label, name_of};
use super::{Question, Rank};

/// Smaller parts are not shown.
const LEAST: f64 = 0.01;
/// Maximum number of kinds of waits, culprits or operators that a row names.
const NAMED: usize = 3;

/// The first rows of a ranking of the paths that match a question.
pub(super) fn ranked(
    workload: &Workload,
    paths: &[Explanation],
    question: &Question<'_>,
    by: Rank,
) -> Vec<Row> {
    let mut ranking = Ranking::new(by, question.victim);
    ranking.add(paths);
    ranking.rows(workload, question.top)
}

/// A ranking of paths while they are added.
pub(super) struct Ranking {
    by: Rank,
    victim: Option<QueryId>,
    sums: HashMap<RankKey, Sum, ahash::RandomState>,
}

/// The key of a ranking.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
enum RankKey {
    Entity(Entity),
    /// An operator of a culprit stage.
    Operator(StageId, Arc<str>),
}

impl RankKey {
    fn kind(&self, victim: Option<QueryId>) -> Option<CulpritKind> {
        let culprit = match self {
            Self::Operator(stage, _) => Culprit::Query(stage.query),
            Self::Entity(Entity::Culprit(culprit)) => *culprit,
            Self::Entity(Entity::Source(source)) => source.culprit(),
            Self::Entity(_) => return None,
        };
        Some(CulpritKind::new(culprit, victim))
    }
}

/// The sums of a row's paths.
#[derive(Default)]
struct Sum {
    responsibility: f64,
    seconds: f64,
    /// Run-queue waits among them.
    queued: f64,
    how: HashMap<How, f64, ahash::RandomState>,
    operators: BTreeMap<Arc<str>, f64>,
}

/// How an entity blocked others, or who blocked others through it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum How {
    Waiting(Kind, HostId),
    Culprit(Culprit),
}

impl Ranking {
    /// An empty ranking of what harmed one victim, or several.
    pub(super) fn new(by: Rank, victim: Option<QueryId>) -> Self {
        Self {
            by,
            victim,
            sums: HashMap::default(),
        }
    }

    /// Adds paths. Ids must have the same meaning in all calls.
    pub(super) fn add(&mut self, paths: &[Explanation]) {
        let has_operators = matches!(self.by, Rank::Culprit | Rank::Stage);
        for path in paths {
            let Some(ranked) = ranked_of(path, self.by) else {
                continue;
            };
            let sum = self.sums.entry(ranked).or_default();
            sum.responsibility += path.weight;
            sum.seconds += path.seconds;
            if path.kind == Kind::RunQueue {
                sum.queued += path.seconds;
            }
            match self.by {
                Rank::Operator => continue,
                Rank::Culprit | Rank::Stage => {
                    let how = How::Waiting(path.kind, path.host);
                    *sum.how.entry(how).or_default() += path.seconds;
                }
                Rank::Resource | Rank::Kind | Rank::Host => {
                    *sum.how.entry(How::Culprit(path.culprit)).or_default() += path.seconds;
                }
            }
            if let Some(operator) = path.operator.as_ref().filter(|_| has_operators) {
                let operator = Arc::clone(operator);
                *sum.operators.entry(operator).or_default() += path.seconds;
            }
        }
    }

    /// Adds what another ranking of the same kind has.
    pub(super) fn merge(&mut self, other: Self) {
        for (ranked, more) in other.sums {
            let sum = self.sums.entry(ranked).or_default();
            sum.responsibility += more.responsibility;
            sum.seconds += more.seconds;
            sum.queued += more.queued;
            for (how, seconds) in more.how {
                *sum.how.entry(how).or_default() += seconds;
            }
            for (operator, seconds) in more.operators {
                *sum.operators.entry(operator).or_default() += seconds;
            }
        }
    }

    /// The `k` rows with the highest responsibility.
    pub(super) fn rows(&self, workload: &Workload, k: usize) -> Vec<Row> {
        let mut sums: Vec<(&RankKey, &Sum)> = self.sums.iter().collect();
        sums.sort_unstable_by(|(first, a), (second, b)| {
            let by_part = b.responsibility.total_cmp(&a.responsibility);
            by_part.then_with(|| first.cmp(second))
        });
        let rows = sums.into_iter().take(k);
        rows.map(|(ranked, sum)| Row {
            kind: ranked.kind(self.victim),
            ..row(workload, ranked, sum)
        })
        .collect()
    }
}

fn ranked_of(path: &Explanation, by: Rank) -> Option<RankKey> {
    let by = match by {
        Rank::Operator => {
            let (stage, operator) = path.culprit_stage.zip(path.operator.as_ref())?;
            return Some(RankKey::Operator(stage, operator.clone()));
        }
        Rank::Culprit => By::Culprit,
        Rank::Stage => By::CulpritStage,
        Rank::Resource => By::Resource,
        Rank::Kind => By::Kind,
        Rank::Host => By::Host,
    };
    Some(RankKey::Entity(Entity::from_explanation(path, by)))
}

fn row(workload: &Workload, ranked: &RankKey, sum: &Sum) -> Row {
    // In order, so that the same rows give the same last digit.
    let how: BTreeMap<How, f64> = sum.how.iter().map(|(how, s)| (*how, *s)).collect();
    let how = how.iter().map(|(how, seconds)| {
        let name = match how {
            How::Waiting(kind, host) => format!("{} on {}", kind.name(), workload.host_name(*host)),
            How::Culprit(culprit) => name_of(workload, *culprit),
        };
        (name, *seconds)
    });
    let operators = sum.operators.iter();
    let operators = operators.map(|(name, seconds)| (name.to_string(), *seconds));
    let has_operators = matches!(
        ranked,
        RankKey::Entity(Entity::Culprit(Culprit::Query(_)) | Entity::Source(Source::Stage(_)))
    );
    Row {
        name: name(workload, ranked),
        kind: None,
        responsibility: sum.responsibility,
        seconds: sum.seconds,
        sooner: Sooner::default(),
        exact: false,
        queued_seconds: sum.queued,
        culprit: match ranked {
            RankKey::Entity(Entity::Culprit(culprit)) => Some(*culprit),
            _ => None,
        },
        how: shares(how)
            .into_iter()
            .map(|(what, share)| format!("{what} {:.0}%", 100.0 * share))
            .collect(),
        operators: match has_operators {
            true => shares(operators),
            false => Vec::new(),
        },
    }
}

/// The largest sums by name, each as a part of all.
fn shares(seconds: impl Iterator<Item = (String, f64)>) -> Vec<(String, f64)> {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for (name, seconds) in seconds {
        *sums.entry(name).or_default() += seconds;
    }
    let whole: f64 = sums.values().sum();
    let mut sums: Vec<(String, f64)> = sums
        .into_iter()
        .map(|(name, seconds)| (name, if whole > 0.0 { seconds / whole } else { 0.0 }))
        .filter(|(_, share)| *share >= LEAST)
        .collect();
    sums.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    sums.truncate(NAMED);
    sums
}

fn name(workload: &Workload, ranked: &RankKey) -> String {
    let of_stage =
        |stage: &StageId| format!("{} of {}", stage.name(), label(workload, stage.query));
    match ranked {
        RankKey::Operator(stage, operator) => format!("{operator} in {}", of_stage(stage)),
        RankKey::Entity(Entity::Resource(resource)) => resource.name().to_owned(),
        RankKey::Entity(Entity::Kind(kind)) => kind.name().to_owned(),
        RankKey::Entity(Entity::Host(host)) => workload.host_name(*host).to_owned(),
        RankKey::Entity(Entity::Culprit(culprit)) => name_of(workload, *culprit),
        RankKey::Entity(Entity::Source(Source::Stage(stage))) => of_stage(stage),
        RankKey::Entity(Entity::Source(source)) => name_of(workload, source.culprit()),
    }
}
