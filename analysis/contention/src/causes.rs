//! Causes of waits that are known without sharing out by use: collections, limits, what had the CPU, who held the lock.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::users::Users;
use crate::{Cell, Holder, HostId, Kind, KnownProcess, Options, Source, TaskId, TaskUse, Workload};

/// The known part of a wait.
pub(crate) struct Known {
    pub(crate) causes: Vec<Cause>,
    /// What is left to be shared out by use, s. All add up to the wait.
    pub(crate) left: f64,
}

/// What caused a part of a wait.
pub(crate) struct Cause {
    pub(crate) source: Source,
    pub(crate) seconds: f64,
    /// Whether the kernel recorded it.
    pub(crate) is_counted: bool,
}

/// The causes of waits in one window of a host.
pub(crate) struct Causes<'a> {
    workload: &'a Workload,
    options: &'a Options,
    collects: &'a Collections,
    cells: &'a [Cell],
    /// For each holder of a lock: what is to blame while it holds that, with parts that add up to 1.
    holders: RefCell<HashMap<TaskId, Vec<(Source, f64)>>>,
}

impl<'a> Causes<'a> {
    /// In the cells of one window.
    pub(crate) fn new(
        workload: &'a Workload,
        options: &'a Options,
        collects: &'a Collections,
        cells: &'a [Cell],
    ) -> Self {
        Self {
            workload,
            options,
            collects,
            cells,
            holders: RefCell::default(),
        }
    }

    /// The known causes of a wait in a cell. Without `own_tasks` others have the part of the query's own tasks, too.
    pub(crate) fn known(
        &self,
        cell: &Cell,
        victim: &TaskUse,
        kind: Kind,
        blocked: f64,
        own_tasks: bool,
    ) -> Known {
        let cause = |(source, seconds)| Cause {
            source,
            seconds,
            is_counted: false,
        };
        match kind {
            Kind::Pause => {
                let stopped = self.collects.stopped(cell).into_iter();
                let causes =
                    stopped.map(|(process, part)| cause((Source::Known(process), blocked * part)));
                Known {
                    causes: causes.collect(),
                    left: 0.0,
                }
            }
            Kind::RunQueue => {
                let (held_back, mut left) = cell.triage(self.workload, victim.task, blocked);
                let held_back = held_back.into_iter();
                let mut causes: Vec<Cause> = held_back
                    .map(|(process, seconds)| cause((Source::Known(process), seconds)))
                    .collect();
                if own_tasks {
                    let counted;
                    (counted, left) = cell.counted(self.workload, self.options, victim.task, left);
                    let counted = Collections::for_stages(cell, counted).into_iter();
                    causes.extend(counted.map(|(source, seconds)| Cause {
                        is_counted: true,
                        ..cause((source, seconds))
                    }));
                }
                Known { causes, left }
            }
            Kind::Lock => {
                let (by_holder, left) = self.holders_of(cell, victim, blocked, own_tasks);
                Known {
                    causes: by_holder.into_iter().map(cause).collect(),
                    left,
                }
            }
            _ => Known {
                causes: Vec::new(),
                left: blocked,
            },
        }
    }

    /// Divides a wait for locks: what is to blame for the part with a known holder, s, and the rest.
    fn holders_of(
        &self,
        cell: &Cell,
        victim: &TaskUse,
        blocked: f64,
        own_tasks: bool,
    ) -> (BTreeMap<Source, f64>, f64) {
        let mut causes: BTreeMap<Source, f64> = BTreeMap::new();
        let held = cell.held.get(&victim.task);
        let sum: f64 = held.into_iter().flat_map(BTreeMap::values).sum();
        if sum <= 0.0 {
            return (causes, blocked);
        }
        // The thread counts as waiting for the lock until it has a CPU, too.
        let scale = (blocked / sum).min(1.0);
        for (holder, seconds) in held.into_iter().flatten() {
            let seconds = seconds * scale;
            match *holder {
                Holder::Known(process) => {
                    *causes.entry(Source::Known(process)).or_default() += seconds;
                }
                Holder::Task(task) => {
                    for (source, part) in self.while_holding(task) {
                        *causes.entry(source).or_default() += seconds * part;
                    }
                }
            }
        }
        causes.retain(|source, seconds| {
            let of_victim = source.stage().map(|stage| stage.query) == Some(victim.stage.query);
            *seconds > 0.0 && (own_tasks || !of_victim)
        });
        let left = blocked - causes.values().sum::<f64>();
        // The remainder of a difference of sums is rounding.
        (causes, if left > blocked * 1e-9 { left } else { 0.0 })
    }

    /// What is to blame while a task holds a lock: the task, and for the part of the time in which it waits what it waits for.
    /// It is taken to wait as much as at other times of the window. The holder is the last of a chain of locks, so it waits for no
    /// known one.
    fn while_holding(&self, holder: TaskId) -> Vec<(Source, f64)> {
        if let Some(known) = self.holders.borrow().get(&holder) {
            return known.clone();
        }
        let parts = self.parts_while_holding(holder);
        self.holders.borrow_mut().insert(holder, parts.clone());
        parts
    }

