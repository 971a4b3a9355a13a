//! Why a query took so long, and why longer than before: parts of its wall time that add up ([`Answer`]), and as text
//! ([`render`]).
//!
//! The wall time of a run is divided among the stages that ran at each moment, and a stage's part among what its slots did
//! meanwhile: CPU time of operators, waits by reason, no task. The difference of two runs, or of the means of several, is the
//! difference of these parts. What another plan, other data or other slots explain is taken out of them first.

mod difference;
mod known;
mod metrics;
mod page;
mod parts;
mod python;
mod slots;
#[cfg(test)]
mod tests;
mod text;
mod timeline;
mod words;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use ts_rs::TS;
use unfuse_postprocess::normalised;

use crate::blame::{CpuWaits, cpu_waits};
use crate::words::{name, shell};
use crate::{QuerySummary, Report, ReportError};
use difference::{Side, difference};
use known::heaps_differ;

pub(crate) use metrics::Basis;
pub(crate) use page::{EarlierRuns, wall_times};
pub use page::{WallTime, WallTimeChange};
pub(crate) use parts::Run;
pub(crate) use slots::Executors;
pub use text::render;
pub(crate) use words::plan_text;

/// What the parts of an answer are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[ts(rename = "WallTimeKind")]
pub enum CauseKind {
    /// More, less or other rows.
    Data,
    /// Operators that only one of the plans has.
    AnotherPlan,
    /// Operators outside generated loops.
    Codegen,
    /// More or fewer slots.
    Slots,
    /// A smaller or larger heap.
    Memory,
    /// CPU time of an operator.
    Operator,
    /// Python operators and their workers.
    Python,
    /// CPU time of tasks that is no operator's.
    Task,
    /// Tasks waited for a CPU.
    Contention,
    /// Tasks waited for garbage collection, or another pause of the JVM.
    Gc,
    /// Tasks waited for something else.
    Waiting,
    /// Tasks wrote to disk what did not fit into memory, and read it back.
    Spill,
    /// Slots waited for the last tasks of a stage.
    Skew,
    /// Stages had fewer tasks than slots.
    FewTasks,
    /// Tasks were launched and did not run yet, or there were more or fewer of them.
    Scheduling,
    /// Tasks failed.
    FailedTasks,
    /// No stage ran.
    Driver,
    /// Tasks ran, and nothing is recorded of what they did.
    Unknown,
    /// Small parts together.
    Remainder,
}

/// A part of the wall time, or of the difference.
#[derive(Debug, Clone, PartialEq, Serialize, TS, JsonSchema)]
#[ts(rename = "WallTimePart")]
pub struct Part {
    /// What it is about.
    pub kind: CauseKind,
    /// What took the time.
    pub what: String,
    /// s; below 0 where it takes less than before.
    pub seconds: f64,
    /// Lower end of the 95% interval, by samples and, where there are several runs, by these.
    pub seconds_low: f64,
    /// Its upper end.
    pub seconds_high: f64,
    /// What it took before, s; null without a comparison, and for parts that have no time of their own.
    pub before_s: Option<f64>,
    /// What it takes now.
    pub after_s: Option<f64>,
    /// The command that shows more.
    pub command: Option<String>,
    /// Whether a line of Python code has most of it.
    #[serde(skip)]
    #[ts(skip)]
    has_line: bool,
    /// Whether tasks waited for a CPU.
    #[serde(skip)]
    #[ts(skip)]
    is_cpu_wait: bool,
}

/// Runs of the query in one profile.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Runs {
    /// The profile.
    pub profile: String,
    /// SQL execution ids.
    pub queries: Vec<i64>,
    /// Mean wall time, s.
    pub wall_s: f64,
}

/// Where the time of a query went, or what made it take longer than before.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// What to call the query.
    pub name: String,
    /// Its fingerprint.
    pub fingerprint: String,
    /// The runs that are explained.
    pub now: Runs,
    /// Those that they are compared with.
    pub before: Option<Runs>,
    /// Wall time now less that before, s; null without a comparison.
    pub difference_s: Option<f64>,
    /// Largest first. They add up to the difference, or without a comparison to the wall time.
    pub parts: Vec<Part>,
    /// What the answer cannot know.
    pub notes: Vec<String>,
}

