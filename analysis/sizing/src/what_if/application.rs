//! An application as its driver reported it, and the part of it that a question is about.

use std::collections::BTreeMap;

use unfuse_format::counted;

use super::{Group, Part, Pool, Recorded, RecordedStage, RecordedTask, SharedCpus};

/// Most slots that an application is believed to have.
const MOST_SLOTS: u64 = 1_000_000;

/// An application. Times are ms since the epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Application {
    /// Its id.
    pub id: String,
    /// Its start.
    pub started_ms: Option<i64>,
    /// Its end; none while it runs, or if it was killed.
    pub ended_ms: Option<i64>,
    /// Cores that a task takes; at least 1.
    pub task_cpus: u32,
    /// Its executors.
    pub executors: Vec<Executor>,
    /// Its SQL executions.
    pub queries: BTreeMap<i64, Query>,
    /// The parts of tasks' times that are known, in the order in which tasks have them.
    pub parts: Vec<Part>,
    /// Its stage attempts.
    pub stages: Vec<Stage>,
    /// See [`Recorded::cpus`].
    pub cpus: Option<SharedCpus>,
}

/// An executor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Executor {
    /// Its id.
    pub id: String,
    /// Cores for tasks.
    pub cores: u32,
    /// When it was added; none for from the begin on.
    pub added_ms: Option<i64>,
    /// When it was removed; none if it stayed.
    pub removed_ms: Option<i64>,
}

/// A SQL execution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// What to call it.
    pub name: String,
    /// Its start.
    pub started_ms: Option<i64>,
    /// Its end.
    pub ended_ms: Option<i64>,
    /// Why it failed.
    pub error: Option<String>,
}

/// A stage attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stage {
    /// Its number.
    pub stage: i32,
    /// Its attempt.
    pub attempt: i32,
    /// What submitted it.
    pub group: Group,
    /// Numbers of the stages that it reads from.
    pub parents: Vec<i32>,
    /// Its submission.
    pub submitted_ms: Option<i64>,
    /// The scheduler pool that it was submitted to.
    pub pool: Pool,
    /// Whether Spark cuts its input by the number of slots, unless there is much of it.
    pub splits: bool,
    /// See [`RecordedStage::runnable`].
    pub runnable: Option<f64>,
    /// Its task attempts that ended.
    pub tasks: Vec<Task>,
}

/// A task attempt that ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    /// Its launch.
    pub launched_ms: i64,
    /// Its end.
    pub finished_ms: i64,
    /// Whether it failed or was killed.
    pub failed: bool,
    /// Seconds of each part of [`Application::parts`].
    pub parts: Vec<f64>,
}

impl Application {
    /// A query, or all of the application, as tasks on slots, with notes on what it cannot show.
    ///
    /// # Errors
    /// The reason, if there is no such query, it did not end well, or there are no tasks.
    pub fn recorded(&self, query: Option<i64>) -> Result<(Recorded, Vec<String>), String> {
        let mut notes = Vec::new();
        let (from, to) = match query {
            Some(query) => self.span_of(query)?,
            None => self.span(&mut notes)?,
        };
        let (slots, executors) = match self.most_slots(from, to) {
            Some(found) => found,
            None => {
                let most = self.most_at_once(from, to);
                notes.push(format!(
                    "no executor with cores is known: the most tasks that ran at once, {most}, count as the slots"
                ));
                (most, 0)
            }
        };
        let mut recorded = Recorded {
            seconds: seconds(from, to),
            spread: 0.0,
            slots,
            executors,
            parts: self.parts.clone(),
            stages: Vec::new(),
            cpus: self.cpus,
        };
        // Samples of a part are by stage, so all stages keep their places.
        for stage in &self.stages {
            let own = query.is_none_or(|query| stage.group == Group::Query(query));
            let mut stage = self.stage(stage, own, (from, to));
            // With many more tasks than slots, something else limits their size.
            stage.splits &= stage.tasks.len() <= recorded.slots + 1;
            recorded.stages.push(stage);
        }
        self.sort(&mut recorded);
        self.add_notes(query, &recorded, &mut notes);
        if recorded.stages.iter().all(|stage| !stage.own) {
            let what = query.map_or_else(|| self.called(), |query| format!("query {query}"));
            return Err(format!(
                "{what} has no task that ended, so there is nothing to put on slots"
            ));
        }
        Ok((recorded, notes))
    }

