//! Slots that share the CPUs of one machine: with more tasks at once each waits longer for a CPU, with fewer less long.

use super::{Model, PartKind, Recorded, RecordedTask, Scenario};

/// Iterations: what others use of the CPUs depends on the time of the run, and that time on what they use.
const ROUNDS: usize = 4;
/// Recorded waits count as at most so many times as long as evenly divided CPUs explain.
const MOST_UNEVEN: f64 = 2.0;

/// By how much more CPU time the same work takes if all CPUs work than if one does, because they share caches and memory, as a share
/// of it: the middle and the most of what was measured with two CPUs (docs/what-if.md, *How good it is*).
const SHARED_CACHES: f64 = 0.12;
pub(super) const MOST_SHARED_CACHES: f64 = 0.25;

/// How long tasks wait for a CPU when they share CPUs with others.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CpuSharing {
    /// The position of waits for a CPU among the parts of a task.
    cpu_wait: usize,
    /// The positions of all waits.
    waits: Vec<usize>,
    /// The positions of parts in which a task works.
    work: Vec<usize>,
    cpus: f64,
    /// CPUs that a task uses while it does not wait for one, 0 to 1.
    by_task: f64,
    /// CPUs that all but the tasks would use.
    others: f64,
    /// Measured ÷ expected time of a second of work in the recorded run.
    uneven: f64,
    /// Slots of the recorded run.
    slots: usize,
}

impl CpuSharing {
    /// Of the recorded run; none if its CPUs, or its waits for them, are not known.
    fn new(recorded: &Recorded) -> Option<Self> {
        let shared = recorded.cpus.filter(|shared| shared.count > 0.0)?;
        let kinds = recorded.parts.iter().map(|part| part.kind);
        let at = |is: fn(PartKind) -> bool| -> Vec<usize> {
            let all = kinds.clone().enumerate();
            all.filter_map(|(at, kind)| is(kind).then_some(at))
                .collect()
        };
        let mut sharing = Self {
            cpu_wait: kinds.clone().position(|kind| kind == PartKind::CpuWait)?,
            waits: at(PartKind::is_wait),
            work: at(|kind| matches!(kind, PartKind::Operator(_))),
            cpus: shared.count,
            by_task: 1.0,
            others: shared.others.max(0.0),
            uneven: 1.0,
            slots: recorded.slots.max(1),
        };
        let (mut ran, mut busy, mut waited, mut at_once) = (0.0, 0.0, 0.0, 0.0);
        for stage in recorded.stages.iter().filter(|stage| stage.own) {
            for task in &stage.tasks {
                let seconds = task.seconds();
                ran += seconds;
                busy += sharing.busy(seconds, &task.parts);
                waited += part(&task.parts, sharing.cpu_wait, seconds);
                at_once += seconds * recorded.slots.min(stage.tasks.len()) as f64;
            }
        }
        if busy <= 0.0 || ran <= 0.0 {
            return None;
        }
        sharing.by_task = (busy / (ran - waited).max(busy)).clamp(0.0, 1.0);
        let expected = sharing.stretch(at_once / ran);
        sharing.uneven = ((busy + waited) / busy / expected).min(MOST_UNEVEN);
        Some(sharing)
    }

    /// Time that a second of work takes while so many tasks run: the CPUs are divided evenly.
    fn stretch(&self, tasks: f64) -> f64 {
        let wanted = tasks * self.by_task + self.others;
        (self.uneven * wanted / self.cpus).max(1.0)
    }

    /// How much longer work takes beside so many tasks than alone.
    fn by_caches(&self, tasks: usize) -> f64 {
        let busy = (tasks as f64 * self.by_task).clamp(1.0, self.cpus.max(1.0));
        1.0 + SHARED_CACHES * (busy - 1.0) / (self.cpus - 1.0).max(1.0)
    }

    /// Whether a part, by its position, is work: waits are taken out in another way.
    pub(super) fn is_work(&self, at: usize) -> bool {
        self.work.contains(&at)
    }

