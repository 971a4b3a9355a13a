//! Makes the tables from a profile of Spark, or from CSV files of any engine.

mod cache;
mod collections;
mod cpu_sets;
mod csv;
mod disks;
mod folded;
mod hosts;
mod limits;
mod neighbours;
mod pressure;
mod profile;
mod slots;
mod withheld;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::workload::is_amount;
use crate::{
    Executor, Host, HostId, Interval, Kind, Query, QueryId, Span, Stage, StageId, Tables, Task,
    TaskId,
};

pub use self::csv::{CsvError, INTERVALS_CSV, from_csv};
pub use self::folded::{FoldedError, set_operators};
pub use self::profile::{StageIndex, from_profile};

/// Where blocked time comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockedTime {
    /// From the kernel's context switches, each with the stack that tells the reason, if they were recorded.
    #[default]
    Measured,
    /// As in section 5.2 of the paper: from Spark's metrics, and for the CPU what they leave of the wall time.
    Paper,
}

/// Tables with notes.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// The tables.
    pub tables: Tables,
    /// Notes on missing or doubtful data, a sentence each.
    pub notes: Vec<String>,
    /// The earliest time of a task, ns since the epoch.
    pub origin_ns: i64,
    /// Number of rows that tasks reported themselves.
    pub metered: usize,
    /// Whether there is any data on waits. Without it, nobody is a culprit and nobody is cleared.
    pub waits_known: bool,
    /// For a profile, the query of each SQL execution of an application; `None` is its work outside executions.
    pub executions: BTreeMap<(String, Option<i64>), QueryId>,
    /// For a profile, the id that Spark gave each task in its application.
    pub spark_tasks: HashMap<TaskId, i64>,
}

/// Collects rows and assigns ids.
#[derive(Default)]
struct Builder {
    tables: Tables,
    notes: Vec<String>,
    hosts: BTreeMap<String, HostId>,
    stages: BTreeSet<StageId>,
    queries: BTreeSet<QueryId>,
    executions: BTreeMap<(String, Option<i64>), QueryId>,
    metered: usize,
    waits_unknown: bool,
    /// Parts of the allocation of objects.
    allocations: Vec<collections::Allocation>,
    /// Waits of tasks for threads that read files for them.
    delegated_reads: Vec<disks::DelegatedRead>,
}

/// The index of a task's row while all tasks are from one builder: their ids begin at 1.
fn position(task: TaskId) -> usize {
    (task.0 - 1) as usize
}

impl Builder {
    fn host(&mut self, name: &str) -> HostId {
        if let Some(host) = self.hosts.get(name) {
            return *host;
        }
        let id = HostId(self.hosts.len() as u32);
        self.hosts.insert(name.to_owned(), id);
        self.tables.hosts.push(Host {
            id,
            name: name.to_owned(),
        });
        id
    }

    fn query(&mut self, query: Query) {
        if self.queries.insert(query.id) {
            self.tables.queries.push(query);
        }
    }

    fn stage(&mut self, stage: Stage) {
        if self.stages.insert(stage.id) {
            self.tables.stages.push(stage);
        }
    }

    /// A task that lives as long as its intervals.
    fn task(&mut self, stage: StageId, host: HostId, executor: Executor, runs: bool) -> TaskId {
        let id = TaskId(self.tables.tasks.len() as u64 + 1);
        // The first interval extends it.
        let span = Span {
            start: i64::MAX,
            end: i64::MIN,
        };
        self.tables.tasks.push(Task {
            id,
            stage,
            host,
            executor,
            span,
            runs,
        });
        id
    }

    /// Adds an interval of a task, unless it is empty. Extends the task's life to contain it in either case. A task
    /// that waits for a slot does not run yet.
    fn interval(&mut self, task: TaskId, kind: Kind, span: Span, units: f64, blocked_ns: i64) {
        let units = if is_amount(units) { units } else { 0.0 };
        let span = Span {
            start: span.start.max(0),
            end: span.end.max(0),
        };
        let blocked_ns = blocked_ns.clamp(0, (span.end - span.start).max(0));
        if span.end <= span.start {
            return;
        }
        let row = &mut self.tables.tasks[position(task)];
        let waits = row.runs && kind.is_for_slots() && units == 0.0;
        if !waits {
            row.span.start = row.span.start.min(span.start);
            row.span.end = row.span.end.max(span.end);
        }
        if units == 0.0 && blocked_ns == 0 {
            return;
        }
        self.tables.intervals.push(Interval {
            task,
            kind,
            span,
            units,
            blocked_ns,
        });
    }

    /// For tests: queries 1 and 2 with a task each on the host `h`, for two seconds.
    #[cfg(test)]
    fn with_two_tasks() -> (Self, Span, [TaskId; 2]) {
        let mut builder = Self::default();
        let host = builder.host("h");
        let whole = Span {
            start: 0,
            end: 2_000_000_000,
        };
        let tasks = [1, 2].map(|query| builder.query_with_task(query, host, whole));
        (builder, whole, tasks)
    }

    /// For tests: a query with one stage and one task.
    #[cfg(test)]
    fn query_with_task(&mut self, query: u64, host: HostId, span: Span) -> TaskId {
        let query = QueryId(query);
        self.query(Query {
            id: query,
            name: String::new(),
            application: String::new(),
            label: String::new(),
            user: String::new(),
            pool: String::new(),
            weight: 1.0,
        });
        let stage = StageId {
            query,
            stage: 0,
            attempt: 0,
        };
        self.stage(Stage {
            id: stage,
            parents: Vec::new(),
            span,
        });
        self.task(stage, host, Executor::default(), true)
    }

    fn host_of(&self, task: TaskId) -> HostId {
        self.tables.tasks[position(task)].host
    }

    /// Removes tasks that waited for a slot and never got one.
    fn never_ran(&mut self) {
        for row in &self.tables.intervals {
            let task = &mut self.tables.tasks[position(row.task)];
            if !task.runs || task.span.start > task.span.end {
                task.runs = false;
                task.span.start = task.span.start.min(row.span.start);
                task.span.end = task.span.end.max(row.span.end);
            }
        }
    }

    fn finish(mut self) -> Input {
        self.never_ran();
        let tables = &mut self.tables;
        // Nothing is known about the others, not even their time.
        tables.tasks.retain(|task| task.span.start <= task.span.end);
        let runs = tables.tasks.iter().filter(|task| task.runs);
        let starts = runs.map(|task| task.span.start);
        let origin_ns = starts.min().unwrap_or(0);
        Input {
            tables: self.tables,
            notes: self.notes,
            origin_ns,
            metered: self.metered,
            waits_known: !self.waits_unknown,
            executions: self.executions,
            spark_tasks: HashMap::new(),
        }
    }
}
