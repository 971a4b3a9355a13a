//! Checked tables in one order, with look-up by id.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::ops::RangeInclusive;

use crate::schedule::Schedule;
use crate::{
    Executor, Holder, HostId, InputError, Interval, KnownProcess, OperatorShare, ProcessId, Query,
    QueryId, Resource, Span, Stage, StageId, Tables, Task, TaskId, critical_path,
};

/// Possible amounts other than 0, and capacities. Far beyond any machine in a nanosecond or a century, and far from
/// where products and quotients overflow.
pub(crate) const UNITS: RangeInclusive<f64> = 1e-30..=1e30;
/// Possible weights of queries.
pub(crate) const WEIGHTS: RangeInclusive<f64> = 1e-6..=1e6;
/// The message for an impossible amount.
pub(crate) const POSSIBLE_UNITS: &str = "0, or from 1e-30 to 1e30";
/// The message for an impossible weight.
pub(crate) const POSSIBLE_WEIGHTS: &str = "from 1e-6 to 1e6";

/// The latest time, ns since the epoch: in the year 2096, so that differences and sums of two times do not overflow.
pub(crate) const LATEST: i64 = 4_000_000_000_000_000_000;

/// Whether this amount is possible.
pub(crate) fn is_amount(units: f64) -> bool {
    units == 0.0 || UNITS.contains(&units)
}

/// A consistent workload, in the same order for any order of the input rows.
#[derive(Clone, Debug)]
pub struct Workload {
    tables: Tables,
    hosts: Index<HostId>,
    queries: Index<QueryId>,
    stages: Index<StageId>,
    processes: Index<ProcessId>,
    tasks: Index<TaskId>,
    capacities: BTreeMap<(HostId, Executor, Resource), f64>,
    /// Queries with tasks on several hosts.
    spread: BTreeSet<QueryId>,
    schedule: Schedule,
}

impl Workload {
    /// Checks the tables.
    ///
    /// # Errors
    /// An [`InputError`] for the first impossible row: negative, reversed or too late times; amounts that are NaN,
    /// negative, or so small or large that their quotients overflow; blocked for longer than the span; duplicate or
    /// missing rows; a cycle of stages.
    pub fn new(mut tables: Tables) -> Result<Workload, InputError> {
        sort(&mut tables);
        let hosts = index(&tables.hosts, |host| host.id, "host")?;
        let queries = index(&tables.queries, |query| query.id, "query")?;
        let stages = index(&tables.stages, |stage| stage.id, "stage")?;
        let tasks = index(&tables.tasks, |task| task.id, "task")?;
        let processes = index(&tables.processes, |process| process.id, "process")?;
        // Every row is looked up by its task.
        let tasks = tasks.into_iter().collect();
        let mut workload = Workload {
            tables,
            hosts,
            queries,
            stages,
            processes,
            tasks,
            capacities: BTreeMap::new(),
            spread: BTreeSet::new(),
            schedule: Schedule::default(),
        };
        workload.check()?;
        let schedule = Schedule::new(&workload.tables, |task| workload.checked_task(task));
        workload.schedule = schedule;
        for capacity in &workload.tables.capacities {
            let resource = capacity.resource;
            let executor = capacity.executor.contending(resource);
            let key = (capacity.host, executor, resource);
            if workload
                .capacities
                .insert(key, capacity.per_second)
                .is_some()
            {
                return Err(InputError::CapacityTwice(capacity.host, capacity.resource));
            }
        }
        let mut first: BTreeMap<QueryId, HostId> = BTreeMap::new();
        for task in &workload.tables.tasks {
            let query = task.stage.query;
            if *first.entry(query).or_insert(task.host) != task.host {
                workload.spread.insert(query);
            }
        }
        for query in &workload.tables.queries {
            critical_path::check(&workload, query.id)?;
        }
        Ok(workload)
    }

    /// The rows, sorted.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// A query's row, if there is such a query.
    pub fn query(&self, id: QueryId) -> Option<&Query> {
        self.queries
            .get(&id)
            .map(|&index| &self.tables.queries[index])
    }

