//! Tasks that get more slots when a neighbour is absent, and then share the CPUs with each other and with those that remain.

use super::{Group, Part, PartKind, Recorded, RecordedStage, RecordedTask};
use crate::replay::schedule::{Ran, Work};

/// The CPUs that remain for a run without some neighbours.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Crowding {
    /// The position of the CPU time among the parts of a task.
    cpu: usize,
    cpus: f64,
    /// CPUs that all but tasks use: as recorded, and without those that are absent.
    others: [f64; 2],
}

impl Crowding {
    /// For a scenario in which the neighbours of some parts are absent; none without such a part, or if the CPUs are not known.
    pub(super) fn new(recorded: &Recorded, remaining: &[f64]) -> Option<Self> {
        let shared = recorded.cpus.filter(|shared| shared.count > 0.0)?;
        let parts = || recorded.parts.iter();
        let cpu = parts().position(|part| part.kind == PartKind::Cpu)?;
        let gone = || {
            let gone = parts().zip(remaining).filter(|(_, left)| **left <= 0.0);
            gone.map(|(part, _)| part)
                .filter(|part| part.kind.is_of_neighbour())
        };
        gone().next()?;
        let is_gone = |stage: &RecordedStage| {
            let own = |part: &Part| match (part.kind, stage.group) {
                (PartKind::Query(gone), Group::Query(query)) => gone == query,
                _ => false,
            };
            gone().any(own)
        };
        let by_tasks = |gone: bool| -> f64 {
            let stages = recorded.stages.iter().filter(|stage| !stage.own);
            let stages = stages.filter(|stage| is_gone(stage) == gone);
            let used: f64 = stages.map(|stage| stage.cpu_within(cpu, recorded)).sum();
            used / recorded.seconds.max(f64::MIN_POSITIVE)
        };
        let by_gone: f64 = gone().map(|part| part.cpus).sum();
        let without_tasks = shared.others - by_tasks(false);
        let others = [without_tasks - by_tasks(true), without_tasks - by_gone];
        Some(Self {
            cpu,
            cpus: shared.count,
            others: others.map(|cpus| cpus.max(0.0)),
        })
    }

    /// Lengthens the tasks of stages that would end before the CPUs can have done their work: when they ran in a replay that gives
    /// each task a CPU, and in that of the recorded run. Says whether there are any.
    pub(super) fn stretch(
        &self,
        stages: &[RecordedStage],
        works: &mut [Work<'_>],
        (ran, recorded): (&[Option<Ran>], &[Option<Ran>]),
    ) -> bool {
        let mut any = false;
        for (at, stage) in stages.iter().enumerate().filter(|(_, stage)| stage.own) {
            let Some((ran, before)) = ran[at].zip(recorded.get(at).copied().flatten()) else {
                continue;
            };
            let [was, is] = self.others;
            let times = &mut works[at].tasks;
            let as_recorded = stage.tasks.iter().map(RecordedTask::seconds).sum();
            let before_s = self.least(stage, (before, as_recorded), was);
            let needed = self.least(stage, (ran, times.iter().sum()), is);
            // The recorded run shows when the CPUs do the work in less time than this.
            let needed = needed * (before.seconds() / before_s.max(f64::MIN_POSITIVE)).min(1.0);
            let lasts = ran.seconds();
            if lasts > 0.0 && needed > lasts {
                any = true;
                times.iter_mut().for_each(|time| *time *= needed / lasts);
            }
        }
        any
    }

    /// The least time of a stage, s, whose tasks take so many seconds in all: CPUs are divided evenly among them, the tasks of other
    /// stages and `others`.
    fn least(&self, stage: &RecordedStage, (ran, tasks_s): (Ran, f64), others: f64) -> f64 {
        let work = stage
            .tasks
            .iter()
            .filter_map(|task| task.parts.get(self.cpu));
        let at_once = tasks_s / ran.seconds().max(f64::MIN_POSITIVE);
        let all = (at_once + ran.beside + others).max(self.cpus);
        let own = self.cpus * at_once / all;
        work.sum::<f64>() / own.max(f64::MIN_POSITIVE)
    }
}

impl RecordedStage {
    /// CPU time of its tasks during the run, s; `cpu` is its position among the parts of a task.
    fn cpu_within(&self, cpu: usize, recorded: &Recorded) -> f64 {
        let tasks = self.tasks.iter().filter_map(|task| {
            let during = task.finished.min(recorded.seconds) - task.launched;
            Some(task.parts.get(cpu)?.min(during.max(0.0)))
        });
        tasks.sum()
    }

    /// The share of its tasks' time in which they need a CPU, 0 to 1; the share in which they have one where it is not known.
    pub(super) fn needs_cpu(&self, cpu: Option<usize>) -> f64 {
        let has = || {
            let used: f64 = self
                .tasks
                .iter()
                .filter_map(|task| task.parts.get(cpu?))
                .sum();
            let all: f64 = self.tasks.iter().map(RecordedTask::seconds).sum();
            used / all.max(f64::MIN_POSITIVE)
        };
        self.runnable.unwrap_or_else(has).clamp(0.0, 1.0)
    }
}
