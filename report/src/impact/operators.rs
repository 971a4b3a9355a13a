//! Impact by operator: the time of each operator's tasks, running and waiting, in profiles taken at several schemes.

use std::collections::BTreeMap;

use unfuse_format::counted;
use unfuse_impact::{Analysis, CpuCounters, Run, Runs, Scheme, Utilisation};
use unfuse_postprocess::{Profile, histories, is_origin};

use super::answer::{Answer, Operator, Query};
use crate::ReportError;

/// Operators with a smaller part of their query's time are left out: their times are mostly noise.
const LEAST: f64 = 0.01;

/// Identifies an operator of a query in every run.
type Key = (Option<i32>, String);

/// The runs of one query, or of one operator.
#[derive(Default)]
struct Times {
    description: String,
    whole: Vec<Run>,
    operators: BTreeMap<Key, (String, Vec<Run>)>,
    failed: usize,
}

/// The times of queries and their operators in several profiles.
#[derive(Default)]
pub struct QueryTimes {
    /// Times by fingerprint.
    times: BTreeMap<String, Times>,
    profiles: usize,
}

impl QueryTimes {
    /// Adds one profile. Several runs of a query in it count as one.
    pub fn add(&mut self, scheme: &Scheme, profile: Profile) {
        self.profiles += 1;
        let run = |seconds: f64| Run {
            scheme: scheme.clone(),
            seconds,
            utilisation: Utilisation::default(),
            counted: CpuCounters::default(),
        };
        for history in histories(&[profile]) {
            let times = self.times.entry(history.fingerprint).or_default();
            times.description = match is_origin(&history.description) {
                true => history.name,
                false => history.description,
            };
            let (failed, whole): (Vec<_>, Vec<_>) =
                history.runs.iter().partition(|run| run.error.is_some());
            times.failed += failed.len();
            let durations: Option<Vec<i64>> = whole.iter().map(|run| run.duration_ms).collect();
            // The number of runs does not depend on the scheme.
            let count = whole.len().max(1) as f64;
            let sum: i64 = durations.unwrap_or_default().into_iter().sum();
            if sum > 0 {
                times.whole.push(run(sum as f64 / 1000.0 / count));
            }
            let mut sums: BTreeMap<Key, (String, f64)> = BTreeMap::new();
            for part in whole.iter().flat_map(|run| &run.operators) {
                let key = (part.node, part.operator.clone());
                let sum = sums
                    .entry(key)
                    .or_insert_with(|| (part.detail.clone(), 0.0));
                sum.1 += part.cpu_s + part.waiting_s;
            }
            for (key, (detail, seconds)) in sums {
                if seconds > 0.0 {
                    let known = times
                        .operators
                        .entry(key)
                        .or_insert_with(|| (detail, Vec::new()));
                    known.1.push(run(seconds / count));
                }
            }
        }
    }
}

impl Answer {
    /// Adds the analyses of profiles, compared with a base.
    ///
    /// # Errors
    /// [`ReportError::Refused`] if no query can be compared.
    pub fn queries(&mut self, queries: QueryTimes, base: &Scheme) -> Result<(), ReportError> {
        let mut lost = Vec::new();
        for (fingerprint, times) in queries.times {
            if times.failed > 0 {
                self.notes.push(format!(
                    "{} of query {fingerprint} failed and count nowhere",
                    counted(times.failed, "run")
                ));
            }
            match times.query(fingerprint, base, queries.profiles) {
                Ok(query) => self.queries.push(query),
                Err(why) => lost.push(why),
            }
        }
        if self.queries.is_empty() {
            let why = lost.first().map_or("they have no queries", String::as_str);
            return Err(ReportError::Refused(format!(
                "the profiles have no query that can be compared: {why}"
            )));
        }
        if let Some(why) = lost.first() {
            let more = lost.len();
            self.notes.push(format!(
                "{} left out, for example: {why}",
                counted(more, "query")
            ));
        }
        let seconds = |query: &Query| query.analysis.as_ref().map_or(0.0, at_base);
        self.queries
            .sort_by(|a, b| seconds(b).total_cmp(&seconds(a)));
        Ok(())
    }
}

impl Times {
    fn query(self, fingerprint: String, base: &Scheme, profiles: usize) -> Result<Query, String> {
        if self.whole.len() < profiles {
            return Err(format!(
                "{} ended only in {} of {profiles} profiles",
                self.description,
                self.whole.len()
            ));
        }
        let whole = Runs::new(base.clone(), self.whole).map_err(|e| e.to_string())?;
        let mut operators = Vec::new();
        for ((node, operator), (detail, runs)) in self.operators {
            // An operator that is missing in a profile is too small to judge.
            if runs.len() < profiles {
                continue;
            }
            let runs = Runs::new(base.clone(), runs).map_err(|e| e.to_string())?;
            operators.push(Operator {
                node,
                operator,
                detail,
                analysis: Analysis::new(&runs),
            });
        }
        let all: f64 = operators.iter().map(|o| at_base(&o.analysis)).sum();
        operators.retain(|operator| at_base(&operator.analysis) >= LEAST * all);
        operators.sort_by(|a, b| at_base(&b.analysis).total_cmp(&at_base(&a.analysis)));
        Ok(Query {
            fingerprint,
            description: self.description,
            analysis: Some(Analysis::new(&whole)),
            operators,
        })
    }
}

/// Mean time at the base scheme, s.
pub(super) fn at_base(analysis: &Analysis) -> f64 {
    let times = analysis.schemes.iter();
    times
        .filter(|time| time.scheme == analysis.base)
        .map(|time| time.seconds)
        .sum()
}
