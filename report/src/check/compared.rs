//! A query that both sides have, with its measures.

use std::collections::BTreeMap;

use unfuse_postprocess::median;

use super::answer::{Comparison, Measure, Query, Status, worst_first};
use super::change::{Change, Samples, Value};
use super::runs::{OperatorRun, OtherOperators, QueryRuns, Run};
use crate::why::plan_text;
use crate::words::{name, time};

/// An operator with a smaller part of the CPU time of its query, before and now, is not compared.
const LEAST: f64 = 0.01;
/// A first run that took so many times as long as the others is one of code that was not compiled yet.
const COLD: f64 = 1.5;
/// Of how many operators that came the CPU time is named.
const MOST_CAME: usize = 3;

/// A query in both profiles, with its measures.
#[derive(Debug)]
pub(super) struct Compared<'a> {
    before: &'a QueryRuns,
    now: &'a QueryRuns,
    plan: Option<String>,
    measures: Vec<Measured>,
}

/// A measure before and now.
#[derive(Debug)]
struct Measured {
    measure: Measure,
    operator: Option<String>,
    /// In s.
    seconds: Samples,
    /// In ns.
    per_row: Option<Samples>,
    /// In s, without waits for a CPU.
    without_cpu_wait: Option<Samples>,
}

/// A measure of a run with its rows.
type Amount = (Value, Option<f64>);

impl<'a> Compared<'a> {
    pub(super) fn new(before: &'a QueryRuns, now: &'a QueryRuns) -> Self {
        let other = OtherOperators::new(before, now);
        let same_plan = before.fingerprint == now.fingerprint;
        let mut measures = Vec::new();
        // In another plan, the scans put out other rows of the same data.
        let rows = |run: &Run| run.rows.filter(|_| same_plan).map(|rows| rows as f64);
        let wall = |run: &Run| Some((Value::exact(run.wall_ms.max(1) as f64 / 1e3), rows(run)));
        let measured = Measured::new(Measure::Wall, None, [before, now], wall, wall);
        measures.extend(measured.map(|measured| Measured {
            without_cpu_wait: without_cpu_wait([before, now]),
            ..measured
        }));
        let cpu = |run: &Run| Some((cpu_time(run)?, rows(run)));
        measures.extend(Measured::new(Measure::Cpu, None, [before, now], cpu, cpu));
        let changed: BTreeMap<&str, &str> = other
            .changed
            .iter()
            .map(|changed| (&*changed.now, &*changed.before))
            .collect();
        let (old, new) = (shares(before), shares(now));
        for (key, (id, operator, share)) in &new {
            let old_key = changed.get(key).copied().unwrap_or(key);
            let Some((_, _, old_share)) = old.get(old_key) else {
                continue;
            };
            if share.max(*old_share) < LEAST {
                continue;
            }
            measures.extend(Measured::new(
                Measure::Operator,
                Some(format!("{} ({id})", name(operator))),
                [before, now],
                |run: &Run| amount(run, old_key),
                |run: &Run| amount(run, key),
            ));
        }
        Self {
            before,
            now,
            plan: plan(&other, now),
            measures,
        }
    }

    /// Measures with an interval.
    pub(super) fn bounded(&self) -> usize {
        let all = self.measures.iter();
        all.filter(|measured| measured.seconds.is_bounded()).count()
    }

    /// The findings, with intervals that hold together with those of `together` measures.
    pub(super) fn query(&self, limit: f64, together: usize) -> Query {
        let mut comparisons: Vec<Comparison> = self
            .measures
            .iter()
            .map(|measured| measured.comparison(limit, together))
            .collect();
        comparisons
            .sort_by(|a, b| worst_first(a.status, a.seconds.change, b.status, b.seconds.change));
        let error = self.now.error().filter(|_| self.before.error().is_none());
        let status = match (error, comparisons.first()) {
            (Some(_), _) => Status::Failed,
            (None, Some(worst)) => worst.status,
            (None, None) => Status::Ok,
        };
        Query {
            name: self.now.name.clone(),
            application: self.now.application.clone(),
            fingerprint: self.now.fingerprint.clone(),
            fingerprint_before: self.before.fingerprint.clone(),
            queries: self.now.good().map(|run| run.query).collect(),
            status,
            plan: self.plan.clone(),
            error: error.map(str::to_owned),
            runs_before: self.before.good().count(),
            runs_now: self.now.good().count(),
            comparisons,
        }
    }

