//! Our own model: the measured stages, replayed on another number of slots.
//!
//! The closed form divides all work by n. Real stages have a longest task, an incomplete last wave, and wait for each
//! other. So each stage keeps the distribution of its task times, and tasks get slots as in Spark: first come, first
//! served. The work and the number of tasks for another size are fitted over the runs for each kind of stage; so is the
//! time without a running task.

mod scaling;
pub(crate) mod schedule;

use serde::{Deserialize, Serialize};

use self::scaling::Scaling;
use self::schedule::Work;
pub use self::schedule::makespan;
use crate::closed_form::preparation;
use crate::least_squares;
use crate::{Point, Run, SizingError, Stage};

/// Number of runs that are replayed for one prediction, for each number of iterations.
const NEAREST: usize = 3;

/// The measured runs, and how they change with size and slots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// T_prep, s.
    preparation: f64,
    /// Time after it without a running task, s: constant, by iteration, by iteration and slot, by base size.
    idle: [f64; 4],
    /// The base size of the factors by size, bytes.
    base_bytes: f64,
    scaling: Scaling,
}

impl Replay {
    /// Fits how stages scale over the runs.
    ///
    /// # Errors
    /// If there are no runs, or the solver does not converge.
    pub fn fit(runs: &[&Run]) -> Result<Self, SizingError> {
        let bytes = runs
            .iter()
            .map(|run| run.at.bytes)
            .fold(f64::INFINITY, f64::min);
        if !bytes.is_finite() {
            return Err(SizingError::MissingRuns(
                "no runs, so nothing to replay".into(),
            ));
        }
        let mut replay = Self {
            preparation: preparation(runs),
            idle: [0.0; 4],
            base_bytes: bytes,
            scaling: Scaling::fit(runs, bytes)?,
        };
        let rows: Vec<Vec<f64>> = runs
            .iter()
            .map(|run| replay.idle_row(&run.at).to_vec())
            .collect();
        let busy = |run: &Run| {
            let works = run.stages.iter().map(|stage| Work {
                after: &stage.after,
                tasks: stage.times.each().collect(),
                ..Work::default()
            });
            on_slots(&works.collect::<Vec<_>>(), run.at.slots)
        };
        let idle: Vec<f64> = runs
            .iter()
            .map(|run| run.seconds - run.phases.preparation - busy(run))
            .collect();
        let seconds: Vec<f64> = runs.iter().map(|run| run.seconds).collect();
        let found = least_squares::fit(&rows, &idle, &seconds)?;
        for (factor, found) in replay.idle.iter_mut().zip(found) {
            *factor = found;
        }
        Ok(replay)
    }

    /// Completion time at a point, s, from the fitted runs. Between and beyond their numbers of iterations it is
    /// linear; `None` for other iterations if all runs have the same number.
    pub fn seconds(&self, runs: &[&Run], point: &Point) -> Option<f64> {
        let mut known: Vec<f64> = runs.iter().map(|run| run.at.iterations).collect();
        known.sort_by(f64::total_cmp);
        known.dedup_by(|a, b| (*a / *b - 1.0).abs() < 0.01);
        let busy = match known.as_slice() {
            [] => return None,
            [only] => {
                let same = (point.iterations / only - 1.0).abs() < 0.01;
                same.then(|| self.busy(runs, point, *only))?
            }
            several => {
                let above = several.partition_point(|known| *known < point.iterations * 0.995);
                let right = above.clamp(1, several.len() - 1);
                let (low, high) = (several[right - 1], several[right]);
                let share = (point.iterations - low) / (high - low);
                let (of_low, of_high) = (self.busy(runs, point, low), self.busy(runs, point, high));
                (of_low + share * (of_high - of_low)).max(0.0)
            }
        };
        let idle = self
            .idle_row(point)
            .iter()
            .zip(&self.idle)
            .map(|(a, b)| a * b)
            .sum::<f64>();
        Some(self.preparation + busy + idle)
    }

    fn idle_row(&self, point: &Point) -> [f64; 4] {
        [
            1.0,
            point.iterations,
            point.iterations * point.slots,
            point.bytes / self.base_bytes,
        ]
    }

    /// Time in which tasks run, s: the mean over the nearest runs with these iterations, weighted by nearness.
    fn busy(&self, runs: &[&Run], point: &Point, iterations: f64) -> f64 {
        let wanted = Point {
            iterations,
            ..*point
        };
        let mut near: Vec<(f64, &Run)> = runs
            .iter()
            .filter(|run| (run.at.iterations / iterations - 1.0).abs() < 0.01)
            .map(|run| (run.at.distance(&wanted), *run))
            .collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0));
        near.truncate(NEAREST);
        let mut sum = 0.0;
        let mut weights = 0.0;
        for (distance, run) in near {
            let weight = 1.0 / (0.1 + distance);
            let works: Vec<Work> = run
                .stages
                .iter()
                .map(|stage| self.scaled(stage, run, point))
                .collect();
            sum += weight * on_slots(&works, point.slots);
            weights += weight;
        }
        if weights > 0.0 { sum / weights } else { 0.0 }
    }

    /// A stage of a run, scaled to another point.
    fn scaled<'a>(&self, stage: &'a Stage, run: &Run, point: &Point) -> Work<'a> {
        let (work, tasks) = self.scaling.factors(&stage.class, &run.at, point);
        let measured = stage.times.tasks();
        // Partitions are whole; a stage with tasks keeps at least one. A million is beyond any stage.
        let tasks = (measured as f64 * tasks)
            .round()
            .clamp(measured.min(1) as f64, 1e6) as usize;
        Work {
            after: &stage.after,
            tasks: stage.times.scaled(tasks, stage.work() * work),
            ..Work::default()
        }
    }

    pub(crate) fn is_possible(&self) -> bool {
        let factors = self.idle.iter().chain([&self.preparation]);
        factors
            .into_iter()
            .all(|factor| factor.is_finite() && *factor >= 0.0)
            && self.base_bytes.is_finite()
            && self.base_bytes > 0.0
            && self.scaling.is_possible()
    }
}

/// The makespan on a number of slots that may be fractional because of speeds.
fn on_slots(works: &[Work], slots: f64) -> f64 {
    let below = slots.floor();
    if below < 1.0 {
        return makespan_of(works, 1) / slots;
    }
    let at_below = makespan_of(works, below as usize);
    if slots - below < 1e-6 {
        return at_below;
    }
    at_below + (slots - below) * (makespan_of(works, below as usize + 1) - at_below)
}

fn makespan_of(works: &[Work], slots: usize) -> f64 {
    schedule::last(&schedule::ends(works, slots))
}
