//! Waits for locks whose holders the JVM reported.

use std::collections::HashMap;

use unfuse_format::LockWaitRow;
use unfuse_postprocess::WaitReason;

use super::Reader;
use super::consumption::sampled_span;
use super::recorded::RecordedRows;
use crate::{Held, Holder, KnownProcess, Span, TaskId};

impl Reader<'_> {
    /// Adds who held locks while tasks waited for them.
    pub(super) fn held(&mut self, recorded: &RecordedRows) {
        let rows = recorded.held.iter();
        let held: Vec<Held> = rows.filter_map(|row| self.held_row(row)).collect();
        self.builder.tables.held.extend(held);
    }

    /// None for a holder that is not known: the wait stays with what is shared out by use.
    fn held_row(&self, row: &LockWaitRow) -> Option<Held> {
        let task: TaskId = *self.tasks.get(&self.app_task(&row.app, row.task))?;
        let span = Span {
            start: row.start_ns,
            end: row.end_ns,
        };
        let waited_ns = row.waited_ns.min(span.end.saturating_sub(span.start));
        let holder = match row.holder.as_str() {
            "task" => {
                let holder = self.app_task(&row.app, row.holder_task?);
                Holder::Task(*self.tasks.get(&holder)?)
            }
            "thread" => Holder::Known(KnownProcess::Jvm),
            _ => return None,
        };
        (waited_ns > 0).then(|| Held {
            task,
            span,
            holder,
            seconds: waited_ns as f64 / 1e9,
        })
    }

    /// Waits without a known reason during which the JVM reported a wait for a lock. Only compiled code calls named routines of
    /// the JVM for monitors, so waits of interpreted code have no other reason.
    pub(super) fn unnamed_locks(&self, recorded: &RecordedRows) -> UnnamedLocks {
        let mut by_task: HashMap<TaskId, LockTime> = HashMap::new();
        for row in &self.builder.tables.held {
            let time = by_task.entry(row.task).or_default();
            time.rows.push((row.span, row.seconds));
            time.left += row.seconds;
        }
        let locks = recorded.sampled.iter();
        for interval in locks.filter(|interval| interval.waiting == Some(WaitReason::Lock)) {
            let task = self.known_task(&interval.app, interval.task);
            if let Some(time) = by_task.get_mut(&task) {
                let span = sampled_span(interval);
                let reported = time.within(span);
                time.left -= reported.min(interval.ns as f64 / 1e9);
            }
        }
        UnnamedLocks(by_task)
    }
}

/// What the JVM reported of waits for locks and no stack did.
pub(super) struct UnnamedLocks(HashMap<TaskId, LockTime>);

#[derive(Default)]
struct LockTime {
    rows: Vec<(Span, f64)>,
    /// Seconds for which there was no wait yet.
    left: f64,
}

impl LockTime {
    /// Reported seconds in a span.
    fn within(&self, span: Span) -> f64 {
        let rows = self.rows.iter();
        rows.map(|(of, seconds)| seconds * of.covered_by(span))
            .sum()
    }
}

impl UnnamedLocks {
    /// How much of a wait without a known reason was for a lock, ns.
    pub(super) fn take(&mut self, task: TaskId, span: Span, ns: u64) -> i64 {
        let Some(time) = self.0.get_mut(&task) else {
            return 0;
        };
        let seconds = time.within(span).min(ns as f64 / 1e9).min(time.left);
        if seconds <= 0.0 {
            return 0;
        }
        time.left -= seconds;
        (seconds * 1e9) as i64
    }
}
