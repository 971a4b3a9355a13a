//! The waits of one thread, derived from its context switches.
//!
//! The times of all waits are known; if there are many, only some have a stack. A wait without a stack counts at that
//! of the sampled wait with the nearest duration: similar durations probably have the same cause.
//!
//! A thread that loses its CPU may be anywhere in the code that it runs, and does not decide how long it waits. So such
//! waits count where the thread was in its last sample before them. They are sampled by time, as CPU time is.
//!
//! A wait never spans the start or the end of a task: the thread itself writes these marks, and runs at that time.

use std::hash::Hash;
use std::rc::Rc;

use ahash::HashMap;

/// Possible error between the kernel's run delay and the switches seen so far, ns.
const SLACK_NS: i64 = 100_000_000;
/// More waits than this are settled early.
const MANY: usize = 50_000;

/// The stack of a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WaitStack {
    /// Callchain, leaf first.
    pub(super) chain: Vec<u64>,
    /// Whether it ends before its Java callers.
    pub(super) broken: bool,
    /// Time at which it was taken, CLOCK_MONOTONIC ns.
    pub(super) time: u64,
}

/// A period in which the thread was off its CPU.
#[derive(Debug)]
struct Wait {
    start: u64,
    end: u64,
    /// It was runnable when it left the CPU.
    preempted: bool,
    /// The part in which the thread was runnable without a CPU, ns.
    queued_ns: u64,
    stack: Option<Rc<WaitStack>>,
}

impl Wait {
    fn begun(start: u64, preempted: bool, stack: Option<Rc<WaitStack>>) -> Self {
        Self {
            start,
            end: start,
            preempted,
            queued_ns: 0,
            stack,
        }
    }

    fn ns(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// Waits that count at one stack.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WaitGroup<'a, K> {
    pub(super) task: K,
    /// None if unknown.
    pub(super) stack: Option<&'a WaitStack>,
    /// Whether the stack is that of the last CPU sample, because switches cannot be sampled.
    pub(super) guessed: bool,
    /// Start and end of the wait with this stack; of waits that are sampled by time, of the first and the last one.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) sum: Sum,
}

/// Number and time of waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sum {
    /// Waits for something.
    pub(super) waits: u64,
    pub(super) waited_ns: u64,
    /// Waits for a CPU, also after a wait for something.
    pub(super) queues: u64,
    pub(super) queued_ns: u64,
}

impl Sum {
    fn add(&mut self, wait: &Wait) {
        let queued_ns = if wait.preempted {
            wait.ns()
        } else {
            wait.queued_ns
        };
        let waited_ns = wait.ns().saturating_sub(queued_ns);
        self.queues += u64::from(queued_ns > 0);
        self.queued_ns = self.queued_ns.saturating_add(queued_ns);
        self.waits += u64::from(waited_ns > 0);
        self.waited_ns = self.waited_ns.saturating_add(waited_ns);
    }

    fn merge(&mut self, other: &Self) {
        self.queues += other.queues;
        self.queued_ns = self.queued_ns.saturating_add(other.queued_ns);
        self.waits += other.waits;
        self.waited_ns = self.waited_ns.saturating_add(other.waited_ns);
    }
}

/// Waits that are not counted yet.
#[derive(Debug)]
pub(super) struct Waits {
    /// The stack of the thread that leaves its CPU, until the record of the switch follows.
    leaving: Option<WaitStack>,
    /// The last sample of the thread on its CPU, or as it lost the CPU.
    running: Option<Rc<WaitStack>>,
    /// Whether waits for something count at the last sample, because switches cannot be sampled.
    guesses: bool,
    /// Whether `running` is not a guess for any wait yet.
    fresh: bool,
    /// Time between samples of the waits for a CPU, ns.
    period_ns: u64,
    /// The current wait.
    open: Option<Wait>,
    /// Whether the start of `open` was seen; if not, the thread may be running.
    seen: bool,
    ended: Vec<Wait>,
    /// How many of them were included in the last run delay.
    delayed: usize,
    /// Run delay so far, ns, and the part of it without a wait.
    delay: Option<(u64, i64)>,
}

