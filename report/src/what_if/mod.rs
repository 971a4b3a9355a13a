//! What would make a query, or an application, faster, and by how much: the answer of `unfuse what-if` as data ([`Answer`])
//! and as text ([`render`]).
//!
//! The replay is [`unfuse_sizing::what_if`]; here is what a profile knows of the parts of each task's time.

mod cache;
mod driver;
mod neighbour;
mod operator;
mod page;
mod profile;
mod saving;
mod slots;
mod spread;
mod text;
mod trials;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use unfuse_format::{ExecutionId, HostRow, counted};
use unfuse_sizing::what_if::{Application, Change, Estimate, Floor, Model, PartKind, Recorded};

use crate::words::{name, percent, shell};
use crate::{Report, ReportError, application_index};
use profile::Source;

use spread::spread;
use trials::{each, floors};

pub(crate) use cache::{CachedTable, above, columns, file_scans, is_file_scan};
pub(crate) use neighbour::{DIVISION, Neighbour, VictimWaits, without_each};
pub(crate) use operator::StackOfStage;
pub(crate) use page::what_ifs;
pub use page::{QueryWhatIf, WhatIfSwitch};
pub(crate) use profile::is_local;
pub(crate) use saving::{Remedy, Saving, estimates};
pub use text::render;

/// Beyond this distance of the replay from the measured time, as a share of that, an answer is not reliable.
const MOST_ERROR: f64 = 0.1;
/// Number of operators that are tried without a question.
const OPERATORS: usize = 3;
/// The note on an answer that does not know it.
pub(crate) const ONE_RUN: &str =
    "ranges are by this run alone: they do not hold what differs from run to run";
/// How many times as fast these become, and Python.
const TIMES: f64 = 2.0;

/// What would be different.
#[derive(Debug, Clone, Copy, Default)]
pub struct Question<'a> {
    /// All at once; none for a table of changes.
    pub changes: &'a [Change],
    /// Tables whose rows would be cached, by name or path; with the changes.
    pub cached: &'a [String],
    /// A SQL execution; none for all of the application.
    pub query: Option<i64>,
    /// The application; none for the one with the most CPU time.
    pub app: Option<&'a str>,
}

/// How long a query or an application would take.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The profile or event log.
    pub source: String,
    /// Id of the application.
    pub app: String,
    /// The SQL execution; null for all of the application.
    pub query: Option<i64>,
    /// What to call the query.
    pub name: Option<String>,
    /// Slots that it had.
    pub slots: usize,
    /// Executors; 0 if unknown.
    pub executors: usize,
    /// Task attempts that were put on slots again.
    pub tasks: usize,
    /// The measured time, s.
    pub measured_s: f64,
    /// The replay of the unchanged run, s.
    pub now_s: f64,
    /// How far that is from the measured time, as a share of it.
    pub replay_error: f64,
    /// Whether this is at most 10%.
    pub reliable: bool,
    /// The changes.
    pub changes: Vec<String>,
    /// What they give together; null without any.
    pub estimate: Option<Estimate>,
    /// Without changes: some, each by itself, the one that saves most first.
    pub each: Vec<Trial>,
    /// Without changes: what no change of that kind goes below.
    pub floors: Vec<Bound>,
    /// What the answer does not know.
    pub notes: Vec<String>,
    /// Whether the replay knows the CPUs that all slots share.
    #[serde(skip)]
    shares_cpus: bool,
}

/// Names of a plan's nodes.
type Operators = BTreeMap<i32, String>;

/// A question with what it needs of the profile.
#[derive(Default)]
struct Asked<'a> {
    changes: &'a [Change],
    query: Option<i64>,
    /// Changes to try by themselves if there are none.
    tried: &'a [Change],
    operators: Operators,
    /// By how much runs of the query differ, as a share of their time; none with too few of them.
    spread: Option<f64>,
}

/// A change by itself.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Trial {
    /// The change.
    pub change: String,
    /// What it means.
    pub what: String,
    /// What it gives.
    #[serde(flatten)]
    pub estimate: Estimate,
}