    /// A task's row, if there is such a task.
    pub fn task(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(&id).map(|&index| &self.tables.tasks[index])
    }

    /// The task of an interval that [`Workload::new`] has checked.
    pub(crate) fn task_of(&self, row: &Interval) -> &Task {
        self.checked_task(row.task)
    }

    /// The task of a row that [`Workload::new`] has checked.
    fn checked_task(&self, id: TaskId) -> &Task {
        self.task(id).expect("rows were checked")
    }

    /// What a task did, by kind and time.
    pub(crate) fn intervals_of(&self, task: TaskId) -> &[Interval] {
        let rows = &self.tables.intervals;
        let first = rows.partition_point(|row| row.task < task);
        let length = rows[first..].partition_point(|row| row.task == task);
        &rows[first..first + length]
    }

    /// Shares of a stage's CPU time by operator.
    pub(crate) fn operators_of(&self, stage: StageId) -> &[OperatorShare] {
        let rows = &self.tables.operators;
        let first = rows.partition_point(|row| row.stage < stage);
        let length = rows[first..].partition_point(|row| row.stage == stage);
        &rows[first..first + length]
    }

    /// The tasks of some stages, in order.
    pub(crate) fn tasks_of<'a>(
        &'a self,
        stages: &BTreeSet<StageId>,
    ) -> impl Iterator<Item = &'a Task> + use<'a> {
        let tasks = self.schedule.tasks_of(stages).into_iter();
        tasks.map(|at| &self.tables.tasks[at])
    }

    /// The tasks of some queries, in order.
    pub fn tasks_of_queries<'a>(
        &'a self,
        queries: &BTreeSet<QueryId>,
    ) -> impl Iterator<Item = &'a Task> + use<'a> {
        let stages = queries.iter().flat_map(|query| self.stages_of(*query));
        self.tasks_of(&stages.map(|stage| stage.id).collect())
    }

    /// The rows by host and time.
    pub(crate) fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// A host's name; empty for a host that is not there.
    pub fn host_name(&self, id: HostId) -> &str {
        self.hosts
            .get(&id)
            .map_or("", |&index| &self.tables.hosts[index].name)
    }

    /// The name of a known process for users.
    pub fn process_name(&self, process: KnownProcess) -> &str {
        let own = match process {
            KnownProcess::Outside(id) => self.processes.get(&id),
            _ => None,
        };
        own.map_or(process.name(), |&index| &self.tables.processes[index].name)
    }

    /// Stage attempts of a query, by number.
    pub fn stages_of(&self, query: QueryId) -> impl Iterator<Item = &Stage> {
        let stages = &self.tables.stages;
        let first = stages.partition_point(|stage| stage.id.query < query);
        stages[first..]
            .iter()
            .take_while(move |stage| stage.id.query == query)
    }

    /// From a query's first stage to its last; `None` for a query without stages.
    pub fn span_of(&self, query: QueryId) -> Option<Span> {
        let spans = self.stages_of(query).map(|stage| stage.span);
        spans.reduce(Span::hull)
    }

    /// Nominal capacity in units a second for the tasks of an executor and those that contend with them, if known.
    pub fn capacity(&self, host: HostId, executor: Executor, resource: Resource) -> Option<f64> {
        let key = (host, executor.contending(resource), resource);
        self.capacities.get(&key).copied()
    }

    /// Whether a query has tasks on several hosts.
    pub(crate) fn is_spread(&self, query: QueryId) -> bool {
        self.spread.contains(&query)
    }

    pub(crate) fn weight(&self, query: QueryId) -> f64 {
        self.query(query).map_or(1.0, |query| query.weight)
    }

    fn check(&self) -> Result<(), InputError> {
        let tables = &self.tables;
        for query in &tables.queries {
            if !WEIGHTS.contains(&query.weight) {
                return Err(InputError::Amount {
                    what: format!("weight of query {}", query.id.0),
                    value: query.weight,
                    possible: POSSIBLE_WEIGHTS,
                });
            }
        }
        for stage in &tables.stages {
            self.queries
                .get(&stage.id.query)
                .ok_or(InputError::NoQuery(stage.id.query))?;
            span(stage.span, || {
                format!("stage {} of query {}", stage.id.stage, stage.id.query.0)
            })?;
        }
        for task in &tables.tasks {
            self.stages
                .get(&task.stage)
                .ok_or(InputError::NoStage(task.stage))?;
            self.host(task.host)?;
            span(task.span, || format!("task {}", task.id.0))?;
        }
        for interval in &tables.intervals {
            self.check_interval(interval)?;
        }
        for capacity in &tables.capacities {
            self.host(capacity.host)?;
            if !UNITS.contains(&capacity.per_second) {
                return Err(InputError::Amount {
                    what: format!("capacity of host {}", capacity.host.0),
                    value: capacity.per_second,
                    possible: "from 1e-30 to 1e30",
                });
            }
        }
        for idle in &tables.idle {
            self.host(idle.host)?;
            used(idle.span, idle.units, || {
                format!("idle time of host {}", idle.host.0)
            })?;
        }
        for known in &tables.known {
            self.host(known.host)?;
            used(known.span, known.units, || {
                format!("{} on host {}", known.process.name(), known.host.0)
            })?;
        }
        for withheld in &tables.withheld {
            self.host(withheld.host)?;
            let what = || format!("withheld CPU time of host {}", withheld.host.0);
            used(withheld.span, withheld.units, what)?;
            if !(0.0..=1.0).contains(&withheld.part) {
                return Err(InputError::Amount {
                    what: what(),
                    value: withheld.part,
                    possible: "from 0 to 1",
                });
            }
        }
        for heartbeat in &tables.heartbeats {
            self.host(heartbeat.host)?;
            time(heartbeat.at, || {
                format!("heartbeat of host {}", heartbeat.host.0)
            })?;
        }
        self.check_waits()?;
        self.check_shares()
    }

    /// Waits with known causes.
    fn check_waits(&self) -> Result<(), InputError> {
        let tables = &self.tables;
        for queued in &tables.queued {
            let task = self.task(queued.task);
            let task = task.ok_or(InputError::NoTask(queued.task))?;
            used(queued.span, queued.seconds, || {
                format!("run-queue wait of task {}", task.id.0)
            })?;
        }
        for held in &tables.held {
            let task = self.task(held.task);
            let task = task.ok_or(InputError::NoTask(held.task))?;
            if let Holder::Task(holder) = held.holder {
                self.task(holder).ok_or(InputError::NoTask(holder))?;
            }
            used(held.span, held.seconds, || {
                format!("lock wait of task {}", task.id.0)
            })?;
        }
        Ok(())
    }

    fn check_interval(&self, interval: &Interval) -> Result<(), InputError> {
        let task = self
            .task(interval.task)
            .ok_or(InputError::NoTask(interval.task))?;
        used(interval.span, interval.units, || {
            format!("interval of task {}", task.id.0)
        })?;
        let span_ns = interval.span.end - interval.span.start;
        if !(0..=span_ns).contains(&interval.blocked_ns) {
            return Err(InputError::Blocked {
                task: task.id,
                blocked_ns: interval.blocked_ns,
                span_ns,
            });
        }
        let alive = task.span.start <= interval.span.start && interval.span.end <= task.span.end;
        if !alive && !interval.kind.is_for_slots() {
            return Err(InputError::OutsideTask(task.id));
        }
        Ok(())
    }

    fn check_shares(&self) -> Result<(), InputError> {
        let mut sums: BTreeMap<StageId, f64> = BTreeMap::new();
        for share in &self.tables.operators {
            self.stages
                .get(&share.stage)
                .ok_or(InputError::NoStage(share.stage))?;
            if !(0.0..=1.0).contains(&share.share) {
                return Err(InputError::Amount {
                    what: format!("share of {}", share.operator),
                    value: share.share,
                    possible: "from 0 to 1",
                });
            }
            *sums.entry(share.stage).or_default() += share.share;
        }
        match sums.into_iter().find(|(_, sum)| *sum > 1.0 + 1e-9) {
            Some((stage, sum)) => Err(InputError::Shares { stage, sum }),
            None => Ok(()),
        }
    }

    fn host(&self, id: HostId) -> Result<(), InputError> {
        self.hosts
            .get(&id)
            .map(|_| ())
            .ok_or(InputError::NoHost(id))
    }
}

