//! The application of a profile, with the parts of its tasks' times.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::OnceLock;

use unfuse_format::{
    ApplicationRow, Bounds, ExecutorRow, HostRow, JobRow, StageRow, TaskRow, merge_stages,
};
use unfuse_postprocess::{Profile, StackMeanings, TaskInterval};
use unfuse_sizing::what_if::{
    Application, Change, Executor, Group, Part, PartKind, Pool, Query, SharedCpus, Stage, Task,
};

use super::cache::CachedScan;
use super::neighbour::{Neighbour, set_runnable};
use super::operator::OperatorTime;
use super::saving::Saving;
use super::slots::{is_cut_by_slots, pool_of};
use crate::stages::{self, has_failed};
use crate::wait::WaitFacts;
use crate::{Report, ReportError};

/// From one time to another, ms since the epoch.
pub(super) type SpanMs = (i64, i64);

/// What is read of a profile for a question.
pub(super) struct Source<'a> {
    report: &'a Report<'a>,
    app: &'a str,
    /// The stages that are asked about.
    needed: HashSet<(i32, i32)>,
    /// What was used of the hosts, once it was asked for; nothing if that cannot be read.
    hosts: OnceLock<Vec<HostRow>>,
    /// Whether only a share of the tasks was sampled: then each task has its stage's share of the sampled time.
    is_partly_sampled: bool,
}

/// Sampled waits of a task, ns, in the order of [`WAITS`].
#[derive(Default)]
pub(super) struct Sampled {
    waits: [u64; WAITS.len()],
}

/// The parts that consist of waits; [`WaitFacts`] says which waits.
const WAITS: [PartKind; 5] = [
    PartKind::Gc,
    PartKind::Disk,
    PartKind::Network,
    PartKind::CpuWait,
    PartKind::Python,
];

impl<'a> Source<'a> {
    /// The source of a question about a query, or about all of an application.
    pub(super) fn new(report: &'a Report<'a>, app: &'a str, query: Option<i64>) -> Self {
        Self::of_stages(report, app, |of| query.is_none() || of == query)
    }

    /// The source of questions about some queries.
    pub(super) fn of_queries(
        report: &'a Report<'a>,
        app: &'a str,
        queries: &BTreeSet<i64>,
    ) -> Self {
        Self::of_stages(report, app, |of| of.is_some_and(|of| queries.contains(&of)))
    }

    /// The source with the stages of these queries.
    fn of_stages(
        report: &'a Report<'a>,
        app: &'a str,
        is_needed: impl Fn(Option<i64>) -> bool,
    ) -> Self {
        let stages = report.profile.stages.iter();
        let own = stages.filter(|(id, stage)| id.app == app && is_needed(stage.execution));
        let processes = report
            .profile
            .processes
            .iter()
            .filter(|process| process.app == app);
        Self {
            report,
            app,
            needed: own.map(|(id, _)| (id.stage, id.attempt)).collect(),
            hosts: OnceLock::new(),
            is_partly_sampled: processes
                .filter_map(|process| process.task_fraction)
                .any(|fraction| fraction < 1.0),
        }
    }

