//! A prediction with its interval.

use schemars::JsonSchema;
use serde::Serialize;
use ts_rs::TS;

use super::cpu_sharing::MOST_SHARED_CACHES;
use super::random::Random;
use super::{Model, Part, PartKind, Scenario};

/// Number of times that tasks are drawn again, at most.
const DRAWS: usize = 200;
/// At least: the means of very many tasks hardly differ.
const FEWEST_DRAWS: usize = 2;
/// Tasks that are put on slots for one estimate: with more tasks there are fewer draws.
const TASKS_OF_DRAWS: usize = 4_000_000;
/// A task is replaced by one of its stage that took at most so many times as long, or as short.
const ALIKE: f64 = 1.5;
/// Quantile of the normal distribution for 95% of the cases.
const Z: f64 = 1.96;
/// Where the drawing starts.
const SEED: u64 = 26;

/// How long a run takes after changes, and what that saves, s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, TS, JsonSchema)]
pub struct Estimate {
    /// The time after the changes.
    pub then_s: f64,
    /// Lower end of its 95% interval.
    pub then_low_s: f64,
    /// Upper end.
    pub then_high_s: f64,
    /// The replay of the unchanged run less that; below 0 if the run gets longer.
    pub saves_s: f64,
    /// Lower end of its 95% interval.
    pub saves_low_s: f64,
    /// Upper end.
    pub saves_high_s: f64,
}

