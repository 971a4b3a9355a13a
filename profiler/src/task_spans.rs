//! The tasks of one thread over time, from its marks in shared memory.

use std::collections::VecDeque;

use unfuse_codemap::{Mark, MarkKind};

use crate::wire::TaskAttempt;

/// The tasks of one thread, in order of time, each with something that its user knows of it.
#[derive(Debug)]
pub(crate) struct TaskSpans<T>(VecDeque<Span<T>>);

#[derive(Debug)]
struct Span<T> {
    start: u64,
    end: u64,
    task: T,
}

impl<T> Default for TaskSpans<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T: Copy> TaskSpans<T> {
    /// Adds a mark of the thread.
    pub(crate) fn add(&mut self, mark: &Mark, task: impl FnOnce(TaskAttempt) -> T) {
        // A start without an end (a task that failed early) ends where the next one begins.
        if let Some(open) = self.0.back_mut().filter(|span| span.end == u64::MAX) {
            open.end = mark.time;
        }
        if mark.kind == MarkKind::Start {
            self.0.push_back(Span {
                start: mark.time,
                end: u64::MAX,
                task: task(TaskAttempt {
                    stage: mark.stage,
                    stage_attempt: mark.stage_attempt,
                    task: mark.task,
                }),
            });
        }
    }

    /// The task that ran at `time`.
    pub(crate) fn at(&self, time: u64) -> Option<T> {
        let after = self.0.partition_point(|span| span.start <= time);
        let span = self.0.get(after.checked_sub(1)?)?;
        (time < span.end).then_some(span.task)
    }

    /// Drops tasks that ended before `time`.
    pub(crate) fn forget_before(&mut self, time: u64) {
        while self.0.pop_front_if(|span| span.end < time).is_some() {}
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