    /// The application, with the parts that are known and those that changes ask for.
    ///
    /// # Errors
    /// If the profile cannot be read, or does not know what a change is about.
    pub(super) fn application(
        &self,
        query: Option<i64>,
        changes: &[Change],
        cached: &[CachedScan],
    ) -> Result<Application, ReportError> {
        let profile = self.report.profile;
        let mut application = self.frame()?;
        application.cpus = self.shared_cpus(&self.needed);
        let mut operators = Vec::new();
        let mut neighbours = Vec::new();
        for change in changes {
            match (*change, query) {
                (Change::Operator { node, .. }, Some(query)) => {
                    operators.push(OperatorTime::new(self.report, self.app, query, node, None)?);
                }
                (Change::WithoutQuery(other), Some(query)) => {
                    neighbours.push(Neighbour::new(self.report, self.app, query, other)?);
                }
                _ => {}
            }
        }
        for scan in cached {
            let Some(query) = query else { break };
            let (node, cached) = (scan.node, Some(*scan));
            operators.push(OperatorTime::new(
                self.report,
                self.app,
                query,
                node,
                cached,
            )?);
        }
        let sampled = self.sampled(&mut operators)?;
        let knows_waits = !profile.waits.is_empty();
        application.parts = match knows_waits {
            true => WAITS.map(Part::new).to_vec(),
            false => vec![Part::new(PartKind::Gc), Part::new(PartKind::Network)],
        };
        let mut kinds = application.parts.iter().map(|part| part.kind);
        let cpu_wait_at = kinds.position(|kind| kind == PartKind::CpuWait);
        let shares = self.is_partly_sampled.then(|| self.shares(&sampled));
        for stage in &mut application.stages {
            let key = (stage.stage, stage.attempt);
            let rows = self.tasks(key);
            let share = shares.as_ref().and_then(|shares| shares.get(&key));
            for (task, row) in stage.tasks.iter_mut().zip(rows) {
                task.parts = match (knows_waits, share) {
                    (true, Some(share)) => share.iter().map(|share| share * ran_s(row)).collect(),
                    (true, None) => seconds(sampled.get(&row.task)),
                    (false, _) => vec![s_of_ms(row.gc_ms), s_of_ms(row.shuffle_fetch_wait_ms)],
                };
                let cpu_wait = cpu_wait_at.map_or(0.0, |at| task.parts[at]);
                for operator in &operators {
                    let by_stage = self.is_partly_sampled;
                    task.parts
                        .extend(operator.all_seconds(key, row, by_stage, cpu_wait));
                }
                task.parts
                    .extend(neighbours.iter().map(|other| other.seconds(key, row)));
                task.parts.push(cpu_s(row));
            }
        }
        let stages: Vec<(i32, i32)> = application
            .stages
            .iter()
            .map(|stage| (stage.stage, stage.attempt))
            .collect();
        let operators = operators
            .iter()
            .flat_map(|operator| operator.parts(&stages));
        application.parts.extend(operators);
        application
            .parts
            .extend(neighbours.iter().map(Neighbour::part));
        application.parts.push(Part::new(PartKind::Cpu));
        set_runnable(&mut application, &neighbours);
        Ok(application)
    }

    /// The application, with what neighbours cost its tasks, and their CPU time, as the only parts.
    ///
    /// # Errors
    /// If the profile cannot be read.
    pub(super) fn beside(&self, neighbours: &[Neighbour]) -> Result<Application, ReportError> {
        let mut application = self.frame()?;
        application.cpus = self.shared_cpus(&self.needed);
        for stage in &mut application.stages {
            let key = (stage.stage, stage.attempt);
            for (task, row) in stage.tasks.iter_mut().zip(self.tasks(key)) {
                let parts = neighbours.iter().map(|other| other.seconds(key, row));
                task.parts = parts.chain([cpu_s(row)]).collect();
            }
        }
        let parts = neighbours.iter().map(Neighbour::part);
        application.parts = parts.chain([Part::new(PartKind::Cpu)]).collect();
        set_runnable(&mut application, neighbours);
        Ok(application)
    }

