//! One profile as one page: its contents ([`Summary`], [`QueryDetail`], …) and the HTML file with all of them.
//!
//! The summary is cheap and made at once. Details of a query are made on request, so several can be made in parallel,
//! and memory never holds all of them.

pub mod advise;
mod analyses;
pub mod blame;
mod bundle;
mod calls;
pub mod check;
mod compare;
mod error;
mod families;
mod flame;
pub mod history;
mod html;
pub mod impact;
mod lines;
mod model;
mod names;
mod numbered;
pub mod plan;
mod query;
mod rows;
pub mod schemas;
pub mod size;
pub mod skew;
mod sources;
mod stages;
pub mod text;
pub mod top;
#[cfg(test)]
mod typescript;
pub mod verdict;
mod wait;
pub mod what_if;
pub mod why;
mod words;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use std::panic::resume_unwind;
use std::sync::OnceLock;

use rayon::prelude::*;
use unfuse_format::{ExecutionId, FormatError, StageAttempt, TaskRow};
use unfuse_postprocess::{
    Execution, Fingerprint, Group, Period, Plan, Profile, Weight, execution_of, generated_hash,
    notes, query_name,
};

use lines::LineTexts;
use names::Names;
use query::Analysis;
use stages::Attempt;
use verdict::Digest;
use why::EarlierRuns;

pub use analyses::Analyses;
pub use error::ReportError;
pub use html::{Block, Details};
pub use model::*;

type TasksByStage = HashMap<StageAttempt, Vec<TaskRow>>;

/// One query, or an application's work outside queries: where its data is.
#[derive(Debug, Default)]
struct Part {
    app: String,
    execution: Option<ExecutionId>,
    /// Indices into the profile's groups.
    groups: Vec<usize>,
    /// Indices into the profile's waits.
    waits: Vec<usize>,
    stages: Vec<Attempt>,
}

impl Part {
    fn plan<'a>(&self, profile: &'a Profile) -> Option<&'a Plan> {
        profile.plans.get(self.execution.as_ref()?)
    }
}

/// A profile, sorted by query.
#[derive(Debug)]
pub struct Report<'a> {
    profile: &'a Profile,
    parts: Vec<Part>,
    tasks: TasksByStage,
    names: Names,
    line_texts: OnceLock<LineTexts>,
    summary: Summary,
    comparison: Option<Comparison>,
    earlier: Option<EarlierRuns>,
    contention: Option<Blocks>,
    skew: Option<Blocks>,
    /// What would help, by the positions of queries in the list.
    what_if: BTreeMap<usize, Block>,
}

/// Blocks of an analysis for the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocks {
    /// All queries together.
    pub all: Block,
    /// Blocks of queries, by their positions in the list.
    pub queries: BTreeMap<usize, Block>,
}

impl<'a> Report<'a> {
    /// Makes the report of a profile.
    ///
    /// # Errors
    /// If the tasks cannot be read.
    pub fn new(profile: &'a Profile) -> Result<Self, FormatError> {
        let (tasks, names) = std::thread::scope(|scope| {
            let names = scope.spawn(|| Names::new(profile));
            let tasks = profile.tasks().map(by_stage);
            (
                tasks,
                names.join().unwrap_or_else(|panic| resume_unwind(panic)),
            )
        });
        let tasks = tasks?;
        let applications = applications(profile);
        let mut parts: Vec<(Part, QuerySummary)> = parts(profile, &tasks)
            .into_par_iter()
            .map(|part| {
                let summary = summary(profile, &part, &tasks, &applications);
                (part, summary)
            })
            .collect();
        parts.sort_by(|(_, a), (_, b)| {
            let key = |query: &QuerySummary| {
                let cpu = std::cmp::Reverse(query.cost.cpu_ns);
                (query.query.is_none(), cpu, query.app, query.query)
            };
            key(a).cmp(&key(b))
        });
        let (parts, mut queries): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let families = families::families(&mut queries, &applications);
        let mut total = Cost::default();
        queries.iter().for_each(|query| total.add(query.cost));
        Ok(Self {
            profile,
            parts,
            tasks,
            names,
            line_texts: OnceLock::new(),
            summary: Summary {
                unfuse: env!("CARGO_PKG_VERSION").to_owned(),
                profile: profile.name().display().to_string(),
                total,
                applications,
                queries,
                families,
                verdict: Verdict::default(),
                advice: None,
                notes: notes(&profile.processes),
                compared: false,
                contention: false,
                skew: false,
            },
            comparison: None,
            earlier: None,
            contention: None,
            skew: None,
            what_if: BTreeMap::new(),
        })
    }

    /// Adds a comparison with an earlier profile.
    ///
    /// # Errors
    /// If tables of that profile cannot be read.
    pub fn against(mut self, before: &Report<'_>) -> Result<Self, FormatError> {
        self.comparison = Some(compare::compare(before, &self));
        self.earlier = Some(EarlierRuns::new(before, &self)?);
        self.summary.compared = true;
        Ok(self)
    }

