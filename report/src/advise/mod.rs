//! What to change so that queries take less time: the answer of `unfuse advise` as data ([`Answer`]) and as text ([`render`]).
//!
//! Each rule finds something in a query, with the time of the tasks that it is about. The replay of
//! [`crate::what_if`] says how much of the query's wall time a change saves that takes a share of this time out.

mod code;
mod facts;
mod found;
mod joins;
mod machines;
mod rules;
mod scans;
mod tasks;
#[cfg(test)]
mod tests;
mod text;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;
use ts_rs::TS;
use unfuse_format::{ApplicationRow, ExecutorRow, FormatError, HostRow};
use unfuse_postprocess::{Period, middle, table_name};
use unfuse_sizing::what_if::Estimate;
use unfuse_skew::{Finding, Run, Stage};

use crate::model::{QuerySummary, Suggestions};
use crate::verdict::slots_at;
use crate::what_if::{ONE_RUN, Remedy, Saving, estimates, file_scans, is_local};
use crate::words::{self, percent, shell};
use crate::{Part, Report, ReportError, application_index};
use facts::Facts;
use found::Found;
use machines::Machines;
use rules::{RULES, Rule};
use scans::Reads;

pub use rules::RuleName;
pub use text::render;

/// A change that saves less than this share of a query's wall time is not worth a sentence.
const LEAST_SAVED: f64 = 0.03;

/// Most different queries that are looked at, if nothing else is asked for.
pub const QUERIES: usize = 20;

/// Which queries to look at.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// A SQL execution; none for the queries that took most time.
    pub query: Option<i64>,
    /// The application; none for all.
    pub app: Option<&'a str>,
    /// Most queries to look at. Of runs of the same query, the median run counts.
    pub queries: usize,
}

/// What to change, the change that saves most first.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The profile.
    pub source: String,
    /// Number of different queries that were looked at.
    pub looked_at: usize,
    /// The suggestions.
    pub advice: Vec<Advice>,
    /// What the answer does not know.
    pub notes: Vec<String>,
}

/// A suggestion.
#[derive(Debug, Clone, PartialEq, Serialize, TS, JsonSchema)]
#[ts(rename = "Suggestion")]
pub struct Advice {
    /// The rule.
    pub rule: RuleName,
    /// Id of the application.
    pub app: String,
    /// The SQL execution: the median of the runs of the query.
    pub query: i64,
    /// What to call the query.
    pub name: String,
    /// Number of its runs.
    pub runs: usize,
    /// What to change.
    pub title: String,
    /// The evidence.
    pub why: String,
    /// The setting, hint or rewrite.
    pub action: String,
    /// What can go wrong.
    pub risk: String,
    /// The command that shows the evidence.
    pub command: String,
    /// The time of the tasks that it is about, as a share of all their time, 0 to 1.
    pub share: f64,
    /// The measured time of this run, s.
    pub measured_s: f64,
    /// What the change gives for one run.
    #[serde(flatten)]
    pub estimate: Estimate,
}

/// Runs of a query, of which one is looked at.
struct Family<'a> {
    app: &'a str,
    query: i64,
    summary: &'a QuerySummary,
    part: &'a Part,
    runs: usize,
    /// Wall time of all runs, ms.
    all_ms: i64,
    /// The middle of this run, ms since the epoch.
    middle_ms: i64,
}

/// The advice on the queries of a profile for the page, or on those of one application; none for a part of the time.
///
/// # Errors
/// If the profile cannot be read.
pub(crate) fn suggestions(
    report: &Report<'_>,
    app: Option<&str>,
) -> Result<Option<Suggestions>, ReportError> {
    if report.profile.period() != Period::ALL {
        return Ok(None);
    }
    let question = Question {
        query: None,
        app,
        queries: QUERIES,
    };
    let answer = match Answer::new(report, &question) {
        Ok(answer) => answer,
        // Such as a profile without SQL.
        Err(ReportError::Refused(_)) => return Ok(None),
        Err(other) => return Err(other),
    };
    Ok(Some(Suggestions {
        all: answer.advice,
        notes: answer.notes,
    }))
}

