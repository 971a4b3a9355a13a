//! List scheduling: tasks of stages whose parents have ended get free slots in order.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// A stage to schedule.
#[derive(Default)]
pub(crate) struct Work<'a> {
    /// Indices of stages that must end before.
    pub(crate) after: &'a [usize],
    /// Time between the last of these ends, or the begin of all, and its own begin, s: the driver's.
    pub(crate) gap: f64,
    /// Durations of its tasks, s, in launch order.
    pub(crate) tasks: Vec<f64>,
    /// How long after a slot was free each task is launched, s; below 0 if the driver launched it before it knew that. None
    /// for those that the list lacks.
    pub(crate) delays: &'a [f64],
}

/// Seconds, never NaN here, with an order.
#[derive(PartialEq)]
pub(crate) struct Seconds(pub(crate) f64);

impl Eq for Seconds {}

impl PartialOrd for Seconds {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Seconds {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// The time until all tasks of all stages have ended on `slots` slots (at least one), s. A stage is the stages that
/// must end before it, and its tasks' durations in launch order, s. Stages in a cycle never begin, and do not count.
pub fn makespan(stages: &[(Vec<usize>, Vec<f64>)], slots: usize) -> f64 {
    let works: Vec<Work> = stages
        .iter()
        .map(|(after, tasks)| Work {
            after,
            tasks: tasks.clone(),
            ..Work::default()
        })
        .collect();
    last(&ends(&works, slots))
}

/// The latest of the ends; 0 without any.
pub(crate) fn last(ends: &[Option<f64>]) -> f64 {
    ends.iter().flatten().copied().fold(0.0, f64::max)
}

/// When each stage ends on `slots` slots (at least one), s; none for stages in a cycle.
pub(crate) fn ends(works: &[Work], slots: usize) -> Vec<Option<f64>> {
    let mut schedule = Schedule::new(works);
    let first: Vec<usize> = (0..works.len())
        .filter(|stage| schedule.waits_for[*stage] == 0)
        .collect();
    for stage in first {
        if let Some(ended) = schedule.parents_ended(stage, 0.0) {
            schedule.stage_ended(ended, 0.0);
        }
    }
    schedule.run(slots.max(1));
    schedule.ends
}

/// The state of list scheduling at one moment.
struct Schedule<'a> {
    works: &'a [Work<'a>],
    /// The number of stages that each stage still waits for.
    waits_for: Vec<usize>,
    /// The stages that wait for each stage.
    then: Vec<Vec<usize>>,
    /// Ends of running tasks, with their stages.
    running: BinaryHeap<Reverse<(Seconds, usize)>>,
    /// Begins of stages whose parents have ended.
    begins: BinaryHeap<Reverse<(Seconds, usize)>>,
    /// Tasks of each stage that have not ended.
    left: Vec<usize>,
    launched: Vec<usize>,
    /// Stages with tasks to launch. Spark offers slots to the oldest stage first.
    ready: BTreeSet<usize>,
    ends: Vec<Option<f64>>,
}

impl<'a> Schedule<'a> {
    fn new(works: &'a [Work<'a>]) -> Self {
        let mut waits_for: Vec<usize> = Vec::with_capacity(works.len());
        let mut then: Vec<Vec<usize>> = vec![Vec::new(); works.len()];
        for (stage, work) in works.iter().enumerate() {
            let before: BTreeSet<usize> = work
                .after
                .iter()
                .copied()
                .filter(|index| *index < works.len())
                .collect();
            waits_for.push(before.len());
            for index in before {
                then[index].push(stage);
            }
        }
        Self {
            works,
            waits_for,
            then,
            running: BinaryHeap::new(),
            begins: BinaryHeap::new(),
            left: works.iter().map(|work| work.tasks.len()).collect(),
            launched: vec![0; works.len()],
            ready: BTreeSet::new(),
            ends: vec![None; works.len()],
        }
    }

    fn run(&mut self, slots: usize) {
        let mut now = 0.0;
        loop {
            while self.running.len() < slots
                && let Some(&stage) = self.ready.first()
            {
                self.launch(stage, now);
            }
            let at = |heap: &BinaryHeap<Reverse<(Seconds, usize)>>| {
                heap.peek().map(|Reverse((Seconds(at), _))| *at)
            };
            // At the same moment, ends come first.
            match (at(&self.running), at(&self.begins)) {
                (Some(end), begin) if begin.is_none_or(|begin| end <= begin) => {
                    let stage = self.running.pop().map(|Reverse((_, stage))| stage);
                    now = end;
                    stage
                        .into_iter()
                        .for_each(|stage| self.task_ended(stage, now));
                }
                (_, Some(begin)) => {
                    let stage = self.begins.pop().map(|Reverse((_, stage))| stage);
                    now = begin;
                    stage.into_iter().for_each(|stage| self.begin(stage, now));
                }
                _ => return,
            }
        }
    }

    fn launch(&mut self, stage: usize, now: f64) {
        let (work, task) = (&self.works[stage], self.launched[stage]);
        let delay = work.delays.get(task).copied().unwrap_or(0.0);
        let end = now + (delay + work.tasks[task]).max(0.0);
        self.launched[stage] += 1;
        self.running.push(Reverse((Seconds(end), stage)));
        if self.launched[stage] == work.tasks.len() {
            self.ready.remove(&stage);
        }
    }

    fn task_ended(&mut self, stage: usize, now: f64) {
        self.left[stage] -= 1;
        if self.left[stage] == 0 {
            self.stage_ended(stage, now);
        }
    }

    fn stage_ended(&mut self, stage: usize, now: f64) {
        let mut ended = vec![stage];
        while let Some(stage) = ended.pop() {
            self.ends[stage] = Some(now);
            for at in 0..self.then[stage].len() {
                let child = self.then[stage][at];
                self.waits_for[child] -= 1;
                if self.waits_for[child] == 0 {
                    ended.extend(self.parents_ended(child, now));
                }
            }
        }
    }

    /// Begins a stage after its gap. Returns it if it ends at once, as a stage without gap and tasks does.
    fn parents_ended(&mut self, stage: usize, now: f64) -> Option<usize> {
        let work = &self.works[stage];
        if work.gap > 0.0 {
            self.begins.push(Reverse((Seconds(now + work.gap), stage)));
            return None;
        }
        if work.tasks.is_empty() {
            return Some(stage);
        }
        self.ready.insert(stage);
        None
    }

    fn begin(&mut self, stage: usize, now: f64) {
        if self.works[stage].tasks.is_empty() {
            return self.stage_ended(stage, now);
        }
        self.ready.insert(stage);
    }
}
