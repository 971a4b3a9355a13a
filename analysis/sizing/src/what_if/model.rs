//! The recorded run, replayed with changes.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;

use super::cpu_sharing::CpuSharing;
use super::crowding::{Crowding, ROUNDS};
use super::graph::{Place, places};
use super::{Change, Part, PartKind, Recorded, RecordedStage, RecordedTask};
use crate::replay::schedule::{self, Ran, Work};

/// More tasks than this Spark hardly makes of what were a few.
const MOST_SPLIT: usize = 1_000;

/// A recorded run that can be replayed.
pub struct Model<'a> {
    pub(super) recorded: &'a Recorded,
    places: Vec<Place>,
    /// From the end of the last stage to the end of all, s.
    tail: f64,
    now: f64,
    /// When each stage runs in the replay of the unchanged run.
    ran: Vec<Option<Ran>>,
}

/// A bound that is an answer by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Floor {
    /// All tasks of a stage take equally long.
    NoSkew,
    /// The time of the tasks is spread evenly over the slots.
    PerfectParallelism,
    /// Each task has a slot of its own: the critical path.
    EndlessSlots,
    /// The same without skew.
    EndlessSlotsNoSkew,
    /// Tasks take no time: the driver and its scheduler alone.
    DriverOnly,
}

/// How the time of tasks is spread within a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spread {
    AsRecorded,
    /// Each task takes the mean.
    Mean,
    /// All slots do it together, each the same part: one task on one slot that is so many times as fast.
    Over(usize),
}

/// What is different in a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    pub(super) slots: usize,
    spread: Spread,
    /// The share of each part that remains, 0 to 1.
    pub(super) remaining: Vec<f64>,
    /// The share of the tasks' whole time that remains, 0 to 1.
    whole: f64,
    /// Queries whose tasks are absent.
    without: Vec<i64>,
    /// What the run's own tasks do to each other if neighbours are absent.
    pub(super) crowding: Option<Crowding>,
    /// Whether stages have other tasks on more slots, see [`RecordedStage::splits`].
    pub(super) splits: bool,
    /// Other waits for CPUs than recorded.
    pub(super) sharing: Option<CpuSharing>,
}

impl Floor {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::NoSkew,
        Self::PerfectParallelism,
        Self::EndlessSlots,
        Self::EndlessSlotsNoSkew,
        Self::DriverOnly,
    ];
}

impl<'a> Model<'a> {
    /// Finds what each stage and task waited for.
    pub fn new(recorded: &'a Recorded) -> Self {
        let mut model = Self {
            recorded,
            places: places(recorded),
            tail: 0.0,
            now: 0.0,
            ran: Vec::new(),
        };
        let own = recorded.stages.iter().filter(|stage| stage.own);
        let tasks = own.flat_map(|stage| &stage.tasks);
        let last = tasks.map(|task| task.finished).fold(0.0, f64::max);
        model.tail = (recorded.seconds - last).max(0.0);
        let unchanged = model.scenario(&[]);
        model.ran = model.replay(&unchanged, |stage| model.times(&unchanged, stage));
        model.now = model.end(&model.ran, &unchanged);
        model
    }

    /// The replay of the unchanged run, s.
    pub fn now(&self) -> f64 {
        self.now
    }

    /// How far the replay of the unchanged run is from the measured time, as a share of that; below 0 if it is shorter.
    pub fn error(&self) -> f64 {
        let measured = self.recorded.seconds;
        if measured > 0.0 {
            self.now / measured - 1.0
        } else {
            0.0
        }
    }

