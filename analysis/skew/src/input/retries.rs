//! Infers which partitions a retried stage repeated, if the input does not contain it.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use crate::{Run, Stage, Task};

/// The number of tasks of each attempt of each stage.
pub(super) struct Sizes<K>(HashMap<K, BTreeMap<i32, i64>>);

impl<K> Default for Sizes<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> Sizes<K> {
    pub(super) fn take(&mut self, stage: K, attempt: i32, tasks: i64) {
        self.0.entry(stage).or_default().insert(attempt, tasks);
    }

    /// Sets partitions as far as they can be inferred. A note lists the stages in which a partition may count twice.
    pub(super) fn settle(&self, run: &mut Run, key: impl Fn(&Stage) -> K) {
        let mut twice: Vec<String> = Vec::new();
        for stage in &mut run.stages {
            let Some(sizes) = self.0.get(&key(stage)) else {
                continue;
            };
            if !settle(stage, sizes) {
                twice.push(stage.stage.to_string());
            }
        }
        if !twice.is_empty() {
            run.notes.push(format!(
                "partitions of repeated stages may count twice: a part of stages {} ran again, and the log does not say which part (event \
                 logs of Spark 3.3 and newer do)",
                twice.join(", ")
            ));
        }
    }
}

/// An attempt with as many tasks as the first repeated all of them, so their indices mean the same. False if an attempt
/// has fewer, and there are more tasks than the stage has partitions.
fn settle(stage: &mut Stage, sizes: &BTreeMap<i32, i64>) -> bool {
    let unknown = |task: &Task| task.partition.is_none();
    let Some(all) = sizes.get(&0).filter(|_| stage.attempts.iter().any(unknown)) else {
        return true;
    };
    for task in stage.attempts.iter_mut().filter(|task| unknown(task)) {
        if sizes.get(&task.stage_attempt) == Some(all) {
            task.partition = Some(task.index);
        }
    }
    let tasks = stage.tasks();
    let repeated = tasks.iter().any(|task| task.partition.is_none());
    !repeated || i64::try_from(tasks.len()).is_ok_and(|tasks| tasks <= *all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stage of 40 tasks of which some were repeated, all successful: the number of tasks that count, and the notes.
    fn repeated(tasks: i32) -> (usize, Vec<String>) {
        let attempt = |stage_attempt, index| Task {
            stage_attempt,
            index,
            task: i64::from(100 * stage_attempt + index),
            succeeded: true,
            ..Task::default()
        };
        let first = (0..40).map(|index| attempt(0, index));
        let again = (0..tasks).map(|index| attempt(1, index));
        let stage = Stage {
            stage: 7,
            attempts: first.chain(again).collect(),
            ..Stage::default()
        };
        let mut run = Run {
            stages: vec![stage],
            ..Run::default()
        };
        let mut sizes = Sizes::default();
        sizes.take(7, 0, 40);
        sizes.take(7, 1, tasks.into());
        sizes.settle(&mut run, |stage| stage.stage);
        (run.stages[0].tasks().len(), run.notes)
    }

    #[test]
    fn a_stage_that_was_repeated_as_a_whole_counts_once() {
        assert_eq!(repeated(40), (40, vec![]));
    }

    #[test]
    fn of_a_part_that_was_repeated_it_is_not_known_which() {
        let (counted, notes) = repeated(30);
        assert_eq!(counted, 70);
        assert!(
            notes[0].contains("may count twice: a part of stages 7"),
            "{notes:?}"
        );
    }

    #[test]
    fn a_stage_of_one_attempt_makes_no_note() {
        assert_eq!(repeated(0), (40, vec![]));
    }
}
