//! Tasks that are slow together: the first of their executors, of one host or executor, or with their data elsewhere.

use std::collections::BTreeMap;

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

/// The group of this kind that is the least probable by chance, if it is less than `most`.
pub(super) fn slower(tasks: &[&Task], rest: &[f64], cause: Cause, most: f64) -> Option<Slower> {
    // Of these only one group can be the slower one.
    const SUSPECT: &str = "slower if any";
    let suspect = |is: bool| if is { SUSPECT } else { "" }.to_owned();
    let key = |task: &Task| match cause {
        Cause::Host => task.host.to_string(),
        Cause::Executor => task.executor.to_string(),
        Cause::WarmUp => suspect(task.first),
        _ => suspect(matches!(&*task.locality, "RACK_LOCAL" | "ANY")),
    };
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, task) in tasks.iter().enumerate() {
        groups.entry(key(task)).or_default().push(at);
    }
    if groups.len() < 2 {
        return None;
    }
    if !matches!(cause, Cause::Host | Cause::Executor) {
        groups.retain(|name, _| name == SUSPECT);
    }
    let tried = groups.len() as f64;
    let found = groups.into_values().filter_map(|at| {
        let mut member = vec![false; tasks.len()];
        for at in at {
            member[at] = true;
        }
        let chance = (chance_of_rank(rest, &member) * tried).min(1.0);
        let of = |inside: bool| {
            let values = rest.iter().zip(&member);
            median(
                values
                    .filter(|(_, is)| **is == inside)
                    .map(|(rest, _)| *rest),
            )
        };
        let by = of(true) - of(false);
        (chance < most && by > 0.0).then_some(Slower {
            cause,
            member,
            by,
            chance,
        })
    });
    found.min_by(|a, b| a.chance.total_cmp(&b.chance))
}
