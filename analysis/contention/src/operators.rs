//! The operators of culprit stages.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{KnownProcess, Resource, Source, StageId, Workload};

/// The name of garbage collection for a stage among its operators ([`Explanation::operator`](crate::Explanation)).
pub const COLLECTION: &str = "garbage collection";

/// An operator, or none where it is not known, and its share of what its stage did, above 0 and at most 1.
pub(crate) type Share = (Option<Arc<str>>, f64);

/// Shares of the stages that were asked for.
pub(crate) struct Operators<'a> {
    workload: &'a Workload,
    /// In place of operators: garbage collection for the stage.
    collection: [Share; 1],
    /// What is not divided.
    whole: [Share; 1],
    known: HashMap<StageId, Vec<Share>, ahash::RandomState>,
}

impl<'a> Operators<'a> {
    pub(crate) fn new(workload: &'a Workload) -> Self {
        Self {
            workload,
            collection: [(Some(COLLECTION.into()), 1.0)],
            whole: [(None, 1.0)],
            known: HashMap::default(),
        }
    }

    /// How the effect of a source on a resource is divided. Only use of the CPU is known by operator. The shares add up to 1.
    pub(crate) fn of(&mut self, source: Source, resource: Resource) -> &[Share] {
        match source {
            Source::Known(KnownProcess::GcFor(_)) => &self.collection,
            Source::Stage(stage) if resource == Resource::Cpu => {
                let workload = self.workload;
                let shares = self.known.entry(stage);
                shares.or_insert_with(|| shares_of(workload, stage))
            }
            _ => &self.whole,
        }
    }
}

/// Those of its operators; what no operator is known to have taken is a share without one.
fn shares_of(workload: &Workload, stage: StageId) -> Vec<Share> {
    let rows = workload.operators_of(stage).iter();
    let mut shares: Vec<Share> = rows
        .map(|row| (Some(Arc::clone(&row.operator)), row.share))
        .collect();
    let sum: f64 = shares.iter().map(|(_, share)| share).sum();
    // Shares are allowed to sum to a rounding above 1.
    let scale = |(_, share): &mut Share| *share /= sum.max(1.0);
    shares.iter_mut().for_each(scale);
    if sum < 1.0 {
        shares.push((None, 1.0 - sum));
    }
    shares.retain(|(_, share)| *share > 0.0);
    shares
}
