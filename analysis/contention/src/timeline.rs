//! Blocked time of a query by time and culprit, as in figures 10 to 12.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::lives::lives;
use crate::shares::Shares;
use crate::waits::{Victim, Wait};
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

/// Shares of the waits on one host, by slice and victim.
pub(crate) type TimelineShares = HashMap<(usize, Victim), Shares, ahash::RandomState>;

/// The slices of victims' times.
pub(crate) struct Slices {
    split: Split,
    spans: BTreeMap<QueryId, Vec<Span>>,
}

impl Slices {
    /// `count` equal parts of the time of each victim.
    pub(crate) fn new(
        workload: &Workload,
        stages: &BTreeSet<StageId>,
        split: Split,
        count: usize,
    ) -> Self {
        let spans = lives(workload, stages).into_iter();
        Self {
            split,
            spans: spans
                .map(|(query, span)| (query, span.cut(count)))
                .collect(),
        }
    }

    /// Adds a wait.
    pub(crate) fn add(&self, shares: &mut TimelineShares, wait: &Wait<'_>) {
        let Some(spans) = self.spans.get(&wait.stage.query) else {
            return;
        };
        for (index, part) in spread(spans, wait.cell.span) {
            let shares = shares.entry((index, wait.vertex())).or_default();
            shares.add(wait, part, self.split);
        }
    }

    /// The timelines from the shares of all hosts, in order, so that the same rows give the same last digit.
    pub(crate) fn timelines(
        self,
        shares: BTreeMap<(usize, Victim), Shares>,
    ) -> BTreeMap<QueryId, Timeline> {
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