impl Model<'_> {
    /// The time in a scenario, with 95% intervals. They contain seven sources of error:
    ///
    /// * tasks of a stage differ: a bootstrap replaces each by one of similar length, the same in each call;
    /// * a part of a task is estimated from few samples;
    /// * overlapping work may save less than its share ([`Part::range`]);
    /// * on more slots, stages whose input Spark cuts by the number of slots may keep their tasks;
    /// * with another number of slots, the waits for a CPU may stay as recorded; with fewer, they may vanish;
    /// * tasks share caches and memory: on fewer slots the same work may take less CPU time, and more slots may save nothing;
    /// * the replay of the unchanged run differs from the measured time.
    ///
    /// The interval of the time after the changes also contains the spread between runs, because another run is compared
    /// with it.
    pub fn estimate(&self, scenario: &Scenario) -> Estimate {
        let saves = self.now() - self.seconds(scenario);
        let mut draws = self.draws(scenario);
        draws.sort_by(f64::total_cmp);
        let (drawn_low, drawn_high) = quantiles(&draws).unwrap_or((saves, saves));
        let stretched = [|part: &Part| part.range.0, |part: &Part| part.range.1]
            .map(|range| self.stretched(scenario, range));
        let takes_longer = stretched
            .iter()
            .any(|scenario| scenario.remaining.iter().any(|remaining| *remaining > 1.0));
        let [least, most] = stretched.map(|scenario| self.now() - self.seconds(&scenario));
        let [no_waits, same_waits] = [
            self.without_cpu_waits(scenario),
            self.with_recorded_waits(scenario),
        ]
        .map(|scenario| self.now() - self.seconds(&scenario));
        let between_runs = Z * self.recorded.spread * (self.now() - saves);
        let own = (self.now() - self.recorded.seconds).abs();
        let below = (saves - drawn_low).max(0.0) + own;
        let above = (drawn_high - saves).max(0.0) + own;
        let mut same_tasks = scenario.clone();
        same_tasks.splits = false;
        let same_tasks = self.now() - self.seconds(&same_tasks);
        let ends = [least, most, no_waits, same_waits, same_tasks];
        let mut low = ends.into_iter().fold(saves, f64::min) - below;
        let mut high = ends.into_iter().fold(saves, f64::max) + above;
        if scenario.sharing.is_some() && scenario.slots > self.recorded.slots {
            low = low.min(0.0);
        }
        if scenario.slots >= self.recorded.slots && !takes_longer {
            // Tasks that take less time on as many slots do not make it longer.
            low = low.max(0.0);
        }
        high = high.min(self.recorded.seconds.max(self.now()));
        let (low, high) = (low.min(saves), high.max(saves));
        Estimate {
            then_s: self.now() - saves,
            then_low_s: (self.now() - high - between_runs).max(0.0),
            then_high_s: self.now() - low + between_runs,
            saves_s: saves,
            saves_low_s: low,
            saves_high_s: high,
        }
    }

    /// What the scenario saves if each second of a part that is taken out saves as many as `range` says.
    fn stretched(&self, scenario: &Scenario, range: impl Fn(&Part) -> f64) -> Scenario {
        let parts = self.recorded.parts.iter().zip(&scenario.remaining);
        let remaining = parts.map(|(part, remaining)| 1.0 - (1.0 - remaining) * range(part));
        let mut stretched = scenario.clone();
        stretched.remaining = remaining.collect();
        stretched
    }

    /// The same scenario, in which tasks wait for a CPU as they did, whatever the number of slots.
    fn with_recorded_waits(&self, scenario: &Scenario) -> Scenario {
        let mut scenario = scenario.clone();
        scenario.sharing = None;
        scenario
    }

    /// The same scenario, in which tasks on fewer slots no longer wait for a CPU, nor for caches and memory that they share.
    fn without_cpu_waits(&self, scenario: &Scenario) -> Scenario {
        let mut scenario = self.with_recorded_waits(scenario);
        if scenario.slots < self.recorded.slots {
            let parts = self.recorded.parts.iter().zip(&mut scenario.remaining);
            for (_, remaining) in parts.filter(|(part, _)| part.kind == PartKind::CpuWait) {
                *remaining = 0.0;
            }
            if self.recorded.cpus.is_some() {
                scenario.shorten(1.0 + MOST_SHARED_CACHES);
            }
        }
        scenario
    }

    /// What the scenario saves, with tasks drawn again, s.
    fn draws(&self, scenario: &Scenario) -> Vec<f64> {
        let stages = &self.recorded.stages;
        let tasks: usize = stages.iter().map(|stage| stage.tasks.len()).sum();
        let count = (TASKS_OF_DRAWS / tasks.max(1)).clamp(FEWEST_DRAWS, DRAWS);
        let unchanged = self.scenario(&[]);
        let alike: Vec<Alike> = (0..stages.len()).map(|at| self.alike(at)).collect();
        let mut random = Random(SEED);
        let draw = |_| {
            let drawn: Vec<(Vec<f64>, Vec<f64>)> = (0..stages.len())
                .map(|at| self.draw(at, &alike[at], scenario, &mut random))
                .collect();
            let before = self.seconds_with(&unchanged, |at| drawn[at].0.clone());
            let after = self.seconds_with(scenario, |at| drawn[at].1.clone());
            before - after
        };
        (0..count).map(draw).collect()
    }

    /// The times of a stage's tasks before and after the changes, each those of a task like it, in the order of launch.
    fn draw(
        &self,
        at: usize,
        alike: &Alike,
        scenario: &Scenario,
        random: &mut Random,
    ) -> (Vec<f64>, Vec<f64>) {
        let stage = &self.recorded.stages[at];
        let parts = self.recorded.parts.iter().zip(&scenario.remaining);
        let remaining: Vec<f64> = parts
            .map(|(part, remaining)| {
                let samples = part.samples.get(at).copied().unwrap_or(0);
                if samples == 0 || *remaining >= 1.0 {
                    return *remaining;
                }
                let noise = random.normal() / (samples as f64).sqrt();
                1.0 - (1.0 - remaining) * (1.0 + noise).max(0.0)
            })
            .collect();
        let tasks = self.tasks_of(scenario, at);
        let mut before = Vec::with_capacity(stage.tasks.len());
        let mut after = Vec::with_capacity(stage.tasks.len());
        for own in self.order(at) {
            let (from, to) = alike.ranges[alike.ranks[*own]];
            let task = &stage.tasks[alike.sorted[from + random.below(to - from)]];
            before.push(task.seconds());
            after.push(scenario.time(task, tasks, &remaining, stage.own));
        }
        (before, after)
    }

    fn alike(&self, at: usize) -> Alike {
        let tasks = &self.recorded.stages[at].tasks;
        let mut sorted: Vec<usize> = (0..tasks.len()).collect();
        sorted.sort_by(|a, b| tasks[*a].seconds().total_cmp(&tasks[*b].seconds()));
        let seconds: Vec<f64> = sorted.iter().map(|task| tasks[*task].seconds()).collect();
        let mut ranks = vec![0; tasks.len()];
        for (rank, task) in sorted.iter().enumerate() {
            ranks[*task] = rank;
        }
        let range = |rank: usize| {
            let own = seconds[rank];
            let from = seconds.partition_point(|other| *other < own / ALIKE);
            let to = seconds.partition_point(|other| *other <= own * ALIKE);
            (from.min(rank), to.max(rank + 1))
        };
        Alike {
            ranges: (0..tasks.len()).map(range).collect(),
            sorted,
            ranks,
        }
    }
}

/// Which tasks of a stage take about as long.
struct Alike {
    /// Tasks by their time.
    sorted: Vec<usize>,
    /// The place of each task in that.
    ranks: Vec<usize>,
    /// For each place the places of tasks that take about as long: from the first to before the second.
    ranges: Vec<(usize, usize)>,
}

/// The 2.5% and the 97.5% quantile of sorted values.
fn quantiles(sorted: &[f64]) -> Option<(f64, f64)> {
    let at = |share: f64| {
        let index = (share * sorted.len() as f64) as usize;
        sorted
            .get(index.min(sorted.len().saturating_sub(1)))
            .copied()
    };
    at(0.025).zip(at(0.975))
}
