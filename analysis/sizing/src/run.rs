//! One run of the job, from its event log or profile.

use serde::{Deserialize, Serialize};

use crate::{Category, Point};

/// A stage keeps all task times up to this number of tasks.
const ALL: usize = 128;

/// A successful run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The log or profile directory from which it was read.
    pub log: String,
    /// Name of the application.
    pub application: String,
    /// Its category, by the libraries of its stages.
    pub category: Category,
    /// Slots, iterations, size.
    pub at: Point,
    /// From the application's start to its end, s; *T_Rec*.
    pub seconds: f64,
    /// Its phases.
    pub phases: Phases,
    /// Its stages, in order of submission.
    pub stages: Vec<Stage>,
}

/// The phases of figure 1, s. Those of tasks are summed over tasks, not divided by slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    /// From the application's start to its first job: context, executors; *T_prep*.
    pub preparation: f64,
    /// Time of tasks outside their run time: sending them and their variables, returning results; *T_vs*.
    pub sharing: f64,
    /// Time of tasks waiting for shuffle blocks and writing them; *T_commn*.
    pub communication: f64,
    /// The rest of the tasks' run time; *T_exec*.
    pub execution: f64,
}

/// A stage attempt that ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Its identity across runs: name and operations.
    pub class: String,
    /// The last operation of its tasks, *k* of *M_a^k*.
    pub unit: String,
    /// Indices of stages that had to end before it began.
    pub after: Vec<usize>,
    /// Durations of its tasks.
    pub times: Times,
}

/// Task times of a stage: each duration with its number of tasks, in order of launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Times(Vec<(f64, u32)>);

impl Stage {
    /// Sum over all its tasks, s.
    pub fn work(&self) -> f64 {
        self.times.sum()
    }
}

impl Times {
    /// From the tasks' seconds, in launch order. Many tasks are reduced: the longest, which decide when a stage ends,
    /// are kept; the others become means of neighbours.
    pub fn from_seconds(seconds: &[f64]) -> Self {
        if seconds.len() <= ALL {
            return Self(seconds.iter().map(|s| (rounded(*s), 1)).collect());
        }
        let mut sorted = seconds.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (others, longest) = sorted.split_at(sorted.len() - ALL / 4);
        let bins = ALL - longest.len();
        let mut times: Vec<(f64, u32)> = Vec::with_capacity(ALL);
        for bin in 0..bins {
            let own = &others[others.len() * bin / bins..others.len() * (bin + 1) / bins];
            let mean = own.iter().sum::<f64>() / own.len().max(1) as f64;
            times.push((mean, own.len() as u32));
        }
        times.extend(longest.iter().map(|s| (rounded(*s), 1)));
        times.retain(|(_, tasks)| *tasks > 0);
        Self(spread(times))
    }

    /// Number of tasks.
    pub fn tasks(&self) -> usize {
        self.0.iter().map(|(_, tasks)| *tasks as usize).sum()
    }

    /// Sum of the times, s.
    pub fn sum(&self) -> f64 {
        self.0.iter().map(|(s, tasks)| s * f64::from(*tasks)).sum()
    }

    /// Every task's seconds, in a possible order of launch.
    pub fn each(&self) -> impl Iterator<Item = f64> + '_ {
        // One of each in turn, so that the tasks of a mean are not launched one after the other.
        let most = self.0.iter().map(|(_, tasks)| *tasks).max().unwrap_or(0);
        (0..most).flat_map(move |round| {
            let left = self.0.iter().filter(move |(_, tasks)| *tasks > round);
            left.map(|(s, _)| *s)
        })
    }

    /// The same distribution for `tasks` tasks with the sum `sum`, s.
    pub fn scaled(&self, tasks: usize, sum: f64) -> Vec<f64> {
        let mut each: Vec<f64> = self.each().collect();
        if tasks == 0 || each.is_empty() {
            return Vec::new();
        }
        if each.len() != tasks {
            each.sort_by(f64::total_cmp);
            let index_of = |task: usize| (2 * task + 1) * each.len() / (2 * tasks);
            each = spread((0..tasks).map(|task| each[index_of(task)]).collect());
        }
        let total: f64 = each.iter().sum();
        if total > 0.0 {
            each.iter_mut().for_each(|s| *s *= sum / total);
        } else {
            each.iter_mut().for_each(|s| *s = sum / tasks as f64);
        }
        each
    }

    /// Whether all are times, and no more than [`Times::from_seconds`] makes of a stage's tasks.
    pub(crate) fn are_possible(&self) -> bool {
        self.0.len() <= ALL && self.0.iter().all(|(s, _)| s.is_finite() && *s >= 0.0)
    }
}

/// Rounded to milliseconds, as in event logs.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

/// An order without trend: the step is coprime to the length, near the golden section.
fn spread<T: Clone>(sorted: Vec<T>) -> Vec<T> {
    let length = sorted.len();
    let mut step = ((length as f64 * 0.618) as usize).max(1);
    while gcd(step, length) > 1 {
        step += 1;
    }
    (0..length)
        .map(|index| sorted[(index * step + length / 2) % length].clone())
        .collect()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
