//! A profile of Spark.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use unfuse_format::{
    CachedRow, ExecutionId, FormatError, HostRow, IntervalRow, ProfileDir, StageAttempt, StageRow,
    Table, TaskRow, merge_stages,
};
use unfuse_postprocess::{By, Profile, Selection, Spell, Totals, WaitReason};

use super::{BlockedTime, Builder, Input, cache, hosts, limits, possible, slots};
use crate::workload::WEIGHTS;
use crate::{
    Executor, Kind, OperatorShare, Query, QueryId, Resource, Span, Stage, StageId, TaskId,
};

/// Queries of the second application are numbered from here, those of the third from twice that, and so on.
pub(super) const PER_APPLICATION: u64 = 1_000_000_000;
/// The number of what runs without a SQL execution.
const NO_QUERY: u64 = PER_APPLICATION - 1;
/// CPU time that a single sample stands for, at most, ns.
const LONGEST_SAMPLE: i64 = 20_000_000;
/// Clocks that differ by more are worth a word, ns.
const SAME_CLOCK: u64 = 1_000_000_000;

/// The number of a query's application, from 0.
pub(super) fn application(query: QueryId) -> u32 {
    u32::try_from(query.0 / PER_APPLICATION).unwrap_or(u32::MAX)
}

type TaskKey = (String, i64);

/// The contention tables of a profile. A query's id is its SQL execution id.
///
/// # Errors
/// A [`FormatError`] where the profile cannot be read; tables that are missing make notes.
pub fn from_profile(profile: &Profile, blocked: BlockedTime) -> Result<Input, FormatError> {
    let dir = ProfileDir::open(profile.path())?;
    let mut builder = Builder::default();
    let mut recorded = Recorded {
        stages: merge_stages(read(&dir, &mut builder)?),
        tasks: read(&dir, &mut builder)?,
        intervals: read(&dir, &mut builder)?,
        spells: profile.spells()?,
        hosts: read(&dir, &mut builder)?,
        cached: read(&dir, &mut builder)?,
    };
    builder.notes.extend(possible::keep(&mut recorded));
    builder.notes.extend(limits::apply(&mut recorded.hosts));
    builder.metered = recorded.intervals.len();
    builder.waits_unknown =
        recorded.intervals.is_empty() && recorded.spells.iter().all(|s| s.waiting.is_none());
    builder
        .notes
        .extend(unfuse_postprocess::notes(&profile.processes));
    let mut reader = Reader {
        builder,
        applications: recorded.applications(),
        stages: BTreeMap::new(),
        tasks: BTreeMap::new(),
        executors: BTreeMap::new(),
        ends_ns: recorded.ends_ns(),
        undated: BTreeSet::new(),
        clocks: BTreeMap::new(),
    };
    reader.queries_and_stages(profile, &recorded);
    reader.tasks(profile, &recorded);
    let blocked = reader.possible(profile, &recorded, blocked);
    reader.used(&recorded);
    match blocked {
        Blocked::Measured => reader.measured(&recorded),
        Blocked::Paper => reader.as_in_the_paper(&recorded, false),
        Blocked::Substitute => reader.as_in_the_paper(&recorded, true),
    }
    let cached = cache::holders(&recorded.cached, &reader.ends_ns);
    for held in cached {
        reader.cached(profile, &held);
    }
    let waiting = reader.pending(&recorded);
    let busy = hosts::BusyCpus::of(&mut reader.builder, &recorded.hosts);
    slots::add(&mut reader.builder, &waiting, &busy);
    let jvms = reader.jvms(profile);
    hosts::add(&mut reader.builder, &recorded.hosts, &jvms);
    reader.date_stages();
    reader.operators(profile);
    reader.running(profile);
    reader.number_applications();
    Ok(reader.builder.finish())
}

/// The tables as they were read.
pub(super) struct Recorded {
    pub(super) stages: BTreeMap<StageAttempt, StageRow>,
    pub(super) tasks: Vec<TaskRow>,
    pub(super) intervals: Vec<IntervalRow>,
    pub(super) spells: Vec<Spell>,
    pub(super) hosts: Vec<HostRow>,
    pub(super) cached: Vec<CachedRow>,
}

