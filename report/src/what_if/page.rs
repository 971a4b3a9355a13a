//! How long queries would take with changes, for the page: the replay of each combination that the page offers.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde::Serialize;
use ts_rs::TS;
use unfuse_postprocess::Period;
use unfuse_sizing::what_if::{Change, Model, Recorded};

use super::profile::Source;
use super::trials::changes_of_waits;
use super::{MOST_ERROR, Operators, text};
use crate::html::Block;
use crate::words::shell;
use crate::{Report, ReportError};

/// Queries that have this, those with the most CPU time.
const QUERIES: usize = 40;
/// Tasks of these queries together, and of one of them with those beside it: each combination puts them on slots again.
const TASKS: usize = 10_000;
/// Numbers of slots, by what they are of the recorded one.
const SLOTS: [f64; 6] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0];
/// A change that saves less than this part of the time is not offered.
const LEAST: f64 = 0.01;

/// How long a query would take with changes.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct QueryWhatIf {
    /// The measured time, s.
    pub measured_s: f64,
    /// Whether the replay of the unchanged run is close to it.
    pub reliable: bool,
    /// Numbers of slots, the fewest first.
    pub slots: Vec<usize>,
    /// The position of the recorded one.
    pub recorded: usize,
    /// Changes to be switched on, each a bit of a combination, from the lowest.
    pub switches: Vec<WhatIfSwitch>,
    /// The time with each combination, s: for combination 0 with each number of slots, then for combination 1, and so on.
    pub seconds: Vec<f64>,
    /// The command for the ranges.
    pub command: String,
}

/// A change that can be switched on.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct WhatIfSwitch {
    /// As `unfuse what-if` takes it.
    pub change: String,
    /// What it means.
    pub what: String,
}

/// The blocks of the queries with the most CPU time, by their positions in the list; none for a part of the time.
///
/// # Errors
/// If the profile cannot be read.
pub(crate) fn what_ifs(report: &Report<'_>) -> Result<BTreeMap<usize, Block>, ReportError> {
    if report.profile.period() != Period::ALL {
        return Ok(BTreeMap::new());
    }
    let mut by_app: BTreeMap<&str, Vec<(usize, i64)>> = BTreeMap::new();
    let mut tasks = 0;
    for (at, query) in report.summary.queries.iter().enumerate().take(QUERIES) {
        let app = &report.summary.applications[query.app].id;
        if let Some(id) = query.query.filter(|_| query.error.is_none())
            && query.duration_ms.is_some()
            && query.tasks > 0
            && tasks + query.tasks <= TASKS
        {
            tasks += query.tasks;
            by_app.entry(app).or_default().push((at, id));
        }
    }
    let mut blocks = BTreeMap::new();
    for (app, queries) in by_app {
        let ids: BTreeSet<i64> = queries.iter().map(|(_, id)| *id).collect();
        let source = Source::of_queries(report, app, &ids);
        let application = source.application(None, &[], &[])?;
        let made = queries.par_iter().map(|(at, id)| {
            let Ok((mut recorded, _)) = application.recorded(Some(*id)) else {
                return Ok(None);
            };
            // Tasks of other queries beside it are put on slots too.
            let tasks = recorded.stages.iter().map(|stage| stage.tasks.len());
            if tasks.sum::<usize>() > TASKS {
                return Ok(None);
            }
            recorded.cpus = source.cpus_of(&application, *id);
            let made = query(&recorded, &report.summary.profile, *id);
            Ok(Some((*at, Block::new(&made)?)))
        });
        let made: std::io::Result<Vec<Option<(usize, Block)>>> = made.collect();
        blocks.extend(made.map_err(ReportError::Page)?.into_iter().flatten());
    }
    Ok(blocks)
}

