//! The rows of a workload by host and time, sorted once for all questions about it.

use std::collections::{BTreeMap, BTreeSet};

use crate::{HostId, Span, StageId, Tables, Task, TaskId};

/// When a row begins and ends, and its position in its table.
pub(crate) type Timed = (Span, usize);

/// What happened on a host, each table by when its rows begin.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostRows {
    /// Where windows are cut: in order, each moment once.
    pub(crate) cuts: Vec<i64>,
    /// What its tasks did.
    pub(crate) intervals: Vec<Timed>,
    /// Its tasks that run.
    pub(crate) tasks: Vec<Timed>,
    /// What known processes used.
    pub(crate) known: Vec<Timed>,
    /// What lay idle.
    pub(crate) idle: Vec<Timed>,
    /// What held its tasks back.
    pub(crate) withheld: Vec<Timed>,
    /// What the CPUs ran while its tasks waited for them.
    pub(crate) queued: Vec<Timed>,
    /// What held the locks that its tasks waited for.
    pub(crate) held: Vec<Timed>,
}

/// The rows of each host that has tasks, and the tasks of each stage.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    pub(crate) hosts: BTreeMap<HostId, HostRows>,
    /// Positions of tasks by stage.
    tasks: Vec<(StageId, usize)>,
}

impl Schedule {
    /// Of tables in their one order.
    pub(crate) fn new<'a>(tables: &'a Tables, task: impl Fn(TaskId) -> &'a Task) -> Self {
        let mut schedule = Self::default();
        for (at, task) in tables.tasks.iter().enumerate() {
            let host = schedule.hosts.entry(task.host).or_default();
            host.cuts.extend([task.span.start, task.span.end]);
            if task.runs {
                push(&mut host.tasks, task.span, at);
            }
            schedule.tasks.push((task.stage, at));
        }
        schedule.tasks.sort_unstable();
        for (at, row) in tables.intervals.iter().enumerate() {
            let task = task(row.task);
            let host = schedule.hosts.entry(task.host).or_default();
            push(&mut host.intervals, row.span, at);
            // Waiting for a slot is no part of a task's life, so it adds its ends.
            if row.kind.is_for_slots() {
                let life = task.span.start..=task.span.end;
                let ends = [row.span.start, row.span.end];
                host.cuts
                    .extend(ends.into_iter().filter(|at| !life.contains(at)));
            }
        }
        for (at, row) in tables.known.iter().enumerate() {
            if let Some(host) = schedule.hosts.get_mut(&row.host) {
                push(&mut host.known, row.span, at);
            }
        }
        for (at, row) in tables.idle.iter().enumerate() {
            if let Some(host) = schedule.hosts.get_mut(&row.host) {
                push(&mut host.idle, row.span, at);
            }
        }
        for (at, row) in tables.withheld.iter().enumerate() {
            if let Some(host) = schedule.hosts.get_mut(&row.host) {
                push(&mut host.withheld, row.span, at);
            }
        }
        for (at, row) in tables.queued.iter().enumerate() {
            if let Some(host) = schedule.hosts.get_mut(&task(row.task).host) {
                push(&mut host.queued, row.span, at);
            }
        }
        for (at, row) in tables.held.iter().enumerate() {
            if let Some(host) = schedule.hosts.get_mut(&task(row.task).host) {
                push(&mut host.held, row.span, at);
            }
        }
        schedule.sort();
        schedule.cut_at_heartbeats(tables);
        schedule
    }

    fn sort(&mut self) {
        for host in self.hosts.values_mut() {
            let HostRows {
                cuts,
                intervals,
                tasks,
                known,
                idle,
                withheld,
                queued,
                held,
            } = host;
            for rows in [intervals, tasks, known, idle, withheld, queued, held] {
                rows.sort_by_key(|(span, _)| span.start);
            }
            cuts.sort_unstable();
            cuts.dedup();
        }
    }

    /// Cuts between the first and the last cut of a host's tasks.
    fn cut_at_heartbeats(&mut self, tables: &Tables) {
        let mut beats: BTreeMap<HostId, Vec<i64>> = BTreeMap::new();
        for heartbeat in &tables.heartbeats {
            beats.entry(heartbeat.host).or_default().push(heartbeat.at);
        }
        for (host, mut beats) in beats {
            let Some(host) = self.hosts.get_mut(&host) else {
                continue;
            };
            if let (Some(first), Some(last)) = (host.cuts.first(), host.cuts.last()) {
                beats.retain(|at| (*first..*last).contains(at));
                host.cuts.append(&mut beats);
                host.cuts.sort();
                host.cuts.dedup();
            }
        }
    }

    /// Positions of the tasks of some stages, in order.
    pub(crate) fn tasks_of(&self, stages: &BTreeSet<StageId>) -> Vec<usize> {
        let of = |stage: &StageId| {
            let first = self.tasks.partition_point(|(known, _)| known < stage);
            let rest = self.tasks[first..].iter();
            let stage = *stage;
            rest.take_while(move |(known, _)| *known == stage)
                .map(|(_, at)| *at)
        };
        let mut tasks: Vec<usize> = stages.iter().flat_map(of).collect();
        tasks.sort_unstable();
        tasks
    }
}

