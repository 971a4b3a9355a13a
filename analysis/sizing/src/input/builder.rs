//! Builds a run from its events.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use unfuse_eventlog::{Event, Outcome, Stage as StageInfo, TaskEnd};
use unfuse_format::counted;

use super::GivenValues;
use crate::{Category, Phases, Point, Run};

/// The events of a run so far.
#[derive(Default)]
pub(super) struct Builder {
    id: Option<String>,
    name: String,
    started_ms: Option<i64>,
    ended_ms: Option<i64>,
    properties: BTreeMap<String, String>,
    /// Executor, cores, start and end, ms since the epoch.
    executors: Vec<(String, u32, i64, Option<i64>)>,
    pub(super) jobs: BTreeMap<i64, Job>,
    /// The first job that listed a stage.
    pub(super) job_of: HashMap<i32, i64>,
    pub(super) stages: BTreeMap<(i32, i32), Attempt>,
    /// The phases without the preparation.
    phases: Phases,
    failed_tasks: u64,
    failed_stages: u64,
}

pub(super) struct Job {
    pub(super) started_ms: i64,
    pub(super) ended_ms: Option<i64>,
    failure: Option<String>,
    input_bytes: u64,
}

/// A stage attempt with its tasks.
#[derive(Default)]
pub(super) struct Attempt {
    pub(super) info: Option<StageInfo>,
    /// Launch, ms since the epoch, and duration, s, of each task.
    pub(super) tasks: Vec<(i64, f64)>,
}

impl Builder {
    pub fn add(&mut self, event: Event) {
        match event {
            Event::ApplicationStart(start) => {
                self.started_ms = Some(start.time_ms);
                self.name = start.name;
                self.id = start.id;
            }
            Event::ApplicationEnd(time_ms) => self.ended_ms = Some(time_ms),
            Event::Environment(environment) => self.properties.extend(environment.spark),
            Event::ExecutorAdded(added) => {
                let executor = added.executor.to_string();
                self.executors
                    .push((executor, added.cores, added.time_ms, None));
            }
            Event::ExecutorRemoved(removed) => {
                let mut own = self.executors.iter_mut().rev();
                if let Some(executor) = own.find(|known| *known.0 == *removed.executor) {
                    executor.3 = Some(removed.time_ms);
                }
            }
            Event::JobStart(start) => {
                for stage in start.stages {
                    self.job_of.entry(stage).or_insert(start.job);
                }
                let job = Job {
                    started_ms: start.time_ms,
                    ended_ms: None,
                    failure: None,
                    input_bytes: 0,
                };
                self.jobs.insert(start.job, job);
            }
            Event::JobEnd(end) => {
                if let Some(job) = self.jobs.get_mut(&end.job) {
                    job.ended_ms = Some(end.time_ms);
                    job.failure = end.failure;
                }
            }
            Event::StageSubmitted(info) => {
                let attempt = self.stages.entry((info.stage, info.attempt)).or_default();
                attempt.info = Some(info);
            }
            Event::StageCompleted(info) => {
                self.failed_stages += u64::from(info.failure.is_some());
                let attempt = self.stages.entry((info.stage, info.attempt)).or_default();
                // Only the submitted stage has properties.
                attempt.info.get_or_insert(info);
            }
            Event::TaskEnd(task) => self.task(&task),
            _ => {}
        }
    }

    fn task(&mut self, end: &TaskEnd) {
        if end.outcome != Outcome::Success {
            self.failed_tasks += u64::from(end.outcome != Outcome::Killed);
            return;
        }
        let seconds = end.duration_ms() as f64 / 1e3;
        let key = (end.task.stage, end.task.stage_attempt);
        self.stages
            .entry(key)
            .or_default()
            .tasks
            .push((end.task.launched_ms, seconds));
        let job = self
            .job_of
            .get(&end.task.stage)
            .and_then(|job| self.jobs.get_mut(job));
        let metrics = end.metrics.unwrap_or_default();
        if let Some(job) = job {
            job.input_bytes = job.input_bytes.saturating_add(metrics.input_bytes);
        }
        let communication =
            metrics.fetch_wait_ms as f64 / 1e3 + metrics.shuffle_write_ns as f64 / 1e9;
        let run = (metrics.run_ms as f64 / 1e3).min(seconds);
        let communication = communication.min(run);
        self.phases.sharing += seconds - run;
        self.phases.communication += communication;
        self.phases.execution += run - communication;
    }

    /// The application's id, if it has one.
    pub fn id(&self) -> Option<&String> {
        self.id.as_ref()
    }

