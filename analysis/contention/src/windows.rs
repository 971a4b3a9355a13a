//! Time cut into windows in which the set of running tasks does not change (section 5.3, figure 5).

use std::collections::BTreeMap;

use crate::{
    Cell, HostId, Interval, Kind, KnownProcess, Resource, Span, TaskId, TaskUse, Workload,
};

/// The windows of a host, one after the other: cut where any of its tasks starts or ends and at heartbeats.
///
/// Rows that reach beyond all of these (waiting for a slot before the first task) add their outer ends.
pub fn windows(workload: &Workload, host: HostId) -> Vec<Span> {
    all_windows(workload, None)
        .remove(&host)
        .unwrap_or_default()
}

/// Every (window, resource) of every host in which a task used or waited for something, by host, time and resource.
///
/// Amounts are prorated: a row counts in each window by the part of its span that lies in it. `within` cuts
/// all else away. The time taken is linear in rows × the windows they span; of cells, only those of one host are in memory.
pub fn cells(workload: &Workload, within: Option<Span>) -> impl Iterator<Item = Cell> {
    let mut rows: BTreeMap<HostId, Vec<&Interval>> = BTreeMap::new();
    for row in &workload.tables().intervals {
        rows.entry(workload.task_of(row).host)
            .or_default()
            .push(row);
    }
    all_windows(workload, within)
        .into_iter()
        .flat_map(move |(host, windows)| {
            let rows = rows.remove(&host).unwrap_or_default();
            cells_of(workload, host, &windows, &rows)
        })
}

fn cells_of(workload: &Workload, host: HostId, windows: &[Span], rows: &[&Interval]) -> Vec<Cell> {
    let mut open: BTreeMap<(usize, Resource), Measured> = BTreeMap::new();
    for row in rows {
        for (at, part) in spread(windows, row.span) {
            let cell = open.entry((at, row.kind.resource())).or_default();
            let (units, blocked) = cell.tasks.entry(row.task).or_default();
            *units += row.units * part;
            if row.blocked_ns > 0 {
                *blocked.entry(row.kind).or_default() += row.blocked_ns as f64 / 1e9 * part;
            }
        }
    }
    for row in of_host(&workload.tables().known, host, |row| row.host) {
        for (at, part) in spread(windows, row.span) {
            if let Some(cell) = open.get_mut(&(at, row.resource)) {
                *cell.known.entry(row.process).or_default() += row.units * part;
            }
        }
    }
    for row in of_host(&workload.tables().host_windows, host, |row| row.host) {
        for (at, part) in spread(windows, row.span) {
            if let Some(cell) = open.get_mut(&(at, row.resource)) {
                cell.all += row.units * part;
            }
        }
    }
    for row in of_host(&workload.tables().idle, host, |row| row.host) {
        for (at, part) in spread(windows, row.span) {
            if let Some(cell) = open.get_mut(&(at, row.resource)) {
                cell.idle += row.units * part;
            }
        }
    }
    let close = |((at, resource), measured): ((usize, Resource), Measured)| {
        measured.close(workload, host, windows[at], resource)
    };
    open.into_iter().map(close).collect()
}

/// The rows of a host, in a table that is sorted by host.
fn of_host<Row>(rows: &[Row], host: HostId, of: impl Fn(&Row) -> HostId) -> &[Row] {
    let first = rows.partition_point(|row| of(row) < host);
    let length = rows[first..].partition_point(|row| of(row) == host);
    &rows[first..first + length]
}

/// What was measured in a cell, before it is known who used the rest.
#[derive(Default)]
struct Measured {
    tasks: BTreeMap<TaskId, (f64, BTreeMap<Kind, f64>)>,
    known: BTreeMap<KnownProcess, f64>,
    /// What the host used in all.
    all: f64,
    /// What it could have used beside that.
    idle: f64,
}

impl Measured {
    fn close(self, workload: &Workload, host: HostId, span: Span, resource: Resource) -> Cell {
        let mut known = self.known;
        let by_tasks: f64 = self.tasks.values().map(|(units, _)| units).sum();
        let outside = self.all - by_tasks - known.values().sum::<f64>();
        if let Some(process) = KnownProcess::external(resource).filter(|_| outside > 0.0) {
            *known.entry(process).or_default() += outside;
        }
        let use_of = |(task, (units, blocked))| {
            let stage = workload.task(task).expect("intervals were checked").stage;
            TaskUse {
                task,
                stage,
                units,
                blocked,
            }
        };
        let tasks: Vec<TaskUse> = self.tasks.into_iter().map(use_of).collect();
        let used = by_tasks + known.values().sum::<f64>();
        let possible = (self.idle > 0.0).then(|| (used + self.idle) / span.seconds());
        Cell::new(
            host,
            resource,
            span,
            workload.capacity(host, resource).or(possible),
            tasks,
            known,
        )
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

pub(crate) fn all_windows(
    workload: &Workload,
    within: Option<Span>,
) -> BTreeMap<HostId, Vec<Span>> {
    let tables = workload.tables();
    let mut cuts: BTreeMap<HostId, Vec<i64>> = BTreeMap::new();
    for task in &tables.tasks {
        cuts.entry(task.host)
            .or_default()
            .extend([task.span.start, task.span.end]);
    }
    for row in tables.intervals.iter().filter(|row| row.kind == Kind::Slot) {
        let task = workload.task_of(row);
        if row.span.start < task.span.start {
            cuts.entry(task.host).or_default().push(row.span.start);
        }
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
    cuts.into_iter()
        .map(|(host, cuts)| (host, between(cuts, within)))
        .collect()
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