/// Sorts the rows, so that sums of floating-point numbers do not depend on their order.
fn sort(tables: &mut Tables) {
    tables.hosts.sort_by_key(|row| row.id);
    tables.queries.sort_by_key(|row| row.id);
    tables.stages.sort_by_key(|row| row.id);
    tables.tasks.sort_by_key(|row| row.id);
    tables.intervals.sort_by(|a, b| {
        (a.task, a.kind, a.span, a.blocked_ns)
            .cmp(&(b.task, b.kind, b.span, b.blocked_ns))
            .then(a.units.total_cmp(&b.units))
    });
    tables.idle.sort_by(|a, b| {
        (a.host, a.resource, a.span)
            .cmp(&(b.host, b.resource, b.span))
            .then(a.units.total_cmp(&b.units))
    });
    tables.known.sort_by(|a, b| {
        (a.host, a.resource, a.process, a.span)
            .cmp(&(b.host, b.resource, b.process, b.span))
            .then(a.units.total_cmp(&b.units))
    });
    tables.processes.sort_by_key(|row| row.id);
    tables.withheld.sort_by(|a, b| {
        (a.host, a.process, a.executor, a.span)
            .cmp(&(b.host, b.process, b.executor, b.span))
            .then(a.part.total_cmp(&b.part))
            .then(a.units.total_cmp(&b.units))
    });
    tables.queued.sort_by(|a, b| {
        (a.task, a.source, a.span)
            .cmp(&(b.task, b.source, b.span))
            .then(a.seconds.total_cmp(&b.seconds))
    });
    tables.held.sort_by(|a, b| {
        (a.task, a.holder, a.span)
            .cmp(&(b.task, b.holder, b.span))
            .then(a.seconds.total_cmp(&b.seconds))
    });
    tables.operators.sort_by(|a, b| {
        (a.stage, &a.operator)
            .cmp(&(b.stage, &b.operator))
            .then(a.share.total_cmp(&b.share))
    });
}

