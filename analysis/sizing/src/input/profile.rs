//! Converts the tables of a profile directory to the events of an event log, so that one builder makes runs from both.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use unfuse_eventlog::{
    ApplicationStart, Environment, Event, ExecutorAdded, ExecutorRemoved, JobEnd, JobStart,
    Outcome, Properties, Rdd, Stage, Task, TaskEnd, TaskMetrics,
};
use unfuse_format::{
    ApplicationRow, ExecutorRow, JobRow, ProcessRow, ProfileDir, StageRow, Table, TaskRow, counted,
    merge_stages,
};

use super::builder::Builder;

#[cfg(test)]
mod tests;

/// An application of a profile.
#[derive(Default)]
pub(super) struct Application {
    pub builder: Builder,
    pub notes: Vec<String>,
    /// Number of starts; more than one if Spark tried its driver again.
    starts: usize,
    /// The jobs that list a stage.
    jobs_of: HashMap<i32, Vec<i64>>,
    /// Tasks that succeeded.
    succeeded: HashSet<i64>,
}

type Applications = BTreeMap<String, Application>;

/// All applications of a profile by id, or why the profile lacks their data.
pub(super) fn applications(root: &Path) -> Result<Applications, String> {
    let dir = ProfileDir::open(root).map_err(|error| error.to_string())?;
    let mut notes = Vec::new();
    let mut found = Applications::new();
    // Jobs before their stages and tasks.
    each(&dir, &mut notes, |row: ApplicationRow| {
        entry(&mut found, &row.app).application(row);
    })?;
    if found.is_empty() {
        return Err(
            "it has no jobs and executors: an older unfuse wrote it, or its driver was not profiled. Give the event logs of the runs, or \
             profile them again"
                .into(),
        );
    }
    each(&dir, &mut notes, |row: ExecutorRow| {
        entry(&mut found, &row.app).executor(row);
    })?;
    each(&dir, &mut notes, |row: JobRow| {
        entry(&mut found, &row.app).job(row);
    })?;
    for (id, row) in merge_stages(rows(&dir, &mut notes)?) {
        entry(&mut found, &id.app).stage(row);
    }
    each(&dir, &mut notes, |row: TaskRow| {
        entry(&mut found, &row.app).task(row);
    })?;
    let mut lost: BTreeMap<String, u64> = BTreeMap::new();
    each(&dir, &mut notes, |row: ProcessRow| {
        if row.executor == "driver" {
            lost.insert(row.app, row.lost_events);
        }
    })?;
    for (app, application) in &mut found {
        application.notes.clone_from(&notes);
        if let Some(events) = lost.get(app).filter(|events| **events > 0) {
            let note = format!(
                "{} lost, so tasks may be missing",
                counted(*events, "event")
            );
            application.notes.push(note);
        }
    }
    Ok(found)
}

fn entry<'a>(found: &'a mut Applications, app: &str) -> &'a mut Application {
    found.entry(app.to_owned()).or_default()
}

/// Processes the rows of a table in the order of writing.
fn each<T: Table>(
    dir: &ProfileDir,
    notes: &mut Vec<String>,
    take: impl FnMut(T),
) -> Result<(), String> {
    rows(dir, notes)?.into_iter().for_each(take);
    Ok(())
}

/// The rows of a table in the order of writing.
fn rows<T: Table>(dir: &ProfileDir, notes: &mut Vec<String>) -> Result<Vec<T>, String> {
    let read = dir.read::<T>().map_err(|error| error.to_string())?;
    notes.extend(read.problems.iter().map(ToString::to_string));
    Ok(read.rows)
}

impl Application {
    /// Whether it can be one run.
    pub fn check(&self) -> Result<(), String> {
        match self.starts {
            0 => Err("the beginning of its tables was deleted (keep, keep_for)".into()),
            1 => Ok(()),
            times => Err(format!(
                "its driver started {times} times, and the profile holds all these runs"
            )),
        }
    }

    fn application(&mut self, row: ApplicationRow) {
        if let Some(time_ms) = row.started_ms {
            self.starts += 1;
            let settings = row.settings.into_iter();
            self.builder.add(Event::Environment(Environment {
                spark: settings.map(|set| (set.name, set.value)).collect(),
                java_version: String::new(),
            }));
            self.builder.add(Event::ApplicationStart(ApplicationStart {
                id: Some(row.app),
                attempt: None,
                name: row.name,
                user: String::new(),
                time_ms,
            }));
        }
        if let Some(time_ms) = row.ended_ms {
            self.builder.add(Event::ApplicationEnd(time_ms));
        }
    }