    /// The application, with what each of some savings takes out of its tasks as the only parts.
    ///
    /// # Errors
    /// If the profile cannot be read.
    pub(super) fn with_savings(&self, savings: &[&Saving]) -> Result<Application, ReportError> {
        let mut application = self.frame()?;
        let mut work: Vec<OperatorTime> = savings
            .iter()
            .map(|saving| OperatorTime::from_stacks(saving.stacks.iter().copied()))
            .collect();
        let sampled = self.sampled(&mut work)?;
        let shares = self.is_partly_sampled.then(|| self.shares(&sampled));
        let wait = |kind| WAITS.iter().position(|known| *known == kind);
        let own = application.stages.iter_mut();
        for stage in own.filter(|stage| self.needed.contains(&(stage.stage, stage.attempt))) {
            let key = (stage.stage, stage.attempt);
            let share = shares.as_ref().and_then(|shares| shares.get(&key));
            for (task, row) in stage.tasks.iter_mut().zip(self.tasks(key)) {
                let waits: Vec<f64> = match share {
                    Some(share) => share.iter().map(|share| share * ran_s(row)).collect(),
                    None => seconds(sampled.get(&row.task)),
                };
                let waited = |kind| wait(kind).map_or(0.0, |at| waits[at]);
                let parts = savings.iter().zip(&work).map(|(saving, work)| {
                    let by_stage = self.is_partly_sampled;
                    let cpu = work.seconds(key, row, by_stage)
                        + work.cpu_wait(key, row, by_stage, waited(PartKind::CpuWait));
                    let waits: f64 = saving.waits.iter().map(|kind| waited(*kind)).sum();
                    let whole = saving.tasks.get(&row.task).copied().unwrap_or(0.0);
                    (cpu + waits + whole) * saving.share()
                });
                task.parts = parts.collect();
            }
        }
        let stages: Vec<(i32, i32)> = application
            .stages
            .iter()
            .map(|stage| (stage.stage, stage.attempt))
            .collect();
        let parts = savings.iter().zip(&work);
        let parts = parts.map(|(saving, work)| saving.part(work.samples(&stages)));
        application.parts = parts.collect();
        Ok(application)
    }

    /// The application without the parts of its tasks' times.
    fn frame(&self) -> Result<Application, ReportError> {
        let profile = self.report.profile;
        let mut application = Application {
            id: self.app.to_owned(),
            task_cpus: 1,
            ..Application::default()
        };
        for row in profile.rows::<ApplicationRow>()? {
            if row.app == self.app {
                application.started_ms = application.started_ms.or(row.started_ms);
                application.ended_ms = row.ended_ms.or(application.ended_ms);
                let cpus = row
                    .settings
                    .iter()
                    .find(|set| set.name == "spark.task.cpus");
                if let Some(cpus) = cpus.and_then(|set| set.value.trim().parse().ok()) {
                    application.task_cpus = cpus;
                }
            }
        }
        let mut executors: BTreeMap<String, Executor> = BTreeMap::new();
        for row in profile.rows::<ExecutorRow>()? {
            if row.app == self.app {
                let executor = executors.entry(row.executor.clone()).or_default();
                executor.id = row.executor;
                executor.cores = executor.cores.max(row.cores);
                executor.added_ms = row.added_ms.or(executor.added_ms);
                executor.removed_ms = row.removed_ms.or(executor.removed_ms);
            }
        }
        application.executors = executors.into_values().collect();
        let own = profile
            .executions
            .iter()
            .filter(|(id, _)| id.app == self.app);
        application.queries = own
            .map(|(id, known)| {
                let query = Query {
                    name: profile.query_name(id),
                    started_ms: known.started_ms,
                    ended_ms: known.ended_ms,
                    error: known.error.clone(),
                };
                (id.execution, query)
            })
            .collect();
        application.stages = self.stages()?;
        Ok(application)
    }

    /// The shared CPUs of one query of the application.
    pub(super) fn cpus_of(&self, application: &Application, query: i64) -> Option<SharedCpus> {
        let own = application.stages.iter();
        let own = own.filter(|stage| stage.group == Group::Query(query));
        self.shared_cpus(&own.map(|stage| (stage.stage, stage.attempt)).collect())
    }

