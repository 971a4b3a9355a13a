//! Reads an application from an event log.

use std::collections::{BTreeMap, HashMap};

use unfuse_eventlog::{Event, EventLog, Outcome, TaskEnd};

use super::{Application, Executor, Group, Part, PartKind, Stage, Task};

/// Maximum number of task attempts from a log.
const MOST_TASKS: usize = 10_000_000;

/// Reads a log to its end: the application, and notes on damage. Of the parts of tasks' times a log has garbage collection
/// and waits for shuffle blocks.
pub fn from_event_log(log: &mut EventLog) -> (Application, Vec<String>) {
    let mut reader = Reader::default();
    for event in log.by_ref() {
        reader.take(event);
    }
    let mut notes = log.damage().notes();
    if reader.left_out > 0 {
        notes.push(format!(
            "the log has more than {MOST_TASKS} task attempts, which is the limit: the last {} of them were left out",
            reader.left_out
        ));
    }
    (reader.finish(), notes)
}

#[derive(Default)]
struct Reader {
    application: Application,
    stages: BTreeMap<(i32, i32), Stage>,
    job_of: HashMap<i32, i64>,
    sql_of: HashMap<i32, i64>,
    kept: usize,
    left_out: u64,
}

impl Reader {
    fn take(&mut self, event: Event) {
        match event {
            Event::ApplicationStart(start) => {
                self.application.id = start.id.unwrap_or(start.name);
                self.application.started_ms = Some(start.time_ms);
            }
            Event::ApplicationEnd(at) => self.application.ended_ms = Some(at),
            Event::Environment(environment) => {
                let cpus = environment.spark.get("spark.task.cpus");
                let cpus = cpus.and_then(|cpus| cpus.trim().parse().ok());
                self.application.task_cpus = cpus.unwrap_or(1);
            }
            Event::ExecutorAdded(added) => self.application.executors.push(Executor {
                id: added.executor.to_string(),
                cores: added.cores,
                added_ms: Some(added.time_ms),
                removed_ms: None,
            }),
            Event::ExecutorRemoved(removed) => {
                let mut executors = self.application.executors.iter_mut().rev();
                if let Some(known) = executors.find(|known| *known.id == *removed.executor) {
                    known.removed_ms = Some(removed.time_ms);
                }
            }
            Event::JobStart(start) => {
                for stage in start.stages {
                    self.job_of.entry(stage).or_insert(start.job);
                }
            }
            Event::StageSubmitted(info) => {
                if let Some(sql) = info.properties.sql {
                    self.sql_of.insert(info.stage, sql);
                }
                let stage = self.stages.entry((info.stage, info.attempt)).or_default();
                stage.parents = info.parents;
                stage.submitted_ms = info.submitted_ms;
            }
            Event::TaskEnd(end) => self.ended(&end),
            Event::SqlStart(start) => {
                let query = self.application.queries.entry(start.sql).or_default();
                query.name = start.description;
                query.started_ms = Some(start.time_ms);
            }
            Event::SqlEnd(end) => {
                let query = self.application.queries.entry(end.sql).or_default();
                query.ended_ms = Some(end.time_ms);
                query.error = end.failure;
            }
            _ => {}
        }
    }

    fn ended(&mut self, end: &TaskEnd) {
        // Its first end was a separate event.
        if end.outcome == Outcome::Resubmitted {
            return;
        }
        if self.kept == MOST_TASKS {
            self.left_out += 1;
            return;
        }
        self.kept += 1;
        let metrics = end.metrics.unwrap_or_default();
        let key = (end.task.stage, end.task.stage_attempt);
        self.stages.entry(key).or_default().tasks.push(Task {
            launched_ms: end.task.launched_ms,
            finished_ms: end.finished_ms,
            failed: end.outcome != Outcome::Success,
            parts: [metrics.gc_ms, metrics.fetch_wait_ms]
                .map(|ms| ms as f64 / 1e3)
                .to_vec(),
        });
    }

    fn finish(self) -> Application {
        let Self {
            mut application,
            stages,
            job_of,
            sql_of,
            ..
        } = self;
        application.parts = vec![Part::new(PartKind::Gc), Part::new(PartKind::Network)];
        application.stages = stages
            .into_iter()
            .map(|((number, attempt), stage)| Stage {
                stage: number,
                attempt,
                group: match (sql_of.get(&number), job_of.get(&number)) {
                    (Some(sql), _) => Group::Query(*sql),
                    (None, Some(job)) => Group::Job(*job),
                    (None, None) => Group::Unknown,
                },
                ..stage
            })
            .collect();
        application
    }
}
