//! Slots that share the CPUs of one machine: with more tasks at once each waits longer for a CPU, with fewer less long.

use super::{Model, PartKind, Recorded, Scenario};

/// Rounds in which the time of the run and the use of the CPUs by others find each other.
const ROUNDS: usize = 4;
/// Threads wait longer than evenly divided CPUs explain, but not more times than this.
const MOST_UNEVEN: f64 = 2.0;

/// How long tasks wait for the CPUs that they share.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Crowd {
    /// The position of waits for a CPU among the parts of a task.
    cpu_wait: usize,
    /// The positions of all waits.
    waits: Vec<usize>,
    cpus: f64,
    /// CPUs that a task uses while it does not wait for one, 0 to 1.
    by_task: f64,
    /// CPUs that others would use.
    others: f64,
    /// Measured ÷ expected time of a second of work in the recorded run.
    uneven: f64,
}

impl Crowd {
    /// Of the recorded run; none if its CPUs, or its waits for them, are not known.
    fn new(recorded: &Recorded) -> Option<Self> {
        let shared = recorded.cpus.filter(|shared| shared.count > 0.0)?;
        let kinds = recorded.parts.iter().map(|part| part.kind);
        let waits: Vec<usize> = (0..)
            .zip(kinds.clone())
            .filter_map(|(at, kind)| kind.is_wait().then_some(at))
            .collect();
        let mut crowd = Self {
            cpu_wait: kinds.clone().position(|kind| kind == PartKind::CpuWait)?,
            waits,
            cpus: shared.count,
            by_task: 1.0,
            others: shared.others.max(0.0),
            uneven: 1.0,
        };
        let (mut ran, mut busy, mut waited, mut at_once) = (0.0, 0.0, 0.0, 0.0);
        for stage in recorded.stages.iter().filter(|stage| stage.own) {
            for task in &stage.tasks {
                let seconds = task.seconds();
                ran += seconds;
                busy += crowd.busy(seconds, &task.parts);
                waited += part(&task.parts, crowd.cpu_wait, seconds);
                at_once += seconds * recorded.slots.min(stage.tasks.len()) as f64;
            }
        }
        if busy <= 0.0 || ran <= 0.0 {
            return None;
        }
        crowd.by_task = (busy / (ran - waited).max(busy)).clamp(0.0, 1.0);
        let expected = crowd.stretch(at_once / ran);
        crowd.uneven = ((busy + waited) / busy / expected).clamp(1.0, MOST_UNEVEN);
        Some(crowd)
    }

    /// Time that a second of work takes while so many tasks run: the CPUs are divided evenly.
    fn stretch(&self, tasks: f64) -> f64 {
        let wanted = tasks * self.by_task + self.others;
        (self.uneven * wanted / self.cpus).max(1.0)
    }

    /// A task's time without its waits, s.
    fn busy(&self, seconds: f64, parts: &[f64]) -> f64 {
        let waits = self.waits.iter().map(|at| part(parts, *at, seconds));
        (seconds - waits.sum::<f64>()).max(0.0)
    }

    /// By how much longer a task of a stage with so many tasks takes than recorded, s. `remaining` are the shares of its parts that
    /// the changes leave; `seconds` is what they leave of it.
    pub(super) fn longer(
        &self,
        (slots, tasks): (usize, usize),
        seconds: f64,
        parts: &[f64],
        remaining: &[f64],
    ) -> f64 {
        let left = |at: &usize| {
            let share = remaining.get(*at).copied().unwrap_or(1.0);
            part(parts, *at, f64::INFINITY) * share
        };
        let waits: f64 = self.waits.iter().map(left).sum();
        let busy = (seconds - waits).max(0.0);
        let now = left(&self.cpu_wait).min(seconds);
        busy * (self.stretch(slots.min(tasks) as f64) - 1.0) - now
    }
}

impl Model<'_> {
    /// The same scenario with the waits for CPUs that its slots cause. In a shorter run, what others do takes a larger part of the
    /// CPUs.
    pub(super) fn crowded(&self, scenario: Scenario) -> Scenario {
        let Some(mut crowd) = Crowd::new(self.recorded) else {
            return scenario;
        };
        let others = crowd.others;
        let mut scenario = scenario;
        for _ in 0..ROUNDS {
            scenario.crowd = Some(crowd.clone());
            let seconds = self.seconds(&scenario);
            if seconds <= 0.0 {
                break;
            }
            let faster = self.recorded.seconds / seconds;
            // Those that used one CPU are not more threads than before.
            crowd.others = (others * faster).min(others.ceil());
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
        for (slots, seconds) in [("slots=2", 4.0), ("slots=1", 8.0)] {
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
        assert!((then(&alone, "slots=2").then_s - 4.0).abs() < 1e-9);
        // More slots than CPUs: the work is the same.
        assert!((then(&alone, "slots=8").then_s - 4.0).abs() < 1e-9);
        // Others use one CPU, also in half the time.
        let beside = recorded(1, 8, (1.0, 0.0), 1.0);
        let found = then(&beside, "slots=2");
        assert!((found.then_s - 6.0).abs() < 1e-9, "{found:?}");
        assert!(
            found.then_low_s <= 4.0 && found.then_high_s >= 8.0,
            "{found:?}"
        );
        // The critical path knows no CPUs.
        assert!((then(&beside, "cores=inf").then_s - 1.0).abs() < 1e-9);
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