    /// In local mode: the CPUs that all slots share, and what all but the tasks of some stages used of them while these ran.
    fn shared_cpus(&self, stages: &HashSet<(i32, i32)>) -> Option<SharedCpus> {
        if !is_local(self.report, self.app) {
            return None;
        }
        let own = || stages.iter().flat_map(|place| self.tasks(*place));
        let (from, to) = own().fold((i64::MAX, i64::MIN), |(from, to), task| {
            (from.min(task.launched_ms), to.max(task.finished_ms))
        });
        let read = || self.report.profile.rows::<HostRow>().unwrap_or_default();
        let rows: Vec<&HostRow> = self
            .hosts
            .get_or_init(read)
            .iter()
            .filter(|row| row.app == self.app && row.start_ns < row.end_ns)
            .filter(|row| ms(row.start_ns) < to && from < ms(row.end_ns))
            .collect();
        let start = rows.iter().map(|row| row.start_ns).min()?;
        let end = rows.iter().map(|row| row.end_ns).max()?;
        let (mut count, mut used, mut seconds) = (0.0, 0.0, 0.0);
        for row in &rows {
            let cpus = f64::from(row.usable_cpus());
            // A container contends for its limit, and its own processes use that.
            let limit = row.cpu_limit.filter(|limit| *limit > 0.0 && *limit < cpus);
            count = f64::max(count, limit.unwrap_or(cpus));
            used += match limit {
                Some(_) => row.group_cpu_s?,
                None => row.usable_cpu_s(),
            };
            seconds += row.end_ns.saturating_sub(row.start_ns) as f64 / 1e9;
        }
        let span = (ms(start), ms(end));
        let by_tasks: f64 = own().map(|task| cpu_within(span, task)).sum();
        let others = ((used - by_tasks) / seconds).max(0.0);
        (count > 0.0 && others.is_finite()).then_some(SharedCpus { count, others })
    }

    fn stages(&self) -> Result<Vec<Stage>, ReportError> {
        let profile = self.report.profile;
        let mut job_of: HashMap<i32, i64> = HashMap::new();
        for row in profile.rows::<JobRow>()? {
            if row.app == self.app {
                for stage in row.stages {
                    job_of.entry(stage).or_insert(row.job);
                }
            }
        }
        let known = merge_stages(profile.rows::<StageRow>()?);
        // Tasks may be there whose stage's rows were lost.
        let with_tasks = self.report.tasks.keys();
        let mut keys: Vec<_> = known
            .keys()
            .chain(with_tasks)
            .filter(|id| id.app == self.app)
            .collect();
        keys.sort();
        keys.dedup();
        let stages = keys.into_iter().map(|id| {
            let row = known.get(id);
            let tasks = self.tasks((id.stage, id.attempt)).iter().map(|row| Task {
                launched_ms: row.launched_ms,
                finished_ms: row.finished_ms,
                failed: has_failed(row),
                parts: Vec::new(),
            });
            Stage {
                stage: id.stage,
                attempt: id.attempt,
                group: match (row.and_then(|row| row.execution), job_of.get(&id.stage)) {
                    (Some(query), _) => Group::Query(query),
                    (None, Some(job)) => Group::Job(*job),
                    (None, None) => Group::Unknown,
                },
                parents: row.map_or_else(Vec::new, |row| row.parents.clone()),
                submitted_ms: row.and_then(|row| row.submitted_ms),
                pool: row.map_or_else(Pool::default, pool_of),
                splits: row.is_some_and(|row| is_cut_by_slots(self.report, row)),
                runnable: None,
                tasks: tasks.collect(),
            }
        });
        Ok(stages.collect())
    }

