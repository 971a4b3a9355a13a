//! Time cut into windows in which the set of running tasks does not change (section 5.3, figure 5).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::schedule::{HostRows, Timed, between};
use crate::{
    Cell, Executor, Held, Holder, HostId, Idle, Interval, Kind, KnownProcess, KnownUse, Queued,
    Resource, Source, Span, StageId, Task, TaskId, TaskUse, Withheld, WithheldPart, Workload,
};

/// The windows of a host, one after the other, cut where any of its tasks starts or ends and at heartbeats.
///
/// A wait for a slot precedes its task's life; its ends are also cuts.
pub fn windows(workload: &Workload, host: HostId) -> Vec<Span> {
    let rows = workload.schedule().hosts.get(&host);
    rows.map_or_else(Vec::new, |rows| between(&rows.cuts, None))
}

/// Every (window, resource) of every host in which a task used or waited for something, by host, time and resource;
/// memory by executor, slots by application.
///
/// Amounts are prorated: a row counts in each window by the part of its span inside it. `within` cuts off all else. The
/// time is linear in rows × the windows that they span; memory holds the cells of one window.
pub fn cells(workload: &Workload, within: Option<Span>) -> impl Iterator<Item = Cell> {
    let hosts = workload.schedule().hosts.keys();
    let cells =
        hosts.flat_map(move |host| cells_on(workload, *host, move |cuts| between(cuts, within)));
    cells.flatten()
}

/// Those of one host in some of the windows between its cuts; the cells of a window together.
pub(crate) fn cells_on(
    workload: &Workload,
    host: HostId,
    windows: impl Fn(&[i64]) -> Vec<Span>,
) -> impl Iterator<Item = Vec<Cell>> {
    let rows = workload.schedule().hosts.get(&host).into_iter();
    rows.flat_map(move |rows| {
        let mut here = HostSweep::new(workload, host, rows);
        let windows = windows(&rows.cuts).into_iter();
        windows.map(move |window| here.cells(window))
    })
}

