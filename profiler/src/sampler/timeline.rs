//! The tasks of a thread over time, from the marks in shared memory.

use unfuse_codemap::{CodeMap, MarkCursor};

use crate::clock::monotonic_ns;
use crate::share::TaskShare;
use crate::task_spans::TaskSpans;
use crate::wire::TaskAttempt;

/// A task of the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Task {
    pub(super) key: TaskAttempt,
    /// Whether it is one of the profiled tasks.
    pub(super) drawn: bool,
}

/// The tasks of one thread, in order of time.
pub(super) struct Timeline<'a> {
    map: &'a CodeMap,
    cursor: MarkCursor,
    tid: u32,
    spans: TaskSpans<Task>,
    lost_told: u64,
    share: TaskShare,
    seed: u64,
    /// Whether any thread of the JVM has run a task.
    has_tasks: bool,
    /// When marks were read last, CLOCK_MONOTONIC ns.
    updated: u64,
}

impl<'a> Timeline<'a> {
    pub(super) fn new(map: &'a CodeMap, tid: u32, share: TaskShare, seed: u64) -> Self {
        Self {
            map,
            cursor: map.marks().reader(),
            tid,
            spans: TaskSpans::default(),
            lost_told: 0,
            share,
            seed,
            has_tasks: false,
            updated: 0,
        }
    }

    /// Whether waits at `time` count, and their task: in a JVM with tasks, threads without one wait for one.
    pub(super) fn waits_at(&self, time: u64) -> Option<Option<Task>> {
        match self.task_at(time) {
            Some(task) => task.drawn.then_some(Some(task)),
            None => (!self.has_tasks).then_some(None),
        }
    }

    /// Whether two times are in the same task, as far as marks were read.
    pub(super) fn is_one_task(&self, earlier: u64, later: u64) -> bool {
        later < self.updated && self.waits_at(earlier) == self.waits_at(later)
    }

    /// Reads new marks.
    pub(super) fn update(&mut self) {
        self.updated = monotonic_ns();
        while let Some(mark) = self.map.marks().next(&mut self.cursor) {
            self.has_tasks = true;
            if mark.tid != self.tid {
                continue;
            }
            let (share, seed) = (self.share, self.seed);
            self.spans.add(&mark, |key| Task {
                key,
                drawn: share.draws(key, seed),
            });
        }
    }

    /// The task that ran at `time`.
    pub(super) fn task_at(&self, time: u64) -> Option<Task> {
        self.spans.at(time)
    }

    /// Whether the task at `time` is not profiled.
    pub(super) fn is_left_out(&self, time: u64) -> bool {
        self.share.is_partial() && self.task_at(time).is_some_and(|task| !task.drawn)
    }

    /// Drops tasks that ended before `time`.
    pub(super) fn forget_before(&mut self, time: u64) {
        self.spans.forget_before(time);
    }

    /// Marks lost since the last call.
    pub(super) fn take_lost(&mut self) -> u64 {
        let lost = self.cursor.lost - self.lost_told;
        self.lost_told = self.cursor.lost;
        lost
    }
}
