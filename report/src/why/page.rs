//! Where the wall time of each query went, for the page.

use std::collections::HashMap;

use rayon::prelude::*;
use serde::Serialize;
use ts_rs::TS;
use unfuse_format::FormatError;
use unfuse_postprocess::{Period, middle};

use super::difference::{Side, difference};
use super::metrics::Basis;
use super::parts::Run;
use super::slots::Executors;
use super::{Part, add_commands, has_ended};
use crate::compare::matched_runs;
use crate::{QuerySummary, Report};

/// With fewer runs of a query, none of them is the usual one.
const LEAST_RUNS: usize = 3;

/// Where the wall time of a query went.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct WallTime {
    /// Wall time, s.
    pub wall_s: f64,
    /// Largest first. They add up to the wall time.
    pub parts: Vec<Part>,
    /// What made it differ from other runs; null if there are none to compare with.
    pub change: Option<WallTimeChange>,
}

/// What made the wall time of a query differ from that of other runs.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct WallTimeChange {
    /// The earlier profile; null for the median run of the same profile.
    pub profile: Option<String>,
    /// SQL execution ids of the other runs.
    pub queries: Vec<i64>,
    /// Mean wall time of the other runs, s.
    pub wall_s: f64,
    /// Largest first. They add up to the difference.
    pub parts: Vec<Part>,
}

/// Runs of an earlier profile, by positions in the list of the later one.
#[derive(Debug)]
pub(crate) struct EarlierRuns {
    profile: String,
    sides: Vec<Earlier>,
    by_query: HashMap<usize, usize>,
    basis: Basis,
}

/// The runs of one query.
#[derive(Debug)]
struct Earlier {
    queries: Vec<i64>,
    side: Side,
}

impl EarlierRuns {
    /// The runs of `before` for each query of `now` that they are runs of.
    ///
    /// # Errors
    /// If tables of `before` cannot be read.
    pub(crate) fn new(before: &Report<'_>, now: &Report<'_>) -> Result<Self, FormatError> {
        let executors = Executors::new(before)?;
        let of = |report: &Report<'_>| Basis::from_profile(report.profile);
        let basis = of(before).common(of(now));
        let matched = matched_runs(before, now);
        let found = matched.into_par_iter().filter_map(|(old, new)| {
            let summaries = &before.summary.queries;
            let ended = old.iter().filter(|at| has_ended(&summaries[**at]));
            let (queries, runs): (Vec<_>, Vec<_>) = ended
                .filter_map(|at| {
                    let run = Run::from_samples(before, *at, &executors, basis)?;
                    Some((summaries[*at].query?, run))
                })
                .unzip();
            let side = (!runs.is_empty()).then(|| Side::new(&runs))?;
            Some((Earlier { queries, side }, new))
        });
        let found: Vec<(Earlier, Vec<usize>)> = found.collect();
        let mut earlier = Self {
            profile: before.summary.profile.clone(),
            sides: Vec::new(),
            by_query: HashMap::new(),
            basis,
        };
        for (side, new) in found {
            let number = earlier.sides.len();
            earlier
                .by_query
                .extend(new.into_iter().map(|at| (at, number)));
            earlier.sides.push(side);
        }
        Ok(earlier)
    }

    /// What their times are divided by.
    pub(crate) fn basis(&self) -> Basis {
        self.basis
    }
}

/// Where the wall time of each query in the list went, from their runs; none of those that did not end well, and if the report
/// is about a part of the time.
pub(crate) fn wall_times(report: &Report<'_>, runs: Vec<Option<Run>>) -> Vec<Option<WallTime>> {
    let queries = &report.summary.queries;
    let whole = report.profile.period() == Period::ALL;
    let side = |(run, query): (Option<Run>, &QuerySummary)| {
        let run = run.filter(|_| whole && has_ended(query))?;
        Some(Side::new(&[run]))
    };
    let sides: Vec<Option<Side>> = runs.into_par_iter().zip(queries).map(side).collect();
    let medians = median_runs(report);
    let wall_time = |at: usize| -> Option<WallTime> {
        let side = sides[at].as_ref()?;
        let earlier = report.earlier.as_ref().and_then(|earlier| {
            let of = &earlier.sides[*earlier.by_query.get(&at)?];
            let profile = Some(earlier.profile.clone());
            Some(change(profile, of.queries.clone(), &of.side, side))
        });
        let median = || {
            let median = queries[at].family.and_then(|family| medians[family])?;
            let queries = queries[median].query.into_iter().collect();
            let of = sides[median].as_ref().filter(|_| median != at)?;
            Some(change(None, queries, of, side))
        };
        let mut wall_time = WallTime {
            wall_s: side.wall.s,
            parts: rounded(side.parts()),
            change: earlier.or_else(median),
        };
        let (profile, query) = (
            &report.summary.profile,
            queries[at].query.unwrap_or_default(),
        );
        let has_samples = !report.profile.groups.is_empty();
        add_commands(&mut wall_time.parts, profile, query, None, has_samples);
        if let Some(change) = &mut wall_time.change {
            let other = change.profile.as_deref();
            add_commands(&mut change.parts, profile, query, other, has_samples);
        }
        Some(wall_time)
    };
    (0..queries.len()).into_par_iter().map(wall_time).collect()
}

fn change(profile: Option<String>, queries: Vec<i64>, before: &Side, now: &Side) -> WallTimeChange {
    WallTimeChange {
        profile,
        queries,
        wall_s: before.wall.s,
        parts: rounded(difference(before, now)),
    }
}

/// The same to a tenth of a millisecond: more digits would only make the page larger.
fn rounded(mut parts: Vec<Part>) -> Vec<Part> {
    let round = |s: &mut f64| *s = (*s * 1e4).round() / 1e4;
    for part in &mut parts {
        let ends = [
            &mut part.seconds,
            &mut part.seconds_low,
            &mut part.seconds_high,
        ];
        ends.into_iter().for_each(round);
        let sides = [&mut part.before_s, &mut part.after_s];
        sides.into_iter().flatten().for_each(round);
    }
    parts
}

/// The run with the median wall time of each family, as a position in the list; none in families with few runs.
fn median_runs(report: &Report<'_>) -> Vec<Option<usize>> {
    let median = |runs: &Vec<usize>| {
        let query = |at: &usize| -> &QuerySummary { &report.summary.queries[*at] };
        let ended = runs.iter().copied().filter(|at| has_ended(query(at)));
        let mut ended: Vec<usize> = ended.collect();
        ended.sort_by_key(|at| query(at).duration_ms);
        (ended.len() >= LEAST_RUNS).then(|| ended[middle(ended.len())])
    };
    let families = report.summary.families.iter();
    families.map(|family| median(&family.runs)).collect()
}
