//! The runs of queries, with what is compared of them.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use unfuse_format::StageAttempt;
use unfuse_postprocess::{Fingerprint, Operator, OperatorKind, WaitReason, Weight, normalised};

use crate::compare::{Row, rows};
use crate::words::name;
use crate::{QuerySummary, Report, query, stages};

/// Runs of one query.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct QueryRuns {
    /// Name of the application.
    pub(super) application: String,
    /// The same if queries of other applications are other ones.
    #[serde(skip)]
    pub(super) application_key: Option<String>,
    pub(super) fingerprint: String,
    /// What to call the query.
    pub(super) name: String,
    /// A hash of its description without what differs between runs; empty without one.
    pub(super) description: String,
    /// By start.
    pub(super) runs: Vec<Run>,
}

/// A run of a query that ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Run {
    /// Id of the application.
    pub(super) app: String,
    /// SQL execution id.
    pub(super) query: i64,
    /// ms since the epoch.
    pub(super) started_ms: Option<i64>,
    /// Why it failed.
    pub(super) error: Option<String>,
    pub(super) wall_ms: i64,
    /// By samples; in a profile without any by Spark's metrics.
    pub(super) cpu_ns: u64,
    pub(super) samples: u64,
    /// Part of its tasks' time in which they waited for a CPU, 0 to 1; none if waits were not recorded.
    #[serde(default)]
    pub(super) cpu_wait: Option<f64>,
    /// Rows that the scans put out; none if one is not known.
    pub(super) rows: Option<i64>,
    pub(super) operators: Vec<OperatorRun>,
}

/// An operator in a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct OperatorRun {
    /// What makes it the same operator in another run.
    pub(super) key: String,
    /// Number in the plan.
    pub(super) id: i32,
    pub(super) name: String,
    /// Own CPU time.
    pub(super) cpu_ns: u64,
    /// The least and the most that this can be: code between the lines of two operators is of either.
    pub(super) possible_ns: [u64; 2],
    pub(super) samples: u64,
    /// Rows that it got or, if none, put out.
    pub(super) rows: Option<i64>,
}

impl QueryRuns {
    /// Runs that did not fail.
    pub(super) fn good(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.error.is_none())
    }

    /// Why the first of its failed runs failed.
    pub(super) fn error(&self) -> Option<&str> {
        self.runs.iter().find_map(|run| run.error.as_deref())
    }
}

/// The queries of a report with their runs, by application if `by_application` is set, and without the first `warm_up` good
/// runs of each in each run of the application. Runs that did not end are left out.
pub(super) fn queries(report: &Report<'_>, by_application: bool, warm_up: usize) -> Vec<QueryRuns> {
    let mut queries: BTreeMap<(Option<String>, String), (QueryRuns, Vec<usize>)> = BTreeMap::new();
    for (at, query) in report.summary.queries.iter().enumerate() {
        let has_ended = query.duration_ms.is_some() || query.error.is_some();
        if query.query.is_none() || !has_ended {
            continue;
        }
        let app = report.summary.applications.get(query.app);
        let application = app.map_or_else(String::new, |app| app.name.clone());
        let application_key = by_application.then(|| application.clone());
        let key = (application_key.clone(), query.fingerprint.clone());
        let new = || QueryRuns {
            application,
            application_key,
            fingerprint: query.fingerprint.clone(),
            name: query.name.clone(),
            description: hash(&normalised(&query.description)),
            runs: Vec::new(),
        };
        queries
            .entry(key)
            .or_insert_with(|| (new(), Vec::new()))
            .1
            .push(at);
    }
    let with_runs = |(mut query, mut at): (QueryRuns, Vec<usize>)| {
        at.sort_by_key(|at| (report.summary.queries[*at].started_ms, *at));
        skip_first(report, &mut at, warm_up);
        query.runs = at.iter().map(|at| run(report, *at)).collect();
        query
    };
    let queries: Vec<_> = queries.into_values().collect();
    queries.into_par_iter().map(with_runs).collect()
}

/// Removes the first runs in each application that did not fail.
fn skip_first(report: &Report<'_>, at: &mut Vec<usize>, warm_up: usize) {
    let mut skipped: BTreeMap<usize, usize> = BTreeMap::new();
    at.retain(|at| {
        let QuerySummary { app, error, .. } = &report.summary.queries[*at];
        let skipped = skipped.entry(*app).or_default();
        let skips = error.is_none() && *skipped < warm_up;
        *skipped += usize::from(skips);
        !skips
    });
}