    /// Adds the analysis of contention.
    #[must_use]
    pub fn with_contention(mut self, contention: Blocks) -> Self {
        self.summary.contention = true;
        self.mark(&contention.queries, |query| query.contention = true);
        self.contention = Some(contention);
        self
    }

    /// Adds what to change.
    #[must_use]
    pub fn with_advice(mut self, advice: Suggestions) -> Self {
        self.summary.advice = Some(advice);
        self
    }

    /// Adds the analysis of skew.
    #[must_use]
    pub fn with_skew(mut self, skew: Blocks) -> Self {
        self.summary.skew = true;
        self.mark(&skew.queries, |query| query.skew = true);
        self.skew = Some(skew);
        self
    }

    /// Adds how long queries would take with changes, by their positions in the list.
    #[must_use]
    pub fn with_what_if(mut self, blocks: BTreeMap<usize, Block>) -> Self {
        self.mark(&blocks, |query| query.what_if = true);
        self.what_if = blocks;
        self
    }

    /// Marks the queries in the list that have a block.
    fn mark(&mut self, blocks: &BTreeMap<usize, Block>, mark: impl Fn(&mut QuerySummary)) {
        for index in blocks.keys() {
            if let Some(query) = self.summary.queries.get_mut(*index) {
                mark(query);
            }
        }
    }

    /// Adds a note on missing data.
    #[must_use]
    pub fn with_note(mut self, note: String) -> Self {
        self.summary.notes.push(note);
        self
    }

    /// The summary.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The comparison.
    pub fn comparison(&self) -> Option<&Comparison> {
        self.comparison.as_ref()
    }

    /// The details of the query at an index of the list.
    ///
    /// # Panics
    /// If the index is out of bounds.
    pub fn detail(&self, index: usize) -> QueryDetail {
        let (part, texts) = (&self.parts[index], self.line_texts());
        let analysis = Analysis::new(self.profile, part);
        query::detail(
            self.profile,
            part,
            &analysis,
            &self.tasks,
            &self.names,
            texts,
        )
    }

    fn line_texts(&self) -> &LineTexts {
        let read = || LineTexts::from_profile(self.profile);
        self.line_texts.get_or_init(read)
    }

    /// The summary with the verdict.
    ///
    /// # Errors
    /// If tables of the profile cannot be read.
    pub fn summary_with_verdict(&self) -> Result<Summary, FormatError> {
        let digest = |part: &Part| Analysis::new(self.profile, part).digest(self.profile, part);
        self.with_digests(self.parts.par_iter().map(digest).collect())
    }

    /// The summary with the verdict, from the digests of all queries.
    fn with_digests(&self, digests: Vec<Digest>) -> Result<Summary, FormatError> {
        if self.profile.period() != Period::ALL {
            // Slots and executors are only known for the whole time.
            return Ok(self.summary.clone());
        }
        let verdict = verdict::verdict(self.profile, &self.summary, &self.tasks, digests)?;
        Ok(Summary {
            verdict,
            ..self.summary.clone()
        })
    }

    /// Names of the frames of all flame graphs.
    pub fn frame_names(&self) -> &FrameNames {
        &self.names.table
    }

    /// Hashes of the generated sources with samples.
    pub fn source_hashes(&self) -> Vec<&str> {
        let frames = self.profile.stacks.values().flatten();
        let hashes: BTreeSet<&str> = frames.filter_map(|f| generated_hash(&f.file)).collect();
        hashes.into_iter().collect()
    }

    /// A generated source; `None` if the profile does not have its text.
    ///
    /// # Errors
    /// If the source cannot be read.
    pub fn source(&self, hash: &str) -> Result<Option<Source>, FormatError> {
        let class = self.profile.classes.get(hash).map_or("", String::as_str);
        let text = self.profile.source(hash)?;
        Ok(text.map(|text| sources::source(class, text, self.profile.regions.get(hash))))
    }
}

/// The position of an application that is asked for by its id.
///
/// # Errors
/// The message that names those that there are.
fn application_index(summary: &Summary, wanted: &str) -> Result<usize, ReportError> {
    let applications = &summary.applications;
    let index = applications.iter().position(|app| app.id == wanted);
    index.ok_or_else(|| {
        let all: Vec<&str> = applications.iter().map(|app| app.id.as_str()).collect();
        ReportError::Refused(format!(
            "{} has no application {wanted}; it has {}",
            summary.profile,
            text::list(&all)
        ))
    })
}

fn by_stage(rows: Vec<TaskRow>) -> TasksByStage {
    let mut tasks = TasksByStage::new();
    for row in rows {
        tasks.entry(row.stage_attempt()).or_default().push(row);
    }
    for rows in tasks.values_mut() {
        rows.sort_by_key(|row| (row.index, row.task_attempt, row.task));
        // A task with several rows counts once.
        rows.dedup_by_key(|row| row.task);
    }
    tasks
}

