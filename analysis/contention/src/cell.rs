//! One resource of one host in one window: who used it, who waited, and who is to blame (section 3).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    Executor, HostId, Kind, KnownProcess, Ratp, Resource, Span, StageId, TaskId, Workload,
};

/// What a task used of a resource in a window, and how long it waited.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskUse {
    /// The task.
    pub task: TaskId,
    /// Its stage.
    pub stage: StageId,
    /// δr, in the resource's units.
    pub units: f64,
    /// BT in seconds, by kind of waiting.
    pub blocked: BTreeMap<Kind, f64>,
}

/// Where a window's capacity comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum CapacityBasis {
    /// The host's nominal capacity.
    Nominal,
    /// More was used than is nominally there, so what was used is the capacity.
    Exceeded,
    /// No nominal capacity is known; what was used is the capacity.
    Unknown,
}

/// Who used what a cell's victim waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CellCulprit {
    /// A task that ran at the same time.
    Task(TaskId),
    /// A known process.
    Known(KnownProcess),
    /// Nobody known: capacity that no one is known to have used, or that lay idle.
    Unknown,
}

/// One resource of one host in one window; of memory that of one executor, of slots those of one application.
///
/// Its capacity obeys eq. 12: what tasks, known processes and the unknown used sums to it. Measurements can
/// break that (page cache hits are read faster than the disk, turbo clocks, late counters); the capacity is then
/// what was used, [`CapacityBasis::Exceeded`] says so, and nothing is left for the unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The host.
    pub host: HostId,
    /// Whose tasks contend for it, see [`Executor::contending`].
    pub executor: Executor,
    /// The resource.
    pub resource: Resource,
    /// The window, δt.
    pub span: Span,
    /// C of eq. 12, units a second.
    pub capacity: f64,
    /// Where `capacity` comes from.
    pub basis: CapacityBasis,
    /// Tasks that used the resource or waited for it, by id.
    pub tasks: Vec<TaskUse>,
    /// Units that known processes used.
    pub known: BTreeMap<KnownProcess, f64>,
    /// Units of the capacity that nobody is known to have used.
    pub unknown: f64,
}

impl Cell {
    /// A window with what was used in it; `nominal` is the capacity in units a second, if known.
    pub fn new(
        host: HostId,
        executor: Executor,
        resource: Resource,
        span: Span,
        nominal: Option<f64>,
        tasks: Vec<TaskUse>,
        known: BTreeMap<KnownProcess, f64>,
    ) -> Cell {
        let used = tasks.iter().map(|task| task.units).sum::<f64>() + known.values().sum::<f64>();
        let possible = nominal.unwrap_or(0.0) * span.seconds();
        let basis = match nominal {
            None => CapacityBasis::Unknown,
            // Sums of prorated rows are off by roundings; those are no news.
            Some(_) if used > possible * (1.0 + 1e-9) => CapacityBasis::Exceeded,
            Some(_) => CapacityBasis::Nominal,
        };
        let capacity = possible.max(used) / span.seconds();
        Cell {
            host,
            executor,
            resource,
            span,
            capacity,
            basis,
            tasks,
            known,
            unknown: (possible - used).max(0.0),
        }
    }

    /// S of eq. 4 for a task: how many times slower than alone it got the resource. Infinite if it got nothing.
    pub fn slowdown(&self, victim: &TaskUse) -> f64 {
        self.ratp(victim.units).slowdown(Ratp::ideal(self.capacity))
    }

    /// The terms of eq. 5 in interval form (eqs. 6, 17 to 20): they sum to [`Cell::slowdown`].
    ///
    /// Weights (footnote 4) share the same sum out by use ÷ weight, instead of by use: the slowdown is a
    /// measured fact that no weight changes. Known processes and the unknown have weight 1.
    pub fn blame(&self, workload: &Workload, victim: &TaskUse) -> Vec<(CellCulprit, f64)> {
        self.terms(workload, victim, self.ratp(victim.units))
    }

    /// The terms in blocked-time form (eqs. 7 and 8): the same culprits, to the extent that the victim could not go on.
    ///
    /// They sum to [`Cell::slowdown`] × blocked ÷ window, so never to more than the slowdown.
    pub fn blocked_blame(
        &self,
        workload: &Workload,
        victim: &TaskUse,
        kind: Kind,
    ) -> Vec<(CellCulprit, f64)> {
        let blocked = victim.blocked.get(&kind).copied().unwrap_or(0.0);
        self.terms(workload, victim, Ratp::new(blocked, victim.units))
    }

    fn ratp(&self, units: f64) -> Ratp {
        Ratp::new(self.span.seconds(), units)
    }

    fn terms(&self, workload: &Workload, victim: &TaskUse, ratp: Ratp) -> Vec<(CellCulprit, f64)> {
        let others = self.tasks.iter().filter(|task| task.task != victim.task);
        let mut used: Vec<(CellCulprit, f64, f64)> = others
            .map(|task| {
                (
                    CellCulprit::Task(task.task),
                    task.units,
                    workload.weight(task.stage.query),
                )
            })
            .collect();
        used.extend(
            self.known
                .iter()
                .map(|(process, units)| (CellCulprit::Known(*process), *units, 1.0)),
        );
        used.push((CellCulprit::Unknown, self.unknown, 1.0));
        let total: f64 = used.iter().map(|(_, units, _)| units).sum();
        let weighed: f64 = used.iter().map(|(_, units, weight)| units / weight).sum();
        let scale = if weighed > 0.0 { total / weighed } else { 0.0 };
        used.into_iter()
            .filter(|(_, units, _)| *units > 0.0)
            .map(|(who, units, weight)| (who, self.ratp(units / weight * scale).blame_toward(ratp)))
            .collect()
    }
}
