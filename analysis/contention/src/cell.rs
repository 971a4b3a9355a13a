//! One resource of one host in one window: its users, the waiting tasks and their culprits (section 3).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    Executor, Holder, HostId, Kind, KnownProcess, Options, Ratp, Resource, Source, Span, StageId,
    TaskId, Workload, pool,
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
    /// Units of free memory that are kept for it; 0 for other resources.
    pub kept: f64,
    /// BT in seconds, by kind of wait.
    pub blocked: BTreeMap<Kind, f64>,
}

/// Where the capacity of a window comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum CapacityBasis {
    /// The host's nominal capacity.
    Nominal,
    /// More was used than the nominal capacity, so the use is the capacity.
    Exceeded,
    /// No nominal capacity is known; the use is the capacity.
    Unknown,
}

/// A user of the resource that a victim waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CellCulprit {
    /// A task that ran at the same time.
    Task(TaskId),
    /// A known process.
    Known(KnownProcess),
    /// Unknown: capacity that nobody is known to have used, or that was idle.
    Unknown,
}

/// One resource of one host in one window; of memory that of one executor, of slots those of one application.
///
/// Its capacity obeys eq. 12: it is the sum of the use by tasks, known processes and unknown users, and of free memory
/// that is kept for tasks. Measurements can violate this (the page cache is faster than the disk, clocks boost, counters are late). Then the capacity is the
/// use, `basis` is [`CapacityBasis::Exceeded`], and nothing remains for unknown users.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The host.
    pub host: HostId,
    /// The tasks that contend for it, see [`Executor::contending`].
    pub executor: Executor,
    /// The resource.
    pub resource: Resource,
    /// The window, δt.
    pub span: Span,
    /// C of eq. 12, units a second.
    pub capacity: f64,
    /// Where `capacity` comes from.
    pub basis: CapacityBasis,
    /// Tasks that used the resource or waited for it, in order of id.
    pub tasks: Vec<TaskUse>,
    /// Units that known processes used.
    pub known: BTreeMap<KnownProcess, f64>,
    /// Units of the capacity without a known user, other than what is kept for tasks.
    pub unknown: f64,
    /// For the CPU: what held tasks back.
    pub withheld: Vec<WithheldPart>,
    /// For the CPU: what ran while a task waited, s, where that was counted.
    pub queued: BTreeMap<TaskId, BTreeMap<Source, f64>>,
    /// For the CPU, as locks count as it: what held the locks that a task waited for, s, where that is known.
    pub held: BTreeMap<TaskId, BTreeMap<Holder, f64>>,
}

/// The part of run-queue waits that no neighbour caused, see [`Withheld`](crate::Withheld).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WithheldPart {
    /// The cause.
    pub process: KnownProcess,
    /// Whose tasks; all of the host without an executor.
    pub executor: Option<Executor>,
    /// Of what the causes before it left, 0 to 1.
    pub part: f64,
}