impl Answer {
    /// Looks at queries of a profile.
    ///
    /// # Errors
    /// If there is no such query or application, or the profile cannot be read.
    pub fn new(report: &Report<'_>, question: &Question<'_>) -> Result<Self, ReportError> {
        let families = families(report, question)?;
        let looked_at = families.len().min(question.queries);
        let asked = &families[..looked_at];
        let tables = Tables::read(report, asked)?;
        let mut notes = Vec::new();
        if report.profile.waits.is_empty() {
            notes.push(NO_WAITS.to_owned());
        }
        if families.len() > looked_at {
            notes.push(format!(
                "of {}, those with the most wall time are looked at; choose more with --queries, or one with --query",
                words::count(families.len(), "query")
            ));
        }
        let mut advice = Vec::new();
        let of_each: Vec<_> = asked
            .par_iter()
            .map(|family| of_family(report, family, &tables))
            .collect();
        for found in of_each {
            let (own, note) = found?;
            advice.extend(own);
            notes.extend(note.filter(|note| !notes.contains(note)));
        }
        let all = |one: &Advice| one.estimate.saves_s * one.runs as f64;
        advice.sort_by(|a, b| all(b).total_cmp(&all(a)));
        Ok(Self {
            source: report.summary.profile.clone(),
            looked_at,
            advice,
            notes,
        })
    }
}

const NO_WAITS: &str = "the profile has no waits, so too little is said about Python; perf_event records waits with \
     waits=on, which is the default";

