//! Groups of slow tasks: the first of their stage on their executors, those of one host or executor, or those with
//! remote data.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Cause;
use super::stats::{Ranks, median};
use super::warm_up::WarmUp;
use crate::Task;

/// A group whose tasks are slower than the others.
pub(super) struct Slower {
    pub(super) cause: Cause,
    /// Probability of such a group by chance.
    pub(super) chance: f64,
    /// Whether each task is in the group.
    member: Vec<bool>,
    /// The delay, relative to the expected time of each task.
    by: f64,
}

impl Slower {
    /// The part of each task's rest that is due to the group, ms; `most` is the maximum probability by chance of a
    /// task's own delay.
    pub(super) fn parts(&self, rest: &[f64], expected: &[f64], most: f64) -> Vec<f64> {
        let relative: Vec<f64> = rest.iter().zip(expected).map(|(a, b)| a / b).collect();
        let warm_up = WarmUp::new(&relative, &self.member, most);
        let of = |index: usize| match self.cause {
            _ if !self.member[index] => 0.0,
            Cause::WarmUp => warm_up.part(relative[index]) * expected[index],
            _ => self.by * expected[index],
        };
        (0..rest.len()).map(of).collect()
    }
}

/// The groups of one kind that may be slower than the other tasks.
pub(super) struct Groups {
    pub(super) cause: Cause,
    /// The index of each task's group; `count` if it is in no group that may be slower.
    group: Vec<u32>,
    count: u32,
}

impl Groups {
    /// The groups; `None` if all tasks are in one group.
    pub(super) fn new(tasks: &[&Task], cause: Cause) -> Option<Self> {
        match cause {
            Cause::Host => Self::named(tasks, cause, |task| &task.host),
            Cause::Executor => Self::named(tasks, cause, |task| &task.executor),
            Cause::WarmUp => Self::suspects(tasks, cause, |task| task.first),
            _ => Self::suspects(tasks, cause, |task| {
                matches!(&*task.locality, "RACK_LOCAL" | "ANY")
            }),
        }
    }

    /// Each of the groups may be the slower one.
    fn named(tasks: &[&Task], cause: Cause, name: fn(&Task) -> &str) -> Option<Self> {
        let names: BTreeSet<&str> = tasks.iter().map(|task| name(task)).collect();
        let numbers: BTreeMap<&str, u32> = names.into_iter().zip(0..).collect();
        let count = u32::try_from(numbers.len()).ok()?;
        let group = tasks.iter().map(|task| numbers[name(task)]);
        (count > 1).then(|| Self {
            cause,
            group: group.collect(),
            count,
        })
    }

    /// Only this group may be the slower one.
    fn suspects(tasks: &[&Task], cause: Cause, is: fn(&Task) -> bool) -> Option<Self> {
        let group: Vec<u32> = tasks.iter().map(|task| u32::from(!is(task))).collect();
        (group.contains(&0) && group.contains(&1)).then_some(Self {
            cause,
            group,
            count: 1,
        })
    }

    pub(super) fn count(&self) -> usize {
        self.count as usize
    }

    /// The group that is the least probable by chance among `tried` groups, if its probability is below `most`. `ranks`
    /// are those of `rest`.
    pub(super) fn slower(
        &self,
        rest: &[f64],
        ranks: &Ranks,
        tried: usize,
        most: f64,
    ) -> Option<Slower> {
        let chances = ranks.chances(&self.group, self.count());
        let mut rare: Vec<(u32, f64)> = (0..)
            .zip(chances)
            .map(|(number, chance)| (number, (chance * tried as f64).min(1.0)))
            .filter(|(_, chance)| *chance < most)
            .collect();
        rare.sort_by(|a, b| a.1.total_cmp(&b.1));
        rare.into_iter().find_map(|(number, chance)| {
            let member: Vec<bool> = self.group.iter().map(|of| *of == number).collect();
            let of = |inside: bool| {
                let values = rest.iter().zip(&member);
                let values = values.filter(|(_, is)| **is == inside);
                median(values.map(|(rest, _)| *rest))
            };
            let by = of(true) - of(false);
            (by > 0.0).then_some(Slower {
                cause: self.cause,
                chance,
                member,
                by,
            })
        })
    }
}