impl Recorded {
    fn applications(&self) -> Vec<String> {
        let names: BTreeSet<&str> = self
            .stages
            .keys()
            .map(|id| id.app.as_str())
            .chain(self.tasks.iter().map(|task| task.app.as_str()))
            .chain(self.intervals.iter().map(|row| row.app.as_str()))
            .collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// The last thing that is known to have happened in each application. One may be killed while others go on, and then
    /// nothing says that its stages ended.
    fn ends_ns(&self) -> BTreeMap<String, i64> {
        let hosts = self.hosts.iter().map(|row| (&row.app, row.end_ns));
        let spells = self.spells.iter().map(|row| (&row.app, row.end_ns));
        let rows = self.intervals.iter().map(|row| (&row.app, row.end_ns));
        let tasks = self.tasks.iter().map(|row| (&row.app, ns(row.finished_ms)));
        let mut ends: BTreeMap<String, i64> = BTreeMap::new();
        for (app, end) in hosts.chain(spells).chain(rows).chain(tasks) {
            match ends.get_mut(app) {
                Some(last) => *last = end.max(*last),
                None => drop(ends.insert(app.clone(), end)),
            }
        }
        ends
    }
}

/// Where blocked times are taken from in the end.
enum Blocked {
    Measured,
    Paper,
    /// No waits were recorded.
    Substitute,
}

struct Reader {
    builder: Builder,
    applications: Vec<String>,
    stages: BTreeMap<StageAttempt, StageId>,
    tasks: BTreeMap<TaskKey, TaskId>,
    /// By application and id.
    executors: BTreeMap<(String, String), Executor>,
    /// By application, when it was last heard of.
    ends_ns: BTreeMap<String, i64>,
    /// Stages of which it is not known when they began.
    undated: BTreeSet<StageId>,
    /// What to add to the driver's time to get that of a host, ns.
    clocks: BTreeMap<crate::HostId, i64>,
}

impl Reader {
    fn query_id(&self, app: &str, execution: Option<i64>) -> QueryId {
        let at = self.applications.iter().position(|name| name == app);
        let number = execution.map_or(NO_QUERY, |id| id.max(0).cast_unsigned().min(NO_QUERY - 1));
        QueryId(at.unwrap_or(0) as u64 * PER_APPLICATION + number)
    }

    fn queries_and_stages(&mut self, profile: &Profile, recorded: &Recorded) {
        for (key, row) in &recorded.stages {
            self.add_stage(profile, key, row);
        }
        let known = |key: &StageAttempt| recorded.stages.contains_key(key);
        let rows = recorded.tasks.iter();
        let of_tasks = rows.map(TaskRow::stage_attempt);
        let rows = recorded.intervals.iter();
        let of_rows = rows.map(IntervalRow::stage_attempt);
        let rows = recorded.spells.iter();
        let of_spells = rows.map(|spell| StageAttempt::new(&spell.app, spell.stage, spell.attempt));
        let lost: BTreeSet<StageAttempt> = of_tasks
            .chain(of_rows)
            .chain(of_spells)
            .filter(|key| !known(key))
            .collect();
        if !lost.is_empty() {
            self.builder.notes.push(format!(
                "{} stages are known by their tasks only, not their query: the driver's tables are not complete",
                lost.len()
            ));
        }
        for key in lost {
            self.add_stage(profile, &key, &StageRow::default());
        }
    }

