//! Tasks that get more slots when a neighbour is absent, and then share the CPUs with each other.

use super::{PartKind, Recorded, RecordedStage};
use crate::replay::schedule::Work;

/// The CPUs that remain for a run without some neighbours.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Crowding {
    /// The position of the CPU time among the parts of a task.
    cpu: usize,
    cpus: f64,
    /// CPUs that all but the run's own tasks use.
    others: f64,
}

impl Crowding {
    /// For a scenario in which the neighbours of some parts are absent; none without such a part, or if the CPUs are not known.
    pub(super) fn new(recorded: &Recorded, remaining: &[f64]) -> Option<Self> {
        let shared = recorded.cpus.filter(|shared| shared.count > 0.0)?;
        let parts = || recorded.parts.iter();
        let cpu = parts().position(|part| part.kind == PartKind::Cpu)?;
        let gone = parts().zip(remaining).filter(|(_, left)| **left <= 0.0);
        let gone: Vec<f64> = gone.map(|(part, _)| part.cpus).collect();
        let free: f64 = gone.iter().sum();
        (!gone.is_empty()).then(|| Self {
            cpu,
            cpus: shared.count,
            others: (shared.others - free).max(0.0),
        })
    }

    /// Lengthens the tasks of stages that would end before the CPUs can have done their work: at their ends in a replay that gives
    /// each task a CPU. Says whether there are any.
    pub(super) fn stretch(
        &self,
        stages: &[RecordedStage],
        works: &mut [Work<'_>],
        ends: &[Option<f64>],
        slots: usize,
    ) -> bool {
        let mut any = false;
        for (at, stage) in stages.iter().enumerate().filter(|(_, stage)| stage.own) {
            let begun = works[at].after.iter().filter_map(|before| ends[*before]);
            let begun = begun.fold(0.0, f64::max) + works[at].gap;
            let Some(lasts) = ends[at].map(|end| end - begun).filter(|lasts| *lasts > 0.0) else {
                continue;
            };
            let needed = self.least(stage, slots);
            if needed > lasts {
                any = true;
                let times = &mut works[at].tasks;
                times.iter_mut().for_each(|time| *time *= needed / lasts);
            }
        }
        any
    }

    /// The least time of a stage, s: CPUs are divided evenly among its tasks and the others.
    fn least(&self, stage: &RecordedStage, slots: usize) -> f64 {
        let work = stage
            .tasks
            .iter()
            .filter_map(|task| task.parts.get(self.cpu));
        let at_once = slots.min(stage.tasks.len()) as f64;
        let own = self.cpus * at_once / (at_once + self.others).max(self.cpus);
        work.sum::<f64>() / own.max(f64::MIN_POSITIVE)
    }
}
