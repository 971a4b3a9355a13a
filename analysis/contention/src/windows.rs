//! Time cut into windows in which the set of running tasks does not change (section 5.3, figure 5).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::{
    Cell, Executor, HostId, Idle, Interval, KnownProcess, KnownUse, Resource, Span, StageId, Task,
    TaskUse, Workload,
};

/// The windows of a host, one after the other: cut where any of its tasks starts or ends and at heartbeats.
///
/// Waiting for a slot, which is no part of a task's life, adds its ends.
pub fn windows(workload: &Workload, host: HostId) -> Vec<Span> {
    all_windows(workload, None, None)
        .remove(&host)
        .unwrap_or_default()
}

/// Every (window, resource) of every host in which a task used or waited for something, by host, time and resource; memory by
/// executor, slots by application.
///
/// Amounts are prorated: a row counts in each window by the part of its span that lies in it. `within` cuts
/// all else away. The time taken is linear in rows × the windows they span; in memory are the cells of one window.
pub fn cells(workload: &Workload, within: Option<Span>) -> impl Iterator<Item = Cell> {
    cells_during(workload, within, None)
}

/// The same, but only windows that reach into `life`, which does not cut them.
pub(crate) fn cells_during(
    workload: &Workload,
    within: Option<Span>,
    life: Option<Span>,
) -> impl Iterator<Item = Cell> {
    let windows = all_windows(workload, within, life);
    let reached = windows.values().filter_map(|all| hull(all));
    let reached = reached.reduce(Span::hull);
    let is_near = move |span: Span| reached.is_some_and(|all| span.intersection(all).is_some());
    let mut rows: BTreeMap<HostId, Vec<(&Interval, &Task)>> = BTreeMap::new();
    let intervals = workload.tables().intervals.iter();
    for row in intervals.filter(|row| is_near(row.span)) {
        let task = workload.task_of(row);
        rows.entry(task.host).or_default().push((row, task));
    }
    windows.into_iter().flat_map(move |(host, windows)| {
        let rows = rows.remove(&host).unwrap_or_default();
        let mut here = HostSweep::new(workload, host, rows, is_near);
        windows
            .into_iter()
            .flat_map(move |window| here.cells(window))
    })
}

/// From the first of some windows to the last.
fn hull(windows: &[Span]) -> Option<Span> {
    Some(windows.first()?.hull(*windows.last()?))
}

/// How often a row is compared with a stage that uses something in the same window: what an answer takes time in proportion to.
pub(crate) fn comparisons(workload: &Workload, within: Option<Span>) -> u64 {
    let mut rows: BTreeMap<HostId, Vec<(Span, StageId)>> = BTreeMap::new();
    for row in &workload.tables().intervals {
        let task = workload.task_of(row);
        let rows = rows.entry(task.host).or_default();
        rows.push((row.span, task.stage));
    }
    let mut count = 0u64;
    for (host, windows) in all_windows(workload, within, None) {
        let mut begin = rows.remove(&host).unwrap_or_default();
        let mut end = begin.clone();
        begin.sort_unstable_by_key(|(span, _)| Reverse(span.start));
        end.sort_unstable_by_key(|(span, _)| Reverse(span.end));
        let (mut here, mut stages) = (0u64, BTreeMap::<StageId, u64>::new());
        for window in windows {
            while let Some((_, stage)) = begin.pop_if(|(span, _)| span.start < window.end) {
                here += 1;
                *stages.entry(stage).or_default() += 1;
            }
            while let Some((_, stage)) = end.pop_if(|(span, _)| span.end <= window.start) {
                here -= 1;
                if let Some(rows) = stages.get_mut(&stage) {
                    *rows -= 1;
                    if *rows == 0 {
                        stages.remove(&stage);
                    }
                }
            }
            count = count.saturating_add(here.saturating_mul(stages.len() as u64));
        }
    }
    count
}

/// What went on at a host, from one window to the next.
struct HostSweep<'a> {
    workload: &'a Workload,
    host: HostId,
    rows: Sweep<(&'a Interval, &'a Task)>,
    known: Sweep<&'a KnownUse>,
    idle: Sweep<&'a Idle>,
}