    fn add_stage(&mut self, profile: &Profile, key: &StageAttempt, row: &StageRow) {
        let query = self.query_id(&key.app, row.execution);
        let id = StageId {
            query,
            stage: key.stage.max(0).cast_unsigned(),
            attempt: key.attempt.max(0).cast_unsigned(),
        };
        let execution = (key.app.clone(), row.execution);
        self.builder.executions.insert(execution, query);
        // Ids of executions are each application's own.
        let of = match self.applications.len() {
            0 | 1 => String::new(),
            _ => format!("{} ", key.app),
        };
        let label = match row.execution {
            Some(execution) => {
                let text = profile
                    .descriptions
                    .get(&ExecutionId::new(&key.app, execution));
                text.map_or_else(
                    || format!("{of}query {execution}"),
                    |text| format!("{of}query {execution}: {text}"),
                )
            }
            None => format!("{of}jobs of no query"),
        };
        self.builder.query(Query {
            id: query,
            name: query.0.to_string(),
            application: key.app.clone(),
            label,
            user: row.user.clone(),
            pool: row.pool.clone(),
            weight: f64::from(row.pool_weight.filter(|weight| *weight > 0).unwrap_or(1))
                .min(*WEIGHTS.end()),
        });
        if row.submitted_ms.is_none() {
            self.undated.insert(id);
        }
        let start = ns(row.submitted_ms.unwrap_or(0));
        let end = self.end_of(key, row);
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

    /// When a stage that was submitted ended. One that was never said to have completed did when its application was last heard of.
    fn end_of(&self, StageAttempt { app, .. }: &StageAttempt, row: &StageRow) -> i64 {
        let heard = || self.ends_ns.get(app).copied().unwrap_or(0);
        let end = row.completed_ms.map_or_else(heard, ns);
        end.max(ns(row.submitted_ms.unwrap_or(0)))
    }

    /// Tasks that did anything, each on the host where it did it.
    fn tasks(&mut self, profile: &Profile, recorded: &Recorded) {
        let mut homes: HashMap<(&str, &str), &str> = HashMap::new();
        for process in &profile.processes {
            homes.insert((&process.app, &process.executor), &process.host);
        }
        let mut begins: BTreeMap<TaskId, i64> = BTreeMap::new();
        for row in &recorded.intervals {
            let stage = row.stage_attempt();
            let task = self.task(
                (row.app.clone(), row.task),
                &stage,
                &row.host,
                &row.executor,
            );
            let begin = begins.entry(task).or_insert(row.start_ns);
            *begin = row.start_ns.min(*begin);
        }
        for spell in &recorded.spells {
            let stage = StageAttempt::new(&spell.app, spell.stage, spell.attempt);
            self.task(
                (spell.app.clone(), spell.task),
                &stage,
                &spell.host,
                &spell.executor,
            );
        }
        for row in &recorded.tasks {
            let home = homes.get(&(row.app.as_str(), row.executor.as_str()));
            let stage = row.stage_attempt();
            let host = home.map_or(row.host.as_str(), |home| *home);
            let key = (row.app.clone(), row.task);
            let known = self.tasks.contains_key(&key);
            let task = self.task(key, &stage, host, &row.executor);
            if !known {
                // Nothing is known of what it did, but that it was there.
                let at = self.builder.rows[&task];
                self.builder.tables.tasks[at].span = Span {
                    start: ns(row.launched_ms).max(0),
                    end: ns(row.finished_ms).max(ns(row.launched_ms)).max(0),
                };
            }
        }
        self.compare_clocks(recorded, &begins);
    }

    fn task(&mut self, key: TaskKey, stage: &StageAttempt, host: &str, executor: &str) -> TaskId {
        if let Some(task) = self.tasks.get(&key) {
            return *task;
        }
        let host = self.builder.host(host);
        let stage = self.stages[stage];
        let executor = self.executor(&key.0, executor);
        let task = self.builder.task(stage, host, executor, true);
        self.tasks.insert(key, task);
        task
    }

    fn executor(&mut self, app: &str, id: &str) -> Executor {
        let application = application(self.query_id(app, None));
        let number = self.executors.len() as u32;
        let executor = Executor {
            application,
            number,
        };
        let key = (app.to_owned(), id.to_owned());
        *self.executors.entry(key).or_insert(executor)
    }

    /// The executors in which tasks ran or blocks were, by their processes.
    fn jvms(&self, profile: &Profile) -> hosts::Processes {
        let jvms = profile.processes.iter().filter_map(|process| {
            let key = (process.app.clone(), process.executor.clone());
            let executor = *self.executors.get(&key)?;
            Some(((key.0, process.host.clone(), process.pid), executor))
        });
        jvms.collect()
    }

    /// How far each host's clock is from the driver's, by when tasks begin there and are launched here.
    fn compare_clocks(&mut self, recorded: &Recorded, begins: &BTreeMap<TaskId, i64>) {
        let mut apart: BTreeMap<crate::HostId, Vec<i64>> = BTreeMap::new();
        for row in &recorded.tasks {
            let task = self.tasks[&(row.app.clone(), row.task)];
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

    /// Measured waits, if there are any.
    fn possible(
        &mut self,
        profile: &Profile,
        recorded: &Recorded,
        blocked: BlockedTime,
    ) -> Blocked {
        if recorded.intervals.is_empty() {
            self.builder.notes.push(
                "no task reported what it used: recorded with heartbeat=off, or by an earlier version; CPU time is that of \
                 samples, and bytes and memory are not known"
                    .to_owned(),
            );
        }
        if recorded.hosts.is_empty() {
            self.builder.notes.push(
                "the hosts' own counters were not recorded (heartbeat=off, or an earlier version): processes outside Spark \
                 cannot be told from the unknown"
                    .to_owned(),
            );
        }
        let counted: BTreeSet<&str> = recorded.hosts.iter().map(|row| row.host.as_str()).collect();
        let hosts = self.builder.tables.hosts.iter().map(|host| &host.name);
        let uncounted: Vec<String> = hosts
            .filter(|name| !counted.is_empty() && !counted.contains(name.as_str()))
            .cloned()
            .collect();
        if !uncounted.is_empty() {
            self.builder.notes.push(format!(
                "the counters of {} were not recorded: processes outside Spark cannot be told from the unknown there",
                uncounted.join(", ")
            ));
        }
        let partial = profile
            .processes
            .iter()
            .any(|process| process.task_fraction.is_some_and(|fraction| fraction < 1.0));
        if partial {
            self.builder.notes.push(
                "waits of a part of the tasks were recorded (option tasks); each stands for several, so blocked times of \
                 single stages are rough"
                    .to_owned(),
            );
        }
        if blocked == BlockedTime::Measured && recorded.spells.iter().all(|s| s.waiting.is_none()) {
            self.builder.notes.push(
                "no waits were recorded (they need perf_event, see `unfuse doctor`): blocked times are those of Spark's \
                 metrics, and for the CPU what they and running leave of the wall time"
                    .to_owned(),
            );
            return Blocked::Substitute;
        }
        match blocked {
            BlockedTime::Measured => Blocked::Measured,
            BlockedTime::Paper => Blocked::Paper,
        }
    }

    /// What tasks got. Samples say it of the CPU where no meter did.
    fn used(&mut self, recorded: &Recorded) {
        let mut metered: BTreeSet<TaskId> = BTreeSet::new();
        for row in &recorded.intervals {
            let task = self.tasks[&(row.app.clone(), row.task)];
            metered.insert(task);
            // Words of a newer version are left to it.
            let Some(kind) = Kind::of_word(&row.kind) else {
                continue;
            };
            self.builder.interval(task, kind, span(row), row.units, 0);
        }
        let mut sampled = BTreeSet::new();
        for spell in recorded.spells.iter().filter(|s| s.waiting.is_none()) {
            let task = self.tasks[&(spell.app.clone(), spell.task)];
            if !metered.contains(&task) {
                sampled.insert(task);
            }
            if !metered.contains(&task) || spell.in_python {
                let units = spell.ns as f64 / 1e9;
                self.builder
                    .interval(task, Kind::RunQueue, spell_span(spell), units, 0);
            }
        }
        if !metered.is_empty() && !sampled.is_empty() {
            self.builder.notes.push(format!(
                "{} tasks of {} did not report what they used: their CPU time is that of samples, and they are blamed for nothing \
                 else",
                sampled.len(),
                metered.len() + sampled.len()
            ));
        }
    }

    /// Blocked times as the kernel and the stacks have them. Where most waits have no stack, Spark's metrics tell of disks
    /// and the network.
    fn measured(&mut self, recorded: &Recorded) {
        let seconds = |of: fn(WaitReason) -> bool| -> f64 {
            let spells = recorded.spells.iter();
            let waits = spells.filter(|spell| spell.waiting.is_some_and(of));
            waits.map(|spell| spell.ns as f64 / 1e9).sum()
        };
        let all = seconds(|waiting| waiting != WaitReason::RunQueue);
        let unknown = seconds(|waiting| matches!(waiting, WaitReason::Unknown | WaitReason::Other));
        let without_stack = seconds(|waiting| waiting == WaitReason::Unknown);
        let by_metrics = without_stack > all / 2.0;
        if by_metrics {
            self.builder.notes.push(
                "most waits have no stack, as context switches cannot be sampled here (see `unfuse doctor`): waiting for disks and \
                 the network is what Spark's metrics say"
                    .to_owned(),
            );
            for row in &recorded.intervals {
                if let Some(kind) = Kind::of_word(&row.kind).filter(|kind| in_metrics(*kind)) {
                    let task = self.tasks[&(row.app.clone(), row.task)];
                    self.builder
                        .interval(task, kind, span(row), 0.0, row.blocked_ns);
                }
            }
        } else if unknown > all / 10.0 {
            self.builder.notes.push(format!(
                "{unknown:.1} s of {all:.1} s that tasks waited (not for a CPU) were for what is not known, and are not shared out"
            ));
        }
        for spell in &recorded.spells {
            if let Some(kind) = blocked_for(spell).filter(|kind| !(by_metrics && in_metrics(*kind)))
            {
                let task = self.tasks[&(spell.app.clone(), spell.task)];
                let ns = i64::try_from(spell.ns).unwrap_or(i64::MAX);
                self.builder
                    .interval(task, kind, spell_span(spell), 0.0, ns);
            }
        }
    }

    /// Blocked times by section 5.2: what Spark measures, and for the CPU the rest of the wall time, which the paper takes
    /// with the time that the task ran. Locks are not among Spark's metrics and stay measured.
    fn as_in_the_paper(&mut self, recorded: &Recorded, without_running: bool) {
        let mut locks: BTreeMap<TaskId, f64> = BTreeMap::new();
        for spell in &recorded.spells {
            if blocked_for(spell) == Some(Kind::Lock) {
                let task = self.tasks[&(spell.app.clone(), spell.task)];
                let ns = i64::try_from(spell.ns).unwrap_or(i64::MAX);
                *locks.entry(task).or_default() += ns as f64;
                self.builder
                    .interval(task, Kind::Lock, spell_span(spell), 0.0, ns);
            }
        }
        let mut rest: BTreeMap<(TaskId, Span), i64> = BTreeMap::new();
        for row in &recorded.intervals {
            let task = self.tasks[&(row.app.clone(), row.task)];
            let span = span(row);
            let left = rest.entry((task, span)).or_insert(span.end - span.start);
            *left = left.saturating_sub(row.blocked_ns);
            if without_running && row.kind == Kind::RunQueue.word() {
                *left = left.saturating_sub((row.units * 1e9) as i64);
            }
            if let Some(kind) = Kind::of_word(&row.kind) {
                self.builder.interval(task, kind, span, 0.0, row.blocked_ns);
            }
        }
        let mut wholes: BTreeMap<TaskId, f64> = BTreeMap::new();
        for ((task, _), left) in &rest {
            *wholes.entry(*task).or_default() += (*left).max(0) as f64;
        }
        for ((task, span), left) in rest {
            // Locks in proportion: their spells and these spans are not cut at the same times.
            let lock = locks.get(&task).copied().unwrap_or(0.0) / wholes[&task].max(1.0);
            let left = left.max(0) as f64 * (1.0 - lock.min(1.0));
            self.builder
                .interval(task, Kind::RunQueue, span, 0.0, left as i64);
        }
    }

    fn cached(&mut self, profile: &Profile, held: &cache::Held) {
        let stage = held.stage.and_then(|stage| {
            let mut attempts = self.stages.range(StageAttempt::new(&held.app, stage, 0)..);
            let (key, id) = attempts.next()?;
            key.is_of(&held.app, stage).then_some(*id)
        });
        let process = profile
            .processes
            .iter()
            .find(|process| process.app == held.app && process.executor == held.executor);
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

    /// When stages had how many tasks that were not running yet, by their hosts' clocks.
    fn pending(&self, recorded: &Recorded) -> slots::Pending {
        let mut pending = slots::Pending::default();
        for (key, row) in &recorded.stages {
            if let Some(submitted) = row.submitted_ms {
                let id = self.stages[key];
                pending.submitted(id, ns(submitted), row.tasks.max(0).cast_unsigned());
                pending.completed(id, self.end_of(key, row));
            }
        }
        let runs = self.builder.tables.tasks.iter().filter(|task| task.runs);
        for task in runs.filter(|task| task.span.start <= task.span.end) {
            let clock = self.clocks.get(&task.host).copied().unwrap_or(0);
            pending.ran(task.stage, task.host, task.span, clock);
        }
        pending
    }

    /// The part of each stage's CPU time that each operator took.
    fn operators(&mut self, profile: &Profile) {
        let totals = Totals::of(profile, Selection::default(), By::Operator);
        let mut wholes: HashMap<(String, i32), f64> = HashMap::new();
        let mut parts: BTreeMap<(String, i32, String), f64> = BTreeMap::new();
        for row in totals.rows {
            let Some(stage) = row.stage else { continue };
            *wholes.entry((row.app.clone(), stage)).or_default() += row.cpu_seconds;
            let operator = match row.heading {
                true => format!("[{}]", row.operator),
                false => row.operator,
            };
            *parts.entry((row.app, stage, operator)).or_default() += row.cpu_seconds;
        }
        for ((app, stage, operator), seconds) in parts {
            let whole = wholes[&(app.clone(), stage)];
            if seconds <= 0.0 {
                continue;
            }
            let attempts = self.stages.range(StageAttempt::new(&app, stage, 0)..);
            for (_, id) in attempts.take_while(|(key, _)| key.is_of(&app, stage)) {
                self.builder.tables.operators.push(OperatorShare {
                    stage: *id,
                    operator: operator.clone(),
                    share: (seconds / whole).min(1.0),
                });
            }
        }
    }

    /// Has stages whose rows are lost last as long as their tasks.
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

    /// Says how queries of several applications are told apart.
    fn number_applications(&mut self) {
        for (at, app) in self.applications.iter().enumerate().skip(1) {
            self.builder.notes.push(format!(
                "queries of application {app} are numbered from {}",
                at as u64 * PER_APPLICATION
            ));
        }
    }

    /// Says which queries have not ended.
    fn running(&mut self, profile: &Profile) {
        let running: Vec<String> = profile
            .executions
            .iter()
            .filter(|(_, execution)| execution.ended_ms.is_none())
            .map(|(id, _)| id.execution.to_string())
            .collect();
        if !running.is_empty() {
            self.builder.notes.push(format!(
                "no end was recorded of {} {}: the answer for {} is partial",
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

fn read<T: Table>(dir: &ProfileDir, builder: &mut Builder) -> Result<Vec<T>, FormatError> {
    let read = dir.read::<T>()?;
    builder
        .notes
        .extend(read.problems.iter().map(ToString::to_string));
    Ok(read.rows)
}

/// What a spell was blocked for; none where it ran, or waited for what no neighbour takes away.
fn blocked_for(spell: &Spell) -> Option<Kind> {
    if spell.for_memory && spell.waiting != Some(WaitReason::RunQueue) {
        return Some(Kind::ExecutionMemory);
    }
    match spell.waiting? {
        WaitReason::RunQueue => Some(Kind::RunQueue),
        WaitReason::Lock => Some(Kind::Lock),
        WaitReason::Safepoint => Some(Kind::Pause),
        WaitReason::DiskRead => Some(Kind::IoRead),
        WaitReason::DiskWrite => Some(Kind::IoWrite),
        WaitReason::ShuffleFetch | WaitReason::Network => Some(Kind::NetworkFetch),
        WaitReason::Memory => Some(Kind::ExecutionMemory),
        WaitReason::Python
        | WaitReason::Sleep
        | WaitReason::Idle
        | WaitReason::Other
        | WaitReason::Unknown => None,
    }
}

/// Whether Spark measures how long tasks wait so.
fn in_metrics(kind: Kind) -> bool {
    matches!(kind.resource(), Resource::Io | Resource::Network)
}

fn span(row: &IntervalRow) -> Span {
    Span {
        start: row.start_ns.max(0),
        end: row.end_ns.max(row.start_ns).max(0),
    }
}

/// A single sample has a time and no length; what it stands for has, though where it stands for those of other tasks too
/// nobody knows how much of it is its own.
fn spell_span(spell: &Spell) -> Span {
    let ns = i64::try_from(spell.ns)
        .unwrap_or(i64::MAX)
        .min(LONGEST_SAMPLE);
    let start = match spell.start_ns < spell.end_ns {
        true => spell.start_ns,
        false => spell.end_ns.saturating_sub(ns),
    };
    Span {
        start: start.max(0),
        end: spell.end_ns.max(0),
    }
}

/// Of ms since the epoch.
fn ns(ms: i64) -> i64 {
    ms.saturating_mul(1_000_000)
}
