//! Explains the time of each task of a stage by causes.

use super::finding::{Cause, Measure};
use super::groups::Groups;
use super::parts::Parts;
use super::slope::slope;
use super::stats::{
    Ranks, chance_if_spread_known, chance_of_going_together, chance_of_outlier, median, spread,
};
use crate::Task;

/// Standard deviation of a duration between two times that are rounded to whole ms.
pub(super) const ROUNDING_MS: f64 = 0.408;
/// A disk is at least this fast, bytes/ms; a spilled byte is written and read.
const SLOWEST_DISK: f64 = 10_000.0;

const CAUSES: [Cause; 12] = [
    Cause::Data,
    Cause::Computation,
    Cause::DataOrComputation,
    Cause::GarbageCollection,
    Cause::FetchWait,
    Cause::ShuffleWrite,
    Cause::Spill,
    Cause::WarmUp,
    Cause::Host,
    Cause::Executor,
    Cause::Locality,
    Cause::Start,
];

/// Each task's time beyond a typical task's, by cause; ms.
pub(super) struct Explanation {
    /// The measure of data that explains the time best.
    pub(super) measure: Option<Measure>,
    amounts: Vec<f64>,
    data: Vec<f64>,
    spill: Vec<f64>,
    /// Measured time, without the part explained by data.
    start: Vec<f64>,
    gc: Vec<f64>,
    fetch: Vec<f64>,
    write: Vec<f64>,
    /// The remaining work.
    rest: Vec<f64>,
    /// The cause of the remaining work.
    rest_is: Cause,
    /// Slower groups: the probability by chance, and the part of each task's time.
    groups: Vec<(Cause, f64, Vec<f64>)>,
    /// Expected time of a task with its amount of data.
    expected: Vec<f64>,
    /// Time of a typical task.
    typical: f64,
    /// Spread of the rest, relative to the expected time.
    spread: f64,
    chance_of_data: f64,
    chance_of_spill: f64,
}

impl Explanation {
    pub(super) fn new(tasks: &[&Task], chance: f64) -> Self {
        let parts: Vec<Parts> = tasks.iter().map(|task| Parts::from_task(task)).collect();
        let column = |of: fn(&Parts) -> f64| parts.iter().map(of).collect::<Vec<f64>>();
        let work = column(|parts| parts.work);
        let counted: Vec<(Measure, Vec<f64>)> = Measure::ALL
            .into_iter()
            .map(|measure| {
                (
                    measure,
                    tasks.iter().map(|task| measure.value(task)).collect(),
                )
            })
            .filter(|(_, amounts): &(_, Vec<f64>)| amounts.iter().any(|amount| *amount > 0.0))
            .collect();
        let chosen = choose(&counted, &work);
        let zeros = || vec![0.0; tasks.len()];
        let amounts = chosen.map_or_else(zeros, |index| counted[index].1.clone());
        let mut data = zeros();
        let mut without_data = |times: Vec<f64>| {
            let slope = slope(&amounts, &times);
            let amount = median(amounts.iter().copied());
            let time = median(times.iter().copied());
            let mut left = Vec::with_capacity(times.len());
            for (index, own) in times.iter().enumerate() {
                let of_data = slope * (amounts[index] - amount);
                data[index] += of_data;
                left.push(own - time - of_data);
            }
            (left, time)
        };
        let (work_left, typical_work) = without_data(work);
        let (gc, typical_gc) = without_data(column(|parts| parts.gc));
        let (fetch, typical_fetch) = without_data(column(|parts| parts.fetch));
        let (write, typical_write) = without_data(column(|parts| parts.write));
        let start = column(|parts| parts.start);
        let typical_start = median(start.iter().copied());
        let typical = typical_work + typical_gc + typical_fetch + typical_write + typical_start;
        let spilled: Vec<f64> = tasks.iter().map(|task| task.spilled_bytes as f64).collect();
        let per_byte = slope(&spilled, &work_left).min(2.0 / SLOWEST_DISK);
        let typical_spilled = median(spilled.iter().copied());
        let spill: Vec<f64> = spilled
            .iter()
            .map(|bytes| per_byte * (bytes - typical_spilled))
            .collect();
        let rest = work_left.iter().zip(&spill).map(|(a, b)| a - b).collect();
        let mut explained = Self {
            measure: chosen.map(|index| counted[index].0),
            expected: data.iter().map(|ms| (typical + ms).max(1.0)).collect(),
            chance_of_data: 1.0,
            chance_of_spill: 1.0,
            amounts,
            data,
            start: start.iter().map(|ms| ms - typical_start).collect(),
            gc,
            fetch,
            write,
            rest,
            rest_is: if counted.is_empty() {
                Cause::DataOrComputation
            } else {
                Cause::Computation
            },
            groups: Vec::new(),
            typical,
            spread: 0.0,
            spill,
        };
        explained.take_groups_out(tasks, chance);
        explained.spread = spread(&explained.relative());
        // Only if needed, because it takes long.
        if !explained.slow(chance).is_empty() {
            let excess = (0..tasks.len()).map(|index| explained.excess(index));
            let all: Vec<f64> = excess.collect();
            let measures: Vec<Vec<f64>> = counted.into_iter().map(|(_, amounts)| amounts).collect();
            explained.chance_of_data = chance_of_going_together(&measures, &all);
            explained.chance_of_spill = chance_of_going_together(&[spilled], &work_left);
        }
        explained
    }