    fn called(&self) -> String {
        format!("application {}", self.id)
    }

    fn span_of(&self, query: i64) -> Result<(i64, i64), String> {
        let Some(known) = self.queries.get(&query) else {
            let ids: Vec<String> = self.queries.keys().take(20).map(i64::to_string).collect();
            return Err(match ids.as_slice() {
                [] => format!("{} has no SQL, so no query {query}", self.called()),
                ids => {
                    let more = if self.queries.len() > ids.len() {
                        ", …"
                    } else {
                        ""
                    };
                    format!(
                        "{} has no query {query}; it has {}{more}",
                        self.called(),
                        ids.join(", ")
                    )
                }
            });
        };
        if let Some(error) = known.error.as_deref().filter(|error| !error.is_empty()) {
            let first: String = error
                .lines()
                .next()
                .unwrap_or("")
                .chars()
                .take(120)
                .collect();
            return Err(format!(
                "query {query} failed ({first}), so what it would have taken is not known"
            ));
        }
        known.started_ms.zip(known.ended_ms).ok_or_else(|| {
            format!("query {query} did not end, so there is no time to compare with")
        })
    }

    fn span(&self, notes: &mut Vec<String>) -> Result<(i64, i64), String> {
        let tasks = || self.stages.iter().flat_map(|stage| &stage.tasks);
        let first = tasks().map(|task| task.launched_ms).min();
        let last = tasks().map(|task| task.finished_ms).max();
        let (first, last) = first.zip(last).ok_or_else(|| {
            format!(
                "{} has no task that ended, so there is nothing to put on slots",
                self.called()
            )
        })?;
        let from = self.started_ms.unwrap_or(first).min(first);
        let to = self.ended_ms.unwrap_or(last).max(last);
        if self.started_ms.is_none() {
            notes.push(
                "the start of the application is not known: the first task counts".to_owned(),
            );
        }
        if self.ended_ms.is_none() {
            notes.push("the end of the application is not known: the last task counts".to_owned());
        }
        Ok((from, to))
    }

    /// The most slots at one time, and their executors; none if no executor has cores.
    fn most_slots(&self, from: i64, to: i64) -> Option<(usize, usize)> {
        let mut changes: Vec<(i64, bool, u32)> = Vec::new();
        for executor in &self.executors {
            let slots = executor.cores / self.task_cpus.max(1);
            let begin = executor.added_ms.unwrap_or(from).max(from);
            let end = executor.removed_ms.unwrap_or(to).min(to);
            if slots > 0 && begin <= end {
                changes.push((begin, false, slots));
                changes.push((end, true, slots));
            }
        }
        changes.sort_unstable();
        let (mut slots, mut executors) = (0u64, 0u64);
        let mut most = (0, 0);
        for (_, ends, of_executor) in changes {
            if ends {
                slots -= u64::from(of_executor);
                executors -= 1;
            } else {
                slots += u64::from(of_executor);
                executors += 1;
            }
            most = most.max((slots, executors));
        }
        let (slots, executors) = (most.0.min(MOST_SLOTS), most.1);
        (slots > 0).then_some((slots as usize, executors as usize))
    }

    fn most_at_once(&self, from: i64, to: i64) -> usize {
        let tasks = self.stages.iter().flat_map(|stage| &stage.tasks);
        let mut changes: Vec<(i64, i32)> = Vec::new();
        for task in tasks.filter(|task| task.launched_ms < to && task.finished_ms > from) {
            changes.extend([(task.launched_ms, 1), (task.finished_ms, -1)]);
        }
        changes.sort_unstable();
        let (mut now, mut most) = (0i32, 1);
        for (_, change) in changes {
            now = now.saturating_add(change);
            most = most.max(now);
        }
        most.unsigned_abs() as usize
    }

