//! The waits of victim stages on a host, each with what is to blame for it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::causes::{Causes, Collections};
use crate::lives::lives;
use crate::schedule::Reach;
use crate::users::Users;
use crate::windows::cells_on;
use crate::{
    CapacityBasis, Cell, HostId, Kind, Note, Options, Resource, Source, Span, StageId, TaskId,
    TaskUse, Workload,
};

/// A level-3 vertex: a kind of wait of a victim stage on one host.
pub(crate) type Victim = (StageId, Kind, HostId);

/// A wait of one task in one cell, and the users of the resource meanwhile.
pub(crate) struct Wait<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) task: TaskId,
    pub(crate) stage: StageId,
    pub(crate) kind: Kind,
    /// BT, s.
    pub(crate) blocked: f64,
    /// δr of eq. 7.
    pub(crate) units: f64,
    /// The culprits.
    pub(crate) by: Blamed<'a>,
    /// Whether the kernel recorded that cause.
    is_counted: bool,
}

/// Who is to blame for a wait.
#[derive(Clone, Copy)]
pub(crate) enum Blamed<'a> {
    /// A single cause, whatever others used.
    One(Source),
    /// All users, with their rates in units a second.
    Users(&'a [(Source, f64)]),
}

impl Wait<'_> {
    pub(crate) fn vertex(&self) -> Victim {
        (self.stage, self.kind, self.cell.host)
    }

    /// The cause and its seconds, if it is known which one this task waited for: of waits for CPUs the kernel recorded it, of
    /// waits for locks the JVM reported the holder.
    pub(crate) fn of_task(&self) -> Option<(Source, f64)> {
        match (self.by, self.kind) {
            (Blamed::One(source), Kind::RunQueue | Kind::Lock) => Some((source, self.blocked)),
            _ => None,
        }
    }

    /// The cause and its seconds, if the kernel recorded it.
    pub(crate) fn counted(&self) -> Option<(Source, f64)> {
        match self.by {
            Blamed::One(source) if self.is_counted => Some((source, self.blocked)),
            _ => None,
        }
    }
}

/// The victim stages, and what is the same for their waits on all hosts.
pub(crate) struct Victims<'a> {
    workload: &'a Workload,
    options: &'a Options,
    stages: HashSet<StageId, ahash::RandomState>,
    collects: Collections,
    /// Nothing if no task of them did anything.
    reach: Option<Reach>,
}

impl<'a> Victims<'a> {
    pub(crate) fn new(
        workload: &'a Workload,
        options: &'a Options,
        stages: &BTreeSet<StageId>,
    ) -> Self {
        Self {
            workload,
            options,
            stages: stages.iter().copied().collect(),
            collects: Collections::new(workload),
            reach: reach(workload, stages),
        }
    }

