//! The waits of one thread, derived from its context switches.
//!
//! The times of all waits are known; if there are many, only some have a stack. A wait without a stack counts at that
//! of the sampled wait with the nearest duration: similar durations probably have the same cause.
//!
//! A wait never spans the start or the end of a task: the thread itself writes these marks, and runs at that time.

use ahash::HashMap;
use std::hash::Hash;

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
    /// Whether it is that of the last CPU sample, if switches cannot be sampled.
    pub(super) guessed: bool,
    /// Time at which it was taken, CLOCK_MONOTONIC ns.
    time: u64,
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
    stack: Option<WaitStack>,
}

impl Wait {
    fn begun(start: u64, preempted: bool, stack: Option<WaitStack>) -> Self {
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

/// Waits with the same stack.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WaitGroup<'a, K> {
    pub(super) task: K,
    /// None if unknown.
    pub(super) stack: Option<&'a WaitStack>,
    /// Start of the wait that has this stack.
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
}

/// Waits that are not counted yet.
#[derive(Debug)]
pub(super) struct Waits {
    /// The stack of the thread that leaves its CPU, until the record of the switch follows.
    leaving: Option<WaitStack>,
    /// The last CPU sample, as a substitute.
    guess: Option<WaitStack>,
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
    /// Waits of a thread that is watched since `now`.
    pub(super) fn new(now: u64) -> Self {
        Self {
            leaving: None,
            guess: None,
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
            guessed: false,
            time,
        });
    }

    /// The thread was sampled while running; it may soon wait near there.
    pub(super) fn guess(&mut self, time: u64, chain: &[u64], broken: bool) {
        self.guess = Some(WaitStack {
            chain: chain.to_vec(),
            broken,
            guessed: true,
            time,
        });
    }

    /// The thread has left its CPU.
    pub(super) fn begin(&mut self, time: u64, preempted: bool) {
        let stack = self.leaving.take().or(self.guess.take());
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
                // A guess from another task does not apply to this one.
                let stack = wait.stack.take();
                wait.stack = stack.filter(|stack| task(stack.time) == Some(key));
                Some((key, wait))
            })
            .collect();
        let mut sampled: HashMap<(K, bool), Vec<(u64, usize)>> = HashMap::default();
        for (index, (task, wait)) in waits.iter().enumerate() {
            if wait.stack.is_some() {
                let alike = sampled.entry((*task, wait.preempted)).or_default();
                alike.push((wait.ns(), index));
            }
        }
        for alike in sampled.values_mut() {
            alike.sort_unstable();
        }
        let mut sums = vec![Sum::default(); waits.len()];
        for (index, (task, wait)) in waits.iter().enumerate() {
            let alike = sampled.get(&(*task, wait.preempted));
            let to = match (&wait.stack, alike) {
                (None, Some(alike)) => nearest(alike, wait.ns()),
                _ => index,
            };
            sums[to].add(wait);
        }
        for ((task, wait), sum) in waits.iter().zip(sums) {
            if sum.waits + sum.queues > 0 {
                each(WaitGroup {
                    task: *task,
                    stack: wait.stack.as_ref(),
                    start: wait.start,
                    end: wait.end,
                    sum,
                });
            }
        }
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
        let mut waits = Waits::new(0);
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
        let mut waits = Waits::new(50);
        waits.end(80);
        assert_eq!(settle(&mut waits, |_| Some(0)), [(0, None, waited(1, 30))]);
        let mut waits = Waits::new(50);
        waits.finish(90);
        assert!(waits.is_empty(), "it may as well have run");
        waits.begin(100, false);
        waits.finish(130);
        assert_eq!(settle(&mut waits, |_| Some(0)), [(0, None, waited(1, 30))]);
    }

    #[test]
    fn waits_belong_to_the_task_they_began_in_and_those_outside_do_not_count() {
        let mut waits = Waits::new(0);
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
        let mut waits = Waits::new(0);
        waits.guess(90, &[4], false);
        wait(&mut waits, 110, 7, None);
        waits.guess(115, &[5], false);
        wait(&mut waits, 120, 8, None);
        wait(&mut waits, 130, 8, None);
        let settled = settle(&mut waits, |time| Some(time as u32 / 100));
        assert_eq!(settled, [(1, Some(5), waited(3, 23))]);
    }

    #[test]
    fn run_delay_beyond_preemption_is_spread_over_the_waits() {
        let mut waits = Waits::new(0);
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
    fn lost_records_leave_no_half_of_a_wait() {
        let mut waits = Waits::new(0);
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
        ) {
            let mut waits = Waits::new(0);
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
                    4 => waits.guess(now, &[pause], true),
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
