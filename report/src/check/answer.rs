//! The answer.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use unfuse_format::counted;

use super::change::Change;
use super::compared::Compared;
use super::runs::QueryRuns;
use super::{Baseline, Limit, ProfileRuns, Question};
use crate::ReportError;
use crate::compare::same_queries;
use crate::text::list;
use crate::words::shell;

/// What a comparison found, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The query failed, and did not before.
    Failed,
    /// It is certainly above the limit.
    Regression,
    /// It is above the limit, which may be chance.
    NotShown,
    /// It is above the limit, but not for each row.
    MoreRows,
    /// It is above the limit, but not without the time in which tasks waited for a CPU.
    BusyHost,
    /// It is certainly faster by more than the limit.
    Improved,
    /// Anything else.
    Ok,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Wall time of the query, s.
    Wall,
    /// CPU time of the query, s.
    Cpu,
    /// Own CPU time of an operator, s.
    Operator,
}

/// One measure of a query before and now.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// What it is.
    pub measure: Measure,
    /// The operator with its number in the plan now.
    pub operator: Option<String>,
    /// What was found.
    pub status: Status,
    /// Seconds of a run.
    #[serde(flatten)]
    pub seconds: Change,
    /// ns for each row: those that the operator got or, if none, output; of a query those that its scans output. Null if
    /// they are not known, or if the plan is another one.
    pub ns_per_row: Option<Change>,
    /// Of a wall time, the seconds of a run without the part in which its tasks waited for a CPU. Null for other measures, or if
    /// waits were not recorded on both sides.
    pub without_cpu_wait: Option<Change>,
}

/// A query that both sides have.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Query {
    /// What to call it.
    pub name: String,
    /// Name of the application.
    pub application: String,
    /// Its fingerprint now.
    pub fingerprint: String,
    /// Its fingerprint before; another one if the plan is another one.
    pub fingerprint_before: String,
    /// SQL execution ids of the runs now.
    pub queries: Vec<i64>,
    /// The worst of all.
    pub status: Status,
    /// What differs between the plans; null if they are the same.
    pub plan: Option<String>,
    /// Why it failed; null if it did not, or if it failed before too.
    pub error: Option<String>,
    /// Runs before that did not fail.
    pub runs_before: usize,
    /// Runs now that did not fail.
    pub runs_now: usize,
    /// Worst first.
    pub comparisons: Vec<Comparison>,
}

/// A query that only one side has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MissingQuery {
    /// What to call it.
    pub name: String,
    /// Name of the application.
    pub application: String,
    /// Its fingerprint.
    pub fingerprint: String,
    /// Number of runs.
    pub runs: usize,
    /// Why the first of its failed runs failed; null if none did.
    pub error: Option<String>,
}

/// Whether queries became slower.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The profile.
    pub profile: String,
    /// The profile, or the directory of a baseline, that it is compared with.
    pub base: String,
    /// By how much a measure may grow.
    pub limit: Limit,
    /// Whether there is a regression, or a query failed.
    pub failed: bool,
    /// Comparisons with an interval, for which the intervals are corrected.
    pub comparisons: usize,
    /// Queries that both sides have, worst first.
    pub queries: Vec<Query>,
    /// Queries that are only in the base.
    pub only_before: Vec<MissingQuery>,
    /// Queries that are only in the profile.
    pub only_now: Vec<MissingQuery>,
    /// What the answer cannot know.
    pub notes: Vec<String>,
    /// The command that explains the first regression.
    pub next: Option<String>,
}

impl Answer {
    /// Compares a profile with an earlier one.
    ///
    /// # Errors
    /// If a profile has no query, or both have none in common.
    pub fn from_profiles(
        now: &ProfileRuns,
        before: &ProfileRuns,
        question: Question,
    ) -> Result<Self, ReportError> {
        now.check_not_empty()?;
        before.check_not_empty()?;
        let mut notes = [now.notes.clone(), before.notes.clone()].concat();
        if now.spark != before.spark {
            notes.push(format!(
                "the versions of Spark differ: {} before, {} now",
                list(&before.spark),
                list(&now.spark)
            ));
        }
        let mut answer = Self::new(now, &before.queries, &before.profile, question, notes);
        if answer.queries.is_empty() {
            let (now, before) = (&now.profile, &before.profile);
            return Err(ReportError::Refused(format!(
                "{now} and {before} have no query in common: neither plan nor description is the same. `unfuse history --in {} \
                 {}` lists the queries of both; spark.sparkContext.setJobDescription gives a query a name that stays",
                shell(now),
                shell(before)
            )));
        }
        let worst = answer
            .queries
            .first()
            .filter(|query| query.status == Status::Regression);
        answer.next = worst.and_then(|query| query.queries.last()).map(|query| {
            let (now, before) = (shell(&now.profile), shell(&before.profile));
            format!("unfuse why {now} --against {before} --query {query}")
        });
        Ok(answer)
    }

    /// Compares a profile with a baseline. Without `updates`, the baseline must have one of its queries.
    ///
    /// # Errors
    /// If the profile has no query, or has none in common with the baseline and does not update it.
    pub fn from_baseline(
        now: &ProfileRuns,
        baseline: &Baseline,
        question: Question,
        updates: bool,
    ) -> Result<Self, ReportError> {
        now.check_not_empty()?;
        let base = baseline.queries(now);
        let answer = Self::new(now, &base, baseline.path(), question, now.notes.clone());
        if answer.queries.is_empty() && !updates {
            return Err(ReportError::Refused(format!(
                "{} has no runs of a query in {}, beside those of this profile; check a profile with --update first, which \
                 adds its runs",
                baseline.path(),
                now.profile
            )));
        }
        Ok(answer)
    }