impl Advice {
    fn new(
        report: &Report<'_>,
        (family, rule, found, share): (&Family<'_>, &Rule, &Found, f64),
        measured_s: f64,
        estimate: Estimate,
    ) -> Self {
        let dir = shell(&report.summary.profile);
        let fill = |text: &str| {
            text.replace("{percent}", &percent(share))
                .replace("{subject}", &found.subject)
                .replace("{detail}", &found.detail)
                .replace("{value}", &found.value)
        };
        let stage = found
            .stage
            .map_or_else(String::new, |stage| stage.to_string());
        // A number of a query is that of the application with the most CPU time, where nothing else is said.
        let app = match report.summary.applications.len() {
            0 | 1 => String::new(),
            _ => format!(" --app {}", shell(family.app)),
        };
        let command = rule
            .command
            .replace("{query}", &family.query.to_string())
            .replace("{stage}", &stage)
            .replace("{app}", &app)
            .replace("{subject}", &shell(&found.subject))
            .replace("DIR", &dir);
        Self {
            rule: rule.kind,
            app: family.app.to_owned(),
            query: family.query,
            name: family.summary.name.clone(),
            runs: family.runs,
            title: fill(&rule.title),
            why: fill(&rule.why),
            action: fill(&rule.action),
            risk: fill(&rule.risk),
            command,
            share,
            measured_s,
            estimate,
        }
    }
}

/// The advice on a query, and a note on how far it can be trusted.
fn of_family(
    report: &Report<'_>,
    family: &Family<'_>,
    tables: &Tables<'_>,
) -> Result<(Vec<Advice>, Option<String>), ReportError> {
    let slots = tables.slots(family);
    let Some(facts) = Facts::new(report, family.part, slots) else {
        return Ok((Vec::new(), None));
    };
    let is_own = |stage: &Stage| *stage.app == *family.app && stage.sql == Some(family.query);
    let findings = crate::skew::judge(&tables.skew, is_own);
    let found = found(report, (family, &facts), &findings, tables)?;
    if found.is_empty() {
        return Ok((Vec::new(), None));
    }
    let remedies = found.iter().map(|(rule, found)| match &found.remedy {
        Remedy::Saving(saving) => Remedy::Saving(Saving {
            shares: rule.saves.unwrap_or([1.0; 3]),
            ..saving.clone()
        }),
        other => other.clone(),
    });
    let remedies: Vec<Remedy> = remedies.collect();
    let of_query = |note: String| format!("query {}: {note}", family.query);
    let (estimates, measured_s, note) = match estimates(report, family.app, family.query, &remedies)
    {
        Ok(known) => known,
        Err(ReportError::Refused(why)) => return Ok((Vec::new(), Some(of_query(why)))),
        Err(other) => return Err(other),
    };
    let worth = |(_, estimate): &(_, Estimate)| {
        estimate.saves_s >= LEAST_SAVED * measured_s.max(f64::MIN_POSITIVE)
    };
    let pieces = found.iter().zip(estimates).filter(worth);
    let advice: Vec<Advice> = pieces
        .map(|((rule, found), estimate)| {
            let share = found.seconds / facts.task_s.max(f64::MIN_POSITIVE);
            let about = (family, *rule, found, share.min(1.0));
            Advice::new(report, about, measured_s, estimate)
        })
        .collect();
    let note = note.filter(|_| !advice.is_empty());
    Ok((
        advice,
        note.map(|note| {
            if note == ONE_RUN {
                note
            } else {
                of_query(note)
            }
        }),
    ))
}

/// The rules that apply to a query, with what they are about.
fn found(
    report: &Report<'_>,
    (family, facts): (&Family<'_>, &Facts<'_>),
    findings: &[Finding],
    tables: &Tables<'_>,
) -> Result<Vec<(&'static Rule, Found)>, ReportError> {
    let machines = tables.machines(report, family, facts);
    let mut all = Vec::new();
    for rule in RULES.iter() {
        let found = match rule.kind {
            RuleName::Broadcast => joins::broadcast(facts),
            RuleName::Decimals | RuleName::RegularExpressions => code::calls(facts, &rule.calls),
            RuleName::SmallFiles => code::opening(facts, &rule.calls),
            RuleName::TextFiles => code::operators(facts, &rule.operators),
            RuleName::InterpretedCode => code::interpreted(facts),
            RuleName::NotFused => code::not_fused(facts, rule),
            RuleName::TinyTasks => tasks::tiny(facts),
            RuleName::FewTasks => tasks::few(facts),
            RuleName::PythonRows => code::python(facts),
            RuleName::SkewedJoin => joins::skewed(facts, findings),
            RuleName::Pushdown => scans::pushdown(facts),
            RuleName::ReadAgain => {
                let query = (family.app, family.query);
                scans::read_again(report, facts, query, &tables.reads)?
            }
            RuleName::IdleCpus => machines::idle_cpus(facts, &machines),
            RuleName::Heap => machines::heap(facts, &machines),
        };
        let enough =
            |found: &Found| found.seconds > 0.0 && found.seconds >= rule.at_least * facts.task_s;
        all.extend(found.into_iter().filter(enough).map(|found| (rule, found)));
    }
    Ok(all)
}

/// The queries that are asked about, each once with its runs, those with the most wall time first.
fn families<'a>(
    report: &'a Report<'_>,
    question: &Question<'_>,
) -> Result<Vec<Family<'a>>, ReportError> {
    let summary = &report.summary;
    let app_of = |query: &QuerySummary| summary.applications.get(query.app);
    if let Some(wanted) = question.app {
        application_index(summary, wanted)?;
    }
    let ended = |at: &usize| {
        let query = &summary.queries[*at];
        query.error.is_none() && query.duration_ms.is_some() && query.query.is_some()
    };
    let of_app = |at: &usize| {
        let app = app_of(&summary.queries[*at]);
        question
            .app
            .is_none_or(|wanted| app.is_some_and(|app| app.id == wanted))
    };
    let asked =
        |at: &usize| question.query.is_none() || summary.queries[*at].query == question.query;
    let mut families = Vec::new();
    for family in &summary.families {
        let mut runs: Vec<usize> = family.runs.iter().copied().filter(ended).collect();
        runs.retain(of_app);
        let all = runs.len();
        let all_ms = runs
            .iter()
            .filter_map(|at| summary.queries[*at].duration_ms)
            .fold(0, i64::saturating_add);
        runs.retain(asked);
        runs.sort_by_key(|at| summary.queries[*at].duration_ms);
        let Some(at) = runs.get(middle(runs.len())).copied() else {
            continue;
        };
        let one = &summary.queries[at];
        let (Some(query), Some(app)) = (one.query, app_of(one)) else {
            continue;
        };
        families.push(Family {
            app: &app.id,
            query,
            summary: one,
            part: &report.parts[at],
            runs: if question.query.is_some() { 1 } else { all },
            all_ms,
            middle_ms: one
                .started_ms
                .unwrap_or(0)
                .saturating_add(one.duration_ms.unwrap_or(0) / 2),
        });
    }
    families.sort_by_key(|family| (std::cmp::Reverse(family.all_ms), family.query));
    if families.is_empty() {
        return Err(ReportError::Refused(match question.query {
            Some(query) => format!(
                "{} has no query {query} that ended well; `unfuse top {} --by query` lists those with samples",
                summary.profile,
                shell(&summary.profile)
            ),
            None => format!("{} has no SQL query that ended well", summary.profile),
        }));
    }
    Ok(families)
}