fn run(report: &Report<'_>, at: usize) -> Run {
    let query = &report.summary.queries[at];
    let app = report.summary.applications.get(query.app);
    let rows = rows(report, &vec![at]);
    let is_scan =
        |row: &&Row| !row.heading && Operator::from_name(&row.name).kind == OperatorKind::Scan;
    // Of the first plan and of the one that adaptive execution made of it, one has the number.
    let scanned = rows.iter().filter(is_scan).filter_map(|row| row.rows);
    let scanned = scanned.fold(0, i64::saturating_add);
    let operators = rows
        .iter()
        .filter(|row| !row.heading && !Operator::from_name(&row.name).passes);
    Run {
        app: app.map_or_else(String::new, |app| app.id.clone()),
        query: query.query.unwrap_or_default(),
        started_ms: query.started_ms,
        error: query.error.clone(),
        wall_ms: query.duration_ms.unwrap_or_default(),
        cpu_ns: match report.profile.groups.is_empty() {
            true => cpu_of_tasks(report, at),
            false => query.cost.cpu_ns,
        },
        samples: query.cost.samples,
        cpu_wait: cpu_wait(report, at),
        rows: (scanned > 0).then_some(scanned),
        operators: operators.map(operator).collect(),
    }
}

/// CPU time of a query's tasks by Spark's metrics, ns.
fn cpu_of_tasks(report: &Report<'_>, at: usize) -> u64 {
    let part = &report.parts[at];
    let attempts = query::attempts(report.profile, part);
    let keys = attempts
        .iter()
        .map(|attempt| StageAttempt::new(&part.app, attempt.0, attempt.1));
    let tasks = keys.filter_map(|key| report.tasks.get(&key)).flatten();
    tasks.map(stages::cpu_ns).fold(0, u64::saturating_add)
}

/// See [`Run::cpu_wait`]. Its tasks use CPU or wait at any time.
fn cpu_wait(report: &Report<'_>, at: usize) -> Option<f64> {
    let (profile, part) = (report.profile, &report.parts[at]);
    if profile.waits.is_empty() {
        return None;
    }
    let (mut all, mut queue) = (report.summary.queries[at].cost.cpu_ns as f64, 0.0);
    for (group, Weight { ns, .. }) in part.waits.iter().map(|at| &profile.waits[*at]) {
        all += *ns as f64;
        if profile.waiting(group) == WaitReason::RunQueue {
            queue += *ns as f64;
        }
    }
    (all > 0.0).then_some(queue / all)
}

/// Instead of a text that can be long.
fn hash(text: &str) -> String {
    match text {
        "" => String::new(),
        text => Fingerprint::new(text, None).to_string(),
    }
}

fn operator(row: &Row) -> OperatorRun {
    OperatorRun {
        key: format!("{}-{}", hash(&row.key.0), row.key.1),
        id: row.id,
        name: name(&row.name),
        cpu_ns: row.ns,
        possible_ns: row.possible_ns,
        samples: row.samples,
        rows: row.rows,
    }
}

/// How the operators of a query differ from those before.
pub(super) struct OtherOperators {
    /// Names of those that are not in the query any more, by key.
    pub(super) gone: BTreeMap<String, String>,
    /// Names of those that were not in the query before, by key.
    pub(super) come: BTreeMap<String, String>,
    /// Those that would be in both, and that are the only ones of their name there: only their texts differ.
    pub(super) changed: Vec<ChangedOperator>,
}

/// An operator with another text.
pub(super) struct ChangedOperator {
    pub(super) name: String,
    /// Its key before.
    pub(super) before: String,
    /// Its key now.
    pub(super) now: String,
}

impl OtherOperators {
    pub(super) fn new(before: &QueryRuns, now: &QueryRuns) -> Self {
        let names = |query: &QueryRuns| -> BTreeMap<String, String> {
            let all = query.good().flat_map(|run| &run.operators);
            all.map(|operator| (operator.key.clone(), operator.name.clone()))
                .collect()
        };
        let (mut gone, mut come) = (names(before), names(now));
        let both: BTreeSet<String> = gone
            .keys()
            .filter(|key| come.contains_key(*key))
            .cloned()
            .collect();
        gone.retain(|key, _| !both.contains(key));
        come.retain(|key, _| !both.contains(key));
        let (old, new) = (only_ones(&gone), only_ones(&come));
        let changed = old.into_iter().filter_map(|(name, before)| {
            let now = new.get(&name)?.clone();
            Some(ChangedOperator { name, before, now })
        });
        let changed: Vec<ChangedOperator> = changed.collect();
        for changed in &changed {
            gone.remove(&changed.before);
            come.remove(&changed.now);
        }
        Self {
            gone,
            come,
            changed,
        }
    }
}

/// The key of each name that only one operator has.
fn only_ones(names: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut keys: BTreeMap<String, Vec<&String>> = BTreeMap::new();
    for (key, name) in names {
        keys.entry(name.clone()).or_default().push(key);
    }
    keys.into_iter()
        .filter(|(_, keys)| keys.len() == 1)
        .map(|(name, keys)| (name, keys[0].clone()))
        .collect()
}