/// Number of comparisons of a row with a stage that uses something in the same window; the time of an answer is
/// proportional to it.
pub(crate) fn comparisons(workload: &Workload, within: Option<Span>) -> u64 {
    let mut count = 0u64;
    for rows in workload.schedule().hosts.values() {
        let mut end = rows.intervals.clone();
        end.sort_unstable_by_key(|(span, _)| Reverse(span.end));
        let mut begin = rows.intervals.iter().peekable();
        let intervals = &workload.tables().intervals;
        let stage_of = |at: usize| workload.task_of(&intervals[at]).stage;
        let (mut here, mut stages) = (0u64, BTreeMap::<StageId, u64>::new());
        for window in between(&rows.cuts, within) {
            while let Some((_, at)) = begin.next_if(|(span, _)| span.start < window.end) {
                here += 1;
                *stages.entry(stage_of(*at)).or_default() += 1;
            }
            while let Some((_, at)) = end.pop_if(|(span, _)| span.end <= window.start) {
                let stage = stage_of(at);
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

/// The rows of a host, window by window.
struct HostSweep<'a> {
    workload: &'a Workload,
    host: HostId,
    rows: Sweep<'a, (&'a Interval, &'a Task)>,
    known: Sweep<'a, &'a KnownUse>,
    idle: Sweep<'a, &'a Idle>,
    withheld: Sweep<'a, &'a Withheld>,
    queued: Sweep<'a, &'a Queued>,
    held: Sweep<'a, &'a Held>,
}

impl<'a> HostSweep<'a> {
    fn new(workload: &'a Workload, host: HostId, rows: &'a HostRows) -> HostSweep<'a> {
        HostSweep {
            workload,
            host,
            rows: Sweep::new(&rows.intervals),
            known: Sweep::new(&rows.known),
            idle: Sweep::new(&rows.idle),
            withheld: Sweep::new(&rows.withheld),
            queued: Sweep::new(&rows.queued),
            held: Sweep::new(&rows.held),
        }
    }

    fn cells(&mut self, window: Span) -> Vec<Cell> {
        let mut cells: BTreeMap<(Resource, Executor), CellMeasurement> = BTreeMap::new();
        let tables = self.workload.tables();
        let interval = |at: usize| {
            let row = &tables.intervals[at];
            (row, self.workload.task_of(row))
        };
        for ((row, task), part) in self.rows.during(window, interval) {
            let resource = row.kind.resource();
            let contending = (resource, task.executor.contending(resource));
            cells
                .entry(contending)
                .or_default()
                .add(row, task.stage, part);
        }
        // External processes share no memory and no slots with tasks.
        let all = |resource: Resource| (resource, Executor::default());
        for (row, part) in self.known.during(window, |at| &tables.known[at]) {
            if let Some(cell) = cells.get_mut(&all(row.resource)) {
                *cell.known.entry(row.process).or_default() += row.units * part;
            }
        }
        for (row, part) in self.idle.during(window, |at| &tables.idle[at]) {
            if let Some(cell) = cells.get_mut(&all(row.resource)) {
                cell.idle += row.units * part;
            }
        }
        for (row, part) in self.withheld.during(window, |at| &tables.withheld[at]) {
            if let Some(cell) = cells.get_mut(&all(Resource::Cpu)) {
                cell.withhold(row, part, window);
            }
        }
        for (row, part) in self.queued.during(window, |at| &tables.queued[at]) {
            if let Some(cell) = cells.get_mut(&all(Resource::Cpu)) {
                let of_task = cell.queued.entry(row.task).or_default();
                *of_task.entry(row.source).or_default() += row.seconds * part;
            }
        }
        for (row, part) in self.held.during(window, |at| &tables.held[at]) {
            if let Some(cell) = cells.get_mut(&all(Resource::Cpu)) {
                let of_task = cell.held.entry(row.task).or_default();
                *of_task.entry(row.holder).or_default() += row.seconds * part;
            }
        }
        let close = |((resource, executor), measured): ((Resource, Executor), CellMeasurement)| {
            let used = measured.used();
            let possible = (measured.idle > 0.0).then(|| (used + measured.idle) / window.seconds());
            let nominal = self.workload.capacity(self.host, executor, resource);
            let lost = measured.lost / window.seconds();
            let nominal = nominal.map(|per_second| (per_second - lost).max(0.0));
            let withheld = measured.withheld.into_iter();
            let withheld = withheld.map(|((process, executor), part)| WithheldPart {
                process,
                executor,
                part,
            });
            let mut cell = Cell::new(
                self.host,
                executor,
                resource,
                window,
                nominal.or(possible),
                measured.tasks,
                measured.known,
            );
            cell.withheld = withheld.collect();
            cell.queued = measured.queued;
            cell.held = measured.held;
            cell.keep_free(&measured.of_pool);
            cell
        };
        cells.into_iter().map(close).collect()
    }
}

/// The rows that reach into one window after the other.
pub(crate) struct Sweep<'a, Row> {
    /// Those that are still to come, by when they begin.
    ahead: &'a [Timed],
    /// Those that reach into the window, by their position in the table: sums do not depend on when rows begin.
    here: BTreeMap<usize, (Span, Row)>,
}

impl<'a, Row: Copy> Sweep<'a, Row> {
    /// Of rows by when they begin.
    pub(crate) fn new(rows: &'a [Timed]) -> Self {
        Self {
            ahead: rows,
            here: BTreeMap::new(),
        }
    }

    /// Those of a window, each with the part of it that lies there; `row` is the row at a position. Windows are asked for in time.
    pub(crate) fn during(
        &mut self,
        window: Span,
        row: impl Fn(usize) -> Row,
    ) -> impl Iterator<Item = (Row, f64)> {
        self.here.retain(|_, (span, _)| window.start < span.end);
        while let Some(((span, at), rest)) = self.ahead.split_first()
            && span.start < window.end
        {
            if window.start < span.end {
                self.here.insert(*at, (*span, row(*at)));
            }
            self.ahead = rest;
        }
        let here = self.here.values();
        here.map(move |(span, row)| (*row, span.covered_by(window)))
    }
}

/// What was measured in a cell, before it is known who used the rest.
#[derive(Default)]
struct CellMeasurement {
    tasks: Vec<TaskUse>,
    /// Those that use execution memory, by position.
    of_pool: Vec<usize>,
    known: BTreeMap<KnownProcess, f64>,
    /// Units that could have been used in addition.
    idle: f64,
    /// Parts of waits, by cause and executor.
    withheld: BTreeMap<(KnownProcess, Option<Executor>), f64>,
    /// Units by which the capacity was smaller.
    lost: f64,
    /// What ran while a task waited, s.
    queued: BTreeMap<TaskId, BTreeMap<Source, f64>>,
    /// What held the locks that a task waited for, s.
    held: BTreeMap<TaskId, BTreeMap<Holder, f64>>,
}

impl CellMeasurement {
    /// Rows come in order of tasks.
    fn add(&mut self, row: &Interval, stage: StageId, part: f64) {
        if self.tasks.last().is_none_or(|last| last.task != row.task) {
            self.tasks.push(TaskUse {
                task: row.task,
                stage,
                units: 0.0,
                kept: 0.0,
                blocked: BTreeMap::new(),
            });
        }
        let last = self.tasks.len() - 1;
        if row.kind == Kind::ExecutionMemory && self.of_pool.last() != Some(&last) {
            self.of_pool.push(last);
        }
        let task = &mut self.tasks[last];
        task.units += row.units * part;
        if row.blocked_ns > 0 {
            *task.blocked.entry(row.kind).or_default() += row.blocked_ns as f64 / 1e9 * part;
        }
    }

    /// Adds the part (0 to 1) of a row that lies in the window.
    fn withhold(&mut self, row: &Withheld, part: f64, window: Span) {
        self.lost += row.units * part;
        let of_window = part * row.span.seconds() / window.seconds();
        let sum = self
            .withheld
            .entry((row.process, row.executor))
            .or_default();
        *sum += row.part * of_window;
    }

    /// Units used by tasks and known processes.
    fn used(&self) -> f64 {
        let by_tasks: f64 = self.tasks.iter().map(|task| task.units).sum();
        by_tasks + self.known.values().sum::<f64>()
    }
}

/// The windows (one after the other) that a span overlaps, by index, with the part of the span in each.
pub(crate) fn spread(windows: &[Span], span: Span) -> impl Iterator<Item = (usize, f64)> {
    let first = windows.partition_point(|window| window.end <= span.start);
    let reached = move |window: &&Span| window.start < span.end;
    let part = move |(index, window): (usize, &Span)| (first + index, span.covered_by(*window));
    windows[first..]
        .iter()
        .take_while(reached)
        .enumerate()
        .map(part)
}
