//! The running samplers: one for each thread number, until its process has been reaped.
//!
//! Messages of the JVM on its threads do not start or end processes by themselves: a thread that is said to have ended
//! may still live, and so does its sampler.

use std::collections::HashMap;

use nix::unistd::Pid;

use crate::waiting::Request;

/// Maximum number of samplers and of waiting threads: more than a JVM has threads.
pub(crate) const MOST_SAMPLERS: usize = 20_000;

/// A sampler's process.
#[derive(Debug)]
pub(crate) struct Sampler {
    process: Pid,
    task: bool,
    /// The ring of its thread's timer, if timers are used.
    pub(crate) slot: Option<u32>,
    /// Whether it is to end, or its thread is said to have ended.
    over: bool,
    /// The thread that got the same number, or announced itself again.
    pub(crate) next: Option<Request>,
}

/// All samplers, by thread.
#[derive(Debug, Default)]
pub(crate) struct Samplers {
    by_thread: HashMap<u32, Sampler>,
}

impl Samplers {
    pub(crate) fn len(&self) -> usize {
        self.by_thread.len()
    }

    pub(crate) fn has(&self, tid: u32) -> bool {
        self.by_thread.contains_key(&tid)
    }

    pub(crate) fn insert(&mut self, process: Pid, (tid, task): (u32, bool), slot: Option<u32>) {
        let sampler = Sampler {
            process,
            task,
            slot,
            over: false,
            next: None,
        };
        self.by_thread.insert(tid, sampler);
    }

    /// Keeps a request until the sampler with its number has been reaped. Returns a request that was kept before.
    pub(crate) fn keep(&mut self, request: Request) -> Option<Request> {
        let Some(known) = self.by_thread.get_mut(&request.tid) else {
            return Some(request);
        };
        // A thread that announces itself again has dropped its timer, and its sampler ends.
        known.over |= known.slot != request.slot;
        if !known.over && request.task && !known.task {
            // The same thread now runs tasks.
            known.task = true;
            return None;
        }
        known.next.replace(request)
    }

    /// Notes that a thread is said to have ended. Returns its request, if that waited for the end of a sampler.
    pub(crate) fn thread_ended(&mut self, tid: u32) -> Option<Request> {
        let known = self.by_thread.get_mut(&tid)?;
        let next = known.next.take();
        // If the thread has a sampler, its next request is only a repetition.
        let waited = std::mem::replace(&mut known.over, true);
        next.filter(|_| waited)
    }

    /// Processes that are sampling, as far as known.
    pub(crate) fn at_work(&self) -> impl Iterator<Item = Pid> {
        let at_work = self.by_thread.values().filter(|sampler| !sampler.over);
        at_work.map(|sampler| sampler.process)
    }

    /// Restricts sampling to threads that run tasks. Returns processes to end, and dropped requests.
    pub(crate) fn tasks_only(&mut self) -> (Vec<Pid>, Vec<Request>) {
        let (mut ends, mut dropped) = (Vec::new(), Vec::new());
        for sampler in self.by_thread.values_mut() {
            if !sampler.task && !std::mem::replace(&mut sampler.over, true) {
                ends.push(sampler.process);
            }
            dropped.extend(sampler.next.take_if(|next| !next.task));
        }
        (ends, dropped)
    }

    /// Removes a process that has been reaped.
    pub(crate) fn reaped(&mut self, process: Pid) -> Option<Sampler> {
        let is_it = |sampler: &Sampler| sampler.process == process;
        let tid = *self.by_thread.iter().find(|(_, s)| is_it(s))?.0;
        self.by_thread.remove(&tid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(tid: u32, task: bool, slot: Option<u32>) -> Request {
        Request {
            tid,
            name: String::new(),
            task,
            slot,
        }
    }

    /// Samplers with one, process 100, for thread 1.
    fn one(slot: Option<u32>) -> Samplers {
        let mut samplers = Samplers::default();
        samplers.insert(Pid::from_raw(100), (1, false), slot);
        samplers
    }

    fn next(samplers: &mut Samplers) -> Option<Request> {
        samplers.reaped(Pid::from_raw(100)).unwrap().next
    }

    #[test]
    fn a_thread_that_is_said_to_have_ended_keeps_its_sampler() {
        let mut samplers = one(None);
        assert_eq!(samplers.thread_ended(1), None);
        assert!(samplers.has(1));
        assert_eq!(samplers.at_work().count(), 0);
        let mut given_back = 0;
        for _ in 0..10 {
            given_back += usize::from(samplers.keep(request(1, false, None)).is_some());
        }
        assert_eq!((samplers.len(), given_back), (1, 9));
        assert_eq!(next(&mut samplers), Some(request(1, false, None)));
        assert_eq!(samplers.len(), 0);
    }

    #[test]
    fn a_thread_with_a_number_that_came_round_waits_for_the_reaping() {
        let mut samplers = one(None);
        samplers.thread_ended(1);
        assert_eq!(samplers.keep(request(1, true, None)), None);
        assert_eq!(samplers.thread_ended(1), Some(request(1, true, None)));
        assert_eq!(next(&mut samplers), None);
        // The same without a message on the end of the first one.
        let mut samplers = one(None);
        assert_eq!(samplers.keep(request(1, false, None)), None);
        assert_eq!(next(&mut samplers), Some(request(1, false, None)));
    }

    #[test]
    fn a_thread_that_announces_itself_again_has_one_sampler() {
        let mut samplers = one(None);
        assert_eq!(samplers.keep(request(1, true, None)), None);
        assert_eq!(samplers.tasks_only(), (vec![], vec![]), "it runs tasks");
        assert_eq!(samplers.keep(request(1, true, None)), None);
        assert_eq!(samplers.thread_ended(1), None, "a repetition");
        assert_eq!(next(&mut samplers), None);
        // With another timer, the next sampler reads that one.
        let mut samplers = one(Some(3));
        assert_eq!(samplers.keep(request(1, true, Some(4))), None);
        assert_eq!(next(&mut samplers), Some(request(1, true, Some(4))));
    }

    #[test]
    fn only_samplers_of_tasks_stay() {
        let mut samplers = one(None);
        samplers.insert(Pid::from_raw(200), (2, true), None);
        samplers.keep(request(1, false, None));
        let ended = (vec![Pid::from_raw(100)], vec![request(1, false, None)]);
        assert_eq!(samplers.tasks_only(), ended);
        assert_eq!(samplers.tasks_only(), (vec![], vec![]), "once");
        assert_eq!(samplers.at_work().count(), 1);
        assert_eq!(samplers.keep(request(1, true, None)), None);
        assert_eq!(next(&mut samplers), Some(request(1, true, None)));
    }
}
