//! List scheduling: tasks of stages whose parents have ended get free slots in order.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Tasks that begin again and again take at least this long, s: so that a replay ends soon.
const LEAST_REPEATED_S: f64 = 0.02;

/// Most launches of such a stage, for the same reason.
const MOST_REPEATED: usize = 100_000;

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
    /// The number of its pool, in the order of their names. Slots go to the pool that has the fewest for its weight.
    pub(crate) pool: usize,
    /// The weight of its pool; 0 counts as 1.
    pub(crate) weight: f64,
    /// Whether its tasks begin again when all were launched, until all other stages have ended. Such a stage never ends.
    pub(crate) repeats: bool,
    /// The share of its tasks' time in which they need a CPU, 0 to 1, for [`Ran::need_cpu`].
    pub(crate) runnable: f64,
}

/// When a stage ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ran {
    /// When its first task got a slot, s.
    pub(crate) from: f64,
    /// Its end, s.
    pub(crate) to: f64,
    /// Tasks of all stages that needed a CPU meanwhile, on average.
    pub(crate) need_cpu: f64,
}

impl Ran {
    /// From its first slot to its end, s.
    pub(crate) fn seconds(self) -> f64 {
        self.to - self.from
    }
}

/// Tasks of a pool.
#[derive(Clone, Default)]
struct PoolUse {
    running: usize,
    launched: usize,
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

/// When each stage ends on `slots` slots (at least one), s; none for stages that never end.
pub(crate) fn ends(works: &[Work], slots: usize) -> Vec<Option<f64>> {
    let ran = replay(works, slots).into_iter();
    ran.map(|stage| Some(stage?.to)).collect()
}

/// When each stage runs on `slots` slots (at least one); none for stages that never end, such as those in a cycle.
pub(crate) fn replay(works: &[Work], slots: usize) -> Vec<Option<Ran>> {
    let mut schedule = Schedule::new(works);
    let first: Vec<usize> = (0..works.len())
        .filter(|stage| schedule.waits_for[*stage] == 0)
        .collect();
    for stage in first {
        if let Some(ended) = schedule.parents_ended(stage) {
            schedule.stage_ended(ended);
        }
    }
    schedule.run(slots.max(1));
    schedule.ran
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
    ran: Vec<Option<Ran>>,
    /// When the first task of each stage got a slot, and `demanded` then.
    begun: Vec<Option<(f64, f64)>>,
    now: f64,
    /// Running tasks that need a CPU.
    demand: f64,
    /// The sum of `demand` over the time until now, s.
    demanded: f64,
    /// Empty if there is one pool.
    pools: Vec<PoolUse>,
    /// Running tasks of stages that do not repeat.
    finite: usize,
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
            ran: vec![None; works.len()],
            begun: vec![None; works.len()],
            demand: 0.0,
            now: 0.0,
            demanded: 0.0,
            pools: match works.iter().map(|work| work.pool).max() {
                None | Some(0) => Vec::new(),
                Some(last) => vec![PoolUse::default(); last + 1],
            },
            finite: 0,
        }
    }

    /// Whether anything is left but stages that repeat.
    fn has_more(&self) -> bool {
        let is_finite = |stage: &usize| !self.works[*stage].repeats;
        self.finite > 0 || !self.begins.is_empty() || self.ready.iter().any(is_finite)
    }

    /// The stage that gets the next free slot: of the pool with the fewest slots for its weight, or if that is the same, the first by
    /// name, as in Spark's fair scheduler; within a pool first the stages that end, then the oldest. Pools without a slot take turns:
    /// by name, those with tasks that begin again and again would leave the others none.
    fn next(&self) -> Option<usize> {
        let repeats = |stage: &usize| self.works[*stage].repeats;
        if self.pools.is_empty() {
            let mut finite = self.ready.iter().filter(|stage| !repeats(stage));
            return finite.next().or_else(|| self.ready.first()).copied();
        }
        let used = |stage: &usize| {
            let work = &self.works[*stage];
            let weight = if work.weight > 0.0 { work.weight } else { 1.0 };
            let pool = &self.pools[work.pool];
            let launched = if pool.running == 0 { pool.launched } else { 0 };
            let [share, turn] =
                [pool.running, launched].map(|count| Seconds(count as f64 / weight));
            (share, turn, work.pool, repeats(stage))
        };
        // The first of those with the same use is the oldest.
        self.ready.iter().min_by_key(|stage| used(stage)).copied()
    }

    fn run(&mut self, slots: usize) {
        while self.has_more() {
            while self.running.len() < slots
                && let Some(stage) = self.next()
            {
                self.launch(stage);
            }
            let at = |heap: &BinaryHeap<Reverse<(Seconds, usize)>>| {
                heap.peek().map(|Reverse((Seconds(at), _))| *at)
            };
            // At the same moment, ends come first.
            match (at(&self.running), at(&self.begins)) {
                (Some(end), begin) if begin.is_none_or(|begin| end <= begin) => {
                    let stage = self.running.pop().map(|Reverse((_, stage))| stage);
                    self.advance(end);
                    stage.into_iter().for_each(|stage| self.task_ended(stage));
                }
                (_, Some(begin)) => {
                    let stage = self.begins.pop().map(|Reverse((_, stage))| stage);
                    self.advance(begin);
                    stage.into_iter().for_each(|stage| self.begin(stage));
                }
                _ => return,
            }
        }
    }

    /// Moves the time on, and sums up the demand since.
    fn advance(&mut self, until: f64) {
        self.demanded += self.demand * (until - self.now);
        self.now = until;
    }

    fn launch(&mut self, stage: usize) {
        let work = &self.works[stage];
        let task = self.launched[stage] % work.tasks.len();
        let delay = work.delays.get(task).copied().unwrap_or(0.0);
        let least = if work.repeats { LEAST_REPEATED_S } else { 0.0 };
        let end = self.now + (delay + work.tasks[task]).max(least);
        self.begun[stage].get_or_insert((self.now, self.demanded));
        self.demand += work.runnable;
        self.launched[stage] += 1;
        self.running.push(Reverse((Seconds(end), stage)));
        self.finite += usize::from(!work.repeats);
        let most = if work.repeats {
            MOST_REPEATED
        } else {
            work.tasks.len()
        };
        if self.launched[stage] >= most {
            self.ready.remove(&stage);
        }
        if let Some(pool) = self.pools.get_mut(work.pool) {
            pool.running += 1;
            pool.launched += 1;
        }
    }

    fn task_ended(&mut self, stage: usize) {
        let work = &self.works[stage];
        self.demand -= work.runnable;
        if let Some(pool) = self.pools.get_mut(work.pool) {
            pool.running -= 1;
        }
        if work.repeats {
            return;
        }
        self.finite -= 1;
        self.left[stage] -= 1;
        if self.left[stage] == 0 {
            self.stage_ended(stage);
        }
    }

    fn stage_ended(&mut self, stage: usize) {
        let mut ended = vec![stage];
        while let Some(stage) = ended.pop() {
            let to = self.now;
            let (from, before) = self.begun[stage].unwrap_or((to, 0.0));
            let need_cpu = if to > from {
                (self.demanded - before) / (to - from)
            } else {
                0.0
            };
            self.ran[stage] = Some(Ran { from, to, need_cpu });
            for at in 0..self.then[stage].len() {
                let child = self.then[stage][at];
                self.waits_for[child] -= 1;
                if self.waits_for[child] == 0 {
                    ended.extend(self.parents_ended(child));
                }
            }
        }
    }

    /// Begins a stage after its gap. Returns it if it ends at once, as a stage without gap and tasks does.
    fn parents_ended(&mut self, stage: usize) -> Option<usize> {
        let work = &self.works[stage];
        if work.gap > 0.0 {
            self.begins
                .push(Reverse((Seconds(self.now + work.gap), stage)));
            return None;
        }
        if work.tasks.is_empty() {
            return Some(stage);
        }
        self.ready.insert(stage);
        None
    }

    fn begin(&mut self, stage: usize) {
        if self.works[stage].tasks.is_empty() {
            return self.stage_ended(stage);
        }
        self.ready.insert(stage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(tasks: usize, pool: usize, weight: f64) -> Work<'static> {
        Work {
            tasks: vec![1.0; tasks],
            pool,
            weight,
            ..Work::default()
        }
    }

    #[test]
    fn pools_share_slots_by_their_weights() {
        // Three of four slots for the second: it ends after 4 s, and the first has 8 tasks left for 4 slots.
        let works = [stage(12, 0, 1.0), stage(12, 1, 3.0)];
        assert_eq!(ends(&works, 4), [Some(6.0), Some(4.0)]);
        // Of six slots five are for the weight 4: with four it has as many for its weight as the other, and its name comes first.
        let mut works = [stage(48, 0, 4.0), stage(8, 1, 1.0)];
        works[0].repeats = true;
        assert_eq!(ends(&works, 6)[1], Some(8.0));
        // In one pool the oldest comes first.
        let works = [stage(12, 0, 1.0), stage(12, 0, 3.0)];
        assert_eq!(ends(&works, 4), [Some(3.0), Some(6.0)]);
    }

    #[test]
    fn tasks_that_need_a_cpu_are_counted_while_a_stage_runs() {
        let mut works = [stage(4, 0, 1.0), stage(1, 1, 1.0)];
        works[0].runnable = 1.0;
        works[1].runnable = 0.5;
        works[1].tasks = vec![3.0];
        works[1].gap = 0.5;
        let ran = replay(&works, 2);
        // Two tasks, then one of each: 2 for 1 s, and 1.5 for 2 s.
        let own = ran[0].expect("it ends");
        assert_eq!((own.from, own.to), (0.0, 3.0));
        assert!((own.need_cpu - 5.0 / 3.0).abs() < 1e-9, "{own:?}");
        let other = ran[1].expect("it ends");
        assert_eq!((other.from, other.to), (1.0, 4.0));
        assert!((other.need_cpu - 3.5 / 3.0).abs() < 1e-9, "{other:?}");
    }

    #[test]
    fn a_stage_that_repeats_keeps_its_share_until_the_others_have_ended() {
        let mut works = [stage(1, 0, 1.0), stage(12, 1, 1.0)];
        assert_eq!(ends(&works, 4)[1], Some(4.0));
        works[0].repeats = true;
        assert_eq!(ends(&works, 4), [None, Some(6.0)]);
        // Alone, and beside a stage that never begins, it does not keep the replay from ending.
        works[1].after = &[1];
        assert_eq!(ends(&works, 4), [None, None]);
        // On the only slot the two take turns, whatever the order of their names.
        for (pool, end) in [(2, 5.0), (0, 6.0)] {
            let mut works = [stage(1, pool, 1.0), stage(3, 1, 1.0)];
            works[0].repeats = true;
            assert_eq!(ends(&works, 1)[1], Some(end));
        }
        // A weight that no pool has does not keep the replay from ending.
        let mut heavy = [stage(1, 0, 1e12), stage(3, 1, 1.0)];
        heavy[0].repeats = true;
        assert!(ends(&heavy, 1)[1].is_some());
        let mut one_pool = [stage(1, 0, 1.0), stage(3, 0, 1.0)];
        one_pool[0].repeats = true;
        assert_eq!(ends(&one_pool, 1), [None, Some(3.0)]);
        // Tasks that take no time take some.
        works[0].tasks = vec![0.0];
        works[1].after = &[];
        assert!(ends(&works, 4)[1].is_some());
    }
}