    fn sides(&self) -> [&'a QueryRuns; 2] {
        [self.before, self.now]
    }

    /// Whether a side has only one run.
    pub(super) fn has_single_run(&self) -> bool {
        self.sides().iter().any(|side| side.good().count() == 1)
    }

    /// Whether both sides have only one run.
    pub(super) fn has_single_runs(&self) -> bool {
        self.sides().iter().all(|side| side.good().count() == 1)
    }

    /// Its name, if it failed now and before.
    pub(super) fn failed_before(&self) -> Option<&str> {
        let failed = self.sides().iter().all(|side| side.error().is_some());
        failed.then_some(self.now.name.as_str())
    }

    /// Whether its first run on a side took much longer than the others.
    pub(super) fn has_cold_runs(&self) -> bool {
        let is_cold = |side: &QueryRuns| {
            let mut times: Vec<f64> = side.good().map(|run| run.wall_ms as f64).collect();
            if times.len() < 2 {
                return false;
            }
            let first = times.remove(0);
            first > COLD * median(&mut times)
        };
        self.sides().iter().any(|side| is_cold(side))
    }
}

impl Measured {
    /// `old` and `new` give the amount of a run before and now; runs without it do not count. None if no run of a side has it.
    fn new(
        measure: Measure,
        operator: Option<String>,
        [before, now]: [&QueryRuns; 2],
        old: impl Fn(&Run) -> Option<Amount>,
        new: impl Fn(&Run) -> Option<Amount>,
    ) -> Option<Self> {
        let old: Vec<Amount> = before.good().filter_map(old).collect();
        let new: Vec<Amount> = now.good().filter_map(new).collect();
        if old.is_empty() || new.is_empty() {
            return None;
        }
        let sampled = measure != Measure::Wall;
        let values = |amounts: &[Amount]| -> Vec<Value> {
            amounts.iter().map(|(value, _)| *value).collect()
        };
        let per_row = |amounts: &[Amount]| -> Option<Vec<Value>> {
            let value = |(value, rows): &Amount| {
                let rows = rows.filter(|rows| *rows > 0.0)?;
                Some(value.per(rows / 1e9))
            };
            amounts.iter().map(value).collect()
        };
        Some(Self {
            measure,
            operator,
            seconds: Samples::new(&values(&old), &values(&new), sampled),
            per_row: per_row(&old)
                .zip(per_row(&new))
                .map(|(old, new)| Samples::new(&old, &new, sampled)),
            without_cpu_wait: None,
        })
    }

    fn comparison(&self, limit: f64, together: usize) -> Comparison {
        let seconds = self.seconds.change(together);
        let change = |of: &Option<Samples>| of.as_ref().map(|of| of.change(together));
        let (ns_per_row, without_cpu_wait) =
            (change(&self.per_row), change(&self.without_cpu_wait));
        Comparison {
            measure: self.measure,
            operator: self.operator.clone(),
            status: status(&seconds, [&ns_per_row, &without_cpu_wait], limit),
            seconds,
            ns_per_row,
            without_cpu_wait,
        }
    }
}

/// What a change means. The time must have grown and, where they are known, so must the time for each row and the time without
/// waits for a CPU: each is one condition of the same finding, so together they are one comparison.
fn status(
    seconds: &Change,
    [per_row, without_cpu_wait]: [&Option<Change>; 2],
    limit: f64,
) -> Status {
    let others = [per_row, without_cpu_wait];
    let certainly_more = |change: &Change| change.low.is_some_and(|low| low > limit);
    let certainly_less = |change: &Change| {
        change
            .high
            .is_some_and(|high| high < 1.0 / (1.0 + limit) - 1.0)
    };
    let all = |holds: &dyn Fn(&Change) -> bool| {
        holds(seconds) && others.iter().all(|of| of.as_ref().is_none_or(holds))
    };
    let is_above = |change: &Change| change.change > limit;
    if all(&certainly_more) {
        Status::Regression
    } else if all(&certainly_less) {
        Status::Improved
    } else if all(&is_above) {
        Status::NotShown
    } else if is_above(seconds) && per_row.as_ref().is_none_or(is_above) {
        Status::BusyHost
    } else if is_above(seconds) {
        Status::MoreRows
    } else {
        Status::Ok
    }
}