/// The answers for a query.
fn query(recorded: &Recorded, profile: &str, id: i64) -> QueryWhatIf {
    let model = Model::new(recorded);
    let now = model.now();
    let slots = slots(recorded.slots);
    let offered = |change: &Change| {
        let seconds = model.seconds(&model.scenario(&[*change]));
        now - seconds >= LEAST * now
    };
    let changes: Vec<Change> = changes(recorded).into_iter().filter(offered).collect();
    let combination = |(bits, slots): (usize, usize)| {
        let chosen = changes.iter().enumerate();
        let chosen = chosen.filter(|(at, _)| bits >> at & 1 == 1);
        let mut all: Vec<Change> = chosen.map(|(_, change)| *change).collect();
        if slots != recorded.slots {
            all.push(Change::Slots(slots));
        }
        let seconds = model.seconds(&model.scenario(&all));
        (seconds * 1e3).round() / 1e3
    };
    let all = (0..1usize << changes.len()).flat_map(|bits| slots.iter().map(move |of| (bits, *of)));
    let none = Operators::new();
    let switch = |change: &Change| WhatIfSwitch {
        change: change.to_string(),
        what: text::meaning(change, &none),
    };
    QueryWhatIf {
        measured_s: recorded.seconds,
        reliable: model.error().abs() <= MOST_ERROR,
        seconds: all.map(combination).collect(),
        recorded: slots
            .iter()
            .position(|of| *of == recorded.slots)
            .unwrap_or(0),
        slots,
        switches: changes.iter().map(switch).collect(),
        command: format!("unfuse what-if {} --query {id}", shell(profile)),
    }
}

/// Numbers of slots around the recorded one, which is among them.
fn slots(recorded: usize) -> Vec<usize> {
    let of = |times: f64| ((recorded as f64 * times).round() as usize).max(1);
    let all: BTreeSet<usize> = SLOTS.into_iter().map(of).collect();
    all.into_iter().collect()
}

/// The changes that concern a query and do not exclude each other: another number of slots also changes the waits for CPUs.
fn changes(recorded: &Recorded) -> Vec<Change> {
    let of_waits = changes_of_waits(recorded).filter(|change| *change != Change::NoCpuWait);
    [Change::NoSkew].into_iter().chain(of_waits).collect()
}

#[cfg(test)]
mod tests {
    use unfuse_sizing::what_if::{Part, PartKind, RecordedStage, RecordedTask};

    use super::*;

    /// Eight tasks on two slots; each waits a second for the network, and one takes twice as long as the others.
    fn recorded() -> Recorded {
        let mut launched = [0.0, 0.0];
        let task = |number: usize| {
            let seconds = if number == 7 { 4.0 } else { 2.0 };
            let slot = number % 2;
            let from = launched[slot];
            launched[slot] += seconds;
            RecordedTask {
                launched: from,
                finished: from + seconds,
                parts: vec![0.0, 1.0],
            }
        };
        let tasks: Vec<RecordedTask> = (0..8).map(task).collect();
        Recorded {
            seconds: 10.0,
            slots: 2,
            executors: 1,
            parts: vec![Part::new(PartKind::Gc), Part::new(PartKind::Network)],
            stages: vec![RecordedStage {
                own: true,
                submitted: Some(0.0),
                tasks,
                ..RecordedStage::default()
            }],
            ..Recorded::default()
        }
    }

    #[test]
    fn each_combination_has_its_replay() {
        let found = query(&recorded(), "a profile", 3);
        assert_eq!(found.slots, [1, 2, 4, 8, 16]);
        assert_eq!(found.recorded, 1);
        let changes: Vec<&str> = found.switches.iter().map(|one| &*one.change).collect();
        // Garbage was not collected.
        assert_eq!(changes, ["skew=0", "network=inf"]);
        assert_eq!(found.seconds.len(), 4 * 5);
        // As it is, on one slot to sixteen.
        assert_eq!(found.seconds[..5], [18.0, 10.0, 6.0, 4.0, 4.0]);
        // Both changes: mean tasks of 2.25 s, less 1 s.
        assert!((found.seconds[15 + 1] - 5.0).abs() < 0.6, "{found:?}");
        assert_eq!(found.command, "unfuse what-if 'a profile' --query 3");
    }
}
