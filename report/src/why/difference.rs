//! What made the difference between the runs of a query before and after: parts that add up to it.

use std::collections::{BTreeMap, BTreeSet};

use unfuse_postprocess::{OperatorKind, WaitReason};

use super::parts::{Amount, Cause, OperatorFacts, PythonLines, Run};
use super::words::{describe, plan_text};
use super::{CauseKind, Part};
use crate::numbered::Key;
use crate::wait::WaitFacts;

/// Runs of a query on one side, as their means.
#[derive(Debug, Clone)]
pub(super) struct Side {
    pub(super) runs: usize,
    /// s.
    pub(super) wall: Amount,
    parts: BTreeMap<Cause, Amount>,
    operators: BTreeMap<Key, OperatorFacts>,
    /// Means of runs.
    python: PythonLines,
    slots: f64,
    read_bytes: f64,
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
                        ..facts.clone()
                    });
                known.rows = known.rows.zip(facts.rows).map(|(a, b)| a.saturating_add(b));
            }
        }
        for facts in operators.values_mut() {
            facts.rows = facts.rows.map(|rows| rows / runs.len().max(1) as i64);
        }
        Self {
            runs: runs.len(),
            wall: plain(|run| run.wall_s),
            parts: parts.collect(),
            operators,
            python: python_means(runs),
            slots: plain(|run| run.slots).s,
            read_bytes: plain(|run| run.read_bytes as f64).s,
        }
    }

    fn part(&self, cause: &Cause) -> Amount {
        self.parts.get(cause).copied().unwrap_or_default()
    }

    /// Where the wall time went, most first; small parts are put together.
    pub(super) fn parts(&self) -> Vec<Part> {
        let mut found = Vec::new();
        let nothing = PythonLines::new();
        for (cause, amount) in &self.parts {
            let (kind, what) = describe(cause, |key| self.operators.get(key));
            let part = Found::without_times(kind, what, *amount);
            found.push(part.with_line(python_line(cause, &nothing, &self.python)));
        }
        finish(found, self.wall.s, self.wall.s)
    }
}

/// The means of the lines of several runs.
fn python_means(runs: &[Run]) -> PythonLines {
    let mut means = PythonLines::new();
    let of_runs = runs.iter().flat_map(|run| &run.python);
    for (key, lines) in of_runs {
        let sums = means.entry(key.clone()).or_default();
        for (line, ns) in lines {
            *sums.entry(line.clone()).or_default() += ns / runs.len() as f64;
        }
    }
    means
}

/// The line of Python code that has most of the time of a cause, or most of what it takes more than before:
/// `clean(job.py:12)`. `None` if no line has half of it.
fn python_line<'a>(
    cause: &Cause,
    before: &'a PythonLines,
    after: &'a PythonLines,
) -> Option<&'a str> {
    let is_wanted = |key: &Key| match cause {
        Cause::Operator(own) => own == key,
        // A task waits while its worker computes.
        Cause::Wait(WaitReason::Python) => true,
        _ => false,
    };
    let mut changes: BTreeMap<&str, f64> = BTreeMap::new();
    for (lines, sign) in [(before, -1.0), (after, 1.0)] {
        let wanted = lines.iter().filter(|(key, _)| is_wanted(key));
        for (line, ns) in wanted.flat_map(|(_, lines)| lines) {
            *changes.entry(line).or_default() += sign * ns;
        }
    }
    // What went away explains a query that became faster.
    let all: f64 = changes.values().sum();
    let most = changes
        .iter()
        .max_by(|a, b| (*a.1 * all).total_cmp(&(*b.1 * all)));
    match most {
        Some((line, ns)) if ns / all >= 0.5 => Some(*line),
        _ => None,
    }
}

/// A part before small ones are put together.
struct Found {
    kind: CauseKind,
    what: String,
    amount: Amount,
    /// Seconds before and after.
    times: Option<[f64; 2]>,
    /// Whether a line of Python code has most of it.
    has_line: bool,
}

impl Found {
    /// Of causes whose times are known.
    fn new(kind: CauseKind, what: String, left: Left) -> Self {
        Self {
            kind,
            what,
            amount: left.change,
            times: Some([left.before, left.after]),
            has_line: false,
        }
    }

