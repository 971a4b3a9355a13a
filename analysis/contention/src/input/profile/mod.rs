//! Makes the tables from a profile of Spark.

mod consumption;
mod held;
mod index;
mod needed;
mod possible;
mod queued;
mod recorded;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use unfuse_format::{ExecutionId, FormatError, StageAttempt, StageRow, counted};
use unfuse_postprocess::{Profile, operator_shares};

use self::consumption::BlockedTimeSource;
pub use self::index::StageIndex;
use self::needed::RowsNeeded;
use self::recorded::RecordedRows;
use super::{BlockedTime, Builder, Input, cache, hosts, position, slots, withheld};
use crate::workload::WEIGHTS;
use crate::{Executor, HostId, Kind, OperatorShare, Query, QueryId, Span, Stage, StageId, TaskId};

/// Queries of the second application are numbered from here, those of the third from twice that, and so on.
pub(super) const PER_APPLICATION: u64 = 1_000_000_000;
/// The number of work outside SQL executions.
const NO_QUERY: u64 = PER_APPLICATION - 1;
/// A larger difference between clocks is worth a note, ns.
const SAME_CLOCK: u64 = 1_000_000_000;

/// The number of a query's application, from 0.
pub(super) fn application(query: QueryId) -> u32 {
    u32::try_from(query.0 / PER_APPLICATION).unwrap_or(u32::MAX)
}

/// The contention tables of a profile. A query's id is its SQL execution id.
///
/// # Errors
/// A [`FormatError`] if the profile cannot be read; missing tables become notes.
pub fn from_profile(profile: &Profile, blocked: BlockedTime) -> Result<Input, FormatError> {
    StageIndex::read(profile)?.input(blocked, None)
}

impl StageIndex<'_> {
    /// The contention tables of a profile. Reads only the rows that matter for `victims`; all rows without victims.
    /// Queries and hosts have the same ids in all answers of an index.
    ///
    /// # Errors
    /// As for [`from_profile`].
    pub fn input(
        &mut self,
        blocked: BlockedTime,
        victims: Option<&BTreeSet<QueryId>>,
    ) -> Result<Input, FormatError> {
        let needed = victims.map_or(RowsNeeded::All, |victims| self.needed(victims));
        let recorded = RecordedRows::read(self, &needed)?;
        let mut builder = Builder::default();
        for name in &self.host_names {
            builder.host(name);
        }
        builder.notes.extend_from_slice(&recorded.notes);
        builder.metered = recorded.intervals.len();
        builder.waits_unknown =
            recorded.intervals.is_empty() && recorded.sampled.iter().all(|s| s.waiting.is_none());
        let of_processes = unfuse_postprocess::notes(&self.profile.processes);
        builder.notes.extend(of_processes);
        let reader = Reader {
            index: self,
            needed: &needed,
            builder,
            stages: BTreeMap::new(),
            tasks: HashMap::new(),
            executors: BTreeMap::new(),
            undated: BTreeSet::new(),
            clocks: BTreeMap::new(),
        };
        let input = reader.input(&recorded, blocked);
        let hosts = input.tables.hosts.iter();
        self.host_names = hosts.map(|host| host.name.clone()).collect();
        Ok(input)
    }
}

/// The number of an application, and a task attempt's id in it.
type AppTask = (u32, i64);

struct Reader<'a> {
    index: &'a StageIndex<'a>,
    needed: &'a RowsNeeded,
    builder: Builder,
    stages: BTreeMap<StageAttempt, StageId>,
    tasks: HashMap<AppTask, TaskId>,
    /// Executors by application and id.
    executors: BTreeMap<(String, String), Executor>,
    /// Stages whose start is unknown.
    undated: BTreeSet<StageId>,
    /// The difference from the driver's clock to that of a host, ns.
    clocks: BTreeMap<HostId, i64>,
}