    /// A task's time without its waits, s.
    fn busy(&self, seconds: f64, parts: &[f64]) -> f64 {
        let waits = self.waits.iter().map(|at| part(parts, *at, seconds));
        (seconds - waits.sum::<f64>()).max(0.0)
    }

    /// The time of a task of a stage that had `recorded` tasks and has `tasks` on so many slots, s. `shares` are the shares of its parts that remain after the changes.
    /// `worked` is the work that the changes take out, s.
    pub(super) fn time(
        &self,
        (slots, [recorded, tasks]): (usize, [usize; 2]),
        task: &RecordedTask,
        shares: &[f64],
        worked: f64,
    ) -> f64 {
        let (seconds, parts) = (task.seconds(), &task.parts);
        let busy = (self.busy(seconds, parts) - worked).max(0.0);
        let others = self.waits.iter().filter(|at| **at != self.cpu_wait);
        let waits =
            others.map(|at| part(parts, *at, seconds) * shares.get(*at).copied().unwrap_or(1.0));
        let tasks = slots.min(tasks);
        let by_caches = self.by_caches(tasks) / self.by_caches(self.slots.min(recorded));
        busy * by_caches * self.stretch(tasks as f64) + waits.sum::<f64>()
    }
}

impl Model<'_> {
    /// The same scenario with the waits for CPUs that its slots cause. Others need the same CPU time in a shorter run, so a larger
    /// part of the CPUs.
    pub(super) fn with_shared_cpus(&self, mut scenario: Scenario) -> Scenario {
        let Some(mut sharing) = CpuSharing::new(self.recorded) else {
            return scenario;
        };
        let others = sharing.others;
        for _ in 0..ROUNDS {
            scenario.sharing = Some(sharing.clone());
            let seconds = self.seconds(&scenario);
            if seconds <= 0.0 {
                break;
            }
            let faster = self.recorded.seconds / seconds;
            // Others have as many threads as before. They cannot use more CPUs than that.
            sharing.others = (others * faster).min(others.ceil());
        }
        scenario
    }
}

fn part(parts: &[f64], at: usize, most: f64) -> f64 {
    parts.get(at).copied().unwrap_or(0.0).max(0.0).min(most)
}

#[cfg(test)]
mod tests {
    use super::super::{Part, RecordedStage, RecordedTask, SharedCpus};
    use super::*;

    /// A stage of tasks that each compute for `busy` s and wait for a CPU for `waited` s, on so many slots one after the other.
    fn recorded(slots: usize, tasks: usize, (busy, waited): (f64, f64), others: f64) -> Recorded {
        let seconds = busy + waited;
        let task = |number: usize| {
            let launched = seconds * (number / slots) as f64;
            RecordedTask {
                launched,
                finished: launched + seconds,
                parts: vec![0.0, waited],
            }
        };
        Recorded {
            seconds: seconds * tasks.div_ceil(slots) as f64,
            slots,
            executors: 1,
            parts: vec![Part::new(PartKind::Gc), Part::new(PartKind::CpuWait)],
            stages: vec![RecordedStage {
                own: true,
                submitted: Some(0.0),
                tasks: (0..tasks).map(task).collect(),
                ..RecordedStage::default()
            }],
            cpus: Some(SharedCpus { count: 2.0, others }),
            ..Recorded::default()
        }
    }

    fn then(recorded: &Recorded, change: &str) -> super::super::Estimate {
        let model = Model::new(recorded);
        let change = change.parse().expect("a change");
        model.estimate(&model.scenario(&[change]))
    }