impl Waits {
    /// Waits of a thread that is watched since `now`. Its waits for a CPU are sampled every `period_ns` of their time;
    /// for other waits, `guesses` says that they have no stacks of their own.
    pub(super) fn new(now: u64, period_ns: u64, guesses: bool) -> Self {
        Self {
            leaving: None,
            running: None,
            guesses,
            fresh: false,
            period_ns,
            open: Some(Wait::begun(now, false, None)),
            seen: false,
            ended: Vec::new(),
            delayed: 0,
            delay: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ended.is_empty()
    }

    pub(super) fn are_many(&self) -> bool {
        self.ended.len() >= MANY
    }

    /// The thread is about to leave its CPU at this callchain.
    pub(super) fn leave(&mut self, time: u64, chain: Vec<u64>, broken: bool) {
        self.leaving = Some(WaitStack {
            chain,
            broken,
            time,
        });
    }

    /// The thread was sampled while running; it may soon wait near there.
    pub(super) fn run(&mut self, time: u64, chain: &[u64], broken: bool) {
        self.running = Some(Rc::new(WaitStack {
            chain: chain.to_vec(),
            broken,
            time,
        }));
        self.fresh = true;
    }

    /// Time of the last sample of the thread on its CPU, or as it lost the CPU.
    pub(super) fn last_run(&self) -> Option<u64> {
        self.running.as_ref().map(|stack| stack.time)
    }

    /// The thread has left its CPU.
    pub(super) fn begin(&mut self, time: u64, preempted: bool) {
        let leaving = self.leaving.take().map(Rc::new);
        let stack = if preempted {
            if leaving.is_some() {
                self.running = leaving;
            }
            self.running.clone()
        } else if self.guesses {
            let is_fresh = std::mem::take(&mut self.fresh);
            leaving.or_else(|| self.running.clone().filter(|_| is_fresh))
        } else {
            leaving
        };
        self.open = Some(Wait::begun(time, preempted, stack));
        self.seen = true;
    }

    /// The thread is on a CPU again.
    pub(super) fn end(&mut self, time: u64) {
        if let Some(mut wait) = self.open.take() {
            wait.end = time.max(wait.start);
            self.ended.push(wait);
        }
    }

    /// Watching ends, and with it the current wait.
    pub(super) fn finish(&mut self, time: u64) {
        if self.seen {
            self.end(time);
        }
    }

    /// Records were lost, so the current wait may have ended.
    pub(super) fn lose(&mut self) {
        (self.leaving, self.open, self.delay) = (None, None, None);
    }

    /// Whether the run delay since the last one would divide among no waits, so that it can be read later. The waits so
    /// far are accounted for then.
    pub(super) fn defers_delay(&mut self) -> bool {
        let fresh = &self.ended[self.delayed..];
        let Some((_, owed)) = self.delay.as_mut() else {
            return false;
        };
        if !fresh.iter().all(|wait| wait.preempted) {
            return false;
        }
        let preempted_ns = fresh
            .iter()
            .fold(0u64, |sum, wait| sum.saturating_add(wait.ns()));
        *owed = owed.saturating_sub_unsigned(preempted_ns);
        self.delayed = self.ended.len();
        true
    }

    /// Adds the thread's run delay, ns since its start: the part without preemptions was between the end of waits and
    /// the CPU. Called after all switches so far.
    pub(super) fn delay(&mut self, total_ns: u64) {
        let fresh = &mut self.ended[self.delayed..];
        self.delayed += fresh.len();
        let mut voluntary: Vec<&mut Wait> = Vec::with_capacity(fresh.len());
        let mut preempted_ns = 0u64;
        for wait in fresh {
            if wait.preempted {
                preempted_ns = preempted_ns.saturating_add(wait.ns());
            } else {
                voluntary.push(wait);
            }
        }
        let Some((before, owed)) = self.delay.replace((total_ns, 0)) else {
            return;
        };
        let grown = total_ns.saturating_sub(before).cast_signed();
        let mut rest = owed
            .saturating_add(grown)
            .saturating_sub_unsigned(preempted_ns);
        // Equal parts for all, but not more than their durations.
        voluntary.sort_unstable_by_key(|wait| wait.ns());
        let count = voluntary.len() as i64;
        for (index, wait) in voluntary.into_iter().enumerate() {
            let share = (rest / (count - index as i64)).max(0).unsigned_abs();
            wait.queued_ns = share.min(wait.ns());
            rest -= wait.queued_ns.cast_signed();
        }
        self.delay = Some((total_ns, rest.clamp(-SLACK_NS, SLACK_NS)));
    }

    /// Passes on waits that ended before a time, merged by stack; `task` returns the task at a time, or `None` if waits
    /// do not count then.
    pub(super) fn settle<K: Copy + Eq + Hash>(
        &mut self,
        before: u64,
        task: impl Fn(u64) -> Option<K>,
        mut each: impl FnMut(WaitGroup<'_, K>),
    ) {
        let count = self.ended.partition_point(|wait| wait.end < before);
        self.delayed = self.delayed.saturating_sub(count);
        let waits: Vec<(K, Wait)> = self
            .ended
            .drain(..count)
            .filter_map(|mut wait| {
                let key = task(wait.start)?;
                // The last sample of another task does not apply to this one.
                let stack = wait.stack.take();
                wait.stack = stack.filter(|stack| task(stack.time) == Some(key));
                Some((key, wait))
            })
            .collect();
        let mut counted: Vec<Counted> = waits.iter().map(|(_, wait)| Counted::at(wait)).collect();
        self.sample_queues(&waits, &mut counted);
        count_by_length(&waits, &mut counted);
        for ((task, wait), Counted { start, end, sum }) in waits.iter().zip(counted) {
            if sum.waits + sum.queues > 0 {
                each(WaitGroup {
                    task: *task,
                    stack: wait.stack.as_deref(),
                    guessed: self.guesses && !wait.preempted,
                    start,
                    end,
                    sum,
                });
            }
        }
    }

    /// Counts the waits of preempted threads at the wait in which each period ends, by task.
    fn sample_queues<K: Copy + Eq + Hash>(&self, waits: &[(K, Wait)], counted: &mut [Counted]) {
        let mut queues: HashMap<K, Queues> = HashMap::default();
        for (index, (task, wait)) in waits.iter().enumerate() {
            if !wait.preempted {
                continue;
            }
            let queues = queues.entry(*task).or_default();
            let waiting = queues.waiting.get_or_insert_with(|| Counted::at(wait));
            waiting.sum.add(wait);
            waiting.end = wait.end;
            let is_due = waiting.sum.queued_ns >= self.period_ns;
            let has_stack = wait.stack.is_some();
            if has_stack || queues.last.is_none() {
                queues.last = Some(index);
            }
            if has_stack && is_due {
                counted[index].merge(queues.waiting.take());
                queues.sampled = Some(index);
            }
        }
        for queues in queues.into_values() {
            if let Some(index) = queues.sampled.or(queues.last) {
                counted[index].merge(queues.waiting);
            }
        }
    }
}

/// What counts at one wait.
struct Counted {
    /// Start of the first and end of the last of the waits that were sampled by time, or of the wait itself.
    start: u64,
    end: u64,
    sum: Sum,
}

impl Counted {
    /// Nothing so far at this wait.
    fn at(wait: &Wait) -> Self {
        Self {
            start: wait.start,
            end: wait.end,
            sum: Sum::default(),
        }
    }

    fn merge(&mut self, other: Option<Self>) {
        if let Some(Self { start, end, sum }) = other {
            self.start = self.start.min(start);
            self.end = self.end.max(end);
            self.sum.merge(&sum);
        }
    }
}

/// The waits of one task for a CPU.
#[derive(Default)]
struct Queues {
    /// Those since the last sample.
    waiting: Option<Counted>,
    /// Index of the last sample.
    sampled: Option<usize>,
    /// Index of the last wait with a stack; if none has one, of the first wait.
    last: Option<usize>,
}

/// Counts each wait for something at its own stack, or at that of the sampled one with the nearest duration.
fn count_by_length<K: Copy + Eq + Hash>(waits: &[(K, Wait)], counted: &mut [Counted]) {
    let others = || {
        let numbered = waits.iter().enumerate();
        numbered.filter(|(_, (_, wait))| !wait.preempted)
    };
    let mut sampled: HashMap<K, Vec<(u64, usize)>> = HashMap::default();
    for (index, (task, wait)) in others() {
        if wait.stack.is_some() {
            sampled.entry(*task).or_default().push((wait.ns(), index));
        }
    }
    for alike in sampled.values_mut() {
        alike.sort_unstable();
    }
    for (index, (task, wait)) in others() {
        let to = match (&wait.stack, sampled.get(task)) {
            (None, Some(alike)) => nearest(alike, wait.ns()),
            _ => index,
        };
        counted[to].sum.add(wait);
    }
}

/// Of the waits (duration and index, sorted), the index of the one with the nearest duration.
fn nearest(alike: &[(u64, usize)], ns: u64) -> usize {
    let after = alike.partition_point(|(length, _)| *length < ns);
    let around = [after.checked_sub(1), Some(after)];
    let near = around
        .into_iter()
        .flatten()
        .filter_map(|index| alike.get(index))
        .min_by_key(|(length, _)| length.abs_diff(ns));
    near.map_or(0, |(_, index)| *index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    /// The output of `settle`, with chains as numbers.
    fn settle(
        waits: &mut Waits,
        task: impl Fn(u64) -> Option<u32>,
    ) -> Vec<(u32, Option<u64>, Sum)> {
        let mut all = Vec::new();
        waits.settle(u64::MAX, task, |settled| {
            let chain = settled.stack.map(|stack| stack.chain[0]);
            all.push((settled.task, chain, settled.sum));
        });
        all
    }

    fn waited(waits: u64, ns: u64) -> Sum {
        Sum {
            waits,
            waited_ns: ns,
            ..Sum::default()
        }
    }

    fn wait(waits: &mut Waits, start: u64, ns: u64, chain: Option<u64>) {
        if let Some(chain) = chain {
            waits.leave(start, vec![chain], false);
        }
        waits.begin(start, false);
        waits.end(start + ns);
    }

    #[test]
    fn a_wait_counts_at_its_stack_and_one_without_at_the_nearest_in_length() {
        let mut waits = Waits::new(0, 0, false);
        wait(&mut waits, 100, 10, Some(1));
        wait(&mut waits, 200, 5_000, Some(2));
        wait(&mut waits, 6_000, 12, None);
        wait(&mut waits, 7_000, 4_000, None);
        let settled = settle(&mut waits, |_| Some(0));
        assert_eq!(
            settled,
            [(0, Some(1), waited(2, 22)), (0, Some(2), waited(2, 9_000))]
        );
        assert!(waits.is_empty());
    }

    #[test]
    fn the_first_switch_tells_whether_the_thread_waited_all_along() {
        let mut waits = Waits::new(50, 0, false);
        waits.end(80);
        assert_eq!(settle(&mut waits, |_| Some(0)), [(0, None, waited(1, 30))]);
        let mut waits = Waits::new(50, 0, false);
        waits.finish(90);
        assert!(waits.is_empty(), "it may as well have run");
        waits.begin(100, false);
        waits.finish(130);
        assert_eq!(settle(&mut waits, |_| Some(0)), [(0, None, waited(1, 30))]);
    }

    #[test]
    fn waits_belong_to_the_task_they_began_in_and_those_outside_do_not_count() {
        let mut waits = Waits::new(0, 0, false);
        wait(&mut waits, 10, 5, Some(1));
        wait(&mut waits, 110, 7, Some(1));
        wait(&mut waits, 120, 8, None);
        wait(&mut waits, 310, 9, Some(1));
        let task = |time| (time < 300).then_some(time as u32 / 100);
        assert_eq!(
            settle(&mut waits, task),
            [(0, Some(1), waited(1, 5)), (1, Some(1), waited(2, 15))]
        );
    }

    #[test]
    fn a_guess_holds_for_one_wait_of_its_task() {
        let mut waits = Waits::new(0, 0, true);
        waits.run(90, &[4], false);
        wait(&mut waits, 110, 7, None);
        waits.run(115, &[5], false);
        wait(&mut waits, 120, 8, None);
        wait(&mut waits, 130, 8, None);
        let settled = settle(&mut waits, |time| Some(time as u32 / 100));
        assert_eq!(settled, [(1, Some(5), waited(3, 23))]);
    }

    #[test]
    fn run_delay_beyond_preemption_is_spread_over_the_waits() {
        let mut waits = Waits::new(0, 0, false);
        waits.delay(7 * MS);
        wait(&mut waits, 10, MS, Some(1));
        wait(&mut waits, 10 * MS, 50 * MS, Some(2));
        waits.begin(100 * MS, true);
        waits.end(104 * MS);
        waits.delay(17 * MS);
        let settled = settle(&mut waits, |_| Some(0));
        let queued: Vec<u64> = settled.iter().map(|(_, _, sum)| sum.queued_ns).collect();
        // 10 ms minus the preempted 4: the short wait is shorter than its half.
        assert_eq!(queued, [MS, 5 * MS, 4 * MS]);
        let waits: Vec<u64> = settled.iter().map(|(_, _, sum)| sum.waits).collect();
        assert_eq!(waits, [0, 1, 0]);
    }

    #[test]
    fn a_run_delay_read_later_gives_the_same() {
        let queued = |reads_between: bool| {
            let mut waits = Waits::new(0, 0, false);
            assert!(!waits.defers_delay(), "the first one is needed");
            waits.delay(7 * MS);
            waits.begin(10 * MS, true);
            waits.end(14 * MS);
            if reads_between {
                waits.delay(11 * MS);
            } else {
                assert!(waits.defers_delay());
            }
            wait(&mut waits, 20 * MS, 50 * MS, Some(2));
            assert!(!waits.defers_delay());
            waits.delay(13 * MS);
            let settled = settle(&mut waits, |_| Some(0));
            settled
                .iter()
                .map(|(_, _, sum)| sum.queued_ns)
                .collect::<Vec<u64>>()
        };
        assert_eq!(queued(true), [4 * MS, 2 * MS]);
        assert_eq!(queued(false), queued(true));
    }

    #[test]
    fn waits_for_a_cpu_are_sampled_by_time_at_the_last_sample_of_the_task() {
        let mut waits = Waits::new(0, 5 * MS, false);
        let queue = |waits: &mut Waits, start: u64, ns: u64| {
            waits.begin(start, true);
            waits.end(start + ns);
        };
        waits.run(MS, &[1], false);
        queue(&mut waits, 2 * MS, 2 * MS);
        queue(&mut waits, 5 * MS, 2 * MS);
        waits.run(8 * MS, &[2], false);
        queue(&mut waits, 9 * MS, 2 * MS);
        waits.run(12 * MS, &[3], false);
        queue(&mut waits, 13 * MS, MS);
        // The next task has no sample before its first wait, so it has a stack of that wait.
        waits.leave(101 * MS, vec![4], false);
        queue(&mut waits, 101 * MS, MS);
        queue(&mut waits, 103 * MS, MS);
        let mut all = Vec::new();
        waits.settle(
            u64::MAX,
            |time| Some(time / (100 * MS)),
            |settled| {
                let WaitGroup {
                    task,
                    stack,
                    start,
                    sum,
                    ..
                } = settled;
                let Sum {
                    queues, queued_ns, ..
                } = sum;
                all.push((
                    task,
                    stack.map(|s| s.chain[0]),
                    start / MS,
                    queues,
                    queued_ns / MS,
                ));
            },
        );
        assert_eq!(all, [(0, Some(2), 2, 4, 7), (1, Some(4), 101, 2, 2)]);
    }

    #[test]
    fn lost_records_leave_no_half_of_a_wait() {
        let mut waits = Waits::new(0, 0, false);
        waits.begin(10, false);
        waits.lose();
        waits.end(1_000);
        assert!(waits.is_empty());
    }

    proptest! {
        /// For any order of records: no panic, and all time that ended in a counted task is counted once.
        #[test]
        fn no_time_is_lost_or_counted_twice(
            steps in proptest::collection::vec((0u8..7, 0u64..1_000), 0..200),
            period in 0u64..5_000,
            guesses: bool,
        ) {
            let mut waits = Waits::new(0, period, guesses);
            let (mut now, mut open, mut truth, mut delay) = (0, Some(0), 0, 0);
            for (step, pause) in steps {
                now += pause;
                match step {
                    0 | 1 => {
                        waits.begin(now, step == 1);
                        open = Some(now);
                    }
                    2 => {
                        waits.end(now);
                        truth += open.take().map_or(0, |start| now - start);
                    }
                    3 => waits.leave(now, vec![pause % 5], false),
                    4 => waits.run(now, &[pause], true),
                    5 => {
                        delay += pause;
                        waits.delay(delay);
                    }
                    _ => {
                        waits.lose();
                        open = None;
                    }
                }
            }
            let settled = settle(&mut waits, |time| Some(time as u32 / 500));
            let sum: u64 = settled.iter().map(|(_, _, sum)| sum.waited_ns + sum.queued_ns).sum();
            prop_assert_eq!(sum, truth);
        }
    }
}