/// Which runs to explain.
#[derive(Debug, Clone, Copy, Default)]
pub struct Question<'a> {
    /// Only this run: a SQL execution id.
    pub query: Option<i64>,
    /// The profile to compare with; none for the same one.
    pub against: Option<&'a Report<'a>>,
    /// The run to compare with. Without it all runs of the query in the other profile, or no comparison.
    pub against_query: Option<i64>,
}

/// Positions of runs in a report's list.
type Positions = Vec<usize>;

impl Answer {
    /// Explains runs of a profile.
    ///
    /// # Errors
    /// If there is no such run, none that ended, or no query that both profiles have.
    pub fn new(report: &Report<'_>, question: Question<'_>) -> Result<Self, ReportError> {
        let against = question.against.unwrap_or(report);
        let (now, before) = choose(report, &question)?;
        let of = |report: &Report<'_>| Basis::from_profile(report.profile);
        let basis = match before {
            Some(_) => of(report).common(of(against)),
            None => of(report),
        };
        let mut runs = runs(report, &now, basis)?;
        let mut notes = notes(report);
        let mut waits = None;
        let (before_runs, after, parts) = match before {
            Some(before) => {
                let mut old = self::runs(against, &before, basis)?;
                if let (Some(old), Some(new)) = (old.first_mut(), runs.first_mut())
                    && heaps_differ(old.heap_bytes, new.heap_bytes)
                {
                    old.collected = waits_of(against, before[0])?.collected;
                    let known = waits.insert(waits_of(report, now[0])?);
                    new.collected = known.collected;
                }
                let (side, after) = (Side::new(&old), Side::new(&runs));
                let parts = difference(&side, &after);
                if question.against.is_some() {
                    notes.extend(self::notes(against));
                }
                if after.runs < 2 || side.runs < 2 {
                    notes.push(
                        "ranges are by samples only: they do not hold what differs from run to run. More runs on both sides do"
                            .to_owned(),
                    );
                }
                let (a, b) = (
                    &report.summary.queries[now[0]],
                    &against.summary.queries[before[0]],
                );
                if a.fingerprint != b.fingerprint
                    && normalised(&a.description) != normalised(&b.description)
                {
                    notes.push(format!(
                        "the runs are of different queries: {} before",
                        b.name
                    ));
                }
                let before = described(against, &before, side.wall.s);
                (Some(before), after, parts)
            }
            None => {
                let after = Side::new(&runs);
                let parts = after.parts();
                (None, after, parts)
            }
        };
        notes.dedup();
        let first = &report.summary.queries[now[0]];
        let difference_s = before_runs
            .as_ref()
            .map(|before| after.wall.s - before.wall_s);
        let mut answer = Self {
            name: first.name.clone(),
            fingerprint: first.fingerprint.clone(),
            now: described(report, &now, after.wall.s),
            before: before_runs,
            difference_s,
            parts,
            notes,
        };
        answer.name_neighbours(report, now[0], waits);
        let query = answer.now.queries.first().copied().unwrap_or_default();
        let other = answer.before.as_ref().map(|before| &*before.profile);
        let has_samples = !report.profile.groups.is_empty();
        add_commands(
            &mut answer.parts,
            &answer.now.profile,
            query,
            other,
            has_samples,
        );
        Ok(answer)
    }
}

impl Answer {
    /// Names who had the CPUs, in the part about waits for them, if that is more than before or there is no comparison.
    fn name_neighbours(&mut self, report: &Report<'_>, at: usize, known: Option<CpuWaits>) {
        let mut parts = self.parts.iter_mut();
        let more = parts.find(|part| part.is_cpu_wait && part.seconds > 0.0);
        let Some(part) = more else { return };
        let waits = known.map_or_else(|| waits_of(report, at), Ok);
        match waits.map(|waits| waits.main) {
            Ok(Some(who)) => part.what += &format!(", most of it behind {}", name(&who)),
            Ok(None) => {}
            Err(error) => self
                .notes
                .push(format!("who had the CPUs is not known: {error}")),
        }
    }
}