/// A floor of the time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Bound {
    /// What is ideal.
    pub floor: Floor,
    /// In words.
    pub what: &'static str,
    /// The time, s.
    pub seconds: f64,
}

impl Answer {
    /// Answers from a profile.
    ///
    /// # Errors
    /// If there is no such application or query, it did not end well, it has no tasks, or the profile does not know what
    /// a change is about.
    pub fn from_profile(report: &Report<'_>, question: &Question<'_>) -> Result<Self, ReportError> {
        let mut notes = Vec::new();
        let app = application(report, question, &mut notes)?;
        let query = match question.query {
            None if question.changes.iter().any(needs_query) || !question.cached.is_empty() => {
                Some(only_query(report, app)?)
            }
            query => query,
        };
        let source = Source::new(report, app, query);
        let mut changes = question.changes.to_vec();
        let mut scans = Vec::new();
        for (table, query) in question
            .cached
            .iter()
            .filter_map(|table| Some((table, query?)))
        {
            let cached = CachedTable::find(report, app, query, table)?;
            scans.extend(cached.scans);
            notes.extend(cached.notes);
        }
        for scan in &scans {
            let change = scan.change();
            if let Some(other) = changes.iter().find(|other| other.excludes(&change)) {
                return Err(ReportError::Refused(format!(
                    "{other} and {change} cannot both hold; give one of them"
                )));
            }
            changes.push(change);
        }
        let tried = match (&changes[..], query) {
            ([], Some(query)) => operator::largest(report, app, query, OPERATORS)
                .into_iter()
                .map(|node| Change::Operator { node, times: TIMES })
                .collect(),
            (changes, _) => changes.to_vec(),
        };
        let application = source.application(query, &tried, &scans)?;
        let place = report.summary.profile.clone();
        let asked = Asked {
            changes: &changes,
            query,
            tried: &tried,
            operators: operators(report, app, query),
            spread: query.and_then(|query| spread(report, app, query)),
        };
        let mut answer = Self::new(place, &application, &asked)?;
        let asked = question.changes.iter().map(ToString::to_string);
        let cached = question.cached.iter().map(|table| format!("cache={table}"));
        answer.changes = asked.chain(cached).collect();
        answer.notes.splice(0..0, notes);
        answer.note_cpus(report, app, question.changes)?;
        Ok(answer)
    }

    /// Answers from an event log that was read, with notes on it.
    ///
    /// # Errors
    /// As [`Self::from_profile`].
    pub fn from_event_log(
        place: String,
        application: &Application,
        notes: Vec<String>,
        question: &Question<'_>,
    ) -> Result<Self, ReportError> {
        let asks = question.changes.iter().find(|change| needs_query(change));
        let cached = question.cached.iter().map(|table| format!("cache={table}"));
        if let Some(change) = asks.map(ToString::to_string).or(cached.into_iter().next()) {
            return Err(ReportError::Refused(format!(
                "{change}: {place} is an event log, which has no samples and no waits; record a profile with `unfuse run`"
            )));
        }
        if let Some(app) = question.app.filter(|app| *app != application.id) {
            return Err(ReportError::Refused(format!(
                "{place} has no application {app}; it has {}",
                application.id
            )));
        }
        let asked = Asked {
            changes: question.changes,
            query: question.query,
            ..Asked::default()
        };
        let mut answer = Self::new(place, application, &asked)?;
        answer.notes.splice(0..0, notes);
        Ok(answer)
    }

