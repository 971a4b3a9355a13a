//! A profile from an event log of Spark: its application, queries, plans, jobs, stages and tasks, and no samples.
//!
//! A profile's driver reports what Spark's listener bus says, and so does an event log. [`import`] writes the same tables, so
//! that questions which need no samples can be asked of applications that were not profiled.

mod plan;
mod rows;
mod stages;

use std::collections::HashMap;

use unfuse_eventlog::{Event, EventLog, Outcome, PlanNode};
use unfuse_format::{
    ApplicationRow, EVENT_LOG, ExecutionRow, ExecutorRow, FormatError, IntervalRow, JobRow,
    PlanRow, ProcessRow, ProfileDir, SegmentWriter, Setting, StageRow, Table, TaskRow,
};

use self::stages::Stages;

/// Properties of Spark that a profile keeps.
const SETTINGS: [&str; 3] = [
    "spark.task.cpus",
    "spark.unfuse.iterations",
    "spark.unfuse.bytes",
];
/// Rows of a table in memory.
const ROWS: usize = 50_000;
/// Bytes of the log whose rows are in memory.
const BYTES: u64 = 64 << 20;
/// Task attempts that are kept. Their table is read as a whole.
const MOST_TASKS: u64 = 500_000;
/// Name of the segments.
const WRITER: &str = "event-log";

/// Reads a log to its end and writes its tables. Returns notes on damage, for users.
///
/// # Errors
/// If a table cannot be written.
pub fn import(log: &mut EventLog, dir: &ProfileDir) -> Result<Vec<String>, FormatError> {
    let mut import = Import::new(dir);
    let mut written = 0;
    while let Some(event) = log.next() {
        import.take(event)?;
        if log.bytes() - written >= BYTES {
            import.tables.flush()?;
            written = log.bytes();
        }
    }
    let mut notes = log.damage().notes();
    if import.tasks > MOST_TASKS {
        notes.push(format!(
            "the log has more than {MOST_TASKS} task attempts, which is the limit: the last {} of them were left out",
            import.tasks - MOST_TASKS
        ));
    }
    import.finish()?;
    Ok(notes)
}

/// The application as far as its log was read, and the tables to write.
struct Import {
    application: ApplicationRow,
    /// Written at the end: they can come before the application's id.
    executors: Vec<ExecutorRow>,
    process: ProcessRow,
    stages: Stages,
    /// Task attempts so far.
    tasks: u64,
    /// The version of each query's next plan.
    versions: HashMap<i64, i32>,
    /// The latest time of all events, ms since the epoch.
    last_ms: i64,
    tables: Tables,
}

struct Tables {
    applications: SegmentWriter<ApplicationRow>,
    executors: SegmentWriter<ExecutorRow>,
    processes: SegmentWriter<ProcessRow>,
    jobs: SegmentWriter<JobRow>,
    executions: SegmentWriter<ExecutionRow>,
    plans: SegmentWriter<PlanRow>,
    stages: SegmentWriter<StageRow>,
    tasks: SegmentWriter<TaskRow>,
    intervals: SegmentWriter<IntervalRow>,
}

impl Tables {
    fn flush(&mut self) -> Result<(), FormatError> {
        self.applications.flush()?;
        self.executors.flush()?;
        self.processes.flush()?;
        self.jobs.flush()?;
        self.executions.flush()?;
        self.plans.flush()?;
        self.stages.flush()?;
        self.tasks.flush()?;
        self.intervals.flush()
    }
}

/// Adds a row, and writes the table if it has many.
fn add<T: Table>(table: &mut SegmentWriter<T>, row: T) -> Result<(), FormatError> {
    table.push(row);
    if table.pending() >= ROWS {
        table.flush()?;
    }
    Ok(())
}

impl Import {
    fn new(dir: &ProfileDir) -> Self {
        Self {
            application: ApplicationRow::default(),
            executors: Vec::new(),
            process: ProcessRow {
                executor: "driver".to_owned(),
                source: EVENT_LOG.to_owned(),
                ended: Some(false),
                ..ProcessRow::default()
            },
            stages: Stages::default(),
            tasks: 0,
            versions: HashMap::new(),
            last_ms: 0,
            tables: Tables {
                applications: SegmentWriter::new(dir, WRITER),
                executors: SegmentWriter::new(dir, WRITER),
                processes: SegmentWriter::new(dir, WRITER),
                jobs: SegmentWriter::new(dir, WRITER),
                executions: SegmentWriter::new(dir, WRITER),
                plans: SegmentWriter::new(dir, WRITER),
                stages: SegmentWriter::new(dir, WRITER),
                tasks: SegmentWriter::new(dir, WRITER),
                intervals: SegmentWriter::new(dir, WRITER),
            },
        }
    }

