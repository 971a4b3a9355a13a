//! What could be done about contention (footnote 3): heuristics, each with its evidence.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::{
    Culprit, Explanation, HostId, KnownProcess, Query, QueryId, Resource, StageId, Workload,
};

/// When a heuristic speaks up; parts of a victim's blocked time, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// What a culprit must answer for. Default: 0.2.
    pub responsibility: f64,
    /// How much of a culprit's impact must lie on one host, or on one of its stages, to be local. Default: 0.7.
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

/// What a suggestion rests on.
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

/// What could be done. Measured is only the evidence; whether the action helps is not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Suggestion {
    /// The culprit hurts the victim on one host of several: place one of them elsewhere.
    Move {
        /// Who to move.
        culprit: QueryId,
        /// Away from where.
        host: HostId,
        /// Why.
        evidence: Evidence,
    },
    /// One stage of the culprit does most of the harm: run it after the victim's stages.
    Delay {
        /// The stage to delay.
        stage: StageId,
        /// The victim stages to wait for.
        until: BTreeSet<StageId>,
        /// Why.
        evidence: Evidence,
    },
    /// The culprit's pool has at least the weight of the victim's, and it hurts it all along: give the victim's more.
    Reprioritise {
        /// Whose pool has as much.
        culprit: QueryId,
        /// What its pool has now.
        weight: f64,
        /// Why.
        evidence: Evidence,
    },
    /// Both contend for what the scheduler hands out, in the same pool: give the culprit a pool of its own.
    ChangePool {
        /// Who to move.
        culprit: QueryId,
        /// Out of which pool.
        pool: String,
        /// Why.
        evidence: Evidence,
    },
    /// A process outside all queries is to blame: no scheduling of queries helps.
    LookOutside {
        /// Which.
        process: KnownProcess,
        /// Why.
        evidence: Evidence,
    },
}

impl Suggestion {
    /// What it rests on.
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

/// Suggestions for all victims, those with the most evidence first. Nothing is suggested about the unknown or
/// about what a query does to itself.
pub fn suggestions(
    workload: &Workload,
    explanations: &[Explanation],
    thresholds: &Thresholds,
) -> Vec<Suggestion> {
    let mut pairs: BTreeMap<(QueryId, Culprit), Vec<&Explanation>> = BTreeMap::new();
    for explanation in explanations
        .iter()
        .filter(|path| path.culprit != Culprit::Query(path.victim))
    {
        pairs
            .entry((explanation.victim, explanation.culprit))
            .or_default()
            .push(explanation);
    }
    let mut suggestions = Vec::new();
    for ((victim, culprit), paths) in pairs {
        let whole = evidence(victim, &paths);
        if whole.responsibility < thresholds.responsibility {
            continue;
        }
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
    // Each application has a scheduler of its own; what two of them call alike is not one pool.
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
        // Weights are those of pools: they say nothing of two queries in one.
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

/// The pool of who asks for none is that of who asks for `default`.
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
