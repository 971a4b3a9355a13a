//! Threads that wait for a sampler.
//!
//! A sampler costs about 1 ms of CPU time to start and end. A program that starts thousands of short threads a second
//! must not pay that for each of them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Number of samplers started without delay in each second.
const AT_ONCE: u32 = 64;
/// Minimum age of further threads.
const AGE: Duration = Duration::from_millis(20);
const WINDOW: Duration = Duration::from_secs(1);

/// A thread to sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) tid: u32,
    pub(crate) name: String,
    pub(crate) task: bool,
    /// The ring of its timer, if timers are used.
    pub(crate) slot: Option<u32>,
}

/// The queue, oldest first.
#[derive(Debug)]
pub(crate) struct WaitingList {
    queue: VecDeque<(Instant, Request)>,
    window: Instant,
    started: u32,
}

impl WaitingList {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            queue: VecDeque::new(),
            window: now,
            started: 0,
        }
    }

    /// Adds a new thread; returns it if it is to be sampled at once. Spark tasks never wait.
    pub(crate) fn admit(&mut self, request: Request, now: Instant) -> Option<Request> {
        if now.duration_since(self.window) >= WINDOW {
            (self.window, self.started) = (now, 0);
        }
        if request.task {
            self.take(request.tid);
            return Some(request);
        }
        if self.started < AT_ONCE {
            self.started += 1;
            return Some(request);
        }
        self.queue.push_back((now + AGE, request));
        None
    }

    /// Adds a thread that has waited for something else, and is due now.
    pub(crate) fn put_first(&mut self, request: Request, now: Instant) {
        self.queue.push_front((now, request));
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Removes a thread from the queue, if it waits.
    pub(crate) fn take(&mut self, tid: u32) -> Option<Request> {
        let index = self.queue.iter().position(|(_, r)| r.tid == tid)?;
        self.queue.remove(index).map(|(_, request)| request)
    }

    /// A thread that is old enough.
    pub(crate) fn next_due(&mut self, now: Instant) -> Option<Request> {
        let due = self.queue.front().is_some_and(|(due, _)| *due <= now);
        due.then(|| self.queue.pop_front())?
            .map(|(_, request)| request)
    }

    /// Time until something is due; `None` while nothing waits.
    pub(crate) fn patience(&self, now: Instant) -> Option<Duration> {
        let (due, _) = self.queue.front()?;
        Some(due.saturating_duration_since(now))
    }

    /// Removes and returns all threads.
    pub(crate) fn clear(&mut self) -> impl Iterator<Item = Request> {
        self.queue.drain(..).map(|(_, request)| request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(tid: u32, task: bool) -> Request {
        Request {
            tid,
            name: String::new(),
            task,
            slot: None,
        }
    }

    #[test]
    fn a_burst_waits_and_brief_threads_never_come_out() {
        let start = Instant::now();
        let mut waiting = WaitingList::new(start);
        let at_once = (0..200)
            .filter_map(|tid| waiting.admit(thread(tid, false), start))
            .count();
        assert_eq!(at_once, AT_ONCE as usize);
        assert_eq!(waiting.patience(start), Some(AGE));
        assert!(waiting.next_due(start).is_none());
        assert!(waiting.take(100).is_some());
        assert!(waiting.take(100).is_none());
        let mut old = Vec::new();
        while let Some(request) = waiting.next_due(start + AGE) {
            old.push(request.tid);
        }
        let expected: Vec<u32> = (AT_ONCE..200).filter(|tid| *tid != 100).collect();
        assert_eq!(old, expected);
        assert_eq!(waiting.patience(start), None);
        assert!(waiting.admit(thread(1, false), start + WINDOW).is_some());
    }

    #[test]
    fn a_thread_with_a_task_waits_no_longer() {
        let start = Instant::now();
        let mut waiting = WaitingList::new(start);
        for tid in 0..=AT_ONCE {
            waiting.admit(thread(tid, false), start);
        }
        assert!(waiting.admit(thread(AT_ONCE, true), start).is_some());
        assert!(waiting.next_due(start + AGE).is_none());
    }
}