impl<'a> HostSweep<'a> {
    /// Of the rows of tasks, and of other rows those whose span `is_near`.
    fn new(
        workload: &'a Workload,
        host: HostId,
        rows: Vec<(&'a Interval, &'a Task)>,
        is_near: impl Fn(Span) -> bool,
    ) -> HostSweep<'a> {
        let tables = workload.tables();
        let known = of_host(&tables.known, host, |row| row.host);
        let idle = of_host(&tables.idle, host, |row| row.host);
        HostSweep {
            workload,
            host,
            rows: Sweep::new(rows, |(row, _)| row.span),
            known: Sweep::new(known.iter().filter(|row| is_near(row.span)), |row| row.span),
            idle: Sweep::new(idle.iter().filter(|row| is_near(row.span)), |row| row.span),
        }
    }

    fn cells(&mut self, window: Span) -> Vec<Cell> {
        let mut cells: BTreeMap<(Resource, Executor), CellMeasurement> = BTreeMap::new();
        for ((row, task), part) in self.rows.during(window) {
            let resource = row.kind.resource();
            let contending = (resource, task.executor.contending(resource));
            cells
                .entry(contending)
                .or_default()
                .add(row, task.stage, part);
        }
        // Processes outside share no memory and no slots with tasks.
        let all = |resource: Resource| (resource, Executor::default());
        for (row, part) in self.known.during(window) {
            if let Some(cell) = cells.get_mut(&all(row.resource)) {
                *cell.known.entry(row.process).or_default() += row.units * part;
            }
        }
        for (row, part) in self.idle.during(window) {
            if let Some(cell) = cells.get_mut(&all(row.resource)) {
                cell.idle += row.units * part;
            }
        }
        let close = |((resource, executor), measured): ((Resource, Executor), CellMeasurement)| {
            let used = measured.used();
            let possible = (measured.idle > 0.0).then(|| (used + measured.idle) / window.seconds());
            let nominal = self.workload.capacity(self.host, executor, resource);
            Cell::new(
                self.host,
                executor,
                resource,
                window,
                nominal.or(possible),
                measured.tasks,
                measured.known,
            )
        };
        cells.into_iter().map(close).collect()
    }
}

/// The rows that reach into one window after the other.
struct Sweep<Row> {
    /// Those that are still to come, the latest first, each with its place in the table.
    ahead: Vec<(usize, Row)>,
    /// Those that reach into the window, by their place in the table: sums do not depend on when rows begin.
    here: BTreeMap<usize, Row>,
    span: fn(Row) -> Span,
}

impl<Row: Copy> Sweep<Row> {
    fn new(rows: impl IntoIterator<Item = Row>, span: fn(Row) -> Span) -> Sweep<Row> {
        let mut ahead: Vec<(usize, Row)> = rows.into_iter().enumerate().collect();
        ahead.retain(|(_, row)| span(*row).start < span(*row).end);
        ahead.sort_by_key(|(_, row)| Reverse(span(*row).start));
        Sweep {
            ahead,
            here: BTreeMap::new(),
            span,
        }
    }

    /// Those of a window, each with the part of it that lies there. Windows are asked for in time.
    fn during(&mut self, window: Span) -> impl Iterator<Item = (Row, f64)> {
        let span = self.span;
        while let Some((at, row)) = self.ahead.pop_if(|(_, row)| span(*row).start < window.end) {
            self.here.insert(at, row);
        }
        self.here.retain(|_, row| window.start < span(*row).end);
        self.here
            .values()
            .map(move |row| (*row, span(*row).covered_by(window)))
    }
}

/// The rows of a host, in a table that is sorted by host.
fn of_host<Row>(rows: &[Row], host: HostId, of: impl Fn(&Row) -> HostId) -> &[Row] {
    let first = rows.partition_point(|row| of(row) < host);
    let length = rows[first..].partition_point(|row| of(row) == host);
    &rows[first..first + length]
}

/// What was measured in a cell, before it is known who used the rest.
#[derive(Default)]
struct CellMeasurement {
    tasks: Vec<TaskUse>,
    known: BTreeMap<KnownProcess, f64>,
    /// What could have been used beside that.
    idle: f64,
}

