//! Which stages wait for which, how long the driver takes between them, and how long tasks wait for their launch.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use super::{Group, PartKind, Recorded, RecordedStage};
use crate::replay::schedule::Seconds;

/// A launch before its slot was free by more than this, s, is no overlap of messages but an unknown slot.
const EARLIEST_LAUNCH: f64 = 0.1;

/// The share of the time that counts as most of it.
const MOSTLY: f64 = 0.8;

/// What a stage waits for.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Place {
    /// Indices of stages that end before it begins.
    pub(super) after: Vec<usize>,
    /// From the last of these ends, or the begin of all, to its own begin, s.
    pub(super) gap: f64,
    /// From the moment that a task could have been launched to its launch, s, in the order of `order`.
    pub(super) delays: Vec<f64>,
    /// Its tasks in the order of launch.
    pub(super) order: Vec<usize>,
    /// The number of its pool.
    pub(super) pool: usize,
    /// Whether it is another query's, and had tasks to launch while tasks of the run's own stages waited for slots: it would use
    /// slots that become free too.
    pub(super) wants_slots: bool,
    /// The share of its tasks' time in which they need a CPU: all of it for a stage of the run.
    pub(super) runnable: f64,
}

/// The places of all stages.
pub(super) fn places(recorded: &Recorded) -> Vec<Place> {
    let ends: Vec<f64> = recorded.stages.iter().map(end).collect();
    let begins: Vec<f64> = recorded.stages.iter().map(begin).collect();
    let mut places: Vec<Place> = Vec::with_capacity(recorded.stages.len());
    let known = Known::new(&recorded.stages, &ends);
    let mut parts = recorded.parts.iter();
    let cpu = parts.position(|part| part.kind == PartKind::Cpu);
    let pools: BTreeSet<&str> = recorded
        .stages
        .iter()
        .map(|stage| &*stage.pool.name)
        .collect();
    let pools: Vec<&str> = pools.into_iter().collect();
    for (at, stage) in recorded.stages.iter().enumerate() {
        let after = if stage.own {
            known.before(at, begins[at])
        } else {
            // Another query's stage comes when it came.
            Vec::new()
        };
        let last = after.iter().map(|before| ends[*before]).fold(0.0, f64::max);
        let mut order: Vec<usize> = (0..stage.tasks.len()).collect();
        order.sort_by(|a, b| {
            stage.tasks[*a]
                .launched
                .total_cmp(&stage.tasks[*b].launched)
        });
        places.push(Place {
            after,
            gap: (begins[at] - last).max(0.0),
            delays: Vec::new(),
            order,
            pool: pools
                .iter()
                .position(|name| *name == stage.pool.name)
                .unwrap_or(0),
            runnable: if stage.own { 1.0 } else { stage.needs_cpu(cpu) },
            wants_slots: !stage.own && wants_slots(recorded, begins[at], stage),
        });
    }
    add_delays(recorded, begins, &mut places);
    places
}

/// When the last task of a stage ended.
fn end(stage: &RecordedStage) -> f64 {
    let ends = stage.tasks.iter().map(|task| task.finished);
    ends.fold(0.0, f64::max)
}

/// When a stage could begin: not after its first task.
fn begin(stage: &RecordedStage) -> f64 {
    let launches = stage.tasks.iter().map(|task| task.launched);
    let first = launches.fold(f64::INFINITY, f64::min);
    stage.submitted.unwrap_or(first).min(first).max(0.0)
}

/// Whether a stage of another pool had tasks to launch for most of the time in which tasks of the run's own stages were to be
/// launched. Within a pool the oldest stage comes first, with the tasks that it had.
fn wants_slots(recorded: &Recorded, begin: f64, stage: &RecordedStage) -> bool {
    let last = last_launch(stage);
    let (mut waited, mut both) = (0.0, 0.0);
    for own in recorded.stages.iter().filter(|stage| stage.own) {
        if own.pool.name == stage.pool.name {
            return false;
        }
        let (from, to) = (self::begin(own), last_launch(own));
        waited += (to - from).max(0.0);
        both += (to.min(last) - from.max(begin)).max(0.0);
    }
    waited > 0.0 && both > MOSTLY * waited
}

fn last_launch(stage: &RecordedStage) -> f64 {
    let launches = stage.tasks.iter().map(|task| task.launched);
    launches.fold(0.0, f64::max)
}

/// Stages by what they can be found by.
struct Known<'a> {
    stages: &'a [RecordedStage],
    ends: &'a [f64],
    by_number: HashMap<i32, Vec<usize>>,
    /// Stages of each group in the order of their ends.
    by_end: BTreeMap<Group, Vec<usize>>,
    /// Groups in the order of the ends of their last stages: that end, and the stage.
    groups: Vec<(f64, usize, Group)>,
}

