//! Drops impossible rows, which damaged profiles contain, so that they do not become answers.

use std::collections::BTreeMap;

use unfuse_format::{
    CachedRow, CpuWaitRow, HostRow, IntervalRow, LockWaitRow, OutsideRow, StageAttempt, StageRow,
    TaskRow, counted,
};
use unfuse_postprocess::TaskInterval;

use crate::workload::LATEST;

const NS_PER_MS: i64 = 1_000_000;

/// Drops impossible rows of the small tables. Returns their number.
pub(super) fn keep_small(
    stages: &mut BTreeMap<StageAttempt, StageRow>,
    hosts: &mut Vec<HostRow>,
    outside: &mut Vec<OutsideRow>,
    cached: &mut Vec<CachedRow>,
) -> usize {
    let count = |stages: &BTreeMap<_, _>, hosts: &Vec<_>, outside: &Vec<_>, cached: &Vec<_>| {
        stages.len() + hosts.len() + outside.len() + cached.len()
    };
    let before = count(stages, hosts, outside, cached);
    stages.retain(|key, row| stage(key, row));
    hosts.retain(host);
    cached.retain(self::cached);
    outside.retain(self::outside);
    before - count(stages, hosts, outside, cached)
}

/// Drops impossible rows of the tasks' tables. Returns their number.
pub(super) fn keep_large(
    tasks: &mut Vec<TaskRow>,
    intervals: &mut Vec<IntervalRow>,
    sampled: &mut Vec<TaskInterval>,
    queued: &mut Vec<CpuWaitRow>,
    held: &mut Vec<LockWaitRow>,
) -> usize {
    let before = tasks.len() + intervals.len() + sampled.len() + queued.len() + held.len();
    tasks.retain(task);
    intervals.retain(interval);
    sampled.retain(self::sampled);
    queued.retain(self::queued);
    held.retain(self::held);
    before - (tasks.len() + intervals.len() + sampled.len() + queued.len() + held.len())
}

/// The note on dropped rows.
pub(super) fn note(left_out: usize) -> Option<String> {
    (left_out > 0).then(|| {
        format!(
            "{} left out, because of impossible values: times before 1970 or after 2096, negative durations, or stages with \
             negative numbers. The profile is damaged",
            counted(left_out, "row")
        )
    })
}

/// Whether a time, ns, is from 1970 to 2096.
pub(super) fn is_time(ns: i64) -> bool {
    (0..=LATEST).contains(&ns)
}

fn is_time_ms(ms: i64) -> bool {
    (0..=LATEST / NS_PER_MS).contains(&ms)
}

fn stage(id: &StageAttempt, row: &StageRow) -> bool {
    let times = [row.submitted_ms, row.completed_ms];
    id.stage >= 0
        && id.attempt >= 0
        && row.parents.iter().all(|parent| *parent >= 0)
        && times.into_iter().flatten().all(is_time_ms)
}

fn task(row: &TaskRow) -> bool {
    row.stage >= 0 && row.attempt >= 0 && is_time_ms(row.launched_ms) && is_time_ms(row.finished_ms)
}

/// Whether a row of a task's use is possible.
pub(super) fn interval(row: &IntervalRow) -> bool {
    let times = [row.start_ns, row.end_ns, row.blocked_ns];
    row.stage >= 0 && row.attempt >= 0 && times.into_iter().all(is_time)
}

fn sampled(row: &TaskInterval) -> bool {
    let times = [row.start_ns, row.end_ns];
    row.stage >= 0 && row.attempt >= 0 && times.into_iter().all(is_time)
}

fn queued(row: &CpuWaitRow) -> bool {
    let times = [row.start_ns, row.end_ns, row.waited_ns];
    row.stage >= 0 && row.attempt >= 0 && times.into_iter().all(is_time)
}

fn held(row: &LockWaitRow) -> bool {
    let times = [row.start_ns, row.end_ns, row.waited_ns];
    row.stage >= 0 && row.attempt >= 0 && times.into_iter().all(is_time)
}

fn host(row: &HostRow) -> bool {
    is_time(row.start_ns) && is_time(row.end_ns)
}

fn outside(row: &OutsideRow) -> bool {
    is_time(row.start_ns) && is_time(row.end_ns)
}

fn cached(row: &CachedRow) -> bool {
    is_time_ms(row.since_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_rows_are_left_out_and_counted() {
        let key = |stage: i32| StageAttempt::new("", stage, 0);
        let late = StageRow {
            completed_ms: Some(i64::MAX),
            ..StageRow::default()
        };
        let interval = |start_ns: i64| IntervalRow {
            start_ns,
            ..IntervalRow::default()
        };
        // Two stages with the same number after clamping to 0 would make the whole profile invalid.
        let mut stages = BTreeMap::from([
            (key(-2), StageRow::default()),
            (key(-1), StageRow::default()),
            (key(0), late),
            (key(1), StageRow::default()),
        ]);
        let left_out = keep_small(
            &mut stages,
            &mut Vec::new(),
            &mut Vec::new(),
            &mut Vec::new(),
        );
        assert_eq!(left_out, 3);
        assert_eq!(stages.into_keys().collect::<Vec<_>>(), [key(1)]);
        let mut intervals = vec![interval(i64::MIN), interval(i64::MAX), interval(1)];
        let left_out = keep_large(
            &mut Vec::new(),
            &mut intervals,
            &mut Vec::new(),
            &mut Vec::new(),
            &mut Vec::new(),
        );
        assert_eq!(intervals, [interval(1)]);
        let note = note(3 + left_out).expect("a note");
        assert!(note.starts_with("5 rows left out"), "{note}");
    }
}
