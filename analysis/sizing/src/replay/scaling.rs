//! Fits how the work and the tasks of a kind of stage change with size and slots.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::least_squares;
use crate::{Point, Run, SizingError};

/// Number of rounds in which work by size and crowding by slots are fitted in turn; both hardly change after the
/// fourth.
const ROUNDS: usize = 8;

/// Growth of each kind of stage and of all together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Scaling {
    base_bytes: f64,
    /// For a stage that no other run has.
    all: Growth,
    /// Slots, and the slowdown of the same work relative to the fewest slots, in order of slots: tasks on one machine
    /// share its cores, memory and disk.
    crowding: Vec<(f64, f64)>,
    kinds: BTreeMap<String, Growth>,
}

/// Growth of one kind of stage with size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Growth {
    /// Work of a stage, s: constant, and by base size.
    work: [f64; 2],
    /// Tasks of a stage: constant, by base size, by slot.
    tasks: [f64; 3],
}

/// The mean stage of one kind in one run.
struct MeanStage {
    at: Point,
    work: f64,
    tasks: f64,
    stages: f64,
}

impl Scaling {
    pub(super) fn fit(runs: &[&Run], base_bytes: f64) -> Result<Self, SizingError> {
        let mut seen: BTreeMap<&str, Vec<MeanStage>> = BTreeMap::new();
        let mut all = Vec::new();
        for run in runs {
            let mut kinds: BTreeMap<&str, (f64, f64, f64)> = BTreeMap::new();
            for stage in &run.stages {
                let sums = kinds.entry(&stage.class).or_default();
                *sums = (
                    sums.0 + 1.0,
                    sums.1 + stage.work(),
                    sums.2 + stage.times.tasks() as f64,
                );
            }
            let mut total = MeanStage {
                at: run.at,
                work: 0.0,
                tasks: 0.0,
                stages: 0.0,
            };
            for (class, (stages, work, tasks)) in kinds {
                total.work += work / stages;
                total.tasks += tasks / stages;
                total.stages += 1.0;
                let own = MeanStage {
                    at: run.at,
                    work: work / stages,
                    tasks: tasks / stages,
                    stages,
                };
                seen.entry(class).or_default().push(own);
            }
            all.push(total);
        }
        let mut scaling = Self {
            base_bytes,
            all: Growth::default(),
            crowding: slots_of(runs)
                .into_iter()
                .map(|slots| (slots, 1.0))
                .collect(),
            kinds: BTreeMap::new(),
        };
        for _ in 0..ROUNDS {
            for (class, rows) in &seen {
                let growth = scaling.growth(rows)?;
                scaling.kinds.insert((*class).to_owned(), growth);
            }
            scaling.crowd(&seen);
        }
        scaling.all = scaling.growth(&all)?;
        Ok(scaling)
    }

    /// The factors by which a stage's work and number of tasks change from one point to another.
    pub(super) fn factors(&self, class: &str, from: &Point, to: &Point) -> (f64, f64) {
        let growth = self.kinds.get(class).unwrap_or(&self.all);
        let ratio = |from: f64, to: f64| {
            if from > 0.0 && to > 0.0 {
                to / from
            } else {
                1.0
            }
        };
        let work = |point: &Point| self.work(growth, point) * self.crowded(point.slots);
        (
            ratio(work(from), work(to)),
            ratio(self.tasks(growth, from), self.tasks(growth, to)),
        )
    }

    fn growth(&self, rows: &[MeanStage]) -> Result<Growth, SizingError> {
        let mut growth = Growth::default();
        let working: Vec<&MeanStage> = rows.iter().filter(|row| row.work > 0.0).collect();
        let features = |row: &&MeanStage| {
            let crowded = self.crowded(row.at.slots);
            vec![crowded, crowded * row.at.bytes / self.base_bytes]
        };
        let works: Vec<f64> = working.iter().map(|row| row.work).collect();
        let features: Vec<Vec<f64>> = working.iter().map(features).collect();
        fill(
            &mut growth.work,
            &least_squares::fit(&features, &works, &works)?,
        );
        let with_tasks: Vec<&MeanStage> = rows.iter().filter(|row| row.tasks > 0.0).collect();
        let features: Vec<Vec<f64>> = with_tasks
            .iter()
            .map(|row| vec![1.0, row.at.bytes / self.base_bytes, row.at.slots])
            .collect();
        let tasks: Vec<f64> = with_tasks.iter().map(|row| row.tasks).collect();
        fill(
            &mut growth.tasks,
            &least_squares::fit(&features, &tasks, &tasks)?,
        );
        Ok(growth)
    }

