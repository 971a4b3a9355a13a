//! The data on a run as typed tables, whatever their source.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A run's stages, with notes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Stages that had tasks, in order of application and number.
    pub stages: Vec<Stage>,
    /// Notes on missing data, for users.
    pub notes: Vec<String>,
}

/// A stage with all its attempts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stage {
    /// The application's id.
    pub app: Arc<str>,
    /// Its number.
    pub stage: i32,
    /// Spark's name for it, the call site.
    pub name: String,
    /// Its SQL execution.
    pub sql: Option<i64>,
    /// Description of its job or SQL execution.
    pub description: String,
    /// Submission of its first attempt, ms since the epoch.
    pub submitted_ms: Option<i64>,
    /// Completion of its last attempt, ms since the epoch; none while it runs.
    pub completed_ms: Option<i64>,
    /// Ended task attempts of all its attempts.
    pub attempts: Vec<Task>,
    /// Tasks that have not ended, as far as known.
    pub running: Vec<RunningTask>,
    /// The last known time of the application, ms since the epoch.
    pub now_ms: i64,
}

/// A task attempt that has not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunningTask {
    /// Number of the task in its stage attempt: the partition, if known.
    pub index: i32,
    /// The attempt of its stage.
    pub stage_attempt: i32,
    /// Launch, ms since the epoch.
    pub launched_ms: i64,
    /// The executor.
    pub executor: Arc<str>,
    /// The host.
    pub host: Arc<str>,
}

/// A task attempt that ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    /// The attempt of its stage.
    pub stage_attempt: i32,
    /// Index of the task in its stage attempt.
    pub index: i32,
    /// The partition, if known: in a retried stage the index differs from it.
    pub partition: Option<i32>,
    /// Id of the attempt, unique in the application.
    pub task: i64,
    /// The executor.
    pub executor: Arc<str>,
    /// The host.
    pub host: Arc<str>,
    /// Locality, as Spark names it; empty if unknown.
    pub locality: Arc<str>,
    /// Whether it succeeded.
    pub succeeded: bool,
    /// Whether it was launched before any task of its stage attempt had ended on its executor: the stage's code was not
    /// compiled there yet, and its data had to be fetched.
    pub first: bool,
    /// Launch, ms since the epoch.
    pub launched_ms: i64,
    /// End, ms since the epoch.
    pub finished_ms: i64,
    /// Wall time on the executor, ms, without deserialization.
    pub run_ms: u64,
    /// CPU time of its thread, ns; without Python workers.
    pub cpu_ns: u64,
    /// Garbage collection in its JVM meanwhile, ms.
    pub gc_ms: u64,
    /// Blocked on shuffle fetches, ms.
    pub fetch_wait_ms: u64,
    /// Writing for a shuffle, ns.
    pub shuffle_write_ns: u64,
    /// Read from sources, cache and shuffles, bytes.
    pub read_bytes: u64,
    /// Read from sources, cache and shuffles, records.
    pub read_records: u64,
    /// Written to sinks and shuffles, bytes.
    pub written_bytes: u64,
    /// Written to sinks and shuffles, records.
    pub written_records: u64,
    /// Spilled to disk, bytes.
    pub spilled_bytes: u64,
}

impl Task {
    /// The earliest time at which its slot was free again, ms since the epoch. The driver launches the slot's next task
    /// a few ms before it reports the end of this one.
    pub(crate) fn ran_until_ms(&self) -> i64 {
        let ran = i64::try_from(self.run_ms).unwrap_or(i64::MAX);
        self.launched_ms.saturating_add(ran)
    }

    /// Number of the task in the stage: the partition, if known.
    pub fn number(&self) -> i32 {
        self.partition.unwrap_or(self.index)
    }

    /// From launch to end, ms; at least its reported run time.
    pub fn duration_ms(&self) -> f64 {
        let between = self.finished_ms.saturating_sub(self.launched_ms);
        (between.max(0) as f64).max(self.run_ms as f64)
    }
}

impl Stage {
    /// Marks the first tasks on each executor.
    pub(crate) fn mark_first(&mut self) {
        let key = |task: &Task| (task.stage_attempt, Arc::clone(&task.executor));
        let mut ends: HashMap<(i32, Arc<str>), i64> = HashMap::new();
        for task in &self.attempts {
            let end = ends.entry(key(task)).or_insert(i64::MAX);
            *end = task.ran_until_ms().min(*end);
        }
        for task in &mut self.attempts {
            let end = ends.get(&key(task));
            task.first = end.is_some_and(|end| task.launched_ms < *end);
        }
    }

    /// Its tasks, each once: of failed, speculative and repeated attempts the one that counted. This is the one in the
    /// last stage attempt that has the task, and of copies the first that succeeded. If partitions are unknown, each
    /// stage attempt counts separately.
    pub fn tasks(&self) -> Vec<&Task> {
        let mut counted: BTreeMap<(Option<i32>, i32), &Task> = BTreeMap::new();
        let key = |task: &Task| match task.partition {
            Some(partition) => (None, partition),
            None => (Some(task.stage_attempt), task.index),
        };
        for task in self.attempts.iter().filter(|task| task.succeeded) {
            let rank = |task: &Task| (Reverse(task.stage_attempt), task.finished_ms, task.task);
            let best = counted.entry(key(task)).or_insert(task);
            if rank(task) < rank(best) {
                *best = task;
            }
        }
        counted.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_counts_once() {
        let attempt = |index, stage_attempt, task, finished_ms, succeeded| Task {
            index,
            partition: Some(index),
            stage_attempt,
            task,
            finished_ms,
            succeeded,
            ..Task::default()
        };
        let stage = Stage {
            attempts: vec![
                // Failed, then succeeded.
                attempt(0, 0, 1, 10, false),
                attempt(0, 0, 2, 20, true),
                // A copy was faster.
                attempt(1, 0, 3, 90, true),
                attempt(1, 0, 4, 50, true),
                // Its output was lost.
                attempt(2, 0, 5, 10, true),
                attempt(2, 1, 6, 99, true),
                // Never succeeded.
                attempt(3, 0, 7, 10, false),
            ],
            ..Stage::default()
        };
        let ids: Vec<i64> = stage.tasks().iter().map(|task| task.task).collect();
        assert_eq!(ids, [2, 4, 6]);
    }

    #[test]
    fn the_first_tasks_of_a_stage_are_those_before_any_of_it_has_run_on_their_executor() {
        let task = |stage_attempt, executor: &str, launched_ms, run_ms| Task {
            stage_attempt,
            executor: executor.into(),
            launched_ms,
            run_ms,
            finished_ms: launched_ms + run_ms as i64 + 20,
            ..Task::default()
        };
        let mut stage = Stage {
            attempts: vec![
                task(0, "1", 0, 900),
                task(0, "1", 5, 990),
                // Launched before the end of the first task is known.
                task(0, "1", 910, 10),
                task(0, "2", 950, 10),
                // Another attempt begins anew.
                task(1, "1", 2000, 10),
                task(1, "1", 2011, 10),
            ],
            ..Stage::default()
        };
        stage.mark_first();
        let first: Vec<bool> = stage.attempts.iter().map(|task| task.first).collect();
        assert_eq!(first, [true, true, false, true, true, false]);
    }
}
