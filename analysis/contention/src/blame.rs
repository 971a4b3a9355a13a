//! Blame of stages for the waits of victim stages, over all windows (eqs. 9 and 10).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::causes::{Causes, Collections};
use crate::lives::lives;
use crate::schedule::Reach;
use crate::windows::cells_during;
use crate::{
    CapacityBasis, Cell, HostId, Kind, Note, Options, Resource, Source, Span, Split, StageId,
    TaskId, TaskUse, Workload,
};

/// A level-3 vertex: a kind of wait of a victim stage on one host.
pub(crate) type Victim = (StageId, Kind, HostId);

/// Blocked seconds of each victim, and the culprits to which they are attributed (levels 3 and 4), in order.
#[derive(Default)]
pub(crate) struct Seconds {
    pub(crate) by_victim: Vec<(Victim, Vec<(Source, f64)>)>,
    pub(crate) notes: Vec<Note>,
}

/// Distributes the blocked time of the victim stages; calls `also` for each wait.
pub(crate) fn distribute(
    workload: &Workload,
    victims: &BTreeSet<StageId>,
    options: &Options,
    mut also: impl FnMut(&Wait<'_>),
) -> Seconds {
    let mut shares: BTreeMap<Victim, Shares> = BTreeMap::new();
    let notes = each_wait(workload, victims, options, |wait| {
        also(wait);
        shares
            .entry(wait.vertex())
            .or_default()
            .add(wait, 1.0, options.split);
    });
    let by_victim = shares
        .into_iter()
        .map(|(victim, shares)| (victim, shares.seconds()))
        .collect();
    Seconds { by_victim, notes }
}

/// A wait of one task in one cell, and the users of the resource meanwhile.
pub(crate) struct Wait<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) stage: StageId,
    pub(crate) kind: Kind,
    /// BT, s.
    blocked: f64,
    /// δr of eq. 7.
    units: f64,
    /// The culprits.
    by: Blamed<'a>,
    /// Whether the kernel recorded that cause.
    is_counted: bool,
}

/// Who is to blame for a wait.
#[derive(Clone, Copy)]
enum Blamed<'a> {
    /// A single cause, whatever others used.
    One(Source),
    /// All users, with their rates in units a second.
    Users(&'a [(Source, f64)]),
}

impl Wait<'_> {
    pub(crate) fn vertex(&self) -> Victim {
        (self.stage, self.kind, self.cell.host)
    }

    /// The cause and its seconds, if the kernel recorded it.
    pub(crate) fn counted(&self) -> Option<(Source, f64)> {
        match self.by {
            Blamed::One(source) if self.is_counted => Some((source, self.blocked)),
            _ => None,
        }
    }
}