    /// Of causes that have no time of their own, or are not compared.
    fn without_times(kind: CauseKind, what: String, amount: Amount) -> Self {
        Self {
            kind,
            what,
            amount,
            times: None,
            has_line: false,
        }
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
    let mut left: BTreeMap<Cause, Left> = causes
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
    share_run_queue(&mut left);
    let mut found = Vec::new();
    found.extend(not_fused(before, after, &mut left));
    found.extend(another_plan(before, after, &mut left));
    found.extend(slots(before, after, &mut left));
    found.extend(more_data(before, after, &mut left));
    for (cause, left) in left {
        let facts = |key: &Key| after.operators.get(key).or(before.operators.get(key));
        let (kind, what) = describe(&cause, facts);
        let line = python_line(&cause, &before.python, &after.python);
        found.push(Found::new(kind, what, left).with_line(line));
    }
    finish(
        found,
        after.wall.s - before.wall.s,
        before.wall.s.max(after.wall.s),
    )
}

/// What no part explains yet of the change of a cause.
#[derive(Debug, Clone, Copy, Default)]
struct Left {
    before: f64,
    after: f64,
    change: Amount,
}

impl Left {
    fn add(&mut self, other: Self) {
        self.before += other.before;
        self.after += other.after;
        self.change.add(other.change);
    }

    /// Multiplies all by a factor.
    fn scale(&mut self, factor: f64) {
        self.before *= factor;
        self.after *= factor;
        self.change.s *= factor;
        self.change.variance *= factor * factor;
    }