/// Positions of rows by id.
type Index<Id> = HashMap<Id, usize, ahash::RandomState>;

fn index<Row, Id: Hash + Eq + std::fmt::Debug>(
    rows: &[Row],
    id: impl Fn(&Row) -> Id,
    what: &str,
) -> Result<Index<Id>, InputError> {
    let mut index = Index::default();
    for (position, row) in rows.iter().enumerate() {
        if index.insert(id(row), position).is_some() {
            return Err(InputError::Twice(format!("{what} {:?}", id(row))));
        }
    }
    Ok(index)
}

fn time(at: i64, what: impl Fn() -> String) -> Result<(), InputError> {
    if at < 0 {
        Err(InputError::NegativeTime { what: what(), at })
    } else if at > LATEST {
        Err(InputError::TooLate { what: what(), at })
    } else {
        Ok(())
    }
}

fn span(span: Span, what: impl Fn() -> String) -> Result<(), InputError> {
    time(span.start, &what)?;
    time(span.end, &what)?;
    if span.end < span.start {
        return Err(InputError::EndBeforeStart {
            what: what(),
            start: span.start,
            end: span.end,
        });
    }
    Ok(())
}

fn amount(value: f64, what: impl Fn() -> String) -> Result<(), InputError> {
    if is_amount(value) {
        Ok(())
    } else {
        Err(InputError::Amount {
            what: what(),
            value,
            possible: POSSIBLE_UNITS,
        })
    }
}

fn used(during: Span, units: f64, what: impl Fn() -> String) -> Result<(), InputError> {
    span(during, &what)?;
    amount(units, &what)?;
    if during.start == during.end && units > 0.0 {
        return Err(InputError::EmptySpan { what: what() });
    }
    Ok(())
}
