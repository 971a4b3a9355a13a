//! Tasks that get more slots when a neighbour is absent, and then share the CPUs with each other and with those that remain.

use super::{Group, Part, PartKind, Recorded, RecordedStage, RecordedTask};
use crate::replay::schedule::{Ran, Work};

/// Replays until the times of the stages fit to what runs beside them.
pub(super) const ROUNDS: usize = 4;
/// A smaller change of a stage's time is no reason for another replay.
const SMALL: f64 = 0.01;

/// The CPUs that remain for a run without some neighbours.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Crowding {
    /// The position of the CPU time among the parts of a task.
    cpu: usize,
    cpus: f64,
    /// CPUs that are used outside the recorded tasks: in the recorded run, and without the absent neighbours.
    others: [f64; 2],
    /// What the absent neighbours submitted.
    absent: Vec<PartKind>,
}

impl Crowding {
    /// For a scenario in which the neighbours of some parts are absent; none without such a part, or if the CPUs are not known.
    pub(super) fn new(recorded: &Recorded, remaining: &[f64]) -> Option<Self> {
        let shared = recorded.cpus.filter(|shared| shared.count > 0.0)?;
        let parts = || recorded.parts.iter();
        let cpu = parts().position(|part| part.kind == PartKind::Cpu)?;
        let gone = || {
            let gone = parts().zip(remaining).filter(|(_, left)| **left <= 0.0);
            let gone = gone.map(|(part, _)| part);
            gone.filter(|part| part.kind.is_of_neighbour())
        };
        gone().next()?;
        let own = recorded.stages.iter().filter(|stage| stage.own);
        let own = own.flat_map(|stage| &stage.tasks);
        let (from, to) = own.fold((f64::INFINITY, 0.0), |(from, to), task| {
            (task.launched.min(from), task.finished.max(to))
        });
        let other = recorded.stages.iter().filter(|stage| !stage.own);
        let by_tasks: f64 = other
            .map(|stage| stage.cpu_within(cpu, (from, to)))
            .sum::<f64>()
            / (to - from).max(f64::MIN_POSITIVE);
        let outside = (shared.others - by_tasks).max(0.0);
        // The CPU time of queries and jobs is that of their tasks.
        let by_gone: f64 = gone()
            .filter(|part| part.kind == PartKind::Other)
            .map(|part: &Part| part.cpus)
            .sum();
        Some(Self {
            cpu,
            cpus: shared.count,
            others: [outside, (outside - by_gone).max(0.0)],
            absent: gone().map(|part| part.kind).collect(),
        })
    }

    /// The share of the time of a stage's tasks in which they need a CPU, if it is `recorded` in the recorded run. Tasks of an absent
    /// neighbour need none, even where they keep their slots.
    pub(super) fn runnable(&self, stage: &RecordedStage, recorded: f64) -> f64 {
        let is_absent = |kind: &PartKind| match (kind, stage.group) {
            (PartKind::Query(absent), Group::Query(query)) => *absent == query,
            (PartKind::Jobs, Group::Job(_) | Group::Unknown) => true,
            _ => false,
        };
        if !stage.own && self.absent.iter().any(is_absent) {
            0.0
        } else {
            recorded
        }
    }

    /// Lengthens the tasks of stages that would end before the CPUs can have done their work. `factors` are how much longer the tasks of
    /// each stage take already, `ran` is when they ran in a replay with these, and `recorded` in that of the recorded run. Says whether a
    /// factor changed.
    pub(super) fn stretch(
        &self,
        stages: &[RecordedStage],
        works: &mut [Work<'_>],
        factors: &mut [f64],
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
            // If the recorded run was faster than this division of the CPUs allows, the same factor holds here.
            let needed = needed * (before.seconds() / before_s.max(f64::MIN_POSITIVE)).min(1.0);
            // Without a neighbour nothing takes longer than with it.
            let needed = needed.min(before.seconds());
            let lasts = ran.seconds();
            let factor = (factors[at] * needed / lasts.max(f64::MIN_POSITIVE)).max(1.0);
            let change = factor / factors[at];
            if change.is_finite() && (change - 1.0).abs() > SMALL {
                any = true;
                factors[at] = factor;
                times.iter_mut().for_each(|time| *time *= change);
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
        let all = (ran.need_cpu + others).max(self.cpus);
        let own = self.cpus * at_once / all;
        work.sum::<f64>() / own.max(f64::MIN_POSITIVE)
    }
}

impl RecordedStage {
    /// CPU time of its tasks in a span, s; `cpu` is its position among the parts of a task. A task is taken to use it evenly.
    fn cpu_within(&self, cpu: usize, (from, to): (f64, f64)) -> f64 {
        let tasks = self.tasks.iter().filter_map(|task| {
            let within = task.finished.min(to) - task.launched.max(from);
            let share = within.max(0.0) / task.seconds().max(f64::MIN_POSITIVE);
            Some(task.parts.get(cpu)? * share.min(1.0))
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