/// Rows that take no time reach into no window.
fn push(rows: &mut Vec<Timed>, span: Span, at: usize) {
    if span.start < span.end {
        rows.push((span, at));
    }
}

/// A part of the time of each host in which victims were there.
#[derive(Debug)]
pub(crate) struct Reach {
    /// From the first moment of all to the last.
    life: Span,
    /// One after the other.
    spans: BTreeMap<HostId, Vec<Span>>,
}

impl Reach {
    /// Of spans on hosts, as far as they reach into `life`.
    pub(crate) fn new(life: Span, spans: impl Iterator<Item = (HostId, Span)>) -> Self {
        let mut by_host: BTreeMap<HostId, Vec<Span>> = BTreeMap::new();
        for (host, span) in spans {
            by_host.entry(host).or_default().push(span);
        }
        let spans = by_host.into_iter();
        Self {
            life,
            spans: spans.map(|(host, spans)| (host, joined(spans))).collect(),
        }
    }

    /// The windows between the cuts of a host that lie in a part of the time, and reach into these spans and this life.
    pub(crate) fn windows(&self, host: HostId, cuts: &[i64], within: Option<Span>) -> Vec<Span> {
        let Some(spans) = self.spans.get(&host) else {
            return Vec::new();
        };
        let Span { start, end } = self.life;
        let first = cuts.partition_point(|cut| *cut <= start).saturating_sub(1);
        let last = cuts.partition_point(|cut| *cut < end);
        let near = &cuts[first..cuts.len().min(last + 1)];
        let mut windows = between(near, within);
        let mut spans = spans.iter().peekable();
        windows.retain(|window| {
            while spans.next_if(|span| span.end <= window.start).is_some() {}
            let is_there = spans
                .peek()
                .is_some_and(|span| span.intersection(*window).is_some());
            is_there && window.intersection(self.life).is_some()
        });
        windows
    }
}

/// The same time in spans that are in order and do not touch.
fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut joined: Vec<Span> = Vec::new();
    for span in spans {
        match joined.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => joined.push(span),
        }
    }
    joined
}

/// The windows between cuts that lie in a part of the time, whose ends cut too.
pub(crate) fn between(cuts: &[i64], within: Option<Span>) -> Vec<Span> {
    let mut cuts = cuts.to_vec();
    if let Some(Span { start, end }) = within {
        cuts.extend([start, end]);
        cuts.sort();
        cuts.dedup();
    }
    let inside = |window: &Span| {
        within.is_none_or(|span| span.start <= window.start && window.end <= span.end)
    };
    let windows = cuts.windows(2).map(|pair| Span {
        start: pair[0],
        end: pair[1],
    });
    windows.filter(inside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: i64, end: i64) -> Span {
        Span { start, end }
    }

    #[test]
    fn only_windows_that_hold_a_part_of_the_spans_are_there() {
        let host = HostId(1);
        let spans = [span(12, 15), span(14, 20), span(40, 41), span(90, 95)];
        let reach = Reach::new(span(12, 50), spans.map(|span| (host, span)).into_iter());
        let cuts = [0, 10, 20, 30, 40, 50, 90, 100];
        let windows = |within| reach.windows(host, &cuts, within);
        assert_eq!(windows(None), [span(10, 20), span(40, 50)]);
        assert_eq!(windows(Some(span(13, 45))), [span(13, 20), span(40, 45)]);
        assert_eq!(windows(Some(span(21, 39))), []);
        assert_eq!(reach.windows(HostId(2), &cuts, None), []);
    }
}