    /// Subtracts seconds that another part explains, and returns them.
    fn take(&mut self, s: f64) -> f64 {
        self.change.s -= s;
        s
    }
}

/// Attributes the waits for a CPU to the work that waited, at the rate of before: each second of work waited so long. Waits above or
/// below that rate are contention that came or went.
fn share_run_queue(left: &mut BTreeMap<Cause, Left>) {
    const QUEUE: Cause = Cause::Wait(WaitReason::RunQueue);
    let Some(queue) = left.get(&QUEUE).copied() else {
        return;
    };
    let is_work = |cause: &Cause| {
        matches!(
            cause,
            Cause::Operator(_) | Cause::Heading(_) | Cause::StageCpu(_)
        )
    };
    let sum = |of: fn(&Left) -> f64| -> f64 {
        let work = left.iter().filter(|(cause, _)| is_work(cause));
        work.map(|(_, left)| of(left)).sum()
    };
    let (old, new) = (sum(|left| left.before), sum(|left| left.after));
    if old <= 0.0 {
        return;
    }
    // Not more than these waits now are.
    let ratio = (queue.before / old).min(if new > 0.0 { queue.after / new } else { 0.0 });
    for (cause, left) in left.iter_mut() {
        if is_work(cause) {
            left.scale(1.0 + ratio);
        } else if *cause == QUEUE {
            left.before -= ratio * old;
            left.after -= ratio * new;
            left.change.s = left.after - left.before;
        }
    }
}

/// Operators that only one of the plans has, and what moving rows between stages changes with them.
fn another_plan(before: &Side, after: &Side, left: &mut BTreeMap<Cause, Left>) -> Option<Found> {
    let only = |side: &Side, other: &Side| -> Vec<Key> {
        let keys = side
            .operators
            .iter()
            .filter(|(key, facts)| !facts.passes && !other.operators.contains_key(*key));
        keys.map(|(key, _)| key.clone()).collect()
    };
    let is_left = |key: &Key| left.contains_key(&Cause::Operator(key.clone())) || !converts(&key.0);
    let (mut gone, mut come) = (only(before, after), only(after, before));
    gone.retain(is_left);
    come.retain(is_left);
    if gone.is_empty() && come.is_empty() {
        return None;
    }
    let names = |side: &Side, keys: &[Key]| -> BTreeMap<String, usize> {
        let mut names = BTreeMap::new();
        for facts in keys.iter().filter_map(|key| side.operators.get(key)) {
            *names.entry(facts.name.clone()).or_default() += 1;
        }
        names
    };
    let (gone_names, come_names) = (names(before, &gone), names(after, &come));
    let mut sum = Left::default();
    let is_moving = |cause: &Cause| {
        matches!(
            cause,
            Cause::BetweenStages
                | Cause::Scheduling
                | Cause::FewTasks
                | Cause::LastTasks
                | Cause::Heading(_)
        ) || matches!(cause, Cause::Wait(reason) if WaitFacts::from_reason(*reason).moves_rows)
    };
    let moves_rows = |key: &Key| {
        let facts = after.operators.get(key).or(before.operators.get(key));
        facts.is_some_and(|facts| matches!(facts.kind, OperatorKind::Exchange | OperatorKind::Sort))
    };
    // Where only the text of an operator differs, the stages are the same.
    let stages_differ = gone_names != come_names;
    left.retain(|cause, left| {
        let is_of_plan = match cause {
            Cause::Operator(key) if gone.contains(key) || come.contains(key) => true,
            Cause::Operator(key) => stages_differ && moves_rows(key),
            // Stages with these operators are in one of the plans only.
            Cause::StageCpu(_) => stages_differ && (left.before == 0.0 || left.after == 0.0),
            cause => stages_differ && is_moving(cause),
        };
        if is_of_plan {
            sum.add(*left);
        }
        !is_of_plan
    });
    let what = plan_text(&gone_names, &come_names);
    Some(Found::new(CauseKind::AnotherPlan, what, sum))
}

/// What fewer or more slots change of the time in which tasks occupy them.
fn slots(before: &Side, after: &Side, left: &mut BTreeMap<Cause, Left>) -> Option<Found> {
    let (old, new) = (before.slots, after.slots);
    if old <= 0.0 || new <= 0.0 || (old - new).abs() < 0.5 {
        return None;
    }
    let mut s = 0.0;
    for (_, left) in left.iter_mut().filter(|(cause, _)| cause.is_busy()) {
        s += left.take(left.before * (old / new - 1.0));
    }
    let which = if new < old { "fewer" } else { "more" };
    let what = format!("{which} slots: {old:.0} before, {new:.0} now");
    Some(Found::without_times(
        CauseKind::Slots,
        what,
        Amount::exact(s),
    ))
}

/// What more or fewer rows change: of operators by their own rows, of all else that tasks do by the rows of the scans.
fn more_data(before: &Side, after: &Side, left: &mut BTreeMap<Cause, Left>) -> Option<Found> {
    let scanned = |side: &Side| -> Option<f64> {
        let scans = side
            .operators
            .values()
            .filter(|facts| facts.kind == OperatorKind::Scan);
        let rows: Option<Vec<i64>> = scans.map(|facts| facts.rows).collect();
        rows.map(|rows| rows.into_iter().map(|rows| rows.max(0) as f64).sum())
    };
    let ratio = |old: f64, new: f64| (old > 0.0 && new > 0.0).then(|| new / old);
    let rows = scanned(before)
        .zip(scanned(after))
        .and_then(|(old, new)| ratio(old, new));
    let all = rows.or_else(|| ratio(before.read_bytes, after.read_bytes))?;
    let (mut s, mut variance) = (0.0, 0.0);
    for (cause, left) in left.iter_mut().filter(|(cause, _)| cause.is_busy()) {
        let own = |key: &Key| {
            let rows = |side: &Side| Some(side.operators.get(key)?.rows? as f64);
            ratio(rows(before)?, rows(after)?)
        };
        let growth = match cause {
            Cause::Operator(key) => own(key).unwrap_or(all),
            _ => all,
        };
        // No more than the change itself, and in its direction: what did not grow has no part in it.
        let expected = left.before * (growth - 1.0);
        let taken = expected.clamp(left.change.s.min(0.0), left.change.s.max(0.0));
        variance += left.change.variance * (taken / left.change.s.abs().max(1e-9)).abs().min(1.0);
        s += left.take(taken);
    }
    let change = match all {
        ratio if ratio > 1.005 => format!("more data: {ratio:.2} times the rows"),
        ratio if ratio < 0.995 => format!("less data: {ratio:.2} times the rows"),
        // Joins and filters may still let more rows through.
        _ => "other data: as many rows are read, and operators get others of them".to_owned(),
    };
    let amount = Amount { s, variance };
    Some(Found::without_times(CauseKind::Data, change, amount))
}

/// Operators that were fused into a generated loop before and are not now, or the other way round, with those that only convert
/// rows for such loops.
fn not_fused(before: &Side, after: &Side, left: &mut BTreeMap<Cause, Left>) -> Option<Found> {
    let mut sum = Left::default();
    let (mut lost, mut won) = (0usize, 0usize);
    let changes = before.operators.iter().any(|(key, facts)| {
        let now = after.operators.get(key);
        now.is_some_and(|now| now.fused != facts.fused)
    });
    let fused = |side: &Side, key: &Key| side.operators.get(key).map(|facts| facts.fused);
    left.retain(|cause, left| {
        let Cause::Operator(key) = cause else {
            return true;
        };
        match (fused(before, key), fused(after, key)) {
            (Some(true), Some(false)) => lost += 1,
            (Some(false), Some(true)) => won += 1,
            (Some(_), None) | (None, Some(_)) if changes && converts(&key.0) => {}
            _ => return true,
        }
        sum.add(*left);
        false
    });
    let what = match (lost, won) {
        (0, 0) => return None,
        (lost, 0) => format!(
            "whole-stage code generation is off for {}",
            unfuse_format::counted(lost, "operator")
        ),
        (_, won) => format!(
            "whole-stage code generation is on for {}",
            unfuse_format::counted(won, "operator")
        ),
    };
    Some(Found::new(CauseKind::Codegen, what, sum))
}

/// Whether an operator, by its key, only converts between columns and rows.
fn converts(key: &str) -> bool {
    ["ColumnarToRow", "RowToColumnar"]
        .iter()
        .any(|name| key.starts_with(name))
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
    }
}