    fn new(
        source: String,
        application: &Application,
        asked: &Asked<'_>,
    ) -> Result<Self, ReportError> {
        let (changes, query) = (asked.changes, asked.query);
        let refused = |why: String| ReportError::Refused(format!("{source}: {why}"));
        let (mut recorded, mut notes) = application.recorded(query).map_err(refused)?;
        recorded.spread = asked.spread.unwrap_or(0.0);
        if asked.spread.is_none() {
            notes.push(ONE_RUN.to_owned());
        }
        for change in changes {
            check(change, &recorded).map_err(refused)?;
        }
        let model = Model::new(&recorded);
        let reliable = model.error().abs() <= MOST_ERROR;
        let estimate = match changes {
            [] => None,
            changes => Some(model.estimate(&model.scenario(changes))),
        };
        notes.extend(
            changes
                .iter()
                .filter_map(|change| note(change, &recorded, &asked.operators)),
        );
        let own = recorded.stages.iter().filter(|stage| stage.own);
        let known = query.and_then(|query| application.queries.get(&query));
        Ok(Self {
            app: application.id.clone(),
            query,
            name: known
                .map(|query| query.name.clone())
                .filter(|name| !name.is_empty()),
            slots: recorded.slots,
            executors: recorded.executors,
            tasks: own.map(|stage| stage.tasks.len()).sum(),
            measured_s: recorded.seconds,
            now_s: model.now(),
            replay_error: model.error(),
            reliable,
            changes: changes.iter().map(ToString::to_string).collect(),
            estimate,
            each: if changes.is_empty() {
                each(&model, &recorded, asked)
            } else {
                Vec::new()
            },
            floors: if changes.is_empty() {
                floors(&model)
            } else {
                Vec::new()
            },
            notes,
            source,
            shares_cpus: recorded.cpus.is_some(),
        })
    }

    /// In local mode all slots are on one machine.
    fn note_cpus(
        &mut self,
        report: &Report<'_>,
        app: &str,
        changes: &[Change],
    ) -> Result<(), ReportError> {
        let asked = match changes {
            [] => Some(self.slots.saturating_mul(2)),
            _ => None,
        };
        let of_changes = changes.iter().find_map(|change| match change {
            Change::Slots(slots) => Some(*slots),
            Change::Executors(executors) => {
                Some(executors.saturating_mul(self.slots / self.executors.max(1)))
            }
            _ => None,
        });
        let is_local = self.executors == 1 && is_local(report, app);
        let Some(slots) = asked.or(of_changes).filter(|_| is_local) else {
            return Ok(());
        };
        let hosts = report.profile.rows::<HostRow>()?;
        let cpus = hosts
            .iter()
            .filter(|row| row.app == app)
            .map(HostRow::usable_cpus)
            .max();
        if let Some(cpus) = cpus.filter(|cpus| slots > *cpus as usize) {
            self.notes.push(format!(
                "the machine has {}: more slots than that share them{}",
                counted(cpus, "CPU"),
                if self.shares_cpus {
                    ""
                } else {
                    ", which the replay does not know"
                }
            ));
        }
        Ok(())
    }

    /// The command that shows all changes.
    fn overview(&self) -> String {
        let query = self
            .query
            .map_or_else(String::new, |query| format!(" --query {query}"));
        format!("unfuse what-if {}{query}", shell(&self.source))
    }
}

/// Whether a change is about a query by its nature.
fn needs_query(change: &Change) -> bool {
    matches!(change, Change::Operator { .. } | Change::WithoutQuery(_))
}

/// The application that is asked about.
fn application<'a>(
    report: &'a Report<'_>,
    question: &Question<'_>,
    notes: &mut Vec<String>,
) -> Result<&'a str, ReportError> {
    let summary = &report.summary;
    if let Some(wanted) = question.app {
        let index = application_index(summary, wanted)?;
        return Ok(&summary.applications[index].id);
    }
    // Sorted by CPU time.
    let queries = summary.queries.iter();
    let mut of_query =
        queries.filter(|known| question.query.is_none() || known.query == question.query);
    let most = match question.query {
        Some(_) => of_query.next().map(|query| query.app),
        None => (0..summary.applications.len()).max_by_key(|app| {
            let own = summary.queries.iter().filter(|query| query.app == *app);
            own.fold(0u64, |sum, query| sum.saturating_add(query.cost.cpu_ns))
        }),
    };
    // A query that no application has is refused with those that there are.
    let most = most.or((!summary.applications.is_empty()).then_some(0));
    let app = most
        .and_then(|app| summary.applications.get(app))
        .ok_or_else(|| {
            ReportError::Refused(format!("{} has no Spark application", summary.profile))
        })?;
    if summary.applications.len() > 1 {
        notes.push(format!(
            "of {} this is {}; choose another with --app",
            counted(summary.applications.len(), "application"),
            app.id
        ));
    }
    Ok(&app.id)
}