fn parts(profile: &Profile, tasks: &TasksByStage) -> Vec<Part> {
    let mut parts: BTreeMap<(&str, Option<i64>), Part> = BTreeMap::new();
    let queries = profile.executions.keys().chain(profile.plans.keys());
    for id in queries {
        parts.entry((&id.app, Some(id.execution))).or_default();
    }
    // Stages without a query count as work outside queries, if they did any.
    let mut stages: Vec<_> = profile.stages.iter().collect();
    stages.sort_by_key(|(id, _)| *id);
    for (id, stage) in stages {
        if stage.execution.is_some() || tasks.contains_key(id) {
            let part = parts.entry((&id.app, stage.execution)).or_default();
            part.stages.push((id.stage, id.attempt));
        }
    }
    let query = |group: &Group| {
        let frames = profile.stacks.get(&group.stack);
        let frames = frames.map_or(&[][..], Vec::as_slice);
        let known = || execution_of(profile, group, frames).map(|id| id.execution);
        group.query.or_else(known)
    };
    for (group, places) in runs(&profile.groups) {
        let part = parts.entry((&group.app, query(group))).or_default();
        part.groups.extend(places);
    }
    for (group, places) in runs(&profile.waits) {
        let part = parts.entry((&group.app, query(group))).or_default();
        part.waits.extend(places);
    }
    parts
        .into_iter()
        .map(|((app, query), part)| Part {
            app: app.to_owned(),
            execution: query.map(|query| ExecutionId::new(app, query)),
            ..part
        })
        .collect()
}

/// Groups of one query that follow each other, with their indices, and each group whose query is not known by itself.
fn runs(groups: &[(Group, Weight)]) -> impl Iterator<Item = (&Group, std::ops::Range<usize>)> {
    let is_same = |a: &Group, b: &Group| a.query.is_some() && a.query == b.query && a.app == b.app;
    let mut at = 0;
    let runs = groups.chunk_by(move |(a, _), (b, _)| is_same(a, b));
    runs.filter_map(move |run| {
        let begin = at;
        at += run.len();
        run.first().map(|(group, _)| (group, begin..at))
    })
}

fn summary(
    profile: &Profile,
    part: &Part,
    tasks: &TasksByStage,
    applications: &[Application],
) -> QuerySummary {
    let mut cost = Cost::default();
    for index in &part.groups {
        cost.add(profile.groups[*index].1.into());
    }
    let nothing = Execution::default();
    let execution = part.execution.as_ref();
    let known = execution
        .and_then(|key| profile.executions.get(key))
        .unwrap_or(&nothing);
    let attempts = query::attempts(profile, part);
    let rows: Vec<&TaskRow> = attempts
        .iter()
        .filter_map(|(stage, attempt)| tasks.get(&StageAttempt::new(&part.app, *stage, *attempt)))
        .flatten()
        .collect();
    let waiting = rows.iter().map(|task| stages::waiting_ns(task));
    let plan = part.plan(profile);
    let app = applications.iter().position(|known| known.id == part.app);
    let description = match execution {
        Some(_) => known.description.clone(),
        None => "work outside queries".to_owned(),
    };
    QuerySummary {
        app: app.unwrap_or_default(),
        query: execution.map(|id| id.execution),
        started_ms: known.started_ms,
        duration_ms: known.duration_ms(),
        error: known.error.clone().filter(|error| !error.is_empty()),
        cost,
        waiting_ns: (!rows.is_empty()).then(|| waiting.fold(0, u64::saturating_add)),
        stages: attempts.len(),
        tasks: rows.len(),
        fingerprint: Fingerprint::new(&description, plan).to_string(),
        name: query_name(&description, plan),
        description,
        family: None,
        contention: false,
        what_if: false,
        skew: false,
    }
}

/// Applications by start; for those without a process, the samples decide.
fn applications(profile: &Profile) -> Vec<Application> {
    let mut applications: Vec<Application> = Vec::new();
    for process in &profile.processes {
        let (start, end) = (process.start_ns / 1_000_000, process.end_ns / 1_000_000);
        let index = applications.iter().position(|app| app.id == process.app);
        let index = index.unwrap_or_else(|| {
            applications.push(Application {
                id: process.app.clone(),
                started_ms: start,
                ..Application::default()
            });
            applications.len() - 1
        });
        let app = &mut applications[index];
        for (known, new) in [
            (&mut app.name, &process.name),
            (&mut app.spark, &process.spark),
        ] {
            if known.is_empty() {
                known.clone_from(new);
            }
        }
        app.processes += 1;
        app.rate_hz = app.rate_hz.max(process.rate_hz);
        app.started_ms = app.started_ms.min(start);
        app.ended_ms = app.ended_ms.max(end);
    }
    let executions = profile.executions.keys().map(|id| id.app.as_str());
    let groups = profile.groups.iter().map(|(group, _)| &*group.app);
    let seen: BTreeSet<&str> = executions.chain(groups).collect();
    for id in seen {
        if !applications.iter().any(|app| app.id == *id) {
            applications.push(Application {
                id: id.to_owned(),
                ..Application::default()
            });
        }
    }
    applications
}