    /// Removes the effect of at most one group of each kind, the least probable by chance first: the effect of others
    /// may be due to it.
    fn take_groups_out(&mut self, tasks: &[&Task], most: f64) {
        let mut kinds: Vec<Groups> = [Cause::WarmUp, Cause::Host, Cause::Executor, Cause::Locality]
            .into_iter()
            .filter_map(|cause| Groups::new(tasks, cause))
            .collect();
        let tried = kinds.iter().map(Groups::count).sum();
        loop {
            let rest = self.relative();
            let ranks = Ranks::from_values(&rest);
            let found = kinds
                .iter()
                .filter_map(|groups| groups.slower(&rest, &ranks, tried, most))
                .min_by(|a, b| a.chance.total_cmp(&b.chance));
            let Some(found) = found else {
                return;
            };
            let parts = found.parts(&self.rest, &self.expected, most);
            for (rest, part) in self.rest.iter_mut().zip(&parts) {
                *rest -= part;
            }
            kinds.retain(|groups| groups.cause != found.cause);
            self.groups.push((found.cause, found.chance, parts));
        }
    }

    fn relative(&self) -> Vec<f64> {
        let pairs = self.rest.iter().zip(&self.expected);
        pairs.map(|(rest, expected)| rest / expected).collect()
    }

    pub(super) fn causes(&self) -> impl Iterator<Item = Cause> {
        let rest_is = self.rest_is;
        CAUSES.into_iter().filter(move |cause| {
            rest_is == *cause || !matches!(cause, Cause::Computation | Cause::DataOrComputation)
        })
    }

    /// Time of the task beyond a typical one, ms.
    pub(super) fn excess(&self, index: usize) -> f64 {
        self.causes().map(|cause| self.part(index, cause)).sum()
    }

    /// The part of its excess with a cause, ms.
    pub(super) fn part(&self, index: usize, cause: Cause) -> f64 {
        match cause {
            Cause::Data => self.data[index],
            Cause::Computation | Cause::DataOrComputation => self.rest[index],
            Cause::GarbageCollection => self.gc[index],
            Cause::FetchWait => self.fetch[index],
            Cause::ShuffleWrite => self.write[index],
            Cause::Spill => self.spill[index],
            Cause::Start => self.start[index],
            Cause::WarmUp | Cause::Host | Cause::Executor | Cause::Locality => {
                self.group(cause).map_or(0.0, |(.., parts)| parts[index])
            }
        }
    }

    /// Amount of data of the task, and of a typical one.
    pub(super) fn amount(&self, index: usize) -> Option<(f64, f64)> {
        self.measure?;
        Some((self.amounts[index], median(self.amounts.iter().copied())))
    }

    /// Tasks that are slow beyond chance, alone or as a part of a group.
    pub(super) fn slow(&self, chance: f64) -> Vec<usize> {
        self.slow_by(|z, n| chance_of_outlier(z, n) < chance)
    }

    /// The same if the spread were known exactly, as with very many tasks.
    pub(super) fn slow_if_spread_known(&self, chance: f64) -> Vec<usize> {
        self.slow_by(|z, n| chance_if_spread_known(z, n) < chance)
    }

    fn slow_by(&self, is_slow: impl Fn(f64, usize) -> bool) -> Vec<usize> {
        let n = self.rest.len();
        let scale = self.scale(self.typical.max(1.0));
        let with_group = |index: usize| self.groups.iter().any(|(.., parts)| parts[index] > 0.0);
        (0..n)
            .filter(|index| {
                let excess = self.excess(*index);
                is_slow(excess / scale, n) || excess > 0.0 && with_group(*index)
            })
            .collect()
    }

    /// The spread of tasks with this expected time, ms.
    fn scale(&self, expected: f64) -> f64 {
        (self.spread * expected).hypot(ROUNDING_MS)
    }

    /// The certainty that a task is slow, and for this reason; 0 to 1.
    pub(super) fn sure(&self, index: usize, cause: Cause) -> f64 {
        // A group is slow beyond chance as a whole.
        if let Some((_, chance, _)) = self.group(cause) {
            return (1.0 - chance).clamp(0.0, 1.0);
        }
        let n = self.rest.len();
        let by_chance = |ms: f64, expected: f64| chance_of_outlier(ms / self.scale(expected), n);
        let typical = self.typical.max(1.0);
        let slow = by_chance(self.excess(index), typical);
        let part = self.part(index, cause);
        let other = match cause {
            Cause::Data => self.chance_of_data,
            Cause::Spill => self.chance_of_spill,
            Cause::Computation | Cause::DataOrComputation => by_chance(part, self.expected[index]),
            _ => by_chance(part, typical),
        };
        ((1.0 - slow) * (1.0 - other)).clamp(0.0, 1.0)
    }

    fn group(&self, cause: Cause) -> Option<&(Cause, f64, Vec<f64>)> {
        self.groups.iter().find(|(of, ..)| *of == cause)
    }
}

/// The measure that explains the work best, with the least sum of deviations. `None` if nothing was counted.
fn choose(counted: &[(Measure, Vec<f64>)], work: &[f64]) -> Option<usize> {
    let typical = median(work.iter().copied());
    let left = |amounts: &[f64], slope: f64| -> f64 {
        let amount = median(amounts.iter().copied());
        let of = |(own, has): (&f64, &f64)| (own - typical - slope * (has - amount)).abs();
        work.iter().zip(amounts).map(of).sum()
    };
    let mut best = None;
    let mut least = f64::INFINITY;
    for (index, (_, amounts)) in counted.iter().enumerate() {
        let left = left(amounts, slope(amounts, work));
        if left < least {
            (best, least) = (Some(index), left);
        }
    }
    best
}