    /// Fits the crowding to the residuals of the work by size.
    fn crowd(&mut self, seen: &BTreeMap<&str, Vec<MeanStage>>) {
        let mut sums = vec![(0.0, 0.0); self.crowding.len()];
        for (class, rows) in seen {
            let growth = &self.kinds[*class];
            for row in rows {
                let index = self
                    .crowding
                    .iter()
                    .position(|(slots, _)| same(*slots, row.at.slots));
                if let Some(index) = index {
                    sums[index].0 += row.stages * row.work;
                    sums[index].1 += row.stages * self.work(growth, &row.at);
                }
            }
        }
        for ((_, factor), (measured, expected)) in self.crowding.iter_mut().zip(sums) {
            if measured > 0.0 && expected > 0.0 {
                *factor = measured / expected;
            }
        }
        let first = self.crowding.first().map_or(1.0, |(_, factor)| *factor);
        self.crowding
            .iter_mut()
            .for_each(|(_, factor)| *factor /= first);
    }

    fn work(&self, growth: &Growth, point: &Point) -> f64 {
        growth.work[0] + growth.work[1] * point.bytes / self.base_bytes
    }

    fn tasks(&self, growth: &Growth, point: &Point) -> f64 {
        let [always, by_size, by_slot] = growth.tasks;
        always + by_size * point.bytes / self.base_bytes + by_slot * point.slots
    }

    /// The crowding at any number of slots: a power law between those of the runs; beyond the largest, the power law of
    /// the last two.
    fn crowded(&self, slots: f64) -> f64 {
        let known = &self.crowding;
        let above = known.partition_point(|(known, _)| *known < slots);
        let (low, high) = match (above, known.len()) {
            (_, 0) => return 1.0,
            (0, _) => return known[0].1,
            (_, 1) => return known[0].1,
            (above, length) => {
                let right = above.min(length - 1);
                (known[right - 1], known[right])
            }
        };
        let steepness = (high.1 / low.1).ln() / (high.0 / low.0).ln();
        let steepness = if slots > high.0 {
            steepness.max(0.0)
        } else {
            steepness
        };
        let from = if slots > high.0 { high } else { low };
        from.1 * (slots / from.0).powf(steepness)
    }

    pub(super) fn is_possible(&self) -> bool {
        let growths = self.kinds.values().chain([&self.all]);
        let mut factors = growths.flat_map(|growth| growth.work.iter().chain(&growth.tasks));
        let crowds = self.crowding.iter().all(|(slots, factor)| {
            [slots, factor]
                .iter()
                .all(|value| value.is_finite() && **value > 0.0)
        });
        let rising = self.crowding.is_sorted_by(|a, b| a.0 < b.0);
        factors.all(|factor| factor.is_finite() && *factor >= 0.0)
            && crowds
            && rising
            && self.base_bytes.is_finite()
            && self.base_bytes > 0.0
    }
}

fn fill<const N: usize>(factors: &mut [f64; N], found: &[f64]) {
    factors
        .iter_mut()
        .zip(found)
        .for_each(|(factor, found)| *factor = *found);
}

fn same(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 0.01
}

/// The numbers of slots in the runs.
fn slots_of(runs: &[&Run]) -> Vec<f64> {
    let mut slots: Vec<f64> = runs.iter().map(|run| run.at.slots).collect();
    slots.sort_by(f64::total_cmp);
    slots.dedup_by(|a, b| same(*a, *b));
    slots
}