/// The names of the nodes of a query's plan.
fn operators(report: &Report<'_>, app: &str, query: Option<i64>) -> Operators {
    let plan = query.and_then(|query| report.profile.plans.get(&ExecutionId::new(app, query)));
    let nodes = plan.map_or(&[][..], |plan| &plan.nodes);
    let named = nodes.iter().map(|node| (node.id, name(&node.operator)));
    named.collect()
}

/// The query of an application that has only one.
fn only_query(report: &Report<'_>, app: &str) -> Result<i64, ReportError> {
    let mut own = report.profile.plans.keys().filter(|id| id.app == app);
    match (own.next(), own.next()) {
        (Some(only), None) => Ok(only.execution),
        _ => Err(ReportError::Refused(
            "operators and neighbours are those of one query: choose it with --query".to_owned(),
        )),
    }
}

/// Whether a recorded run knows what a change is about.
fn check(change: &Change, recorded: &Recorded) -> Result<(), String> {
    let has = |kind: PartKind| recorded.parts.iter().position(|part| part.kind == kind);
    let kind = match change {
        Change::EndlessDisk => PartKind::Disk,
        Change::NoCpuWait => PartKind::CpuWait,
        Change::Python(_) => PartKind::Python,
        Change::Executors(_) if recorded.executors == 0 => {
            return Err(format!("{change}: no executor with cores is known"));
        }
        _ => return Ok(()),
    };
    let Some(part) = has(kind) else {
        return Err(format!(
            "{change}: it has no waits. Profiles that perf_event recorded with waits=on, which is the default, have them; event \
             logs do not"
        ));
    };
    if kind == PartKind::Python && sum(recorded, part) <= 0.0 {
        return Err(format!("{change}: no task waited for a Python worker"));
    }
    Ok(())
}

/// Seconds of a part in the tasks that are asked about.
fn sum(recorded: &Recorded, part: usize) -> f64 {
    let own = recorded.stages.iter().filter(|stage| stage.own);
    let tasks = own.flat_map(|stage| &stage.tasks);
    tasks.filter_map(|task| task.parts.get(part)).sum()
}

/// What the answer about a change does not know.
fn note(change: &Change, recorded: &Recorded, operators: &Operators) -> Option<String> {
    let text = match change {
        Change::EndlessSlots => MORE_SLOTS,
        Change::Slots(_) | Change::Executors(_) if recorded.cpus.is_some() => {
            "the replay computes the waits for CPUs anew; the interval includes that they stay as recorded"
        }
        Change::Slots(slots) if *slots > recorded.slots => MORE_SLOTS,
        Change::Executors(executors) if *executors > recorded.executors => MORE_SLOTS,
        Change::Slots(_) | Change::Executors(_) => {
            "tasks keep the times that they had; the interval includes that they no longer wait for a CPU"
        }
        Change::NoGc => {
            "only waits of tasks for garbage collection are taken out, not those of the driver"
        }
        Change::NoSkew => "the same work, spread evenly over the tasks that each stage has",
        Change::Operator { node, .. } => {
            let name = operators.get(node).map_or("unknown", String::as_str);
            return Some(format!(
                "node {node} is {name}. The processor works on several fused operators at once, so less work in one of them can save \
                 less or more than its share (docs/what-if.md)"
            ));
        }
        Change::WithoutQuery(_) => {
            "the waits that blame attributes to it are taken out, in proportion to how long each task ran beside it"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

const MORE_SLOTS: &str =
    "tasks keep the times that they had: what more of them at once do to each other is not known";

/// The warning if the replay of the unchanged run is too far from the measured time, as a share of that.
fn warning(replay_error: f64) -> Option<String> {
    (replay_error.abs() > MOST_ERROR).then(|| {
        format!(
            "not reliable: the replay of the unchanged run is {} from the measured time, more than {}",
            percent(replay_error.abs()),
            percent(MOST_ERROR)
        )
    })
}
