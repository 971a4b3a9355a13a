//! What pieces of advice would save.

use std::collections::HashMap;

use unfuse_sizing::what_if::{Estimate, Model, Part, PartKind};

use super::operator::StackOfStage;
use super::profile::Source;
use super::spread::spread;
use super::{ONE_RUN, warning};
use crate::{Report, ReportError};

/// Time of a query's tasks, a share of which a change takes out.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Saving {
    /// CPU time of these stacks, with the waits for a CPU that belong to it.
    pub(crate) stacks: Vec<StackOfStage>,
    /// Waits.
    pub(crate) waits: Vec<PartKind>,
    /// Seconds of tasks, by their ids.
    pub(crate) tasks: HashMap<i64, f64>,
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
    savings: &[Saving],
) -> Result<(Vec<Estimate>, f64, Option<String>), ReportError> {
    let application = Source::new(report, app, Some(query)).with_savings(savings)?;
    let (mut recorded, _) = application
        .recorded(Some(query))
        .map_err(ReportError::Refused)?;
    let between_runs = spread(report, app, query);
    recorded.spread = between_runs.unwrap_or(0.0);
    let model = Model::new(&recorded);
    let each = 0..savings.len();
    let each = each.map(|part| model.estimate(&model.without(part)));
    let note = warning(model.error()).or(between_runs.is_none().then(|| ONE_RUN.to_owned()));
    Ok((each.collect(), recorded.seconds, note))
}