    /// The scenario of changes. Those that exclude each other must not be among them; the later one counts.
    pub fn scenario(&self, changes: &[Change]) -> Scenario {
        let recorded = self.recorded;
        let mut scenario = Scenario {
            slots: recorded.slots.max(1),
            spread: Spread::AsRecorded,
            remaining: vec![1.0; recorded.parts.len()],
            whole: 1.0,
            without: Vec::new(),
            crowding: None,
            splits: true,
            sharing: None,
        };
        for change in changes {
            for (part, remaining) in recorded.parts.iter().zip(&mut scenario.remaining) {
                if let Some(share) = part.kind.remaining(change) {
                    *remaining = share;
                }
            }
            match *change {
                Change::Slots(slots) => scenario.slots = slots.max(1),
                Change::Executors(executors) => {
                    let of_each = scenario.slots as f64 / recorded.executors.max(1) as f64;
                    scenario.slots = ((executors as f64 * of_each).round() as usize).max(1);
                }
                Change::EndlessSlots => scenario.slots = usize::MAX,
                Change::NoSkew => scenario.spread = Spread::Mean,
                Change::WithoutQuery(query) => {
                    let mut parts = recorded.parts.iter();
                    let keeps_slots =
                        parts.any(|part| part.kind == PartKind::Query(query) && !part.frees_slots);
                    if !keeps_slots {
                        scenario.without.push(query);
                    }
                }
                _ => {}
            }
        }
        scenario.crowding = Crowding::new(recorded, &scenario.remaining);
        if changes.contains(&Change::NoCpuWait) {
            // These waits are taken out once.
            let parts = recorded.parts.iter().zip(&mut scenario.remaining);
            let of_operators =
                parts.filter(|(part, _)| matches!(part.kind, PartKind::OperatorCpuWait(_)));
            of_operators.for_each(|(_, remaining)| *remaining = 1.0);
            return scenario;
        }
        match scenario.slots {
            slots if slots == recorded.slots.max(1) || slots == usize::MAX => scenario,
            // What its neighbours use of the CPUs is not known by neighbour.
            _ if changes
                .iter()
                .any(|change| matches!(change, Change::WithoutQuery(_))) =>
            {
                scenario
            }
            _ => self.with_shared_cpus(scenario),
        }
    }

    /// The scenario without a part of the tasks' times, by its position in [`Recorded::parts`], and if a query caused it, as
    /// [`Change::WithoutQuery`] has it.
    pub fn without(&self, part: usize) -> Scenario {
        let kind = self.recorded.parts.get(part).map(|part| part.kind);
        let mut scenario = match kind {
            Some(PartKind::Query(query)) => self.scenario(&[Change::WithoutQuery(query)]),
            _ => self.scenario(&[]),
        };
        if let Some(remaining) = scenario.remaining.get_mut(part) {
            *remaining = 0.0;
        }
        scenario.crowding = Crowding::new(self.recorded, &scenario.remaining);
        scenario
    }

    /// The scenario of a floor.
    pub fn floor(&self, floor: Floor) -> Scenario {
        let mut scenario = match floor {
            Floor::NoSkew => self.scenario(&[Change::NoSkew]),
            Floor::EndlessSlots => self.scenario(&[Change::EndlessSlots]),
            Floor::EndlessSlotsNoSkew => self.scenario(&[Change::EndlessSlots, Change::NoSkew]),
            Floor::PerfectParallelism | Floor::DriverOnly => self.scenario(&[]),
        };
        match floor {
            Floor::PerfectParallelism => {
                scenario.spread = Spread::Over(scenario.slots);
                scenario.slots = 1;
            }
            Floor::DriverOnly => scenario.whole = 0.0,
            _ => {}
        }
        scenario
    }

    /// How long the run takes in a scenario, s.
    pub fn seconds(&self, scenario: &Scenario) -> f64 {
        self.seconds_with(scenario, |stage| self.times(scenario, stage))
    }

    /// The times of the tasks of a stage in a scenario, in the order of launch, s.
    fn times(&self, scenario: &Scenario, stage: usize) -> Vec<f64> {
        let RecordedStage { tasks, own, .. } = &self.recorded.stages[stage];
        let counts = self.tasks_of(scenario, stage);
        let time = |task: &usize| scenario.time(&tasks[*task], counts, &scenario.remaining, *own);
        self.places[stage].order.iter().map(time).collect()
    }

