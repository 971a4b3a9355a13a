//! Run-queue waits whose causes the kernel recorded.

use unfuse_format::{CpuWaitRow, OutsideRow, StageAttempt};

use super::Reader;
use super::recorded::RecordedRows;
use crate::{KnownProcess, Queued, Source, Span, TaskId};

impl Reader<'_> {
    /// Adds what the CPUs ran while tasks waited for them.
    pub(super) fn queued(&mut self, recorded: &RecordedRows) {
        let rows = recorded.queued.iter();
        let queued: Vec<Queued> = rows.filter_map(|row| self.queued_row(row)).collect();
        self.builder.tables.queued.extend(queued);
    }

    /// None for what cannot be named: it stays with what is shared out by use.
    fn queued_row(&self, row: &CpuWaitRow) -> Option<Queued> {
        let task: TaskId = *self.tasks.get(&self.app_task(&row.app, row.task))?;
        let span = Span {
            start: row.start_ns,
            end: row.end_ns,
        };
        let waited_ns = row.waited_ns.min(span.end.saturating_sub(span.start));
        let source = match row.behind.as_str() {
            "task" => {
                let stage = StageAttempt::new(&*row.app, row.behind_stage?, row.behind_attempt?);
                Source::Stage(*self.stages.get(&stage)?)
            }
            "gc" => Source::Known(KnownProcess::Gc),
            "jit" => Source::Known(KnownProcess::Jit),
            "jvm" => Source::Known(KnownProcess::Jvm),
            "process" => Source::Known(self.index.neighbours.process(&outside(row))?),
            _ => return None,
        };
        (waited_ns > 0).then(|| Queued {
            task,
            span,
            source,
            seconds: waited_ns as f64 / 1e9,
        })
    }
}

/// The process of a row, in the terms of `outside`.
fn outside(row: &CpuWaitRow) -> OutsideRow {
    OutsideRow {
        host: row.host.clone(),
        command: row.command.clone().unwrap_or_default(),
        user: row.user.clone().unwrap_or_default(),
        cgroup: row.cgroup.clone(),
        container: row.container.clone(),
        jvm: row.behind_jvm,
        ..OutsideRow::default()
    }
}