    fn stage(&self, stage: &Stage, own: bool, (from, to): (i64, i64)) -> RecordedStage {
        let tasks = stage.tasks.iter();
        let tasks = tasks.filter(|task| own || (task.launched_ms < to && task.finished_ms > from));
        let tasks = tasks.map(|task| {
            let launched_ms = if own {
                task.launched_ms
            } else {
                task.launched_ms.max(from)
            };
            // Of a task that began before, the part since then counts.
            let part = seconds(launched_ms, task.finished_ms)
                / seconds(task.launched_ms, task.finished_ms).max(f64::MIN_POSITIVE);
            let part = part.clamp(0.0, 1.0);
            RecordedTask {
                launched: seconds(from, launched_ms),
                finished: seconds(from, task.finished_ms),
                parts: task.parts.iter().map(|of_task| of_task * part).collect(),
            }
        });
        RecordedStage {
            stage: stage.stage,
            attempt: stage.attempt,
            group: stage.group,
            own,
            parents: stage.parents.clone(),
            submitted: stage.submitted_ms.map(|ms| seconds(from, ms.max(from))),
            pool: stage.pool.clone(),
            splits: stage.splits,
            runnable: stage.runnable,
            tasks: tasks.collect(),
        }
    }

    /// Drops stages without tasks, and puts the others in order of submission, as their samples.
    fn sort(&self, recorded: &mut Recorded) {
        let key = |stage: &RecordedStage| {
            let first = stage.tasks.iter().map(|task| task.launched);
            stage
                .submitted
                .unwrap_or_else(|| first.fold(f64::INFINITY, f64::min))
        };
        let stages = std::mem::take(&mut recorded.stages);
        let mut kept: Vec<(usize, RecordedStage)> = stages
            .into_iter()
            .enumerate()
            .filter(|(_, stage)| !stage.tasks.is_empty())
            .collect();
        kept.sort_by(|(_, a), (_, b)| {
            let order = key(a).total_cmp(&key(b));
            order.then((a.stage, a.attempt).cmp(&(b.stage, b.attempt)))
        });
        for part in &mut recorded.parts {
            let samples = &part.samples;
            let of = |(at, _): &(usize, RecordedStage)| samples.get(*at).copied().unwrap_or(0);
            if !samples.is_empty() {
                part.samples = kept.iter().map(of).collect();
            }
        }
        recorded.stages = kept.into_iter().map(|(_, stage)| stage).collect();
    }

    fn add_notes(&self, query: Option<i64>, recorded: &Recorded, notes: &mut Vec<String>) {
        let others = recorded.stages.iter().filter(|stage| !stage.own);
        let others: usize = others.map(|stage| stage.tasks.len()).sum();
        if others > 0 {
            notes.push(format!(
                "{} of other queries took slots at the same time; they keep these, unless without-query takes them away",
                counted(others, "task")
            ));
        }
        let is_own = |stage: &&Stage| query.is_none_or(|query| stage.group == Group::Query(query));
        let own = self
            .stages
            .iter()
            .filter(is_own)
            .flat_map(|stage| &stage.tasks);
        let failed = own.filter(|task| task.failed).count();
        if failed > 0 {
            notes.push(format!(
                "{} failed or were killed; their time counts as it was",
                counted(failed, "task attempt")
            ));
        }
        if self
            .executors
            .iter()
            .any(|executor| executor.removed_ms.is_some())
        {
            notes.push(format!(
                "executors came and went: the most slots at one time, {}, count all the time",
                recorded.slots
            ));
        }
    }
}

/// From one time to another, s.
fn seconds(from: i64, to: i64) -> f64 {
    to.saturating_sub(from) as f64 / 1e3
}