    fn parts_while_holding(&self, holder: TaskId) -> Vec<(Source, f64)> {
        let (Some(task), Some(window)) = (self.workload.task(holder), self.cells.first()) else {
            return vec![(Source::Unknown, 1.0)];
        };
        let own = Source::Stage(task.stage);
        let alive = task.span.intersection(window.span);
        let mut seconds = alive.map_or(0.0, |alive| alive.seconds());
        let mut waits: BTreeMap<Source, f64> = BTreeMap::new();
        for cell in self.cells {
            let Some(its) = cell.task(holder) else {
                continue;
            };
            for (kind, blocked) in its.blocked.iter().filter(|(_, blocked)| **blocked > 0.0) {
                match kind {
                    Kind::Lock => {
                        let of_holders = cell.held.get(&holder);
                        let of_holders = of_holders.into_iter().flat_map(BTreeMap::values);
                        seconds -= of_holders.sum::<f64>().min(*blocked);
                    }
                    _ if kind.is_for_slots() => {}
                    _ => {
                        for (source, blocked) in self.causes_of(cell, its, *kind, *blocked) {
                            *waits.entry(source).or_default() += blocked;
                        }
                    }
                }
            }
        }
        let waited: f64 = waits.values().sum();
        let whole = seconds.max(waited);
        if whole <= 0.0 {
            return vec![(own, 1.0)];
        }
        *waits.entry(own).or_default() += whole - waited;
        let parts = waits.into_iter();
        parts
            .map(|(source, seconds)| (source, seconds / whole))
            .collect()
    }

    /// What caused a wait that is not for a lock, s.
    fn causes_of(
        &self,
        cell: &Cell,
        task: &TaskUse,
        kind: Kind,
        blocked: f64,
    ) -> Vec<(Source, f64)> {
        let known = self.known(cell, task, kind, blocked, true);
        let causes = known.causes.into_iter();
        let mut causes: Vec<(Source, f64)> =
            causes.map(|cause| (cause.source, cause.seconds)).collect();
        if known.left > 0.0 {
            let mut rates = Vec::new();
            Users::new(self.workload, cell, self.options).against(task, true, &mut rates);
            let total: f64 = rates.iter().map(|(_, rate)| rate).sum();
            if total > 0.0 {
                let rates = rates.into_iter();
                causes.extend(rates.map(|(source, rate)| (source, known.left * rate / total)));
            } else {
                causes.push((Source::Unknown, known.left));
            }
        }
        causes
    }
}

/// From this part of a window's time on, collector threads did more than check for work.
const COLLECTS: f64 = 0.002;

/// Decides who caused pauses.
pub(crate) struct Collections(BTreeSet<HostId>);

impl Collections {
    /// Hosts with data on garbage collection. The serial collector has no threads of its own.
    pub(crate) fn new(workload: &Workload) -> Collections {
        let known = workload.tables().known.iter();
        let collected = known.filter(|row| collects(row.process));
        Collections(collected.map(|row| row.host).collect())
    }

    /// Garbage collection, for each stage that made it necessary, with parts that add up to 1. If there was almost none in
    /// the window, the JVM stopped for another reason.
    fn stopped(&self, cell: &Cell) -> Vec<(KnownProcess, f64)> {
        let units = Self::units(cell);
        // Without a row of the host, nothing is known about the window.
        if !cell.known.is_empty()
            && units < COLLECTS * cell.span.seconds()
            && self.0.contains(&cell.host)
        {
            return vec![(KnownProcess::Jvm, 1.0)];
        }
        Self::parts(cell, units)
    }

    /// Causes, with time behind collector threads divided among those that made the collections necessary.
    fn for_stages(cell: &Cell, causes: Vec<(Source, f64)>) -> Vec<(Source, f64)> {
        let divided = causes
            .into_iter()
            .flat_map(|(source, seconds)| match source {
                Source::Known(KnownProcess::Gc) => Self::parts(cell, Self::units(cell))
                    .into_iter()
                    .map(|(process, part)| (Source::Known(process), seconds * part))
                    .collect(),
                _ => vec![(source, seconds)],
            });
        divided.collect()
    }

    /// What garbage collection used of a cell.
    fn units(cell: &Cell) -> f64 {
        let collected = cell.known.iter().filter(|(process, _)| collects(**process));
        collected.map(|(_, units)| units).sum()
    }

    /// Garbage collection by what made it necessary, with parts that add up to 1.
    fn parts(cell: &Cell, units: f64) -> Vec<(KnownProcess, f64)> {
        if units <= 0.0 {
            return vec![(KnownProcess::Gc, 1.0)];
        }
        let collected = cell.known.iter().filter(|(process, _)| collects(**process));
        let parts = collected.map(|(process, of_process)| (*process, of_process / units));
        parts.collect()
    }
}

/// Whether a process is garbage collection.
fn collects(process: KnownProcess) -> bool {
    matches!(process, KnownProcess::Gc | KnownProcess::GcFor(_))
}