    /// The same with other times of the tasks of each stage, in the order of launch, s.
    pub(super) fn seconds_with(
        &self,
        scenario: &Scenario,
        times: impl Fn(usize) -> Vec<f64>,
    ) -> f64 {
        self.end(&self.replay(scenario, times), scenario)
    }

    /// When the last own stage has ended, and the driver after it, s.
    fn end(&self, ran: &[Option<Ran>], scenario: &Scenario) -> f64 {
        let own = ran.iter().zip(&self.recorded.stages);
        let own = own.filter(|(_, stage)| stage.own);
        let last = own.filter_map(|(ran, _)| Some((*ran)?.to));
        last.fold(0.0, f64::max) + self.tail * self.driver(scenario)
    }

    /// When each stage runs.
    fn replay(&self, scenario: &Scenario, times: impl Fn(usize) -> Vec<f64>) -> Vec<Option<Ran>> {
        let stages = &self.recorded.stages;
        let driver = self.driver(scenario);
        let has_as_many = scenario.slots == self.recorded.slots.max(1);
        let others_gain =
            self.has_more_slots(scenario) || (has_as_many && !scenario.without.is_empty());
        let delays: Vec<Cow<'_, [f64]>> = (0..stages.len())
            .map(|at| self.delays(scenario, at))
            .collect();
        let mut works: Vec<Work> = self
            .places
            .iter()
            .enumerate()
            .map(|(at, place)| {
                let stage = &stages[at];
                let is_absent = scenario.without.iter().any(|query| stage.is_of(*query));
                let (tasks, delays) = if is_absent {
                    (Vec::new(), &[][..])
                } else if let Some(more) = self.splits(scenario, at) {
                    (split(&times(at), more), &[][..])
                } else {
                    scenario.spread(times(at), &delays[at])
                };
                Work {
                    after: &place.after,
                    gap: place.gap * if stage.own { driver } else { 1.0 },
                    repeats: others_gain && place.wants_slots && !tasks.is_empty(),
                    tasks,
                    delays,
                    pool: place.pool,
                    weight: stage.pool.weight,
                    runnable: match &scenario.crowding {
                        Some(crowding) => crowding.runnable(stage, place.runnable),
                        None => place.runnable,
                    },
                }
            })
            .collect();
        let mut ran = schedule::replay(&works, scenario.slots);
        if let Some(crowding) = &scenario.crowding {
            let mut factors = vec![1.0; works.len()];
            for _ in 0..ROUNDS {
                if !crowding.stretch(stages, &mut works, &mut factors, (&ran, &self.ran)) {
                    break;
                }
                ran = schedule::replay(&works, scenario.slots);
            }
        }
        ran
    }

    /// The waits of a stage's tasks for their launch, in the order of launch, s.
    fn delays(&self, scenario: &Scenario, stage: usize) -> Cow<'_, [f64]> {
        let (Place { order, delays, .. }, own) =
            (&self.places[stage], &self.recorded.stages[stage]);
        let taken = || {
            let parts = self.recorded.parts.iter().zip(&scenario.remaining);
            let taken = |(_, (part, remaining)): &(usize, (&Part, &f64))| {
                part.takes_launches && **remaining < 1.0
            };
            parts.enumerate().filter(taken)
        };
        if taken().next().is_none() {
            return Cow::Borrowed(delays);
        }
        let remaining = |task: &RecordedTask| {
            let of = |at: usize| task.parts.get(at).copied().unwrap_or(0.0);
            let gone: f64 = taken()
                .map(|(at, (_, remaining))| of(at) * (1.0 - remaining))
                .sum();
            1.0 - (gone / task.seconds().max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
        };
        let each = order.iter().zip(delays);
        each.map(|(task, delay)| delay * remaining(&own.tasks[*task]))
            .collect()
    }

