//! What made the difference between the runs of a query before and after: parts that add up to it.

use std::collections::{BTreeMap, BTreeSet};

use unfuse_postprocess::WaitReason;

use super::known::{self, Left, Remaining};
use super::parts::{Amount, Cause, OperatorFacts, PythonLines, Run};
use super::python::{python_line, python_means};
use super::words::describe;
use super::{CauseKind, Part};
use crate::numbered::Key;
use crate::words::name;

/// Runs of a query on one side, as their means.
#[derive(Debug, Clone)]
pub(super) struct Side {
    pub(super) runs: usize,
    /// s.
    pub(super) wall: Amount,
    parts: BTreeMap<Cause, Amount>,
    pub(super) operators: BTreeMap<Key, OperatorFacts>,
    /// Means of runs.
    python: PythonLines,
    pub(super) slots: f64,
    pub(super) read_bytes: f64,
    pub(super) tasks: f64,
    /// Of the first run, bytes.
    pub(super) heap_bytes: u64,
    /// The part of its waits for CPUs that garbage collection caused, in the first run.
    pub(super) collected: f64,
    /// The other query that had most slots in the first run.
    beside: Option<String>,
}

/// Half the width of a 95% interval in standard deviations.
const NORMAL: f64 = 1.96;
/// A part that is smaller than this part of the larger wall time goes into the remainder.
const LEAST: f64 = 0.005;

impl Side {
    /// Of runs, at least one.
    pub(super) fn new(runs: &[Run]) -> Self {
        let causes: BTreeSet<&Cause> = runs.iter().flat_map(|run| run.parts.keys()).collect();
        let amounts = |of: &dyn Fn(&Run) -> Amount| mean(&runs.iter().map(of).collect::<Vec<_>>());
        let parts = causes.into_iter().map(|cause| {
            let of = |run: &Run| run.parts.get(cause).copied().unwrap_or_default();
            (cause.clone(), amounts(&of))
        });
        let plain = |of: fn(&Run) -> f64| amounts(&|run| Amount::exact(of(run)));
        let mut operators = BTreeMap::new();
        for run in runs {
            for (key, facts) in &run.operators {
                let known = operators
                    .entry(key.clone())
                    .or_insert_with(|| OperatorFacts {
                        rows: Some(0),
                        kept: Some(0),
                        ..facts.clone()
                    });
                let sum = |a: Option<i64>, b: Option<i64>| Some(a?.saturating_add(b?));
                known.rows = sum(known.rows, facts.rows);
                known.kept = sum(known.kept, facts.kept);
            }
        }
        for facts in operators.values_mut() {
            let mean = |rows: i64| rows / runs.len().max(1) as i64;
            facts.rows = facts.rows.map(mean);
            facts.kept = facts.kept.map(mean);
        }
        Self {
            runs: runs.len(),
            wall: plain(|run| run.wall_s),
            parts: parts.collect(),
            operators,
            python: python_means(runs),
            slots: plain(|run| run.slots).s,
            read_bytes: plain(|run| run.read_bytes as f64).s,
            tasks: plain(|run| run.tasks as f64).s,
            heap_bytes: runs.first().map_or(0, |run| run.heap_bytes),
            collected: runs.first().map_or(0.0, |run| run.collected),
            beside: runs.first().and_then(|run| run.beside.clone()),
        }
    }

    pub(super) fn part(&self, cause: &Cause) -> Amount {
        self.parts.get(cause).copied().unwrap_or_default()
    }

    /// Where the wall time went, most first; small parts are put together.
    pub(super) fn parts(&self) -> Vec<Part> {
        let mut found = Vec::new();
        let nothing = PythonLines::new();
        for (cause, amount) in &self.parts {
            let (kind, what) = describe(cause, |key| self.operators.get(key));
            let part = Found::without_times(kind, what, *amount);
            let line = python_line(cause, &nothing, &self.python);
            found.push(part.of_cause(cause, self).with_line(line));
        }
        finish(found, self.wall.s, self.wall.s)
    }
}

/// A part before small ones are put together.
pub(super) struct Found {
    kind: CauseKind,
    what: String,
    amount: Amount,
    /// Seconds before and after.
    times: Option<[f64; 2]>,
    /// Whether a line of Python code has most of it.
    has_line: bool,
    /// Whether tasks waited for a CPU.
    is_cpu_wait: bool,
}

impl Found {
    /// Of causes whose times are known.
    pub(super) fn new(kind: CauseKind, what: String, left: Left) -> Self {
        Self {
            kind,
            what,
            amount: left.change,
            times: Some([left.before, left.after]),
            has_line: false,
            is_cpu_wait: false,
        }
    }

    /// Of causes that have no time of their own, or are not compared.
    pub(super) fn without_times(kind: CauseKind, what: String, amount: Amount) -> Self {
        Self {
            kind,
            what,
            amount,
            times: None,
            has_line: false,
            is_cpu_wait: false,
        }
    }

    /// Says that it is about waits for CPUs.
    pub(super) fn behind_cpus(mut self) -> Self {
        self.is_cpu_wait = true;
        self
    }

