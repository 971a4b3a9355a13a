//! Waits for locks, attributed to the holders and to what these wait for.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn row(task: u64, kind: Kind, units: f64, blocked: i64) -> Interval {
    Interval {
        task: TaskId(task),
        kind,
        span: span(0, 10),
        units,
        blocked_ns: blocked * S,
    }
}

/// In 10 s, query 1 waits for locks for 8 s. Queries 2 and 3 use the CPUs for 5 s each.
fn waiting() -> Tables {
    let mut tables = Tables::default();
    for id in [1, 2, 3] {
        query(&mut tables, id, &[(0, &[], span(0, 10))]);
        task(&mut tables, id, stage(id, 0), 0, span(0, 10));
    }
    tables.intervals = vec![
        row(1, Kind::RunQueue, 1.0, 0),
        row(1, Kind::Lock, 0.0, 8),
        row(2, Kind::RunQueue, 5.0, 0),
        row(3, Kind::RunQueue, 5.0, 0),
    ];
    tables
}

fn held(task: u64, holder: Holder, seconds: f64) -> Held {
    Held {
        task: TaskId(task),
        span: span(0, 10),
        holder,
        seconds,
    }
}

fn blamed(tables: Tables, own_tasks: bool) -> BTreeMap<Culprit, f64> {
    let workload = Workload::new(tables).unwrap();
    let options = Options {
        victims: [QueryId(1)].into(),
        own_tasks,
        ..Options::default()
    };
    let mut sums = BTreeMap::new();
    for path in Blame::new(&workload, &options).explanations(&workload) {
        *sums.entry(path.culprit).or_default() += path.seconds;
    }
    sums
}

fn check(found: &BTreeMap<Culprit, f64>, expected: &[(Culprit, f64)]) {
    for (culprit, seconds) in expected {
        let its = found.get(culprit).copied().unwrap_or(0.0);
        assert!((its - seconds).abs() < 1e-9, "{culprit:?}: {found:?}");
    }
    let all: f64 = expected.iter().map(|(_, seconds)| seconds).sum();
    assert!(
        (found.values().sum::<f64>() - all).abs() < 1e-9,
        "{found:?}"
    );
}

const SECOND: Culprit = Culprit::Query(QueryId(2));
const THIRD: Culprit = Culprit::Query(QueryId(3));

#[test]
fn the_holder_of_a_lock_is_to_blame_and_not_who_computes() {
    let mut tables = waiting();
    // By use, both are equal.
    check(
        &blamed(tables.clone(), true),
        &[(SECOND, 4.0), (THIRD, 4.0)],
    );
    tables.held = vec![held(1, Holder::Task(TaskId(2)), 8.0)];
    check(&blamed(tables.clone(), true), &[(SECOND, 8.0)]);
    // The thread counts as waiting until it has a CPU: not more than the wait.
    tables.held[0].seconds = 9.5;
    check(&blamed(tables.clone(), true), &[(SECOND, 8.0)]);
    // What is not known is shared out by use.
    tables.held[0].seconds = 6.0;
    check(
        &blamed(tables.clone(), true),
        &[(SECOND, 7.0), (THIRD, 1.0)],
    );
    let jvm = KnownProcess::Jvm;
    tables.held = vec![held(1, Holder::Known(jvm), 8.0)];
    check(&blamed(tables, true), &[(Culprit::Known(jvm), 8.0)]);
}

#[test]
fn what_the_holder_waits_for_is_passed_on() {
    let mut tables = waiting();
    tables.held = vec![held(1, Holder::Task(TaskId(2)), 8.0)];
    // The holder waits half of its time for a CPU. Its competitors have used 1 and 5 s.
    tables.intervals.push(row(2, Kind::RunQueue, 0.0, 5));
    let itself = Culprit::Query(QueryId(1));
    let expected = [(SECOND, 4.0), (THIRD, 4.0 * 5.0 / 6.0), (itself, 4.0 / 6.0)];
    check(&blamed(tables.clone(), true), &expected);
    // Others have the victim's part, too: by use.
    check(
        &blamed(tables.clone(), false),
        &[
            (SECOND, 4.0 + 2.0 / 6.0),
            (THIRD, 4.0 * 5.0 / 6.0 + 2.0 / 6.0),
        ],
    );
    // What the holder itself waited for known locks is not time in which it held this one: it holds it for 2 s, and waits in them.
    tables.intervals.pop();
    tables.intervals.push(row(2, Kind::IoRead, 10.0, 2));
    tables.intervals.push(row(2, Kind::Lock, 0.0, 8));
    tables.intervals.push(row(3, Kind::IoRead, 30.0, 0));
    tables.held.push(held(2, Holder::Task(TaskId(3)), 8.0));
    check(&blamed(tables, true), &[(THIRD, 8.0)]);
}

#[test]
fn impossible_holders_are_refused() {
    for (task, holder, seconds) in [(9, 2, 1.0), (1, 9, 1.0), (1, 2, f64::NAN), (1, 2, -1.0)] {
        let mut tables = waiting();
        tables.held = vec![held(task, Holder::Task(TaskId(holder)), seconds)];
        assert!(Workload::new(tables).is_err(), "{task} {holder} {seconds}");
    }
}

proptest! {
    /// Also if two tasks wait for each other, and while collections stop them.
    #[test]
    fn holders_change_who_is_to_blame_and_not_for_how_much(
        held_rows in prop::collection::vec((1..4u64, 0..4u64, 0.0..9.0), 0..6),
        waits in prop::collection::vec((1..4u64, 0..5usize, 0.0..5.0, 0..3i64), 0..8),
        weight in prop_oneof![Just(1.0), Just(3.0)],
        own_tasks: bool,
        by_window: bool,
        weighted: bool,
    ) {
        let mut tables = waiting();
        tables.queries[1].weight = weight;
        let kinds = [Kind::Lock, Kind::RunQueue, Kind::Pause, Kind::IoRead, Kind::ExecutionMemory];
        for (task, kind, units, blocked) in waits {
            tables.intervals.push(row(task, kinds[kind], units, blocked));
        }
        for (task, holder, seconds) in held_rows {
            let holder = match holder {
                0 => Holder::Known(KnownProcess::Jvm),
                task => Holder::Task(TaskId(task)),
            };
            tables.held.push(held(task, holder, seconds));
        }
        tables.heartbeats = vec![Heartbeat { host: HostId(0), at: 4 * S }];
        let workload = Workload::new(tables).unwrap();
        let split = if by_window { Split::ByWindow } else { Split::Pooled };
        let options = Options { own_tasks, split, weighted, stages: VictimStages::All, ..Options::default() };
        let mut found: BTreeMap<QueryId, f64> = BTreeMap::new();
        for path in Blame::new(&workload, &options).explanations(&workload) {
            prop_assert!(path.seconds >= 0.0 && path.seconds.is_finite());
            *found.entry(path.victim).or_default() += path.seconds;
        }
        for id in [1, 2, 3] {
            let rows = workload.tables().intervals.iter();
            let rows = rows.filter(|row| row.task == TaskId(id));
            let blocked: f64 = rows.map(|row| row.blocked_ns as f64 / 1e9).sum();
            let its = found.get(&QueryId(id)).copied().unwrap_or(0.0);
            prop_assert!((its - blocked).abs() < 1e-6, "{its} of {blocked} s");
        }
    }
}