    fn tasks(&self, (stage, attempt): (i32, i32)) -> &'a [TaskRow] {
        let key = unfuse_format::StageAttempt::new(self.app, stage, attempt);
        self.report.tasks.get(&key).map_or(&[][..], Vec::as_slice)
    }

    /// What was sampled in each task; the operators take their samples on the way.
    fn sampled(
        &self,
        operators: &mut [OperatorTime],
    ) -> Result<HashMap<i64, Sampled>, ReportError> {
        let profile = self.report.profile;
        let mut sampled: HashMap<i64, Sampled> = HashMap::new();
        let only_waits = operators.is_empty();
        for interval in self.intervals(profile, only_waits)? {
            operators
                .iter_mut()
                .for_each(|operator| operator.add(&interval));
            let Some(reason) = interval.waiting.filter(|_| !interval.in_python) else {
                continue;
            };
            let part = WaitFacts::from_reason(reason).part;
            if let Some(part) = WAITS.iter().position(|kind| part == Some(*kind)) {
                let waits = &mut sampled.entry(interval.task).or_default().waits[part];
                *waits = waits.saturating_add(interval.ns);
            }
        }
        Ok(sampled)
    }

    fn intervals(
        &self,
        profile: &Profile,
        only_waits: bool,
    ) -> Result<Vec<TaskInterval>, ReportError> {
        let needs = || {
            |app: &str, stage: i32, attempt: i32| {
                app == self.app && self.needed.contains(&(stage, attempt))
            }
        };
        let stages = self.needed.iter().map(|(stage, _)| i64::from(*stage));
        let (first, last) = (stages.clone().min(), stages.max());
        let Some((first, last)) = first.zip(last) else {
            return Ok(Vec::new());
        };
        let bounds = Bounds::ALL.and("stage", first..=last);
        let meanings = StackMeanings::default();
        Ok(profile.task_intervals(&bounds, &meanings, &needs, &|_, _| only_waits)?)
    }

    /// The share of the tasks' run time that each stage waited, by part. Samples of a share of the tasks stand for all.
    fn shares(&self, sampled: &HashMap<i64, Sampled>) -> HashMap<(i32, i32), Vec<f64>> {
        let share = |key: &(i32, i32)| {
            let rows = self.tasks(*key);
            let ran: f64 = rows.iter().map(ran_s).sum();
            let mut sums = vec![0.0; WAITS.len()];
            for row in rows {
                for (sum, part) in sums.iter_mut().zip(seconds(sampled.get(&row.task))) {
                    *sum += part;
                }
            }
            let share = sums
                .iter()
                .map(|sum| if ran > 0.0 { sum / ran } else { 0.0 });
            (*key, share.collect())
        };
        self.needed.iter().map(share).collect()
    }
}

fn seconds(sampled: Option<&Sampled>) -> Vec<f64> {
    let nothing = Sampled::default();
    let waits = sampled.unwrap_or(&nothing).waits;
    waits.iter().map(|ns| *ns as f64 / 1e9).collect()
}

/// How long a task ran, s.
pub(super) fn ran_s(row: &TaskRow) -> f64 {
    s_of_ms(row.run_ms)
}

/// Whether all slots of an application are in its driver.
pub(crate) fn is_local(report: &Report<'_>, app: &str) -> bool {
    let mut own = report.tasks.iter().filter(|(id, _)| id.app == app);
    own.any(|(_, tasks)| tasks.iter().any(|task| task.executor == "driver"))
}

/// How long a task ran within a span, ms.
pub(super) fn ms_within((from, to): SpanMs, task: &TaskRow) -> i64 {
    let end = task.finished_ms.min(to);
    end.saturating_sub(task.launched_ms.max(from)).max(0)
}

/// CPU time of a task, s.
fn cpu_s(task: &TaskRow) -> f64 {
    stages::cpu_ns(task) as f64 / 1e9
}

/// CPU time of a task within a span, s: it is taken to use it evenly.
fn cpu_within(span: SpanMs, task: &TaskRow) -> f64 {
    let ran = stages::duration_ms(task).max(1);
    cpu_s(task) * (ms_within(span, task) as f64 / ran as f64)
}

fn ms(ns: i64) -> i64 {
    ns.div_euclid(1_000_000)
}

fn s_of_ms(ms: i64) -> f64 {
    ms.max(0) as f64 / 1e3
}