    /// Adds seconds of other causes; its own times are not comparable then.
    pub(super) fn add(&mut self, amount: Amount) {
        self.amount.add(amount);
        if amount.s > 0.0 {
            self.times = None;
        }
    }

    /// Names the other query that had most slots, if it is about these.
    pub(super) fn of_cause(mut self, cause: &Cause, side: &Side) -> Self {
        self.is_cpu_wait = *cause == Cause::Wait(WaitReason::RunQueue);
        if let (Cause::TakenSlots, Some(query)) = (cause, &side.beside) {
            self.what += &format!(", most of them {}", name(query));
        }
        self
    }

    /// Names the line of Python code that has most of it, if there is one.
    fn with_line(mut self, line: Option<&str>) -> Self {
        if let Some(line) = line {
            self.what += &format!(", most of it in {line}");
            self.has_line = true;
        }
        self
    }
}

/// The mean of estimates, with the larger of the variance that they have by themselves and that between them.
fn mean(amounts: &[Amount]) -> Amount {
    let count = amounts.len().max(1) as f64;
    let s = amounts.iter().map(|amount| amount.s).sum::<f64>() / count;
    let own = amounts.iter().map(|amount| amount.variance).sum::<f64>() / count / count;
    let squares: f64 = amounts.iter().map(|amount| (amount.s - s).powi(2)).sum();
    let between = if amounts.len() > 1 {
        squares / (count - 1.0) / count
    } else {
        0.0
    };
    Amount {
        s,
        variance: own.max(between),
    }
}

/// The parts of the difference `after` − `before`, largest first.
pub(super) fn difference(before: &Side, after: &Side) -> Vec<Part> {
    let causes: BTreeSet<&Cause> = before.parts.keys().chain(after.parts.keys()).collect();
    let mut left: Remaining = causes
        .into_iter()
        .map(|cause| {
            let (old, new) = (before.part(cause), after.part(cause));
            let left = Left {
                before: old.s,
                after: new.s,
                change: Amount {
                    s: new.s - old.s,
                    variance: old.variance + new.variance,
                },
            };
            (cause.clone(), left)
        })
        .collect();
    known::share_run_queue(&mut left);
    let mut found = Vec::new();
    found.extend(known::not_fused(before, after, &mut left));
    found.extend(known::another_plan(before, after, &mut left));
    found.extend(known::slots(before, after, &mut left));
    found.extend(known::heap(before, after, &mut left));
    found.extend(known::more_data(before, after, &mut left));
    found.extend(known::more_tasks(before, after, &mut left));
    found.extend(known::contention(&mut left));
    found.extend(known::taken_slots(after, &mut left));
    known::within_loops(before, after, &mut left);
    for (cause, left) in left {
        let facts = |key: &Key| after.operators.get(key).or(before.operators.get(key));
        let (kind, what) = describe(&cause, facts);
        let line = python_line(&cause, &before.python, &after.python);
        let part = Found::new(kind, what, left).of_cause(&cause, after);
        found.push(part.with_line(line));
    }
    finish(
        found,
        after.wall.s - before.wall.s,
        before.wall.s.max(after.wall.s),
    )
}

/// The parts in order of size, those that may be chance behind the others. Parts below [`LEAST`] of `wall` become one, with what
/// rounding leaves of `whole`; if that is too little for a row, it is added to the first part.
fn finish(found: Vec<Found>, whole: f64, wall: f64) -> Vec<Part> {
    let (large, small): (Vec<Found>, Vec<Found>) = found
        .into_iter()
        .partition(|found| found.amount.s.abs() >= LEAST * wall);
    let mut parts: Vec<Part> = large.iter().map(part).collect();
    let may_be_chance = |part: &Part| part.seconds_low * part.seconds_high <= 0.0;
    parts.sort_by(|a, b| {
        let by_size = b.seconds.abs().total_cmp(&a.seconds.abs());
        may_be_chance(a).cmp(&may_be_chance(b)).then(by_size)
    });
    let sum: f64 = parts.iter().map(|part| part.seconds).sum();
    let mut rest = Amount::default();
    small.iter().for_each(|found| rest.add(found.amount));
    rest.s = whole - sum;
    if rest.s.abs() < 0.0005 {
        // No one would see a row for it.
        if let Some(first) = parts.first_mut() {
            first.seconds += rest.s;
            first.seconds_low += rest.s;
            first.seconds_high += rest.s;
        }
    } else {
        let what = "everything else".to_owned();
        parts.push(part(&Found::without_times(
            CauseKind::Remainder,
            what,
            rest,
        )));
    }
    parts
}

fn part(found: &Found) -> Part {
    let half = NORMAL * found.amount.variance.sqrt();
    Part {
        kind: found.kind,
        what: found.what.clone(),
        seconds: found.amount.s,
        seconds_low: found.amount.s - half,
        seconds_high: found.amount.s + half,
        before_s: found.times.map(|[before, _]| before),
        after_s: found.times.map(|[_, after]| after),
        command: None,
        has_line: found.has_line,
        is_cpu_wait: found.is_cpu_wait,
    }
}