    /// How many tasks a stage had in the recorded run, and has in a scenario.
    pub(super) fn tasks_of(&self, scenario: &Scenario, stage: usize) -> [usize; 2] {
        let tasks = self.recorded.stages[stage].tasks.len();
        let now = self
            .splits(scenario, stage)
            .map(|more| split_into(tasks, more));
        [tasks, now.unwrap_or(tasks)]
    }

    /// How many times as many tasks a stage has in a scenario, if it has more.
    fn splits(&self, scenario: &Scenario, stage: usize) -> Option<f64> {
        let splits = scenario.splits && self.recorded.stages[stage].splits;
        let splits = splits && self.has_more_slots(scenario);
        splits.then(|| scenario.slots as f64 / self.recorded.slots.max(1) as f64)
    }

    /// Whether a scenario has more slots than the recorded run, and not endless ones.
    fn has_more_slots(&self, scenario: &Scenario) -> bool {
        (self.recorded.slots.max(1) + 1..usize::MAX).contains(&scenario.slots)
    }

    /// The share of the driver's time that remains.
    fn driver(&self, scenario: &Scenario) -> f64 {
        let parts = self.recorded.parts.iter().zip(&scenario.remaining);
        parts
            .map(|(part, remaining)| (1.0 - part.driver * (1.0 - remaining)).max(0.0))
            .product()
    }

    /// The tasks of a stage, by the order of launch.
    pub(super) fn order(&self, stage: usize) -> &[usize] {
        &self.places[stage].order
    }
}

/// So many times as many tasks.
fn split_into(tasks: usize, more: f64) -> usize {
    let split = (tasks as f64 * more).ceil() as usize;
    split.min(MOST_SPLIT).max(tasks).max(1)
}

/// The same work in so many times as many tasks, all alike.
fn split(times: &[f64], more: f64) -> Vec<f64> {
    let tasks = split_into(times.len(), more);
    vec![times.iter().sum::<f64>() / tasks as f64; tasks]
}

impl RecordedStage {
    /// Whether another query than the one that is asked about submitted it.
    fn is_of(&self, query: i64) -> bool {
        !self.own && self.group == super::Group::Query(query)
    }
}

impl Scenario {
    /// The number of slots; the greatest number there is for endless ones.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Makes all tasks so many times as fast.
    pub(super) fn shorten(&mut self, times: f64) {
        self.whole /= times;
    }

    /// The time after the change of a task of a stage with so many tasks: as recorded, and now, s. Parts that overlap take out no more than there is. Only
    /// the run's own tasks have other waits for CPUs.
    pub(super) fn time(
        &self,
        task: &RecordedTask,
        tasks: [usize; 2],
        remaining: &[f64],
        own: bool,
    ) -> f64 {
        let seconds = task.seconds();
        let parts = task.parts.iter().zip(remaining).enumerate();
        let gone = parts.map(|(at, (part, remaining))| {
            let part = part.max(0.0).min(seconds);
            (at, part * (1.0 - remaining))
        });
        let left = match &self.sharing {
            Some(sharing) if own => {
                let worked = gone.filter(|(at, _)| sharing.is_work(*at));
                let worked = worked.map(|(_, gone)| gone).sum();
                sharing.time((self.slots, tasks), task, remaining, worked)
            }
            _ => (seconds - gone.map(|(_, gone)| gone).sum::<f64>()).max(0.0),
        };
        left * self.whole
    }

    fn spread<'a>(&self, mut times: Vec<f64>, delays: &'a [f64]) -> (Vec<f64>, &'a [f64]) {
        let sum: f64 = times.iter().sum();
        match self.spread {
            _ if times.is_empty() => (times, delays),
            Spread::AsRecorded => (times, delays),
            Spread::Mean => {
                let mean = sum / times.len() as f64;
                times.fill(mean);
                (times, delays)
            }
            Spread::Over(slots) => (vec![sum / slots as f64], &[]),
        }
    }
}
