//! Suggestions against contention (footnote 3): heuristics, each with its evidence.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use crate::{
    Culprit, Explanation, HostId, KnownProcess, Query, QueryId, Resource, StageId, Workload,
};

/// When a heuristic applies; parts of a victim's blocked time, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// The least responsibility of a culprit. Default: 0.2.
    pub responsibility: f64,
    /// The least part of a culprit's impact on one host, or by one of its stages, to count as local. Default: 0.7.
    pub concentration: f64,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds {
            responsibility: 0.2,
            concentration: 0.7,
        }
    }
}

/// The evidence for a suggestion.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// The victim.
    pub victim: QueryId,
    /// The part of the victim's blocked time, 0 to 1.
    pub responsibility: f64,
    /// Blocked seconds.
    pub seconds: f64,
    /// The paths, strongest first.
    pub paths: Vec<Explanation>,
}

/// A suggestion. Only its evidence is measured; whether the action helps is not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Suggestion {
    /// The culprit harms the victim on one of several hosts: place one of them elsewhere.
    Move {
        /// The query to move.
        culprit: QueryId,
        /// The host to avoid.
        host: HostId,
        /// The evidence.
        evidence: Evidence,
    },
    /// One stage of the culprit does most of the harm: run it after the victim's stages.
    Delay {
        /// The stage to delay.
        stage: StageId,
        /// The victim stages that it should wait for.
        until: BTreeSet<StageId>,
        /// The evidence.
        evidence: Evidence,
    },
    /// The culprit's pool has at least the weight of the victim's, and harms it all the time: give the victim's more
    /// weight.
    Reprioritise {
        /// The query of the other pool.
        culprit: QueryId,
        /// Weight of its pool now.
        weight: f64,
        /// The evidence.
        evidence: Evidence,
    },
    /// Both contend in the same pool for a resource that the scheduler assigns: give the culprit its own pool.
    ChangePool {
        /// The query to move.
        culprit: QueryId,
        /// Its pool now.
        pool: String,
        /// The evidence.
        evidence: Evidence,
    },
    /// The culprit is a process outside all queries: no scheduling of queries helps.
    LookOutside {
        /// The process.
        process: KnownProcess,
        /// The evidence.
        evidence: Evidence,
    },
}

impl Suggestion {
    /// The evidence.
    pub fn evidence(&self) -> &Evidence {
        match self {
            Suggestion::Move { evidence, .. }
            | Suggestion::Delay { evidence, .. }
            | Suggestion::Reprioritise { evidence, .. }
            | Suggestion::ChangePool { evidence, .. }
            | Suggestion::LookOutside { evidence, .. } => evidence,
        }
    }
}

/// Suggestions for all victims, those with the most evidence first. There are none about unknown culprits or about what
/// a query does to itself.
pub fn suggestions(
    workload: &Workload,
    explanations: &[Explanation],
    thresholds: &Thresholds,
) -> Vec<Suggestion> {
    let by_others = || {
        let by_others = |path: &&Explanation| path.culprit != Culprit::Query(path.victim);
        explanations.iter().filter(by_others)
    };
    let mut weights: HashMap<(QueryId, Culprit), f64, ahash::RandomState> = HashMap::default();
    for path in by_others() {
        *weights.entry((path.victim, path.culprit)).or_default() += path.weight;
    }
    // There can be thousands of culprits, and few of them do enough.
    weights.retain(|_, weight| *weight >= thresholds.responsibility);
    let mut pairs: BTreeMap<(QueryId, Culprit), Vec<&Explanation>> = BTreeMap::new();
    for path in by_others() {
        let pair = (path.victim, path.culprit);
        if weights.contains_key(&pair) {
            pairs.entry(pair).or_default().push(path);
        }
    }
    let mut suggestions = Vec::new();
    for ((victim, culprit), mut paths) in pairs {
        paths.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        let whole = evidence(victim, &paths);
        match culprit {
            Culprit::Known(process) => suggestions.push(Suggestion::LookOutside {
                process,
                evidence: whole,
            }),
            Culprit::Query(query) => {
                suggestions.extend(about(workload, query, whole, thresholds));
            }
            Culprit::Unknown => {}
        }
    }
    suggestions.sort_by(|a, b| {
        b.evidence()
            .responsibility
            .total_cmp(&a.evidence().responsibility)
    });
    suggestions
}

fn about(
    workload: &Workload,
    culprit: QueryId,
    whole: Evidence,
    thresholds: &Thresholds,
) -> Vec<Suggestion> {
    let (Some(row), Some(victim)) = (workload.query(culprit), workload.query(whole.victim)) else {
        return Vec::new();
    };
    let enough = whole.responsibility * thresholds.concentration;
    // Each application has its own scheduler; pools of the same name in two of them are different.
    let one_scheduler = row.application == victim.application;
    let one_pool = pool(row) == pool(victim);
    let mut suggestions = Vec::new();
    if let Some((host, evidence)) =
        largest(&whole, |path| Some(path.host)).filter(|_| workload.is_spread(whole.victim))
        && evidence.responsibility >= enough
    {
        suggestions.push(Suggestion::Move {
            culprit,
            host,
            evidence,
        });
    }
    match largest(&whole, |path| path.culprit_stage) {
        Some((stage, evidence)) if evidence.responsibility >= enough => {
            let until = evidence.paths.iter().map(|path| path.stage).collect();
            suggestions.push(Suggestion::Delay {
                stage,
                until,
                evidence,
            });
        }
        // Weights are those of pools: they do not matter between two queries in one pool.
        _ if one_scheduler && !one_pool && row.weight >= victim.weight => {
            suggestions.push(Suggestion::Reprioritise {
                culprit,
                weight: row.weight,
                evidence: whole.clone(),
            });
        }
        _ => {}
    }
    let scheduled = |path: &&Explanation| matches!(path.resource, Resource::Cpu | Resource::Slots);
    let scheduled = evidence(
        whole.victim,
        &whole.paths.iter().filter(scheduled).collect::<Vec<_>>(),
    );
    if one_scheduler && one_pool && scheduled.responsibility >= thresholds.responsibility {
        suggestions.push(Suggestion::ChangePool {
            culprit,
            pool: row.pool.clone(),
            evidence: scheduled,
        });
    }
    suggestions
}

/// A query without a pool is in the pool `default`.
fn pool(query: &Query) -> &str {
    match query.pool.as_str() {
        "" => "default",
        pool => pool,
    }
}

/// The group of paths with the most responsibility.
fn largest<K: Ord>(
    whole: &Evidence,
    key: impl Fn(&Explanation) -> Option<K>,
) -> Option<(K, Evidence)> {
    let mut groups: BTreeMap<K, Vec<&Explanation>> = BTreeMap::new();
    for path in &whole.paths {
        if let Some(key) = key(path) {
            groups.entry(key).or_default().push(path);
        }
    }
    let groups = groups
        .into_iter()
        .map(|(key, paths)| (key, evidence(whole.victim, &paths)));
    groups.max_by(|(_, a), (_, b)| a.responsibility.total_cmp(&b.responsibility))
}

fn evidence(victim: QueryId, paths: &[&Explanation]) -> Evidence {
    Evidence {
        victim,
        responsibility: paths.iter().map(|path| path.weight).sum(),
        seconds: paths.iter().map(|path| path.seconds).sum(),
        paths: paths.iter().map(|path| (*path).clone()).collect(),
    }
}
