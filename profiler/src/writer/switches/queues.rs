//! Who had a CPU while threads of the JVM waited in its queue, from the context switches of all CPUs.

use std::collections::HashMap;

use crate::perf_event::{Handover, HostThread};

/// A part of the time in which a thread waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WaitPart {
    /// The waiting thread.
    pub(super) waiting: u32,
    /// The thread that had the CPU meanwhile.
    pub(super) running: HostThread,
    /// Begin, CLOCK_MONOTONIC ns.
    pub(super) start: u64,
    /// End.
    pub(super) end: u64,
}

/// The CPUs, each with the threads of one process that wait for it: they were preempted there, and have not run since.
#[derive(Debug)]
pub(super) struct RunQueues {
    process: u32,
    cpus: Vec<Cpu>,
    /// The CPU of each waiting thread.
    waiting: HashMap<u32, usize>,
}

#[derive(Debug, Default)]
struct Cpu {
    /// Unknown before the first switch, and after records were lost.
    running: Option<HostThread>,
    /// Up to when its time is accounted for.
    counted: u64,
    /// Threads of the process, and since when they wait.
    queue: Vec<(u32, u64)>,
}

impl RunQueues {
    /// Of a host with this many CPUs; threads of a process count as waiting.
    pub(super) fn new(process: u32, cpus: usize) -> Self {
        Self {
            process,
            cpus: (0..cpus).map(|_| Cpu::default()).collect(),
            waiting: HashMap::new(),
        }
    }

    /// A CPU gets another thread. Records come in order of time. Calls `each` for each part of a wait that ends with this one.
    pub(super) fn hand_over(&mut self, cpu: usize, to: &Handover, mut each: impl FnMut(WaitPart)) {
        self.count(cpu, to.time, &mut each);
        // The kernel may have moved the thread that comes here from the queue of another CPU. The thread that leaves ran, so it waits in
        // no queue.
        for thread in [Some(to.to), to.from].into_iter().flatten() {
            let Some(queued) = self.waiting.remove(&thread.tid) else {
                continue;
            };
            self.count(queued, to.time, &mut each);
            if let Some(cpu) = self.cpus.get_mut(queued) {
                cpu.queue.retain(|(waiting, _)| *waiting != thread.tid);
            }
        }
        let Some(here) = self.cpus.get_mut(cpu) else {
            return;
        };
        here.running = Some(to.to);
        let preempted = to.from.filter(|_| to.preempted);
        if let Some(thread) = preempted.filter(|thread| thread.pid == self.process) {
            here.queue.push((thread.tid, to.time));
            self.waiting.insert(thread.tid, cpu);
        }
    }

    /// Counts the waits that have not ended, up to now.
    pub(super) fn count_until(&mut self, now: u64, mut each: impl FnMut(WaitPart)) {
        for cpu in 0..self.cpus.len() {
            self.count(cpu, now, &mut each);
        }
    }

    /// Records of a CPU are missing: which thread runs there is unknown, and each waiting thread may have run there.
    pub(super) fn lose(&mut self, cpu: usize) {
        if let Some(here) = self.cpus.get_mut(cpu) {
            here.running = None;
        }
        self.forget();
    }

    /// Nothing was recorded for a while: which threads run and wait is unknown.
    pub(super) fn restart(&mut self) {
        for cpu in &mut self.cpus {
            cpu.running = None;
        }
        self.forget();
    }

    fn forget(&mut self) {
        self.waiting.clear();
        for cpu in &mut self.cpus {
            cpu.queue.clear();
        }
    }