    #[test]
    fn fewer_tasks_no_longer_wait_for_each_other() {
        // Four tasks on two CPUs wait as long as they work.
        let run = recorded(4, 8, (1.0, 1.0), 0.0);
        assert!((Model::new(&run).now() - 4.0).abs() < 1e-9);
        let alone = 8.0 / (1.0 + SHARED_CACHES);
        for (slots, seconds) in [("slots=2", 4.0), ("slots=1", alone)] {
            let found = then(&run, slots);
            assert!((found.then_s - seconds).abs() < 1e-9, "{slots}: {found:?}");
        }
        // Three want 1.5 times what there is.
        let found = then(&run, "slots=3");
        assert!((found.then_s - 4.5).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn more_tasks_wait_for_cpus_that_others_use_too() {
        let alone = recorded(1, 8, (1.0, 0.0), 0.0);
        let longer = 1.0 + SHARED_CACHES;
        assert!((then(&alone, "slots=2").then_s - 4.0 * longer).abs() < 1e-9);
        // More slots than CPUs: the work is the same.
        assert!((then(&alone, "slots=8").then_s - 4.0 * longer).abs() < 1e-9);
        // Others use one CPU, also in half the time.
        let beside = recorded(1, 8, (1.0, 0.0), 1.0);
        let found = then(&beside, "slots=2");
        assert!((found.then_s - 6.0 * longer).abs() < 1e-9, "{found:?}");
        assert!(
            found.then_low_s <= 4.0 && found.then_high_s >= 8.0,
            "{found:?}"
        );
        // The critical path knows no CPUs.
        assert!((then(&beside, "cores=inf").then_s - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_time_does_not_jump_beside_the_recorded_number_of_slots() {
        // Others seem to use all CPUs, and yet no task waited.
        let run = recorded(4, 4000, (1.0, 0.0), 2.0);
        let now = Model::new(&run).now();
        for slots in ["slots=3", "slots=5"] {
            let found = then(&run, slots);
            assert!(
                (found.then_s / now - 1.0).abs() < 0.35,
                "{slots}: {found:?}"
            );
        }
    }

    #[test]
    fn other_changes_are_taken_out_once() {
        // 6 s of work, of which a node does 3, and 4 s of waits for a CPU, of which 2 are the node's.
        let mut run = recorded(4, 4, (6.0, 4.0), 0.0);
        run.cpus = Some(SharedCpus {
            count: 4.0,
            others: 0.0,
        });
        run.parts.extend([
            Part::new(PartKind::Operator(7)),
            Part::new(PartKind::OperatorCpuWait(7)),
        ]);
        for task in &mut run.stages[0].tasks {
            task.parts.extend([3.0, 2.0]);
        }
        let model = Model::new(&run);
        let changes = ["slots=2", "operator:7=inf"].map(|text| text.parse().expect("a change"));
        // Without waits each of the four tasks works for 3 s, two at a time.
        let seconds = model.seconds(&model.scenario(&changes));
        let by_caches = (1.0 + SHARED_CACHES / 3.0) / (1.0 + SHARED_CACHES);
        assert!((seconds - 6.0 * by_caches).abs() < 1e-9, "{seconds}");
    }

    #[test]
    fn tasks_of_other_queries_keep_their_times() {
        let mut run = recorded(4, 8, (1.0, 1.0), 0.0);
        let mut other = run.stages[0].clone();
        other.own = false;
        run.stages.push(other);
        let model = Model::new(&run);
        let scenario = model.scenario(&["slots=2".parse().expect("a change")]);
        let own = &run.stages[0].tasks;
        assert!((scenario.time(&own[0], [8; 2], &scenario.remaining, true) - 1.0).abs() < 1e-9);
        assert!((scenario.time(&own[0], [8; 2], &scenario.remaining, false) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn without_cpus_tasks_keep_their_times() {
        let mut run = recorded(4, 8, (1.0, 1.0), 0.0);
        run.cpus = None;
        assert!((then(&run, "slots=2").then_s - 8.0).abs() < 1e-9);
        // Both changes: the waits are taken out once.
        let model = Model::new(&run);
        let changes = ["slots=2", "cpu-wait=0"].map(|text| text.parse().expect("a change"));
        assert!((model.seconds(&model.scenario(&changes)) - 4.0).abs() < 1e-9);
    }
}