/// Tables that the advice on several queries needs.
struct Tables<'a> {
    executors: Vec<ExecutorRow>,
    applications: Vec<ApplicationRow>,
    hosts: Vec<HostRow>,
    reads: Reads<'a>,
    /// The tasks for the detection of skew; empty where no query has a join that a rule is about.
    skew: Run,
}

impl<'a> Tables<'a> {
    fn read(report: &'a Report<'_>, families: &[Family<'_>]) -> Result<Self, FormatError> {
        let plans = families
            .iter()
            .map(|family| family.part.plan(report.profile));
        let mut nodes = plans.flatten().flat_map(|plan| &plan.nodes);
        Ok(Self {
            executors: report.profile.rows()?,
            applications: report.profile.rows()?,
            hosts: report.profile.rows()?,
            reads: reads(report),
            skew: match nodes.any(|node| joins::is_shuffled(&node.operator)) {
                true => unfuse_skew::from_profile(report.profile.path())?,
                false => Run::default(),
            },
        })
    }

    /// The task slots of an application while a query ran, at least 1.
    fn slots(&self, family: &Family<'_>) -> usize {
        let executors = self.executors.iter();
        let applications = self.applications.iter();
        let slots = slots_at(
            executors.filter(|row| row.app == family.app),
            applications.filter(|row| row.app == family.app),
            family.middle_ms,
        );
        slots.map_or(1, |slots| (slots as usize).max(1))
    }

    /// The machines of an application.
    fn machines(
        &self,
        report: &Report<'_>,
        family: &Family<'_>,
        facts: &Facts<'_>,
    ) -> Machines<'_> {
        let hosts = self.hosts.iter().filter(|row| row.app == family.app);
        let mut executors: Vec<&str> = facts.executors().collect();
        executors.sort_unstable();
        executors.dedup();
        Machines {
            rows: hosts.collect(),
            executors: executors.len(),
            is_local: is_local(report, family.app),
        }
    }
}

/// How often each table is read from files.
fn reads<'a>(report: &'a Report<'_>) -> Reads<'a> {
    let mut reads = Reads::new();
    for family in &report.summary.families {
        for at in &family.runs {
            let (query, part) = (&report.summary.queries[*at], &report.parts[*at]);
            let app = report.summary.applications.get(query.app);
            let (Some(app), Some(plan)) = (app, part.plan(report.profile)) else {
                continue;
            };
            for scan in file_scans(plan) {
                *reads.entry((&*app.id, table_name(scan))).or_default() += 1;
            }
        }
    }
    reads
}