    /// Counts the time of a CPU up to `until`, for all that wait there.
    fn count(&mut self, cpu: usize, until: u64, each: &mut impl FnMut(WaitPart)) {
        let Some(here) = self.cpus.get_mut(cpu) else {
            return;
        };
        if let Some(running) = here.running {
            for (waiting, since) in &here.queue {
                let start = here.counted.max(*since);
                if start < until {
                    each(WaitPart {
                        waiting: *waiting,
                        running,
                        start,
                        end: until,
                    });
                }
            }
        }
        here.counted = here.counted.max(until);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const JVM: u32 = 1;

    fn thread(pid: u32, tid: u32) -> HostThread {
        HostThread { pid, tid }
    }

    /// With the thread that was preempted; without one, the record of the thread that comes.
    fn handover(time: u64, preempted: Option<HostThread>, to: HostThread) -> Handover {
        Handover {
            time,
            from: preempted,
            preempted: preempted.is_some(),
            to,
        }
    }

    #[test]
    fn a_thread_waits_behind_those_that_run_on_its_cpu() {
        let mut queues = RunQueues::new(JVM, 2);
        let mut found = Vec::new();
        let (victim, hog, other) = (thread(JVM, 10), thread(2, 20), thread(JVM, 11));
        let mut pass = |cpu, record: Handover| {
            queues.hand_over(cpu, &record, |part| {
                let WaitPart {
                    waiting,
                    running,
                    start,
                    end,
                } = part;
                found.push((waiting, running.tid, start, end));
            });
        };
        pass(0, handover(100, Some(victim), hog));
        // The record of the thread that comes.
        pass(0, handover(100, None, hog));
        pass(1, handover(110, None, other));
        pass(0, handover(130, Some(hog), other));
        pass(0, handover(150, Some(other), hog));
        // The victim gets another CPU.
        pass(1, handover(160, None, victim));
        pass(0, handover(200, None, hog));
        assert_eq!(
            found,
            [
                (10, 20, 100, 130),
                (10, 11, 130, 150),
                (10, 20, 150, 160),
                (11, 20, 150, 160),
                (11, 20, 160, 200)
            ]
        );
    }

    #[test]
    fn waits_that_go_on_are_counted() {
        let mut queues = RunQueues::new(JVM, 1);
        let (victim, hog) = (thread(JVM, 10), thread(2, 20));
        queues.hand_over(0, &handover(100, Some(victim), hog), |_| {});
        for (now, start) in [(150, 100), (170, 150)] {
            let mut found = Vec::new();
            queues.count_until(now, |part| found.push((part.start, part.end)));
            assert_eq!(found, [(start, now)]);
        }
    }

    #[test]
    fn a_thread_that_sleeps_after_a_loss_does_not_wait() {
        let mut queues = RunQueues::new(JVM, 2);
        let (victim, hog) = (thread(JVM, 10), thread(2, 20));
        queues.hand_over(0, &handover(100, Some(victim), hog), |_| {});
        // It got the other CPU, whose records were lost, and sleeps.
        let sleeps = Handover {
            from: Some(victim),
            ..handover(150, None, thread(0, 0))
        };
        queues.hand_over(1, &sleeps, |_| {});
        queues.count_until(200, |part| panic!("{part:?}"));
        queues.hand_over(0, &handover(210, Some(victim), hog), |_| {});
        queues.lose(1);
        queues.count_until(300, |part| panic!("{part:?}"));
    }

    #[test]
    fn time_that_was_counted_is_not_counted_again() {
        let mut queues = RunQueues::new(JVM, 1);
        let (victim, hog) = (thread(JVM, 10), thread(2, 20));
        queues.hand_over(0, &handover(100, Some(victim), hog), |_| {});
        let mut sum = 0;
        queues.count_until(200, |part| sum += part.end - part.start);
        // Its record was read late.
        queues.hand_over(0, &handover(150, None, thread(2, 21)), |part| {
            sum += part.end - part.start;
        });
        queues.count_until(250, |part| sum += part.end - part.start);
        assert_eq!(sum, 150);
    }

    #[test]
    fn nothing_is_known_after_a_loss() {
        let mut queues = RunQueues::new(JVM, 1);
        let preempted = |tid| handover(100, Some(thread(JVM, tid)), thread(2, 20));
        queues.hand_over(0, &preempted(10), |_| {});
        queues.lose(0);
        queues.count_until(200, |part| panic!("{part:?}"));
        // Nor on a CPU that is not there.
        queues.hand_over(7, &preempted(11), |_| {});
        queues.lose(7);
        queues.count_until(400, |part| panic!("{part:?}"));
    }

    proptest! {
        /// Whatever the records are: no panic, no thread waits behind itself, and none waits longer than the time that passes.
        #[test]
        fn waits_are_at_most_the_time_that_passes(
            steps in proptest::collection::vec((0usize..3, 0u64..50, 0u32..4, any::<bool>(), 0u32..4, 0u8..12), 0..200),
        ) {
            let mut queues = RunQueues::new(JVM, 2);
            let mut now = 0;
            let mut waited: HashMap<u32, u64> = HashMap::new();
            for (cpu, pause, from, preempted, to, kind) in steps {
                now += pause;
                let mut each = |part: WaitPart| {
                    assert!(part.start < part.end && part.end <= now);
                    *waited.entry(part.waiting).or_default() += part.end - part.start;
                };
                match kind {
                    0 => queues.lose(cpu),
                    1 => queues.count_until(now, &mut each),
                    _ => {
                        let preempted = preempted.then_some(thread(JVM, from));
                        let to = handover(now, preempted.filter(|_| from != to), thread(JVM, to));
                        queues.hand_over(cpu, &to, &mut each);
                    }
                }
            }
            prop_assert!(waited.values().all(|ns| *ns <= now));
        }
    }
}