impl Reader<'_> {
    fn input(mut self, recorded: &RecordedRows, blocked: BlockedTime) -> Input {
        self.queries_and_stages(recorded);
        self.tasks(recorded);
        let blocked = self.possible(recorded, blocked);
        let are_measured = matches!(blocked, BlockedTimeSource::Measured);
        self.held(recorded);
        self.used(recorded);
        match blocked {
            BlockedTimeSource::Measured => self.measured(recorded),
            BlockedTimeSource::Paper => self.as_in_the_paper(recorded, false),
            BlockedTimeSource::Substitute => self.as_in_the_paper(recorded, true),
        }
        for held in cache::holders(&self.index.cached, &self.index.ends_ns) {
            self.cached(&held);
        }
        let waiting = self.pending();
        let busy = hosts::BusyCpus::from_rows(&mut self.builder, &self.index.hosts);
        slots::add(&mut self.builder, &waiting, &busy);
        let jvms = self.jvms();
        let StageIndex {
            hosts, neighbours, ..
        } = self.index;
        if are_measured {
            withheld::add(&mut self.builder, hosts, &jvms);
        }
        hosts::add(&mut self.builder, hosts, &jvms, neighbours);
        if are_measured {
            self.queued(recorded);
        }
        self.date_stages();
        self.operators();
        self.running();
        self.number_applications();
        let tasks = self.tasks.into_iter();
        Input {
            spark_tasks: tasks.map(|((_, number), id)| (id, number)).collect(),
            ..self.builder.finish()
        }
    }

    fn app_task(&self, app: &str, task: i64) -> AppTask {
        (application(self.index.query_id(app, None)), task)
    }

    /// The task of a row that [`Reader::tasks`] has read.
    fn known_task(&self, app: &str, task: i64) -> TaskId {
        self.tasks[&self.app_task(app, task)]
    }

    fn queries_and_stages(&mut self, recorded: &RecordedRows) {
        for (key, row) in &self.index.stages {
            self.add_query(&key.app, row);
            self.add_stage(key, row);
        }
        // From rows, not from the index: a running application may have written more of them since.
        let tasks = recorded.tasks.iter();
        let tasks = tasks.map(|row| (row.app.as_str(), row.stage, row.attempt));
        let intervals = recorded.intervals.iter();
        let intervals = intervals.map(|row| (row.app.as_str(), row.stage, row.attempt));
        let sampled = recorded.sampled.iter();
        let sampled = sampled.map(|row| (&*row.app, row.stage, row.attempt));
        let mut lost = BTreeSet::new();
        let mut last = None;
        for row in tasks.chain(intervals).chain(sampled) {
            // Rows of a stage mostly follow each other.
            if last.replace(row) != Some(row) {
                let (app, stage, attempt) = row;
                let stage = StageAttempt::new(app, stage, attempt);
                lost.extend(Some(stage).filter(|stage| !self.index.stages.contains_key(stage)));
            }
        }
        if !lost.is_empty() {
            self.builder.notes.push(format!(
                "{} without a known query {} tasks: the driver's tables are not complete",
                counted(lost.len(), "stage"),
                if lost.len() == 1 { "has" } else { "have" }
            ));
        }
        for key in lost {
            self.add_query(&key.app, &StageRow::default());
            self.add_stage(&key, &StageRow::default());
        }
    }

    fn add_query(&mut self, app: &str, row: &StageRow) {
        let query = self.index.query_id(app, row.execution);
        let execution = (app.to_owned(), row.execution);
        if self.builder.executions.insert(execution, query).is_some() {
            return;
        }
        // Each application has its own ids of executions.
        let of = match self.index.applications.len() {
            0 | 1 => String::new(),
            _ => format!("{app} "),
        };
        let label = match row.execution {
            Some(execution) => {
                let id = ExecutionId::new(app, execution);
                let name = self.index.profile.known_query_name(&id);
                name.map_or_else(
                    || format!("{of}query {execution}"),
                    |name| format!("{of}query {execution}: {name}"),
                )
            }
            None => format!("{of}jobs without a query"),
        };
        self.builder.query(Query {
            id: query,
            name: query.0.to_string(),
            application: app.to_owned(),
            label,
            user: row.user.clone(),
            pool: row.pool.clone(),
            weight: f64::from(row.pool_weight.filter(|weight| *weight > 0).unwrap_or(1))
                .min(*WEIGHTS.end()),
        });
    }

    fn add_stage(&mut self, key: &StageAttempt, row: &StageRow) {
        let query = self.index.query_id(&key.app, row.execution);
        let id = StageId {
            query,
            stage: key.stage.max(0).cast_unsigned(),
            attempt: key.attempt.max(0).cast_unsigned(),
        };
        if row.submitted_ms.is_none() {
            self.undated.insert(id);
        }
        let start = ns(row.submitted_ms.unwrap_or(0));
        let end = self.index.end_of(key, row);
        let parents = row.parents.iter().map(|id| id.max(&0).cast_unsigned());
        self.builder.stage(Stage {
            id,
            parents: parents.collect(),
            span: Span {
                start: start.max(0),
                end: end.max(0),
            },
        });
        self.stages.insert(key.clone(), id);
    }

    /// Adds the tasks that did anything, each on its host.
    fn tasks(&mut self, recorded: &RecordedRows) {
        let mut homes: HashMap<(&str, &str), &str> = HashMap::new();
        for process in &self.index.profile.processes {
            homes.insert((&process.app, &process.executor), &process.host);
        }
        let mut begins: BTreeMap<TaskId, i64> = BTreeMap::new();
        for row in &recorded.intervals {
            let stage = (row.app.as_str(), row.stage, row.attempt);
            let task = self.task(stage, row.task, &row.host, &row.executor);
            let begin = begins.entry(task).or_insert(row.start_ns);
            *begin = row.start_ns.min(*begin);
        }
        for row in &recorded.sampled {
            let stage = (&*row.app, row.stage, row.attempt);
            self.task(stage, row.task, &row.host, &row.executor);
        }
        for row in &recorded.tasks {
            let home = homes.get(&(row.app.as_str(), row.executor.as_str()));
            let stage = (row.app.as_str(), row.stage, row.attempt);
            let host = home.map_or(row.host.as_str(), |home| *home);
            let known = self.tasks.contains_key(&self.app_task(&row.app, row.task));
            let task = self.task(stage, row.task, host, &row.executor);
            if !known {
                // Nothing is known about its work, only that it existed.
                self.builder.tables.tasks[position(task)].span = Span {
                    start: ns(row.launched_ms).max(0),
                    end: ns(row.finished_ms).max(ns(row.launched_ms)).max(0),
                };
            }
        }
        self.compare_clocks(recorded, &begins);
    }

    fn task(
        &mut self,
        (app, stage, attempt): (&str, i32, i32),
        task: i64,
        host: &str,
        executor: &str,
    ) -> TaskId {
        let key = self.app_task(app, task);
        if let Some(task) = self.tasks.get(&key) {
            return *task;
        }
        let host = self.builder.host(host);
        let executor = self.executor(app, executor);
        let stage = self.stages[&StageAttempt::new(app, stage, attempt)];
        let task = self.builder.task(stage, host, executor, true);
        self.tasks.insert(key, task);
        task
    }

    fn executor(&mut self, app: &str, id: &str) -> Executor {
        let application = application(self.index.query_id(app, None));
        let number = self.executors.len() as u32;
        let executor = Executor {
            application,
            number,
        };
        let key = (app.to_owned(), id.to_owned());
        *self.executors.entry(key).or_insert(executor)
    }

    /// The executors in which tasks ran or blocks were stored, by process.
    fn jvms(&self) -> hosts::Processes {
        let jvms = self.index.profile.processes.iter().filter_map(|process| {
            let key = (process.app.clone(), process.executor.clone());
            let executor = *self.executors.get(&key)?;
            Some(((key.0, process.host.clone(), process.pid), executor))
        });
        jvms.collect()
    }

    /// Estimates the difference of each host's clock from the driver's, by the starts of tasks on the host and their
    /// launches by the driver.
    fn compare_clocks(&mut self, recorded: &RecordedRows, begins: &BTreeMap<TaskId, i64>) {
        let mut apart: BTreeMap<HostId, Vec<i64>> = BTreeMap::new();
        for row in &recorded.tasks {
            let task = self.known_task(&row.app, row.task);
            if let Some(begin) = begins.get(&task) {
                let host = self.builder.host_of(task);
                apart
                    .entry(host)
                    .or_default()
                    .push(begin - ns(row.launched_ms));
            }
        }
        for (host, mut apart) in apart {
            apart.sort_unstable();
            let median = apart[apart.len() / 2];
            if median.unsigned_abs() <= SAME_CLOCK {
                continue;
            }
            self.clocks.insert(host, median);
            let name = &self.builder.tables.hosts[host.0 as usize].name;
            self.builder.notes.push(format!(
                "tasks begin {:.1} s {} on {name} than the driver launches them: its clock differs, or tasks wait there; \
                 the driver's times are moved by that much",
                median.unsigned_abs() as f64 / 1e9,
                if median < 0 { "earlier" } else { "later" }
            ));
        }
    }

    fn cached(&mut self, held: &cache::CachedBlocks) {
        let stage = held.stage.and_then(|stage| {
            let mut attempts = self.stages.range(StageAttempt::new(&held.app, stage, 0)..);
            let (key, id) = attempts.next()?;
            key.is_of(&held.app, stage).then_some(*id)
        });
        let mut processes = self.index.profile.processes.iter();
        let process =
            processes.find(|process| process.app == held.app && process.executor == held.executor);
        if let Some((stage, process)) = stage.zip(process) {
            let host = self.builder.host(&process.host);
            let executor = self.executor(&held.app, &held.executor);
            let holder = self.builder.task(stage, host, executor, false);
            let clock = self.clocks.get(&host).copied().unwrap_or(0);
            for (span, bytes) in &held.spans {
                let units = bytes * span.seconds();
                let span = Span {
                    start: span.start + clock,
                    end: span.end + clock,
                };
                self.builder
                    .interval(holder, Kind::StorageMemory, span, units, 0);
            }
        }
    }

    /// Numbers of submitted tasks that did not run yet, by stage and time, in the clocks of their hosts.
    fn pending(&self) -> slots::PendingTasks {
        let mut pending = slots::PendingTasks::default();
        let stages = self.index.stages.iter();
        for (key, row) in stages.filter(|(key, _)| self.needed.holds(key)) {
            if let Some(submitted) = row.submitted_ms {
                let id = self.stages[key];
                pending.submitted(id, ns(submitted), row.tasks.max(0).cast_unsigned());
                pending.completed(id, self.index.end_of(key, row));
            }
        }
        let runs = self.builder.tables.tasks.iter().filter(|task| task.runs);
        for task in runs.filter(|task| task.span.start <= task.span.end) {
            let clock = self.clocks.get(&task.host).copied().unwrap_or(0);
            pending.ran(task.stage, task.host, task.span, clock);
        }
        pending
    }

    /// Adds the part of each stage's CPU time used by each operator.
    fn operators(&mut self) {
        let is_needed = |app: &str, stage| self.needed.holds_any(app, stage);
        for share in operator_shares(self.index.profile, is_needed) {
            let attempts = self
                .stages
                .range(StageAttempt::new(&*share.app, share.stage, 0)..);
            for (_, id) in attempts.take_while(|(key, _)| key.is_of(&share.app, share.stage)) {
                self.builder.tables.operators.push(OperatorShare {
                    stage: *id,
                    operator: Arc::clone(&share.operator),
                    share: share.share,
                });
            }
        }
    }

    /// Sets the span of stages with lost rows to that of their tasks.
    fn date_stages(&mut self) {
        let mut spans: BTreeMap<StageId, Span> = BTreeMap::new();
        let tables = &mut self.builder.tables;
        let runs = tables.tasks.iter().filter(|task| task.runs);
        for task in runs.filter(|task| self.undated.contains(&task.stage)) {
            let span = spans.entry(task.stage).or_insert(task.span);
            *span = span.hull(task.span);
        }
        for stage in tables
            .stages
            .iter_mut()
            .filter(|s| self.undated.contains(&s.id))
        {
            let nothing = Span { start: 0, end: 0 };
            stage.span = spans.get(&stage.id).copied().unwrap_or(nothing);
        }
    }

    /// Adds a note on the numbers of queries of several applications.
    fn number_applications(&mut self) {
        for (position, app) in self.index.applications.iter().enumerate().skip(1) {
            self.builder.notes.push(format!(
                "queries of application {app} are numbered from {}",
                position as u64 * PER_APPLICATION
            ));
        }
    }

    /// Adds a note on queries that have not ended.
    fn running(&mut self) {
        let running: Vec<String> = self
            .index
            .profile
            .executions
            .iter()
            .filter(|(_, execution)| execution.ended_ms.is_none())
            .map(|(id, _)| id.execution.to_string())
            .collect();
        if !running.is_empty() {
            self.builder.notes.push(format!(
                "{} {} had not ended: the answer for {} is partial",
                if running.len() == 1 {
                    "query"
                } else {
                    "queries"
                },
                running.join(", "),
                if running.len() == 1 { "it" } else { "them" },
            ));
        }
    }
}

/// Converts ms to ns, since the epoch.
fn ns(ms: i64) -> i64 {
    ms.saturating_mul(1_000_000)
}
