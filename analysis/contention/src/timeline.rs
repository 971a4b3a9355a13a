//! Blocked time of a query by time and culprit, as in figures 10 to 12.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::blame::{Shares, Victim, Wait};
use crate::lives::lives;
use crate::windows::spread;
use crate::{Culprit, QueryId, Resource, Span, Split, StageId, Workload};

/// Blocked seconds of one victim query over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// The slices, one after the other, from when the victim first ran or waited until it last did, in its hosts'
    /// clocks.
    pub slices: Vec<Slice>,
}

/// A part of the time.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// Its span.
    pub span: Span,
    /// Blocked seconds by resource and culprit; they sum to the victim's blocked time in the span.
    pub seconds: BTreeMap<(Resource, Culprit), f64>,
}

/// Timelines while waits are added.
pub(crate) struct Sums {
    split: Split,
    spans: BTreeMap<QueryId, Vec<Span>>,
    shares: HashMap<(usize, Victim), Shares, ahash::RandomState>,
}

impl Sums {
    /// Sums for victim stages, in `slices` equal parts of each victim's time.
    pub(crate) fn new(
        workload: &Workload,
        stages: &BTreeSet<StageId>,
        split: Split,
        slices: usize,
    ) -> Self {
        let spans = lives(workload, stages).into_iter();
        Self {
            split,
            spans: spans
                .map(|(query, span)| (query, span.cut(slices)))
                .collect(),
            shares: HashMap::default(),
        }
    }

    pub(crate) fn add(&mut self, wait: &Wait<'_>) {
        let Some(spans) = self.spans.get(&wait.stage.query) else {
            return;
        };
        for (index, part) in spread(spans, wait.cell.span) {
            self.shares
                .entry((index, wait.vertex()))
                .or_default()
                .add(wait, part, self.split);
        }
    }

    pub(crate) fn timelines(self) -> BTreeMap<QueryId, Timeline> {
        let empty = |span| Slice {
            span,
            seconds: BTreeMap::new(),
        };
        let spans = self.spans.into_iter();
        let mut timelines: BTreeMap<QueryId, Timeline> = spans
            .map(|(query, spans)| {
                let slices = spans.into_iter().map(empty).collect();
                (query, Timeline { slices })
            })
            .collect();
        // In order, so that the same rows give the same last digit.
        let shares: BTreeMap<(usize, Victim), Shares> = self.shares.into_iter().collect();
        for ((index, (stage, kind, _)), shares) in shares {
            let Some(timeline) = timelines.get_mut(&stage.query) else {
                continue;
            };
            for (source, seconds) in shares.seconds() {
                let key = (kind.resource(), source.culprit());
                *timeline.slices[index].seconds.entry(key).or_default() += seconds;
            }
        }
        timelines
    }
}
