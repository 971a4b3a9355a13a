//! Causes that are known to explain several parts of a difference: another plan, other slots, another heap, other data.

use std::collections::BTreeMap;

use unfuse_postprocess::{OperatorKind, WaitReason};

use super::CauseKind;
use super::difference::{Found, Side};
use super::parts::{Amount, Cause};
use super::words::{describe, plan_text};
use crate::numbered::Key;
use crate::wait::WaitFacts;
use crate::words::bytes;

/// What no part explains yet, by cause.
pub(super) type Remaining = BTreeMap<Cause, Left>;

/// What no part explains yet of the change of a cause.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Left {
    pub(super) before: f64,
    pub(super) after: f64,
    pub(super) change: Amount,
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

    /// Takes what another part explains, if that is expected to be so many seconds: no more than the change itself, and in its
    /// direction, because what did not grow has no part in it.
    fn take_expected(&mut self, s: f64) -> Amount {
        self.take(s.clamp(self.change.s.min(0.0), self.change.s.max(0.0)))
    }

    /// Takes a part of the change that may be more than all of it.
    fn take(&mut self, s: f64) -> Amount {
        let variance = self.change.variance * (s / self.change.s.abs().max(1e-9)).abs().min(1.0);
        self.change.s -= s;
        Amount { s, variance }
    }

    /// Takes all of the change.
    fn take_all(&mut self) -> Amount {
        std::mem::take(&mut self.change)
    }
}