    /// Calls `also` for each of their waits on a host. Returns notes on its capacities.
    ///
    /// In each window, culprits are summed by stage before they are combined with victims, so the time is victims × stages
    /// of the window, not tasks squared.
    pub(crate) fn waits_on(&self, host: HostId, mut also: impl FnMut(&Wait<'_>)) -> Vec<Note> {
        let Some(reach) = &self.reach else {
            return Vec::new();
        };
        let within = self.options.within;
        let mut usual = UsualRates::default();
        let mut notes = BTreeMap::new();
        for cells in cells_on(self.workload, host, |cuts| {
            reach.windows(host, cuts, within)
        }) {
            let causes = Causes::new(self.workload, self.options, &self.collects, &cells);
            let covered = cells.iter();
            let covered = covered.filter(|cell| self.options.covers(cell.resource, cell.host));
            for cell in covered {
                if self.of_cell(cell, &causes, &mut usual, &mut also) {
                    note(&mut notes, cell);
                }
            }
        }
        notes.into_values().collect()
    }

    /// Calls `also` for the waits in a cell. Returns whether there are victims in it.
    fn of_cell(
        &self,
        cell: &Cell,
        causes: &Causes<'_>,
        usual: &mut UsualRates,
        mut also: impl FnMut(&Wait<'_>),
    ) -> bool {
        let own_tasks = self.options.own_tasks;
        let victims = cell.tasks.iter();
        let mut victims = victims
            .filter(|task| self.stages.contains(&task.stage))
            .peekable();
        if victims.peek().is_none() {
            return false;
        }
        let users = Users::new(self.workload, cell, self.options);
        let mut rates = Vec::new();
        for victim in victims {
            for (kind, blocked) in victim.blocked.iter().filter(|(_, blocked)| **blocked > 0.0) {
                let units = usual.units(self.workload, victim, cell);
                let wait = |blocked: f64, by| Wait {
                    cell,
                    task: victim.task,
                    stage: victim.stage,
                    kind: *kind,
                    blocked,
                    units,
                    by,
                    is_counted: false,
                };
                let known = causes.known(cell, victim, *kind, *blocked, own_tasks);
                for cause in known.causes {
                    also(&Wait {
                        is_counted: cause.is_counted,
                        ..wait(cause.seconds, Blamed::One(cause.source))
                    });
                }
                if known.left > 0.0 {
                    // Waiting for slots is measured by the slots that others hold.
                    users.against(victim, own_tasks && !kind.is_for_slots(), &mut rates);
                    also(&wait(known.left, Blamed::Users(&rates)));
                }
            }
        }
        true
    }
}

/// The time in which tasks of the victim stages did anything, from when one of them first ran or waited until one last did.
fn reach(workload: &Workload, victims: &BTreeSet<StageId>) -> Option<Reach> {
    let life = lives(workload, victims).into_values().reduce(Span::hull)?;
    let rows = workload.tasks_of(victims).flat_map(|task| {
        let rows = workload.intervals_of(task.id).iter();
        rows.map(|row| (task.host, row.span))
    });
    Some(Reach::new(life, rows))
}

/// What tasks of a host get of a resource a second, when they get something; nothing for those that never get any.
#[derive(Default)]
struct UsualRates(HashMap<(TaskId, Resource), Option<f64>, ahash::RandomState>);

impl UsualRates {
    /// δr of eq. 7. A task that was blocked all the time got nothing, and eq. 7 divides by δr: the task's usual rate
    /// replaces it, and for a task that never got anything the host's capacity (RATP*).
    fn units(&mut self, workload: &Workload, victim: &TaskUse, cell: &Cell) -> f64 {
        if victim.units > 0.0 {
            return victim.units;
        }
        let resource = cell.resource;
        let rate = self.0.entry((victim.task, resource));
        let rate = rate.or_insert_with(|| usual_rate(workload, victim.task, resource));
        rate.unwrap_or(cell.capacity) * cell.span.seconds()
    }
}

fn usual_rate(workload: &Workload, task: TaskId, resource: Resource) -> Option<f64> {
    let rows = workload.intervals_of(task).iter();
    let rows = rows.filter(|row| row.units > 0.0 && row.kind.resource() == resource);
    let (units, seconds) = rows.fold((0.0, 0.0), |(units, seconds), row| {
        (units + row.units, seconds + row.span.seconds())
    });
    (units > 0.0).then(|| units / seconds)
}

fn note(notes: &mut BTreeMap<(HostId, Resource, CapacityBasis), Note>, cell: &Cell) {
    if cell.basis == CapacityBasis::Nominal {
        return;
    }
    let note = notes
        .entry((cell.host, cell.resource, cell.basis))
        .or_insert(Note {
            host: cell.host,
            resource: cell.resource,
            basis: cell.basis,
            windows: 0,
            highest: 0.0,
            executor: cell.executor,
        });
    note.windows += 1;
    if cell.capacity > note.highest {
        note.highest = cell.capacity;
        note.executor = cell.executor;
    }
}