/// Wall times of runs without the part in which their tasks waited for a CPU, in s; none if waits were not recorded on a side.
fn without_cpu_wait(sides: [&QueryRuns; 2]) -> Option<Samples> {
    let values = |query: &QueryRuns| -> Option<Vec<Value>> {
        let of = |run: &Run| {
            let part = 1.0 - run.cpu_wait?;
            Some(Value::exact((run.wall_ms as f64 * part).max(1.0) / 1e3))
        };
        let values: Option<Vec<Value>> = query.good().map(of).collect();
        values.filter(|values| !values.is_empty())
    };
    let [before, now] = sides.map(values);
    Some(Samples::new(&before?, &now?, false))
}

/// CPU time of a run in s: by samples, or without any by Spark's metrics.
fn cpu_time(run: &Run) -> Option<Value> {
    let by_metrics = run.samples == 0 && run.cpu_ns > 0;
    match by_metrics {
        true => Some(Value::exact(run.cpu_ns as f64 / 1e9)),
        false => sampled(run, run.cpu_ns, run.samples),
    }
}

/// CPU time of a run or of a part of it, in s; none if the run has no samples.
fn sampled(run: &Run, cpu_ns: u64, samples: u64) -> Option<Value> {
    let period = run.cpu_ns as f64 / run.samples as f64;
    let is_known = run.samples > 0 && run.cpu_ns > 0;
    is_known.then(|| Value::from_samples(cpu_ns, samples, period).per(1e9))
}

/// CPU time of an operator; without samples if the run does not have it.
fn amount(run: &Run, key: &str) -> Option<Amount> {
    let nothing = OperatorRun::default();
    let operator = run.operators.iter().find(|operator| operator.key == key);
    let rows = operator.and_then(|operator| operator.rows);
    let operator = operator.unwrap_or(&nothing);
    let value = sampled(run, operator.cpu_ns, operator.samples)?;
    let period = run.cpu_ns as f64 / run.samples as f64;
    let value = value.within(operator.cpu_ns, operator.possible_ns, period);
    Some((value, rows.map(|rows| rows as f64)))
}

/// The operators of a query by key: number, name and part of the query's CPU time.
fn shares(query: &QueryRuns) -> BTreeMap<&str, (i32, &str, f64)> {
    let all = query
        .good()
        .map(|run| run.cpu_ns as f64)
        .sum::<f64>()
        .max(1.0);
    let mut shares: BTreeMap<&str, (i32, &str, f64)> = BTreeMap::new();
    for operator in query.good().flat_map(|run| &run.operators) {
        let known = shares
            .entry(&operator.key)
            .or_insert((operator.id, &operator.name, 0.0));
        known.2 += operator.cpu_ns as f64 / all;
    }
    shares
}

/// What differs between the plans, with the CPU time of operators that came; none if nothing does.
fn plan(other: &OtherOperators, now: &QueryRuns) -> Option<String> {
    let counts = |names: &mut dyn Iterator<Item = &String>| -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for name in names {
            *counts.entry(name.clone()).or_default() += 1;
        }
        counts
    };
    if other.gone.is_empty() && other.come.is_empty() {
        let changed = counts(&mut other.changed.iter().map(|changed| &changed.name));
        return (!changed.is_empty()).then(|| plan_text(&changed, &changed));
    }
    let [gone, come] = [&other.gone, &other.come].map(|keys| counts(&mut keys.values()));
    let mut text = plan_text(&gone, &come);
    let runs = now.good().count().max(1) as f64;
    let all: f64 = now.good().map(|run| run.cpu_ns as f64).sum();
    let shares = shares(now);
    let mut came: Vec<_> = other
        .come
        .keys()
        .filter_map(|key| shares.get(&**key))
        .filter(|(_, _, share)| *share >= LEAST)
        .collect();
    came.sort_by(|(_, _, a), (_, _, b)| b.total_cmp(a));
    for (at, (id, operator, share)) in came.into_iter().take(MOST_CAME).enumerate() {
        let begin = if at == 0 { "; CPU time: " } else { ", " };
        let spent = time((share * all / runs) as u64);
        text += &format!("{begin}{} ({id}) {spent}", name(operator));
    }
    Some(text)
}