/// Attributes the waits for a CPU to the work that waited, at the rate of before: each second of work waited so long. Waits above or
/// below that rate are contention that came or went.
pub(super) fn share_run_queue(left: &mut Remaining) {
    const QUEUE: Cause = Cause::Wait(WaitReason::RunQueue);
    let Some(queue) = left.get(&QUEUE).copied() else {
        return;
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

/// Waits for CPUs that others had: more of them than the work explains. Threads for which tasks wait, and the driver's, wait for CPUs
/// as well, so what these take is longer by the same share.
pub(super) fn contention(left: &mut Remaining) -> Option<Found> {
    let queue = left.get(&Cause::Wait(WaitReason::RunQueue))?;
    if queue.change.s <= 0.0 {
        return None;
    }
    let work = left.iter().filter(|(cause, _)| is_work(cause));
    let busy: f64 = work.map(|(_, left)| left.after).sum();
    let share = queue.change.s / (busy + queue.change.s);
    let (kind, what) = describe(&Cause::Wait(WaitReason::RunQueue), |_| None);
    let mut found = Found::new(kind, what, *queue).behind_cpus();
    left.remove(&Cause::Wait(WaitReason::RunQueue));
    for cause in [
        Cause::Wait(WaitReason::Safepoint),
        Cause::Wait(WaitReason::Lock),
        Cause::Wait(WaitReason::Memory),
        Cause::Planning,
        Cause::BetweenStages,
        Cause::AfterStages,
        Cause::Scheduling,
    ] {
        let left = left.get_mut(&cause).filter(|left| left.change.s > 0.0);
        if let Some(left) = left {
            found.add(left.take_expected(share * left.after));
        }
    }
    Some(found)
}

/// Whether tasks compute.
fn is_work(cause: &Cause) -> bool {
    matches!(
        cause,
        Cause::Operator(_) | Cause::Heading(_) | Cause::StageCpu(_)
    )
}

/// Operators that only one of the plans has, and what moving rows between stages changes with them.
pub(super) fn another_plan(before: &Side, after: &Side, left: &mut Remaining) -> Option<Found> {
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
pub(super) fn slots(before: &Side, after: &Side, left: &mut Remaining) -> Option<Found> {
    let (old, new) = (before.slots, after.slots);
    if old <= 0.0 || new <= 0.0 || (old - new).abs() < 0.5 {
        return None;
    }
    let mut amount = Amount::default();
    for (cause, left) in left.iter_mut().filter(|(cause, _)| cause.is_busy()) {
        amount.add(match cause {
            // The query's own tasks wait for each other.
            Cause::Wait(WaitReason::RunQueue) if (left.change.s < 0.0) == (new < old) => {
                left.take_all()
            }
            Cause::Wait(WaitReason::RunQueue) => continue,
            _ => left.take_expected(left.before * (old / new - 1.0)),
        });
    }
    let which = if new < old { "fewer" } else { "more" };
    let what = format!("{which} slots: {old:.0} before, {new:.0} now");
    Some(Found::without_times(CauseKind::Slots, what, amount))
}

/// Whether two heaps, bytes, differ by more than a tenth, and are both known.
pub(super) fn heaps_differ(old: u64, new: u64) -> bool {
    old > 0 && new > 0 && !(0.9..1.1).contains(&(new as f64 / old as f64))
}

/// What a smaller or larger heap changes: collections, with the CPUs that these have beside the tasks, and spills.
pub(super) fn heap(before: &Side, after: &Side, left: &mut Remaining) -> Option<Found> {
    let (old, new) = (before.heap_bytes, after.heap_bytes);
    if !heaps_differ(old, new) {
        return None;
    }
    let smaller = new < old;
    let mut amount = Amount::default();
    for cause in [
        Cause::Wait(WaitReason::Safepoint),
        Cause::Wait(WaitReason::Memory),
        Cause::Spill,
    ] {
        let left = left.get_mut(&cause);
        if let Some(left) = left.filter(|left| (left.change.s > 0.0) == smaller) {
            amount.add(left.take_all());
        }
    }
    if let Some(queue) = left.get_mut(&Cause::Wait(WaitReason::RunQueue)) {
        let behind = |side: &Side| side.collected * side.part(&Cause::Wait(WaitReason::RunQueue)).s;
        amount.add(queue.take_expected(behind(after) - behind(before)));
    }
    let which = if smaller { "smaller" } else { "larger" };
    let [old, new] = [old, new].map(bytes);
    let what = format!("a {which} heap: {new}, before {old}; garbage collection and spills");
    Some(Found::without_times(CauseKind::Memory, what, amount))
}

/// The operators of each generated loop that has several.
fn loops(before: &Side, after: &Side, left: &Remaining) -> BTreeMap<i32, Vec<Cause>> {
    let mut loops: BTreeMap<i32, Vec<Cause>> = BTreeMap::new();
    for cause in left.keys() {
        let Cause::Operator(key) = cause else {
            continue;
        };
        let of = |side: &Side| {
            side.operators
                .get(key)
                .and_then(|facts| facts.generated_loop)
        };
        // Where only one side has generated code, its loops are not comparable.
        if let Some(number) = of(after).filter(|number| of(before) == Some(*number)) {
            loops.entry(number).or_default().push(cause.clone());
        }
    }
    loops.retain(|_, causes| causes.len() > 1);
    loops
}

/// Sets off what operators of one generated loop took less against what others of it took more: the compiler decides anew in each
/// JVM at which of their lines the code between two described addresses counts.
pub(super) fn within_loops(before: &Side, after: &Side, left: &mut Remaining) {
    for causes in loops(before, after, left).values() {
        let sum = |is: fn(f64) -> bool| -> f64 {
            let changes = causes.iter().map(|cause| left[cause].change.s);
            changes.filter(|s| is(*s)).sum()
        };
        let (more, less) = (sum(|s| s > 0.0), sum(|s| s < 0.0));
        for cause in causes {
            let Some(Left { change, .. }) = left.get_mut(cause) else {
                continue;
            };
            let own = if change.s > 0.0 { more } else { less };
            let part = ((more + less) / own).clamp(0.0, 1.0);
            change.s *= if part.is_finite() { part } else { 1.0 };
        }
    }
}

/// What more or fewer rows change: of operators by their own rows, of all else that tasks do by the rows of the scans.
pub(super) fn more_data(before: &Side, after: &Side, left: &mut Remaining) -> Option<Found> {
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
    let growth = |cause: &Cause| {
        let own = |key: &Key| {
            let rows = |side: &Side| Some(side.operators.get(key)?.rows? as f64);
            ratio(rows(before)?, rows(after)?)
        };
        match cause {
            Cause::Operator(key) => own(key).unwrap_or(all),
            _ => all,
        }
    };
    let mut amount = Amount::default();
    let loops = loops(before, after, left);
    for causes in loops.values() {
        let expected = causes
            .iter()
            .map(|cause| left[cause].before * (growth(cause) - 1.0));
        let expected: Vec<f64> = expected.collect();
        let sum: f64 = expected.iter().sum();
        let change: f64 = causes.iter().map(|cause| left[cause].change.s).sum();
        let part = sum.clamp(change.min(0.0), change.max(0.0)) / sum;
        if !part.is_finite() {
            continue;
        }
        for (cause, s) in causes.iter().zip(expected) {
            if let Some(left) = left.get_mut(cause) {
                amount.add(left.take(s * part));
            }
        }
    }
    let is_alone = |cause: &Cause| !loops.values().flatten().any(|of| of == cause);
    for (cause, left) in left.iter_mut() {
        if cause.is_busy() && is_alone(cause) {
            amount.add(left.take_expected(left.before * (growth(cause) - 1.0)));
        }
    }
    if rows.is_some() && !(0.995..1.005).contains(&all) && filters_keep_as_many(before, after) {
        let which = if all > 1.0 { "fewer" } else { "more" };
        let what = format!(
            "filters skip {which} rows in the scan: {all:.2} times the rows come out of it, and as many pass the filters \
             (filters are not pushed down, or the data is in another order)"
        );
        return Some(Found::without_times(CauseKind::AnotherPlan, what, amount));
    }
    let change = match all {
        ratio if ratio > 1.005 => format!("more data: {ratio:.2} times the rows"),
        ratio if ratio < 0.995 => format!("less data: {ratio:.2} times the rows"),
        // Joins and filters may still let more rows through.
        _ => "other data: as many rows are read, and operators get others of them".to_owned(),
    };
    Some(Found::without_times(CauseKind::Data, change, amount))
}

/// Slots that other queries had, or had before. Where slots changed only from idle to theirs, or back, the query was not slower.
pub(super) fn taken_slots(after: &Side, left: &mut Remaining) -> Option<Found> {
    let mut taken = left.remove(&Cause::TakenSlots)?.change;
    for cause in [Cause::LastTasks, Cause::FewTasks] {
        let Some(idle) = left.get_mut(&cause) else {
            continue;
        };
        let change = idle.change.s;
        let same = change.abs().min(taken.s.abs());
        if change * taken.s < 0.0 {
            idle.change.s -= same.copysign(change);
            taken.s -= same.copysign(taken.s);
        }
    }
    let (kind, what) = describe(&Cause::TakenSlots, |_| None);
    Some(Found::without_times(kind, what, taken).of_cause(&Cause::TakenSlots, after))
}

/// CPU time that a task takes whatever its rows are.
const OF_EACH_TASK: [&str; 4] = [
    "task: deserialization",
    "task: serialization",
    "task: reporting",
    "task: other",
];

/// What more or fewer tasks change by themselves: launching, preparing and reporting them.
pub(super) fn more_tasks(before: &Side, after: &Side, left: &mut Remaining) -> Option<Found> {
    let (old, new) = (before.tasks, after.tasks);
    if old <= 0.0 || new <= 0.0 || (0.67..1.5).contains(&(new / old)) {
        return None;
    }
    let mut amount = Amount::default();
    for (cause, left) in left.iter_mut() {
        let is_of_each = match cause {
            Cause::Scheduling => true,
            Cause::Heading(heading) => OF_EACH_TASK.contains(heading),
            _ => false,
        };
        if is_of_each {
            amount.add(left.take_expected(left.before * (new / old - 1.0)));
        }
    }
    let which = if new > old { "more" } else { "fewer" };
    let what = format!(
        "{which} tasks: {old:.0} before, {new:.0} now; launching, preparing and reporting them"
    );
    Some(Found::without_times(CauseKind::Scheduling, what, amount))
}

/// Whether as many rows pass the filters of both sides.
fn filters_keep_as_many(before: &Side, after: &Side) -> bool {
    let kept = |side: &Side| -> Option<f64> {
        let facts = side.operators.values();
        let filters = facts.filter(|facts| facts.kind == OperatorKind::Filter);
        let rows: Option<Vec<i64>> = filters.map(|facts| facts.kept).collect();
        let sum: f64 = rows?.into_iter().map(|rows| rows as f64).sum();
        (sum > 0.0).then_some(sum)
    };
    let both = kept(before).zip(kept(after));
    both.is_some_and(|(old, new)| (new / old - 1.0).abs() < 0.005)
}

/// Operators that were fused into a generated loop before and are not now, or the other way round, with those that only convert
/// rows for such loops.
pub(super) fn not_fused(before: &Side, after: &Side, left: &mut Remaining) -> Option<Found> {
    let mut sum = Left::default();
    let (mut lost, mut won) = (0usize, 0usize);
    let changes = before.operators.iter().any(|(key, facts)| {
        let now = after.operators.get(key);
        now.is_some_and(|now| now.fused != facts.fused)
    });
    let fused = |side: &Side, key: &Key| side.operators.get(key).map(|facts| facts.fused);
    // Without generated code above them, scans make rows themselves.
    let converted = |side: &Side| side.operators.keys().any(|key| converts(&key.0));
    let scans_change = changes && converted(before) != converted(after);
    left.retain(|cause, left| {
        let Cause::Operator(key) = cause else {
            return true;
        };
        let facts = after.operators.get(key);
        if scans_change && facts.is_some_and(|facts| facts.kind == OperatorKind::Scan) {
            sum.add(*left);
            return false;
        }
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