impl CellMeasurement {
    /// Rows come by task.
    fn add(&mut self, row: &Interval, stage: StageId, part: f64) {
        if self.tasks.last().is_none_or(|last| last.task != row.task) {
            self.tasks.push(TaskUse {
                task: row.task,
                stage,
                units: 0.0,
                blocked: BTreeMap::new(),
            });
        }
        let last = self.tasks.len() - 1;
        let task = &mut self.tasks[last];
        task.units += row.units * part;
        if row.blocked_ns > 0 {
            *task.blocked.entry(row.kind).or_default() += row.blocked_ns as f64 / 1e9 * part;
        }
    }

    /// By tasks and known processes.
    fn used(&self) -> f64 {
        let by_tasks: f64 = self.tasks.iter().map(|task| task.units).sum();
        by_tasks + self.known.values().sum::<f64>()
    }
}

/// The windows (one after the other) that a span reaches into, by index, with the part of the span in each.
pub(crate) fn spread(windows: &[Span], span: Span) -> impl Iterator<Item = (usize, f64)> {
    let first = windows.partition_point(|window| window.end <= span.start);
    let reached = move |window: &&Span| window.start < span.end;
    let part = move |(at, window): (usize, &Span)| (first + at, span.covered_by(*window));
    windows[first..]
        .iter()
        .take_while(reached)
        .enumerate()
        .map(part)
}

/// The windows of every host, or those that reach into `life`, which does not cut them.
pub(crate) fn all_windows(
    workload: &Workload,
    within: Option<Span>,
    life: Option<Span>,
) -> BTreeMap<HostId, Vec<Span>> {
    let tables = workload.tables();
    let mut cuts: BTreeMap<HostId, Vec<i64>> = BTreeMap::new();
    for task in &tables.tasks {
        cuts.entry(task.host)
            .or_default()
            .extend([task.span.start, task.span.end]);
    }
    let waits = tables.intervals.iter();
    for row in waits.filter(|row| row.kind.is_for_slots()) {
        let task = workload.task_of(row);
        let ends = [row.span.start, row.span.end];
        let outside = |at: &i64| !(task.span.start..=task.span.end).contains(at);
        let outside = ends.into_iter().filter(outside);
        cuts.entry(task.host).or_default().extend(outside);
    }
    let ends: BTreeMap<HostId, (i64, i64)> = cuts
        .iter()
        .filter_map(|(host, cuts)| Some((*host, (*cuts.iter().min()?, *cuts.iter().max()?))))
        .collect();
    for heartbeat in &tables.heartbeats {
        if ends
            .get(&heartbeat.host)
            .is_some_and(|(first, last)| (*first..*last).contains(&heartbeat.at))
        {
            cuts.entry(heartbeat.host).or_default().push(heartbeat.at);
        }
    }
    let of_host = |(host, mut cuts): (HostId, Vec<i64>)| {
        if let Some(life) = life {
            keep_around(&mut cuts, life);
        }
        let mut windows = between(cuts, within);
        windows.retain(|window| life.is_none_or(|life| window.intersection(life).is_some()));
        (host, windows)
    };
    cuts.into_iter().map(of_host).collect()
}

/// Drops cuts that bound no window that reaches into `life`: many, where victims ran in a small part of the time.
fn keep_around(cuts: &mut Vec<i64>, life: Span) {
    let before = cuts.iter().filter(|cut| **cut <= life.start).max();
    let after = cuts.iter().filter(|cut| **cut >= life.end).min();
    let (first, last) = (before.copied(), after.copied());
    cuts.retain(|cut| {
        first.is_none_or(|first| *cut >= first) && last.is_none_or(|last| *cut <= last)
    });
}

fn between(mut cuts: Vec<i64>, within: Option<Span>) -> Vec<Span> {
    cuts.extend(within.into_iter().flat_map(|span| [span.start, span.end]));
    cuts.sort_unstable();
    cuts.dedup();
    let inside = |window: &Span| {
        within.is_none_or(|span| span.start <= window.start && window.end <= span.end)
    };
    cuts.windows(2)
        .map(|pair| Span {
            start: pair[0],
            end: pair[1],
        })
        .filter(inside)
        .collect()
}