impl Cell {
    /// A cell with its use; `nominal` is the capacity in units a second, if known.
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
            // Sums of prorated rows have rounding errors, which are no excess.
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
            withheld: Vec::new(),
            queued: BTreeMap::new(),
            held: BTreeMap::new(),
        }
    }

    /// Divides a task's run-queue wait in seconds: the causes that are no neighbours with their parts, and what is left
    /// for neighbours. All add up to the wait.
    pub fn triage(
        &self,
        workload: &Workload,
        task: TaskId,
        blocked: f64,
    ) -> (Vec<(KnownProcess, f64)>, f64) {
        let executor = workload.task(task).map(|task| task.executor);
        let mut left = blocked;
        let own =
            |withheld: &&WithheldPart| withheld.executor.is_none_or(|of| executor == Some(of));
        let causes = self.withheld.iter().filter(own).map(|withheld| {
            let seconds = left * withheld.part.clamp(0.0, 1.0);
            left -= seconds;
            (withheld.process, seconds)
        });
        let causes = causes.filter(|(_, seconds)| *seconds > 0.0).collect();
        (causes, left)
    }

    /// Divides the part of a task's run-queue wait whose causes were counted, in seconds: the causes, and what is left to be
    /// shared out by use. All add up to the wait. Time behind a query counts less the higher its weight is, if weights
    /// [count](Options::weighted).
    pub fn counted(
        &self,
        workload: &Workload,
        options: &Options,
        task: TaskId,
        blocked: f64,
    ) -> (Vec<(Source, f64)>, f64) {
        let Some(queued) = self.queued.get(&task) else {
            return (Vec::new(), blocked);
        };
        let weight = |source: &Source| {
            let stage = source.stage();
            stage.map_or(1.0, |stage| options.weight(workload, stage.query))
        };
        let weighed = queued
            .iter()
            .map(|(source, s)| (*source, s / weight(source)));
        let sum: f64 = weighed.clone().map(|(_, seconds)| seconds).sum();
        if sum <= 0.0 {
            return (Vec::new(), blocked);
        }
        let counted = queued.values().sum::<f64>().min(blocked);
        let causes = weighed.map(|(source, seconds)| (source, counted * seconds / sum));
        (causes.collect(), blocked - counted)
    }

    /// What a task used of the resource and waited for it, if it did.
    pub(crate) fn task(&self, id: TaskId) -> Option<&TaskUse> {
        let at = self
            .tasks
            .binary_search_by_key(&id, |task| task.task)
            .ok()?;
        Some(&self.tasks[at])
    }

    /// Keeps the free part of a pool for the tasks that use execution memory, by position.
    pub(crate) fn keep_free(&mut self, of_tasks: &[usize]) {
        if of_tasks.is_empty() {
            return;
        }
        let held: Vec<f64> = of_tasks.iter().map(|at| self.tasks[*at].units).collect();
        for (at, kept) in of_tasks.iter().zip(pool::kept(&held, self.unknown)) {
            self.tasks[*at].kept = kept;
        }
        self.unknown = 0.0;
    }

    /// S of eq. 4 for a task: by which factor it got the resource more slowly than alone. Infinite if it got nothing.
    pub fn slowdown(&self, victim: &TaskUse) -> f64 {
        self.ratp(victim.units).slowdown(Ratp::ideal(self.capacity))
    }

    /// The terms of eq. 5 in interval form (eqs. 6, 17 to 20): they sum to [`Cell::slowdown`].
    ///
    /// Weights (footnote 4) divide the same sum by use ÷ weight instead of by use: the slowdown is measured, so no
    /// weight changes it. Known processes and unknown users have weight 1.
    pub fn blame(&self, workload: &Workload, victim: &TaskUse) -> Vec<(CellCulprit, f64)> {
        self.terms(workload, victim, self.ratp(victim.units))
    }

    /// The terms in blocked-time form (eqs. 7 and 8): the same culprits, for the time in which the victim was blocked.
    ///
    /// They sum to [`Cell::slowdown`] × blocked ÷ window, so at most to the slowdown.
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
                    task.units + task.kept,
                    workload.weight(task.stage.query),
                )
            })
            .collect();
        used.extend(
            self.known
                .iter()
                .map(|(process, units)| (CellCulprit::Known(*process), *units, 1.0)),
        );
        // Nobody has what was free for the victim itself.
        used.push((CellCulprit::Unknown, self.unknown + victim.kept, 1.0));
        let total: f64 = used.iter().map(|(_, units, _)| units).sum();
        let weighed: f64 = used.iter().map(|(_, units, weight)| units / weight).sum();
        let scale = if weighed > 0.0 { total / weighed } else { 0.0 };
        used.into_iter()
            .filter(|(_, units, _)| *units > 0.0)
            .map(|(who, units, weight)| (who, self.ratp(units / weight * scale).blame_toward(ratp)))
            .collect()
    }
}