impl<'a> Known<'a> {
    fn new(stages: &'a [RecordedStage], ends: &'a [f64]) -> Self {
        let mut by_number: HashMap<i32, Vec<usize>> = HashMap::new();
        let mut by_end: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
        for (at, stage) in stages.iter().enumerate().filter(|(_, stage)| stage.own) {
            by_number.entry(stage.stage).or_default().push(at);
            by_end.entry(stage.group).or_default().push(at);
        }
        for own in by_end.values_mut() {
            own.sort_by(|a, b| ends[*a].total_cmp(&ends[*b]));
        }
        let lasts = by_end.iter().filter_map(|(group, own)| {
            let last = *own.last()?;
            Some((ends[last], last, *group))
        });
        let mut groups: Vec<(f64, usize, Group)> = lasts.collect();
        groups.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self {
            stages,
            ends,
            by_number,
            by_end,
            groups,
        }
    }

    /// The stages that a stage waited for: those that it reads from, and the last one of its query that ended before it
    /// began, if that was later. A broadcast or a subquery that it needs is known by its time only, as is the first answer
    /// that a driver needs for its next job. The first stage of a query waits for the last query that had ended.
    fn before(&self, at: usize, begin: f64) -> Vec<usize> {
        let stage = &self.stages[at];
        let mut before: Vec<usize> = Vec::new();
        for parent in &stage.parents {
            let attempts = self.by_number.get(parent).map_or(&[][..], Vec::as_slice);
            let ended = attempts
                .iter()
                .filter(|attempt| **attempt != at && self.ends[**attempt] <= begin);
            before.extend(ended.max_by(|a, b| self.ends[**a].total_cmp(&self.ends[**b])));
        }
        let of_parents = before.iter().map(|at| self.ends[*at]).fold(0.0, f64::max);
        let own = self.by_end.get(&stage.group).map_or(&[][..], Vec::as_slice);
        let ended = own.partition_point(|other| self.ends[*other] <= begin);
        let last = own[..ended].iter().rev().find(|other| **other != at);
        match last {
            Some(last) if self.ends[*last] > of_parents => before.push(*last),
            Some(_) => {}
            None => {
                let ended = self.groups.partition_point(|(end, ..)| *end <= begin);
                let others = self.groups[..ended].iter().rev();
                let mut others = others.filter(|(.., group)| *group != stage.group);
                before.extend(others.next().map(|(_, last, _)| *last));
            }
        }
        before.sort_unstable();
        before.dedup();
        before
    }
}

/// Puts the recorded tasks on the recorded slots, in the order of launch, and keeps for each how long it waited beyond
/// that. What the driver needs to prepare a stage goes to its gap, so that it counts once, however many slots there are.
fn add_delays(recorded: &Recorded, mut begins: Vec<f64>, places: &mut [Place]) {
    let mut launches: Vec<(f64, usize, usize)> = Vec::new();
    for (at, place) in places.iter().enumerate() {
        for (number, task) in place.order.iter().enumerate() {
            launches.push((recorded.stages[at].tasks[*task].launched, at, number));
        }
    }
    launches.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    put_on_slots(
        recorded,
        places,
        &launches,
        |places, at, number, slot_free| {
            if number == 0 && slot_free <= begins[at] {
                let first = recorded.stages[at].tasks[places[at].order[0]].launched;
                places[at].gap += (first - begins[at]).max(0.0);
                begins[at] = begins[at].max(first);
            }
        },
    );
    for place in places.iter_mut() {
        place.delays = vec![0.0; place.order.len()];
    }
    put_on_slots(
        recorded,
        places,
        &launches,
        |places, at, number, slot_free| {
            let launched = recorded.stages[at].tasks[places[at].order[number]].launched;
            places[at].delays[number] =
                (launched - slot_free.max(begins[at])).max(-EARLIEST_LAUNCH);
        },
    );
}

/// Gives each launch the slot that is free first, and reports when that was: stage, number in the order of launch, time.
fn put_on_slots(
    recorded: &Recorded,
    places: &mut [Place],
    launches: &[(f64, usize, usize)],
    mut report: impl FnMut(&mut [Place], usize, usize, f64),
) {
    let mut free: BinaryHeap<Reverse<Seconds>> = BinaryHeap::new();
    for (_, at, number) in launches {
        let all_taken = free.len() >= recorded.slots.max(1);
        let slot = all_taken.then(|| free.pop()).flatten();
        let slot_free = slot.map_or(0.0, |Reverse(Seconds(at))| at);
        report(places, *at, *number, slot_free);
        let task = places[*at].order[*number];
        free.push(Reverse(Seconds(recorded.stages[*at].tasks[task].finished)));
    }
}
