//! Who slowed a query down, and when: what figures 10 to 12 draw.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::blame::{Shares, Victim, Wait, tasks_of};
use crate::windows::spread;
use crate::{Culprit, QueryId, Resource, Span, Split, StageId, Workload};

/// Blocked seconds of one victim query over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// One after the other, from when the victim first ran or waited until it last did, by its hosts' clocks.
    pub slices: Vec<Slice>,
}

/// A part of the time.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// When.
    pub span: Span,
    /// Blocked seconds by what was waited for and who is to blame; their sum is what the victim was blocked in it.
    pub seconds: BTreeMap<(Resource, Culprit), f64>,
}

/// Timelines as they add up.
pub(crate) struct Sums {
    split: Split,
    spans: BTreeMap<QueryId, Vec<Span>>,
    shares: HashMap<(usize, Victim), Shares>,
}

impl Sums {
    /// Of victim stages, in `slices` equal parts of each victim's time.
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
            shares: HashMap::new(),
        }
    }

    pub(crate) fn add(&mut self, wait: &Wait<'_>) {
        let Some(spans) = self.spans.get(&wait.stage.query) else {
            return;
        };
        for (at, part) in spread(spans, wait.cell.span) {
            self.shares
                .entry((at, wait.vertex()))
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
        for ((at, (stage, kind, _)), shares) in shares {
            let Some(timeline) = timelines.get_mut(&stage.query) else {
                continue;
            };
            for (source, seconds) in shares.seconds() {
                let key = (kind.resource(), source.culprit());
                *timeline.slices[at].seconds.entry(key).or_default() += seconds;
            }
        }
        timelines
    }
}

/// When each victim ran or waited.
pub(crate) fn lives(workload: &Workload, stages: &BTreeSet<StageId>) -> BTreeMap<QueryId, Span> {
    let tables = workload.tables();
    let runs = tables.tasks.iter().filter(|task| task.runs);
    let runs = runs.map(|task| (task.stage, task.span));
    let tasks = tasks_of(workload, stages);
    let waits = tables.intervals.iter().filter(|row| row.blocked_ns > 0);
    let waits = waits.filter(|row| tasks.contains(&row.task));
    let waits = waits.map(|row| (workload.task_of(row).stage, row.span));
    let mut lives: BTreeMap<QueryId, Span> = BTreeMap::new();
    for (stage, span) in runs
        .chain(waits)
        .filter(|(stage, _)| stages.contains(stage))
    {
        let life = lives.entry(stage.query).or_insert(span);
        *life = life.hull(span);
    }
    lives
}
