//! Blame of stages toward victim stages, over all windows (eqs. 9 and 10).

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    CapacityBasis, Cell, HostId, Kind, KnownProcess, Note, Options, Resource, Source, Split,
    StageId, TaskId, TaskUse, Workload, cells,
};

/// A level-3 vertex: a victim stage that waited in one way on one host.
pub(crate) type Victim = (StageId, Kind, HostId);

/// Blocked seconds of each victim, and who they are put down to (levels 3 and 4).
#[derive(Default)]
pub(crate) struct Seconds {
    pub(crate) by_victim: BTreeMap<Victim, BTreeMap<Source, f64>>,
    pub(crate) notes: Vec<Note>,
}

/// Distributes the blocked time of the victim stages.
///
/// In each window, culprits are summed by stage before they meet the victims, so the time taken is
/// victims × stages of the window, not tasks squared.
pub(crate) fn distribute(
    workload: &Workload,
    victims: &BTreeSet<StageId>,
    options: &Options,
) -> Seconds {
    let usual = UsualRates::of(workload);
    let mut shares: BTreeMap<Victim, Shares> = BTreeMap::new();
    let mut notes = BTreeMap::new();
    for cell in cells(workload, options.within) {
        if !options.covers(cell.resource, cell.host) {
            continue;
        }
        note(&mut notes, &cell);
        let users = Users::of(workload, &cell);
        for victim in cell
            .tasks
            .iter()
            .filter(|task| victims.contains(&task.stage))
        {
            for (kind, blocked) in victim.blocked.iter().filter(|(_, blocked)| **blocked > 0.0) {
                let rates = match kind {
                    Kind::Pause => BTreeMap::from([(Source::Known(KnownProcess::Gc), 1.0)]),
                    // What counts as waiting for slots is what others hold.
                    Kind::Slot => users.against(workload, victim, false),
                    _ => users.against(workload, victim, options.own_tasks),
                };
                let units = usual.units(victim, &cell);
                shares
                    .entry((victim.stage, *kind, cell.host))
                    .or_default()
                    .add(*blocked, units, &rates, options.split);
            }
        }
    }
    let by_victim = shares
        .into_iter()
        .map(|(victim, shares)| (victim, shares.seconds()))
        .collect();
    Seconds {
        by_victim,
        notes: notes.into_values().collect(),
    }
}

/// Blame toward one victim vertex as it adds up.
#[derive(Default)]
struct Shares {
    /// Blocked seconds that somebody can be blamed for.
    blocked: f64,
    /// β of eq. 9 by source, or seconds with [`Split::ByWindow`].
    blame: BTreeMap<Source, f64>,
    /// Blocked seconds in windows in which nobody else used anything.
    unaccounted: f64,
}

impl Shares {
    fn add(&mut self, blocked: f64, units: f64, rates: &BTreeMap<Source, f64>, split: Split) {
        let total: f64 = rates.values().sum();
        if total <= 0.0 || units <= 0.0 {
            self.unaccounted += blocked;
            return;
        }
        self.blocked += blocked;
        let factor = match split {
            Split::Pooled => blocked / units,
            Split::ByWindow => blocked / total,
        };
        for (source, rate) in rates {
            *self.blame.entry(*source).or_default() += factor * rate;
        }
    }

    /// Eq. 10, in seconds.
    fn seconds(self) -> BTreeMap<Source, f64> {
        let total: f64 = self.blame.values().sum();
        let mut seconds: BTreeMap<Source, f64> = self
            .blame
            .into_iter()
            .map(|(source, blame)| (source, blame / total * self.blocked))
            .collect();
        if self.unaccounted > 0.0 {
            *seconds.entry(Source::Unknown).or_default() += self.unaccounted;
        }
        seconds
    }
}

/// Use in a cell by stage, in units and in units ÷ weight.
struct Users {
    stages: BTreeMap<StageId, f64>,
    /// Known processes and the unknown, of weight 1.
    others: BTreeMap<Source, f64>,
    seconds: f64,
}

impl Users {
    fn of(workload: &Workload, cell: &Cell) -> Users {
        let mut stages: BTreeMap<StageId, f64> = BTreeMap::new();
        for task in &cell.tasks {
            *stages.entry(task.stage).or_default() += task.units;
        }
        debug_assert!(
            stages
                .keys()
                .all(|stage| workload.query(stage.query).is_some())
        );
        let mut others: BTreeMap<Source, f64> = cell
            .known
            .iter()
            .map(|(process, units)| (Source::Known(*process), *units))
            .collect();
        others.insert(Source::Unknown, cell.unknown);
        Users {
            stages,
            others,
            seconds: cell.span.seconds(),
        }
    }

    /// Rates (units a second) at which others used the resource, shared out by weight as in [`Cell::blame`].
    fn against(
        &self,
        workload: &Workload,
        victim: &TaskUse,
        own_tasks: bool,
    ) -> BTreeMap<Source, f64> {
        let mut total = 0.0;
        let mut weighed = BTreeMap::new();
        for (stage, units) in &self.stages {
            let own = if *stage == victim.stage {
                victim.units
            } else {
                0.0
            };
            let left = units - own;
            // What is left of a difference of sums is nothing, not a tiny culprit.
            let left = if left > units * 1e-12 { left } else { 0.0 };
            total += left;
            weighed.insert(Source::Stage(*stage), left / workload.weight(stage.query));
        }
        for (source, units) in &self.others {
            total += units;
            weighed.insert(*source, *units);
        }
        let sum: f64 = weighed.values().sum();
        let scale = if sum > 0.0 {
            total / sum / self.seconds
        } else {
            0.0
        };
        let own_query = |source: &Source| matches!(source, Source::Stage(stage) if stage.query == victim.stage.query);
        weighed.retain(|source, units| *units > 0.0 && (own_tasks || !own_query(source)));
        weighed.values_mut().for_each(|units| *units *= scale);
        weighed
    }
}

/// What a task gets of a resource a second, when it gets something.
struct UsualRates(BTreeMap<(TaskId, Resource), (f64, f64)>);

impl UsualRates {
    fn of(workload: &Workload) -> UsualRates {
        let mut rates: BTreeMap<(TaskId, Resource), (f64, f64)> = BTreeMap::new();
        for row in workload
            .tables()
            .intervals
            .iter()
            .filter(|row| row.units > 0.0)
        {
            let (units, seconds) = rates.entry((row.task, row.kind.resource())).or_default();
            *units += row.units;
            *seconds += row.span.seconds();
        }
        UsualRates(rates)
    }

    /// δr of eq. 7. A task that was blocked all along got nothing, and eq. 7 divides by it: the task's usual
    /// rate stands in, and for a task that never got anything the host's capacity (RATP*).
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
        });
    note.windows += 1;
    note.highest = note.highest.max(cell.capacity);
}
