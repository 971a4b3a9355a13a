//! Tasks that are slow together: the first of their executors, of one host or executor, or with their data elsewhere.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::finding::Cause;
use super::stats::{chance_of_outlier, chance_of_rank, median, spread};
use crate::Task;

/// A group of which the tasks are slower than the others.
pub(super) struct Slower {
    pub(super) cause: Cause,
    /// Which tasks.
    pub(super) member: Vec<bool>,
    /// By how much, relative to what is expected of each.
    pub(super) by: f64,
    /// How probable such a group is by chance.
    pub(super) chance: f64,
}

impl Slower {
    /// How much of what is left of each task is for the group, ms. Warming up takes some tasks much longer than others, so there it
    /// is all that is left, but for a task that is slow beyond chance (`most`) even in its group.
    pub(super) fn parts(&self, rest: &[f64], expected: &[f64], most: f64) -> Vec<f64> {
        let inside: Vec<f64> = (0..rest.len())
            .filter(|at| self.member[*at])
            .map(|at| rest[at] / expected[at])
            .collect();
        let (typical, scale) = (median(inside.iter().copied()), spread(&inside));
        let of = |at: usize| {
            let z = (rest[at] / expected[at] - typical) / scale.max(1e-9);
            if !self.member[at] {
                0.0
            } else if self.cause == Cause::WarmUp && chance_of_outlier(z, inside.len()) >= most {
                rest[at].max(0.0)
            } else {
                self.by * expected[at]
            }
        };
        (0..rest.len()).map(of).collect()
    }
}

/// The groups of one kind that may be slower than the other tasks.
pub(super) struct Groups {
    pub(super) cause: Cause,
    /// Of each group, which tasks.
    members: Vec<Vec<bool>>,
}

impl Groups {
    /// None if all tasks are in one group.
    pub(super) fn of(tasks: &[&Task], cause: Cause) -> Option<Self> {
        // Of these only one group can be the slower one.
        const SUSPECT: &str = "slower if any";
        let suspect = |is: bool| if is { SUSPECT } else { "" };
        let key = |task: &Task| -> Arc<str> {
            match cause {
                Cause::Host => task.host.clone(),
                Cause::Executor => task.executor.clone(),
                Cause::WarmUp => suspect(task.first).into(),
                _ => suspect(matches!(&*task.locality, "RACK_LOCAL" | "ANY")).into(),
            }
        };
        let keys: Vec<Arc<str>> = tasks.iter().map(|task| key(task)).collect();
        let mut names: BTreeSet<&str> = keys.iter().map(|key| &**key).collect();
        if names.len() < 2 {
            return None;
        }
        if !matches!(cause, Cause::Host | Cause::Executor) {
            names.retain(|name| *name == SUSPECT);
        }
        let member = |name: &str| keys.iter().map(|key| **key == *name).collect();
        let members = names.into_iter().map(member).collect();
        Some(Self { cause, members })
    }

    pub(super) fn count(&self) -> usize {
        self.members.len()
    }

    /// The group that is the least probable by chance among as many as were `tried`, if it is less than `most`.
    pub(super) fn slower(&self, rest: &[f64], tried: usize, most: f64) -> Option<Slower> {
        let found = self.members.iter().filter_map(|member| {
            let chance = (chance_of_rank(rest, member) * tried as f64).min(1.0);
            let of = |inside: bool| {
                let values = rest.iter().zip(member);
                median(
                    values
                        .filter(|(_, is)| **is == inside)
                        .map(|(rest, _)| *rest),
                )
            };
            let by = of(true) - of(false);
            (chance < most && by > 0.0).then(|| Slower {
                cause: self.cause,
                member: member.clone(),
                by,
                chance,
            })
        });
        found.min_by(|a, b| a.chance.total_cmp(&b.chance))
    }
}