    fn executor(&mut self, row: ExecutorRow) {
        if let Some(time_ms) = row.added_ms {
            self.builder.add(Event::ExecutorAdded(ExecutorAdded {
                executor: row.executor.as_str().into(),
                host: row.host.as_str().into(),
                cores: row.cores,
                time_ms,
            }));
        }
        if let Some(time_ms) = row.removed_ms {
            self.builder.add(Event::ExecutorRemoved(ExecutorRemoved {
                executor: row.executor.as_str().into(),
                reason: String::new(),
                time_ms,
            }));
        }
    }

    fn job(&mut self, row: JobRow) {
        if let Some(time_ms) = row.started_ms {
            for stage in &row.stages {
                self.jobs_of.entry(*stage).or_default().push(row.job);
            }
            self.builder.add(Event::JobStart(JobStart {
                job: row.job,
                time_ms,
                stages: row.stages,
                infos: Vec::new(),
                properties: Properties::default(),
            }));
        }
        if let Some(time_ms) = row.ended_ms {
            self.builder.add(Event::JobEnd(JobEnd {
                job: row.job,
                time_ms,
                failure: row.failure,
            }));
        }
    }

    fn stage(&mut self, row: StageRow) {
        let rdd = |name: &String| Rdd {
            rdd: 0,
            name: name.clone(),
            scope: None,
            call_site: String::new(),
            parents: Vec::new(),
            partitions: 0,
            cached_partitions: 0,
            persisted: false,
        };
        let parents = row.parents.iter().copied();
        let info = Stage {
            stage: row.stage,
            attempt: row.attempt,
            // The begins of the methods' names.
            details: row
                .packages
                .iter()
                .map(|name| format!("{name}.\n"))
                .collect(),
            tasks: row.tasks.max(0).unsigned_abs(),
            rdds: row.rdds.iter().map(rdd).collect(),
            // By the ids under which they ran, possibly in another job; the start of a job shows what it waited for.
            parents: parents
                .filter(|parent| self.share_a_job(*parent, row.stage))
                .collect(),
            submitted_ms: row.submitted_ms,
            completed_ms: row.completed_ms,
            failure: row.failure,
            properties: Properties {
                sql: row.execution,
                ..Properties::default()
            },
            name: row.name,
            metrics: Vec::new(),
        };
        // The merged row has the data of both events of a log.
        self.builder.add(Event::StageCompleted(info));
    }

    fn share_a_job(&self, stage: i32, other: i32) -> bool {
        let jobs = |stage| self.jobs_of.get(&stage).map_or(&[][..], Vec::as_slice);
        jobs(stage).iter().any(|job| jobs(other).contains(job))
    }

    fn task(&mut self, row: TaskRow) {
        let outcome = match row.status.as_str() {
            "SUCCESS" if self.succeeded.insert(row.task) => Outcome::Success,
            // It succeeded before, and its output was lost.
            "SUCCESS" => Outcome::Resubmitted,
            "KILLED" => Outcome::Killed,
            "FAILED" => Outcome::Exception,
            _ => Outcome::Other,
        };
        let amount = |number: i64| number.max(0).unsigned_abs();
        let metrics = TaskMetrics {
            run_ms: amount(row.run_ms),
            input_bytes: amount(row.input_bytes),
            fetch_wait_ms: amount(row.shuffle_fetch_wait_ms),
            shuffle_write_ns: amount(row.shuffle_write_ns),
            ..TaskMetrics::default()
        };
        let task = Task {
            stage: row.stage,
            stage_attempt: row.attempt,
            task: row.task,
            index: row.index,
            partition: None,
            attempt: row.task_attempt,
            executor: row.executor.as_str().into(),
            host: row.host.as_str().into(),
            locality: "".into(),
            speculative: row.speculative,
            launched_ms: row.launched_ms,
        };
        self.builder.add(Event::TaskEnd(Box::new(TaskEnd {
            task,
            kind: "".into(),
            finished_ms: row.finished_ms,
            getting_result_ms: None,
            outcome,
            message: String::new(),
            metrics: Some(metrics),
        })));
    }
}