    /// The run with notes, or why it cannot be fitted.
    pub fn finish(self, path: &Path, given: &GivenValues) -> Result<(Run, Vec<String>), String> {
        let started = self
            .started_ms
            .ok_or("it has no start of the application")?;
        let ended = self
            .ended_ms
            .ok_or("it has no end of the application, which was killed or still runs")?;
        let cancelled = self.check()?;
        let seconds = ended.saturating_sub(started) as f64 / 1e3;
        if seconds <= 0.0 {
            return Err("it ends before it starts".into());
        }
        let mut notes = cancelled;
        let slots = self.slots(&mut notes)?;
        let values = given.values(path);
        let iterations = match values.iterations {
            Some(iterations) => iterations,
            None => self.property("spark.unfuse.iterations")?.unwrap_or(1.0),
        };
        let bytes = match values.bytes {
            Some(bytes) => bytes,
            None => self
                .property("spark.unfuse.bytes")?
                .unwrap_or_else(|| self.input_bytes(iterations)),
        };
        if self.failed_tasks + self.failed_stages > 0 {
            notes.push(format!(
                "{} and {} failed and ran again, so the run took longer than necessary",
                counted(self.failed_tasks, "task"),
                counted(self.failed_stages, "stage")
            ));
        }
        let first_job = self
            .jobs
            .values()
            .map(|job| job.started_ms)
            .min()
            .unwrap_or(ended);
        let phases = Phases {
            preparation: (first_job.saturating_sub(started)).max(0) as f64 / 1e3,
            ..self.phases
        };
        let stages = self.graph();
        let run = Run {
            log: path.display().to_string(),
            application: self.name.clone(),
            category: self.category(),
            at: Point {
                slots,
                iterations,
                bytes,
            },
            seconds,
            phases,
            stages,
        };
        Ok((run, notes))
    }

    /// Whether the application succeeded. Returns notes on jobs that were cancelled while it went on: adaptive execution
    /// cancels jobs that it no longer needs.
    fn check(&self) -> Result<Vec<String>, String> {
        let mut notes = Vec::new();
        let last_well = self.jobs.iter().filter(|(_, job)| job.failure.is_none());
        let last_well = last_well.map(|(_, job)| job.started_ms).max();
        for (id, job) in &self.jobs {
            let Some(why) = job.failure.as_deref() else {
                continue;
            };
            let why = why.lines().next().unwrap_or_default();
            let why: String = why.chars().take(120).collect();
            let went_on = last_well.is_some_and(|started| started >= job.started_ms);
            if !(why.contains("cancelled") && went_on) {
                return Err(format!("job {id} failed ({why})"));
            }
            notes.push(format!("job {id} was cancelled ({why}); its time counts"));
        }
        if let Some((id, _)) = self.jobs.iter().find(|(_, job)| job.ended_ms.is_none()) {
            return Err(format!(
                "job {id} has no end: it was killed, or events were lost"
            ));
        }
        if self.stages.values().all(|attempt| attempt.tasks.is_empty()) {
            return Err("no task in it succeeded".into());
        }
        Ok(notes)
    }

    /// Average number of slots over the time in which tasks ran: executors come and go.
    fn slots(&self, notes: &mut Vec<String>) -> Result<f64, String> {
        let tasks = || self.stages.values().flat_map(|attempt| &attempt.tasks);
        let from = tasks().map(|(launched, _)| *launched).min().unwrap_or(0);
        let to = tasks()
            .map(|(launched, seconds)| launched + (seconds * 1e3) as i64)
            .max()
            .unwrap_or(0);
        let cpus = self.property("spark.task.cpus")?.unwrap_or(1.0);
        let mut sum = 0.0;
        let mut most = 0.0;
        for (_, cores, added, removed) in &self.executors {
            let begin = (*added).max(from);
            let end = removed.unwrap_or(to).min(to);
            let slots = (f64::from(*cores) / cpus).floor();
            most += slots;
            sum += slots * (end - begin).max(0) as f64;
        }
        if sum <= 0.0 {
            return Err(
                "it names no executor with cores while tasks ran, so the number of slots is unknown"
                    .into(),
            );
        }
        let slots = sum / (to - from).max(1) as f64;
        if slots < 0.95 * most {
            notes.push(format!(
                "executors came and went; the run counts with {slots:.1} slots, the average while tasks ran"
            ));
        }
        Ok(slots)
    }

    /// Input of the job, bytes. Iterations read the same input again, so for an iterative job it is the maximum of one
    /// Spark job.
    fn input_bytes(&self, iterations: f64) -> f64 {
        let each = self.jobs.values().map(|job| job.input_bytes as f64);
        if iterations > 1.0 {
            each.fold(0.0, f64::max)
        } else {
            each.sum()
        }
    }

    fn property(&self, name: &str) -> Result<Option<f64>, String> {
        let Some(text) = self.properties.get(name) else {
            return Ok(None);
        };
        match text.trim().parse::<f64>() {
            Ok(value) if value.is_finite() && value > 0.0 => Ok(Some(value)),
            _ => Err(format!(
                "{name} is {text:?}, and must be a number above zero"
            )),
        }
    }

    fn category(&self) -> Category {
        let stages: Vec<(Category, f64)> = self
            .stages
            .values()
            .filter_map(|attempt| {
                let info = attempt.info.as_ref()?;
                let sql = info.properties.sql.is_some();
                let seconds = attempt.tasks.iter().map(|(_, seconds)| seconds).sum();
                Some((Category::from_stage(&info.details, sql), seconds))
            })
            .collect();
        Category::from_stages(&stages)
    }
}