    fn app(&self) -> String {
        self.application.app.clone()
    }

    fn see(&mut self, at_ms: Option<i64>) {
        self.last_ms = self.last_ms.max(at_ms.unwrap_or(0));
    }

    fn take(&mut self, event: Event) -> Result<(), FormatError> {
        match event {
            Event::LogStart(version) => self.process.spark = version,
            Event::ApplicationStart(start) => {
                self.application.app = start.id.unwrap_or_else(|| start.name.clone());
                self.application.name = start.name;
                self.application.started_ms = Some(start.time_ms);
                self.see(Some(start.time_ms));
            }
            Event::ApplicationEnd(at) => {
                self.application.ended_ms = Some(at);
                self.process.ended = Some(true);
                self.see(Some(at));
            }
            Event::Environment(environment) => {
                let set = SETTINGS.iter().filter_map(|name| {
                    let value = environment.spark.get(*name)?.clone();
                    Some(Setting {
                        name: (*name).to_owned(),
                        value,
                    })
                });
                self.application.settings = set.collect();
            }
            Event::ExecutorAdded(added) => self.executors.push(rows::added(&added)),
            Event::ExecutorRemoved(removed) => self.executors.push(rows::removed(&removed)),
            event => return self.take_work(event),
        }
        Ok(())
    }

    /// Events of queries, jobs, stages and tasks.
    fn take_work(&mut self, event: Event) -> Result<(), FormatError> {
        let app = self.app();
        match event {
            Event::JobStart(start) => {
                self.stages.job(&start);
                add(&mut self.tables.jobs, rows::job_start(app, start))
            }
            Event::JobEnd(end) => {
                self.see(Some(end.time_ms));
                add(&mut self.tables.jobs, rows::job_end(app, end))
            }
            Event::StageSubmitted(stage) => {
                let row = self.stages.submitted(app, stage);
                add(&mut self.tables.stages, row)
            }
            Event::StageCompleted(stage) => {
                self.see(stage.completed_ms);
                let row = self.stages.completed(app, stage);
                add(&mut self.tables.stages, row)
            }
            // The first end of a task whose output was lost later was an event of its own.
            Event::TaskEnd(end) if end.outcome != Outcome::Resubmitted => {
                self.see(Some(end.finished_ms));
                self.tasks += 1;
                if self.tasks > MOST_TASKS {
                    return Ok(());
                }
                for row in rows::intervals(&app, &end) {
                    add(&mut self.tables.intervals, row)?;
                }
                add(&mut self.tables.tasks, rows::task(app, &end))
            }
            Event::SqlStart(start) => {
                let row = ExecutionRow {
                    app,
                    execution: start.sql,
                    description: start.description,
                    started_ms: (start.time_ms > 0).then_some(start.time_ms),
                    ..ExecutionRow::default()
                };
                add(&mut self.tables.executions, row)?;
                self.plan(start.sql, start.plan)
            }
            Event::SqlPlan(plan) => self.plan(plan.sql, plan.plan),
            Event::SqlEnd(end) => {
                self.see(Some(end.time_ms));
                let row = ExecutionRow {
                    app,
                    execution: end.sql,
                    ended_ms: (end.time_ms > 0).then_some(end.time_ms),
                    error: end.failure,
                    ..ExecutionRow::default()
                };
                add(&mut self.tables.executions, row)
            }
            _ => Ok(()),
        }
    }

    fn plan(&mut self, execution: i64, nodes: Vec<PlanNode>) -> Result<(), FormatError> {
        if nodes.is_empty() {
            return Ok(());
        }
        let version = self.versions.entry(execution).or_default();
        let of = PlanRow {
            app: self.application.app.clone(),
            execution,
            version: *version,
            ..PlanRow::default()
        };
        *version += 1;
        plan::rows(&of, nodes)
            .into_iter()
            .try_for_each(|row| add(&mut self.tables.plans, row))
    }

    fn finish(mut self) -> Result<(), FormatError> {
        let app = self.app();
        let ns = |ms: i64| ms.saturating_mul(1_000_000);
        self.process.app.clone_from(&app);
        self.process.name.clone_from(&self.application.name);
        self.process.start_ns = ns(self.application.started_ms.unwrap_or(self.last_ms));
        self.process.end_ns = ns(self.last_ms);
        let mut hosts = self.executors.iter().filter(|row| row.executor == "driver");
        self.process.host = hosts
            .next_back()
            .map(|row| row.host.clone())
            .unwrap_or_default();
        for executor in self.executors {
            let app = app.clone();
            add(&mut self.tables.executors, ExecutorRow { app, ..executor })?;
        }
        add(&mut self.tables.applications, self.application)?;
        add(&mut self.tables.processes, self.process)?;
        self.tables.flush()
    }
}