    fn new(
        now: &ProfileRuns,
        base: &[QueryRuns],
        base_name: &str,
        question: Question,
        mut notes: Vec<String>,
    ) -> Self {
        let (mut old, mut new) = (by_key(base), by_key(&now.queries));
        let texts = |queries: &BTreeMap<String, &QueryRuns>| -> BTreeMap<String, String> {
            let text = |query: &QueryRuns| match query.description.as_str() {
                "" => String::new(),
                text => format!("{}\n{text}", key_application(query)),
            };
            let texts = queries
                .iter()
                .map(|(key, query)| (key.clone(), text(query)));
            texts.collect()
        };
        let mut compared = Vec::new();
        for (old_key, new_key) in same_queries(&texts(&old), &texts(&new)) {
            if let (Some(before), Some(now)) = (old.remove(&old_key), new.remove(&new_key)) {
                compared.push(Compared::new(before, now));
            }
        }
        let comparisons = compared.iter().map(Compared::bounded).sum();
        let limit = question.limit.part();
        let mut queries: Vec<Query> = compared
            .iter()
            .map(|compared| compared.query(limit, comparisons))
            .collect();
        queries.sort_by(|a, b| worst_first(a.status, a.worst_change(), b.status, b.worst_change()));
        let only =
            |queries: BTreeMap<String, &QueryRuns>| queries.into_values().map(missing).collect();
        let (only_before, only_now): (Vec<MissingQuery>, Vec<MissingQuery>) =
            (only(old), only(new));
        notes.extend(notes_on_runs(&compared, question.warm_up));
        let mut seen = BTreeSet::new();
        notes.retain(|note| seen.insert(note.clone()));
        let is_failure = |query: &Query| query.status <= Status::Regression;
        Self {
            profile: now.profile.clone(),
            base: base_name.to_owned(),
            limit: question.limit,
            failed: queries.iter().any(is_failure)
                || only_now.iter().any(|query| query.error.is_some()),
            comparisons,
            queries,
            only_before,
            only_now,
            notes,
            next: None,
        }
    }

    /// How many queries and comparisons have a status: `2 regressions in 1 query`; none if no comparison has it.
    pub(super) fn count(&self, status: Status) -> (usize, usize) {
        let of = |query: &Query| {
            let all = query.comparisons.iter();
            all.filter(|comparison| comparison.status == status).count()
        };
        let counts = self.queries.iter().map(of).filter(|count| *count > 0);
        counts.fold((0, 0), |(all, queries), count| (all + count, queries + 1))
    }
}

impl Query {
    /// The change of its worst comparison; infinite if it failed.
    fn worst_change(&self) -> f64 {
        let first = self.comparisons.first();
        first.map_or(f64::INFINITY, |comparison| comparison.seconds.change)
    }
}

/// By status, then by the size of the change.
pub(super) fn worst_first(a: Status, by: f64, b: Status, than: f64) -> std::cmp::Ordering {
    a.cmp(&b).then(than.total_cmp(&by))
}

/// Those with an application and the fingerprint in common are the same query.
fn by_key(queries: &[QueryRuns]) -> BTreeMap<String, &QueryRuns> {
    let key = |query: &QueryRuns| format!("{}\n{}", key_application(query), query.fingerprint);
    queries.iter().map(|query| (key(query), query)).collect()
}

/// The application, if it counts.
fn key_application(query: &QueryRuns) -> &str {
    query.application_key.as_deref().unwrap_or("")
}

fn missing(query: &QueryRuns) -> MissingQuery {
    MissingQuery {
        name: query.name.clone(),
        application: query.application.clone(),
        fingerprint: query.fingerprint.clone(),
        runs: query.runs.len(),
        error: query.error().map(str::to_owned),
    }
}

fn notes_on_runs(compared: &[Compared<'_>], warm_up: usize) -> Vec<String> {
    let mut notes = Vec::new();
    let count = |are: Vec<bool>| {
        let count = are.into_iter().filter(|is| *is).count();
        (count > 0).then(|| counted(count, "query"))
    };
    let all = || compared.iter();
    if let Some(queries) = count(all().map(Compared::has_single_run).collect()) {
        notes.push(format!(
            "a side has a single run of {queries}: wall times of single runs are never a regression. Record several runs on \
             both sides"
        ));
    }
    if let Some(queries) = count(all().map(Compared::has_single_runs).collect()) {
        notes.push(format!(
            "both sides have a single run of {queries}: the ranges of CPU time are by samples only and do not hold what \
             differs from run to run"
        ));
    }
    let failing: BTreeSet<&str> = compared
        .iter()
        .filter_map(Compared::failed_before)
        .collect();
    for name in failing {
        notes.push(format!("failed before too: {name}"));
    }
    if let Some(queries) =
        count(all().map(Compared::has_cold_runs).collect()).filter(|_| warm_up == 0)
    {
        notes.push(format!(
            "the first run of {queries} took more than 1.5 times as long as the others, which makes the ranges wide; \
             leave it out with --warm-up 1"
        ));
    }
    notes
}