/// Who had the CPUs for which a run waited.
fn waits_of(report: &Report<'_>, at: usize) -> Result<CpuWaits, ReportError> {
    let summary = &report.summary.queries[at];
    let app = report.summary.applications.get(summary.app);
    let app = app.map_or("", |app| &app.id);
    cpu_waits(report.profile, app, summary.query)
}

/// Says which command shows more of each part of a query's wall time. `other` is the profile that it is compared with. Some commands
/// need samples.
fn add_commands(
    parts: &mut [Part],
    profile: &str,
    query: i64,
    other: Option<&str>,
    has_samples: bool,
) {
    let shown = shell(profile);
    for part in parts {
        part.command = match part.kind {
            CauseKind::AnotherPlan | CauseKind::Codegen | CauseKind::Data => other
                .filter(|other| *other != profile)
                .map(|other| format!("unfuse report {shown} --against {} --open", shell(other))),
            CauseKind::Operator | CauseKind::Task | CauseKind::Spill if has_samples => {
                Some(format!("unfuse top {shown} --query {query} --by line"))
            }
            CauseKind::Python if part.has_line => {
                Some(format!("unfuse top {shown} --query {query} --by line"))
            }
            CauseKind::Python | CauseKind::Waiting | CauseKind::Gc if has_samples => {
                Some(format!("unfuse top {shown} --query {query} --kind off-cpu"))
            }
            CauseKind::Contention => Some(format!("unfuse blame {shown} --victim {query}")),
            CauseKind::Skew => Some(format!("unfuse skew {shown}")),
            _ => None,
        };
    }
}

/// The runs to explain, and those to compare them with.
fn choose(
    report: &Report<'_>,
    question: &Question<'_>,
) -> Result<(Positions, Option<Positions>), ReportError> {
    let refused = |text: String| Err(ReportError::Refused(text));
    let against = question.against.unwrap_or(report);
    let compares = question.against.is_some() || question.against_query.is_some();
    let before = match question.against_query {
        Some(query) => Some(vec![position(against, query)?]),
        None => None,
    };
    if let Some(query) = question.query {
        let at = position(report, query)?;
        let before = before.or_else(|| {
            let same = same_query(report, at, against);
            compares.then_some(same).filter(|same| !same.is_empty())
        });
        if compares && before.is_none() {
            return refused(format!(
                "in {} no run of query {query} ended; `unfuse history --in {}` lists its queries",
                against.summary.profile, against.summary.profile
            ));
        }
        return Ok((vec![at], before));
    }
    if let Some(before) = before {
        let now = same_query(against, before[0], report);
        let now: Positions = now
            .into_iter()
            .filter(|at| question.against.is_some() || *at != before[0])
            .collect();
        if now.is_empty() {
            return refused("no other run of that query ended; choose one with --query".to_owned());
        }
        return Ok((now, Some(before)));
    }
    if !compares {
        let longest = ended(report).max_by_key(|at| report.summary.queries[*at].duration_ms);
        return match longest {
            Some(at) => Ok((vec![at], None)),
            None => refused(format!(
                "{} has no query that ended",
                report.summary.profile
            )),
        };
    }
    largest_difference(report, against)
        .ok_or_else(|| {
            ReportError::Refused(format!(
                "{} and {} have no query in common: neither plan nor description is the same",
                report.summary.profile, against.summary.profile
            ))
        })
        .map(|(now, before)| (now, Some(before)))
}

/// The runs of the query whose wall time differs most between the profiles.
fn largest_difference(report: &Report<'_>, against: &Report<'_>) -> Option<(Positions, Positions)> {
    let mut families: BTreeMap<&str, Positions> = BTreeMap::new();
    for at in ended(report) {
        families
            .entry(&report.summary.queries[at].fingerprint)
            .or_default()
            .push(at);
    }
    let pairs = families.into_values().filter_map(|now| {
        let before = same_query(report, now[0], against);
        (!before.is_empty()).then_some((now, before))
    });
    let mean = |report: &Report<'_>, runs: &Positions| {
        let ms = runs
            .iter()
            .filter_map(|at| report.summary.queries[*at].duration_ms);
        ms.sum::<i64>() as f64 / runs.len() as f64
    };
    pairs.max_by(|a, b| {
        let change =
            |pair: &(Positions, Positions)| (mean(report, &pair.0) - mean(against, &pair.1)).abs();
        change(a).total_cmp(&change(b))
    })
}

