//! What pieces of advice would save.

use std::collections::HashMap;

use unfuse_sizing::what_if::{Application, Change, Estimate, Model, Part, PartKind};

use super::cache::CachedScan;
use super::operator::StackOfStage;
use super::profile::Source;
use super::spread::spread;
use super::{ONE_RUN, warning};
use crate::{Report, ReportError};

/// What a piece of advice changes in the recorded run.
#[derive(Debug, Clone)]
pub(crate) enum Remedy {
    /// A part of the tasks' times goes.
    Saving(Saving),
    /// There are so many slots.
    Slots(usize),
    /// Scans read cached rows.
    Cached(Vec<CachedScan>),
}

impl Default for Remedy {
    fn default() -> Self {
        Self::Saving(Saving::default())
    }
}

/// Time of a query's tasks, a share of which a change takes out.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Saving {
    /// CPU time of these stacks, with the waits for a CPU that belong to it.
    pub(crate) stacks: Vec<StackOfStage>,
    /// Waits.
    pub(crate) waits: Vec<PartKind>,
    /// Seconds of tasks, by their ids.
    pub(crate) tasks: HashMap<i64, f64>,
    /// Whether whole tasks are gone, with their launches.
    pub(crate) takes_launches: bool,
    /// The share that is taken out, 0 to 1: the least, the most likely, the most.
    pub(crate) shares: [f64; 3],
}

impl Saving {
    /// The share that is taken out, most likely.
    pub(super) fn share(&self) -> f64 {
        self.shares[1]
    }

    /// The part of the tasks' times, by the number of samples in each stage.
    pub(super) fn part(&self, samples: Vec<u64>) -> Part {
        let [least, likely, most] = self.shares;
        let likely = likely.max(f64::MIN_POSITIVE);
        Part {
            range: (least / likely, most / likely),
            samples,
            takes_launches: self.takes_launches,
            ..Part::new(PartKind::Other)
        }
    }
}

/// What each of some changes by itself would save of a query, with the measured time of the query, s, and a note on how far
/// that can be trusted.
///
/// # Errors
/// If the profile cannot be read, or the query has no tasks or did not end well.
pub(crate) fn estimates(
    report: &Report<'_>,
    app: &str,
    query: i64,
    remedies: &[Remedy],
) -> Result<(Vec<Estimate>, f64, Option<String>), ReportError> {
    let source = Source::new(report, app, Some(query));
    let between_runs = spread(report, app, query);
    let recorded = |application: Application| {
        let (mut recorded, _) = application
            .recorded(Some(query))
            .map_err(ReportError::Refused)?;
        recorded.spread = between_runs.unwrap_or(0.0);
        Ok::<_, ReportError>(recorded)
    };
    let savings = remedies.iter().filter_map(|remedy| match remedy {
        Remedy::Saving(saving) => Some(saving),
        Remedy::Slots(_) | Remedy::Cached(_) => None,
    });
    let with_savings = recorded(source.with_savings(&savings.collect::<Vec<_>>())?)?;
    let of_savings = Model::new(&with_savings);
    let changed = |scans: &[CachedScan], changes: &[Change]| {
        let recorded = recorded(source.application(Some(query), &[], scans)?)?;
        let model = Model::new(&recorded);
        Ok::<_, ReportError>(model.estimate(&model.scenario(changes)))
    };
    let mut part = 0..;
    let each = remedies.iter().map(|remedy| match remedy {
        Remedy::Saving(_) => {
            let part = part.next().unwrap_or(0);
            Ok(of_savings.estimate(&of_savings.without(part)))
        }
        Remedy::Slots(slots) => changed(&[], &[Change::Slots(*slots)]),
        Remedy::Cached(scans) => {
            let changes: Vec<Change> = scans.iter().map(|scan| scan.change()).collect();
            changed(scans, &changes)
        }
    });
    let each = each.collect::<Result<_, _>>()?;
    let note = warning(of_savings.error());
    let note = note.or(between_runs.is_none().then(|| ONE_RUN.to_owned()));
    Ok((each, with_savings.seconds, note))
}
