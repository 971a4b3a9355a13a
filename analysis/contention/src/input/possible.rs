//! Rows of a profile that can have happened: what a damaged one holds must not become an answer.

use unfuse_format::{CachedRow, HostRow, IntervalRow, StageAttempt, StageRow, TaskRow};
use unfuse_postprocess::Spell;

use super::profile::Recorded;
use crate::workload::LATEST;

const NS_PER_MS: i64 = 1_000_000;

/// Leaves out rows with times before 1970 or after 2096, with negative durations, and of stages with negative numbers;
/// says of how many.
pub(super) fn keep(recorded: &mut Recorded) -> Option<String> {
    let mut left_out = 0;
    let mut retained = |before: usize, after: usize| left_out += before - after;
    macro_rules! retain {
        ($table:ident, $possible:expr) => {
            let before = recorded.$table.len();
            recorded.$table.retain($possible);
            retained(before, recorded.$table.len());
        };
    }
    retain!(stages, |key, row| stage(key, row));
    retain!(tasks, task);
    retain!(intervals, interval);
    retain!(spells, spell);
    retain!(hosts, host);
    retain!(cached, cached);
    (left_out > 0).then(|| {
        format!(
            "{left_out} rows are left out, as they cannot be: times before 1970 or after 2096, negative durations, or stages \
             with negative numbers. The profile is damaged"
        )
    })
}

fn is_time(ns: i64) -> bool {
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

fn interval(row: &IntervalRow) -> bool {
    let times = [row.start_ns, row.end_ns, row.blocked_ns];
    row.stage >= 0 && row.attempt >= 0 && times.into_iter().all(is_time)
}

fn spell(spell: &Spell) -> bool {
    let times = [spell.start_ns, spell.end_ns];
    spell.stage >= 0 && spell.attempt >= 0 && times.into_iter().all(is_time)
}

fn host(row: &HostRow) -> bool {
    is_time(row.start_ns) && is_time(row.end_ns)
}

fn cached(row: &CachedRow) -> bool {
    is_time_ms(row.since_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

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
        let mut recorded = Recorded {
            // Two stages of one number after it was cut off at 0 would refuse the whole profile.
            stages: BTreeMap::from([
                (key(-2), StageRow::default()),
                (key(-1), StageRow::default()),
                (key(0), late),
                (key(1), StageRow::default()),
            ]),
            tasks: Vec::new(),
            intervals: vec![interval(i64::MIN), interval(i64::MAX), interval(1)],
            spells: Vec::new(),
            hosts: Vec::new(),
            cached: Vec::new(),
        };
        let note = keep(&mut recorded).expect("a note");
        assert!(note.starts_with("5 rows are left out"), "{note}");
        assert_eq!(recorded.stages.into_keys().collect::<Vec<_>>(), [key(1)]);
        assert_eq!(recorded.intervals, [interval(1)]);
    }
}