/// Queries that ran to their end without an error.
fn ended<'a>(report: &'a Report<'_>) -> impl Iterator<Item = usize> + 'a {
    let queries = report.summary.queries.iter().enumerate();
    queries
        .filter(|(_, query)| has_ended(query))
        .map(|(at, _)| at)
}

fn has_ended(query: &QuerySummary) -> bool {
    query.query.is_some() && query.duration_ms.is_some() && query.error.is_none()
}

/// Runs of a report's query in another one that ended: by the fingerprint, or else by the description where all of these have one
/// fingerprint.
fn same_query(report: &Report<'_>, at: usize, other: &Report<'_>) -> Positions {
    let query = &report.summary.queries[at];
    let by_plan: Positions = ended(other)
        .filter(|at| other.summary.queries[*at].fingerprint == query.fingerprint)
        .collect();
    if !by_plan.is_empty() {
        return by_plan;
    }
    let description = normalised(&query.description);
    let by_text: Positions = ended(other)
        .filter(|at| normalised(&other.summary.queries[*at].description) == description)
        .collect();
    let is_one = by_text.windows(2).all(|pair| {
        other.summary.queries[pair[0]].fingerprint == other.summary.queries[pair[1]].fingerprint
    });
    if is_one && !description.is_empty() {
        by_text
    } else {
        Vec::new()
    }
}

/// The position of a SQL execution. Of several applications the one with the most CPU time is meant.
fn position(report: &Report<'_>, query: i64) -> Result<usize, ReportError> {
    let known = report
        .summary
        .queries
        .iter()
        .position(|known| known.query == Some(query));
    let at = known.ok_or_else(|| {
        let mut all: Vec<i64> = report
            .summary
            .queries
            .iter()
            .filter_map(|known| known.query)
            .collect();
        all.sort_unstable();
        ReportError::Refused(format!(
            "{} has no query {query}; it has {}",
            report.summary.profile,
            crate::text::list(&all)
        ))
    })?;
    if report.summary.queries[at].duration_ms.is_none() {
        return Err(ReportError::Refused(format!(
            "query {query} did not end, so its wall time is not known"
        )));
    }
    Ok(at)
}

fn runs(report: &Report<'_>, at: &Positions, basis: Basis) -> Result<Vec<Run>, ReportError> {
    let executors = Executors::new(report)?;
    let runs = at
        .iter()
        .filter_map(|at| Run::from_samples(report, *at, &executors, basis));
    Ok(runs.collect())
}

fn described(report: &Report<'_>, at: &Positions, wall_s: f64) -> Runs {
    Runs {
        profile: report.summary.profile.clone(),
        queries: at
            .iter()
            .filter_map(|at| report.summary.queries[*at].query)
            .collect(),
        wall_s,
    }
}

/// What a profile does not hold.
fn notes(report: &Report<'_>) -> Vec<String> {
    let profile = &report.summary.profile;
    let mut notes = Vec::new();
    let has_samples = !report.profile.groups.is_empty();
    let has_waits = !report.profile.waits.is_empty();
    match (has_samples, has_waits) {
        (true, true) => {}
        (true, false) => notes.push(format!(
            "{profile} has no waits, so the reasons for waiting are unknown"
        )),
        (false, true) => notes.push(format!(
            "{profile} has no samples, so the operators' CPU time is unknown"
        )),
        (false, false) => notes.push(format!(
            "{profile} has no samples and no waits. Spark's metrics have the CPU time of a stage's tasks and their waits for the \
             garbage collector, shuffle fetches and shuffle writes. Of what is left, which is one part, they do not say the reason"
        )),
    }
    if report.tasks.is_empty() {
        notes.push(format!(
            "{profile} has no tasks of the driver, so idle slots are not known"
        ));
    }
    notes
}