/// Calls `tell` for each wait of the victim stages. Returns notes on the capacities of their hosts.
///
/// In each window, culprits are summed by stage before they are combined with victims, so the time is victims × stages
/// of the window, not tasks squared.
pub(crate) fn each_wait(
    workload: &Workload,
    victims: &BTreeSet<StageId>,
    options: &Options,
    mut tell: impl FnMut(&Wait<'_>),
) -> Vec<Note> {
    let usual = UsualRates::new(workload, victims);
    let collects = Collections::new(workload);
    let mut notes = BTreeMap::new();
    let mut rates = Vec::new();
    let Some(reach) = reach(workload, victims) else {
        return Vec::new();
    };
    for cells in cells_during(workload, options.within, &reach) {
        let causes = Causes::new(workload, &collects, &cells);
        for cell in &cells {
            if !options.covers(cell.resource, cell.host) {
                continue;
            }
            let of_victims = |task: &&TaskUse| victims.contains(&task.stage);
            if !cell.tasks.iter().any(|task| of_victims(&task)) {
                continue;
            }
            note(&mut notes, cell);
            let users = Users::new(workload, cell);
            for victim in cell.tasks.iter().filter(of_victims) {
                for (kind, blocked) in victim.blocked.iter().filter(|(_, blocked)| **blocked > 0.0)
                {
                    let wait = |blocked: f64, by| Wait {
                        cell,
                        stage: victim.stage,
                        kind: *kind,
                        blocked,
                        units: usual.units(victim, cell),
                        by,
                        is_counted: false,
                    };
                    let known = causes.known(cell, victim, *kind, *blocked, options.own_tasks);
                    for cause in known.causes {
                        tell(&Wait {
                            is_counted: cause.is_counted,
                            ..wait(cause.seconds, Blamed::One(cause.source))
                        });
                    }
                    if known.left > 0.0 {
                        // Waiting for slots is measured by the slots that others hold.
                        let own_tasks = options.own_tasks && !kind.is_for_slots();
                        users.against(victim, own_tasks, &mut rates);
                        tell(&wait(known.left, Blamed::Users(&rates)));
                    }
                }
            }
        }
    }
    notes.into_values().collect()
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

/// Blame toward one victim vertex as it adds up.
#[derive(Default)]
pub(crate) struct Shares {
    /// Blocked seconds by a single cause.
    by_one: BTreeMap<Source, f64>,
    /// Blocked seconds that users share.
    blocked: f64,
    /// β of eq. 9 by source, or seconds with [`Split::ByWindow`].
    blame: HashMap<Source, f64, ahash::RandomState>,
    /// Blocked seconds in windows in which nobody else used anything.
    unaccounted: f64,
}

impl Shares {
    /// Adds a part (0 to 1) of a wait, as if its window ended there.
    pub(crate) fn add(&mut self, wait: &Wait<'_>, part: f64, split: Split) {
        let blocked = wait.blocked * part;
        let rates = match wait.by {
            Blamed::One(source) => {
                *self.by_one.entry(source).or_default() += blocked;
                return;
            }
            Blamed::Users(rates) => rates,
        };
        let total: f64 = rates.iter().map(|(_, rate)| rate).sum();
        if total <= 0.0 || wait.units <= 0.0 {
            self.unaccounted += blocked;
            return;
        }
        self.blocked += blocked;
        let factor = match split {
            // A ratio: cutting a window shortens both.
            Split::Pooled => wait.blocked / wait.units,
            Split::ByWindow => blocked / total,
        };
        for (source, rate) in rates {
            *self.blame.entry(*source).or_default() += factor * rate;
        }
    }

    /// Eq. 10 in seconds, by source, in order.
    pub(crate) fn seconds(self) -> Vec<(Source, f64)> {
        let mut seconds: Vec<(Source, f64)> = self.blame.into_iter().collect();
        // Sorted before the addition, so that the same rows give the same last digit.
        seconds.sort_by_key(|(source, _)| *source);
        let total: f64 = seconds.iter().map(|(_, blame)| blame).sum();
        for (_, blame) in &mut seconds {
            *blame = *blame / total * self.blocked;
        }
        let unaccounted = (self.unaccounted > 0.0).then_some((Source::Unknown, self.unaccounted));
        for (source, more) in self.by_one.into_iter().chain(unaccounted) {
            match seconds.binary_search_by_key(&source, |(source, _)| *source) {
                Ok(at) => seconds[at].1 += more,
                Err(at) => seconds.insert(at, (source, more)),
            }
        }
        seconds
    }
}

/// Use of a cell by source.
pub(crate) struct Users {
    sources: Vec<User>,
    seconds: f64,
}

/// Known processes and unknown users have weight 1.
struct User {
    source: Source,
    units: f64,
    weight: f64,
}

impl Users {
    pub(crate) fn new(workload: &Workload, cell: &Cell) -> Users {
        let mut stages: BTreeMap<StageId, f64> = BTreeMap::new();
        for task in &cell.tasks {
            *stages.entry(task.stage).or_default() += task.units + task.kept;
        }
        let mut sources: Vec<User> = stages
            .into_iter()
            .map(|(stage, units)| User {
                source: Source::Stage(stage),
                units,
                weight: workload.weight(stage.query),
            })
            .collect();
        let known = cell.known.iter();
        let others = known.map(|(process, units)| (Source::Known(*process), *units));
        sources.extend(
            others
                .chain([(Source::Unknown, cell.unknown)])
                .map(|(source, units)| User {
                    source,
                    units,
                    weight: 1.0,
                }),
        );
        Users {
            sources,
            seconds: cell.span.seconds(),
        }
    }

    /// Rates (units a second) at which others used the resource, weighted as in [`Cell::blame`].
    pub(crate) fn against(
        &self,
        victim: &TaskUse,
        own_tasks: bool,
        rates: &mut Vec<(Source, f64)>,
    ) {
        rates.clear();
        let (mut total, mut weighed) = (0.0, 0.0);
        for user in &self.sources {
            let mut units = user.units;
            if user.source == Source::Stage(victim.stage) {
                units -= victim.units + victim.kept;
                // The remainder of a difference of sums is rounding, not a tiny culprit.
                if units <= user.units * 1e-12 {
                    units = 0.0;
                }
            }
            if user.source == Source::Unknown {
                // Nobody has what was free for the victim itself.
                units += victim.kept;
            }
            let share = units / user.weight;
            total += units;
            weighed += share;
            let own_query =
                matches!(user.source.stage(), Some(stage) if stage.query == victim.stage.query);
            if share > 0.0 && (own_tasks || !own_query) {
                rates.push((user.source, share));
            }
        }
        let scale = total / weighed / self.seconds;
        rates.iter_mut().for_each(|(_, rate)| *rate *= scale);
    }
}

/// What a victim's task gets of a resource a second, when it gets something.
struct UsualRates(BTreeMap<(TaskId, Resource), (f64, f64)>);

impl UsualRates {
    fn new(workload: &Workload, victims: &BTreeSet<StageId>) -> UsualRates {
        let mut rates: BTreeMap<(TaskId, Resource), (f64, f64)> = BTreeMap::new();
        let tasks = workload.tasks_of(victims);
        let rows = tasks.flat_map(|task| workload.intervals_of(task.id));
        for row in rows.filter(|row| row.units > 0.0) {
            let (units, seconds) = rates.entry((row.task, row.kind.resource())).or_default();
            *units += row.units;
            *seconds += row.span.seconds();
        }
        UsualRates(rates)
    }

    /// δr of eq. 7. A task that was blocked all the time got nothing, and eq. 7 divides by δr: the task's usual rate
    /// replaces it, and for a task that never got anything the host's capacity (RATP*).
    fn units(&self, victim: &TaskUse, cell: &Cell) -> f64 {
        if victim.units > 0.0 {
            return victim.units;
        }
        let rate = match self.0.get(&(victim.task, cell.resource)) {
            Some((units, seconds)) => units / seconds,
            None => cell.capacity,
        };
        rate * cell.span.seconds()
    }
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
