//! Differences whose cause is known.

use std::slice::from_ref;

use unfuse_postprocess::WaitReason;

use super::CauseKind;
use super::difference::{Side, difference};
use super::parts::{Amount, Cause, OperatorFacts, Run};
use super::{Part, add_commands};
use crate::numbered::Key;

fn key(name: &str) -> Key {
    (name.to_owned(), 0)
}

/// A run of operators, each with its CPU time, rows and whether it is fused, and of other causes.
fn run(operators: &[(&str, f64, i64, bool)], others: &[(Cause, f64)]) -> Run {
    let amount = |s| Amount { s, variance: 0.01 };
    let mut run = Run {
        slots: 2.0,
        ..Run::default()
    };
    for (name, s, rows, fused) in operators {
        let kind = unfuse_postprocess::Operator::from_name(name).kind;
        let facts = OperatorFacts {
            name: (*name).to_owned(),
            kind,
            fused: *fused,
            rows: Some(*rows),
            ..OperatorFacts::default()
        };
        run.operators.insert(key(name), facts);
        run.parts.insert(Cause::Operator(key(name)), amount(*s));
    }
    for (cause, s) in others {
        run.parts.insert(cause.clone(), amount(*s));
    }
    run.wall_s = run.parts.values().map(|amount| amount.s).sum();
    run
}

/// The parts of a difference, which add up to it: kind, and seconds in tenths.
fn parts(before: &Run, after: &Run) -> Vec<(CauseKind, f64)> {
    let (before, after) = (Side::new(from_ref(before)), Side::new(from_ref(after)));
    let parts = difference(&before, &after);
    let sum: f64 = parts.iter().map(|part| part.seconds).sum();
    assert!(
        (sum - (after.wall.s - before.wall.s)).abs() < 1e-9,
        "{parts:?}"
    );
    let tenths = |part: &Part| (part.kind, (part.seconds * 10.0).round() / 10.0);
    parts.iter().map(tenths).collect()
}

fn base() -> Run {
    run(
        &[
            ("Scan parquet", 1.0, 1000, true),
            ("BroadcastHashJoin", 2.0, 1000, true),
        ],
        &[
            (Cause::Wait(WaitReason::DiskRead), 0.5),
            (Cause::Planning, 0.2),
        ],
    )
}

#[test]
fn twice_the_rows_are_more_data() {
    let after = run(
        &[
            ("Scan parquet", 2.0, 2000, true),
            ("BroadcastHashJoin", 4.5, 2000, true),
        ],
        &[
            (Cause::Wait(WaitReason::DiskRead), 1.0),
            (Cause::Planning, 0.2),
        ],
    );
    assert_eq!(
        parts(&base(), &after),
        [(CauseKind::Data, 3.5), (CauseKind::Operator, 0.5)]
    );
}

#[test]
fn rows_that_a_filter_drops_anyway_are_no_more_data() {
    let of = |scanned, s, kept| {
        let operators = [
            ("Scan parquet", s, scanned, false),
            ("Filter", s, scanned, true),
        ];
        let mut run = run(&operators, &[(Cause::Planning, 0.2)]);
        if let Some(facts) = run.operators.get_mut(&key("Filter")) {
            facts.kept = Some(kept);
        }
        run
    };
    let before = of(1000, 1.0, 900);
    assert_eq!(
        parts(&before, &of(5000, 5.0, 900)),
        [(CauseKind::AnotherPlan, 8.0)]
    );
    assert_eq!(
        parts(&before, &of(5000, 5.0, 4500)),
        [(CauseKind::Data, 8.0)]
    );
}

#[test]
fn what_a_join_is_replaced_by_is_another_plan() {
    let after = run(
        &[
            ("Scan parquet", 1.0, 1000, true),
            ("SortMergeJoin", 2.5, 1000, true),
            ("Sort", 1.5, 1000, true),
            ("Exchange", 1.0, 1000, true),
        ],
        &[
            (Cause::Wait(WaitReason::DiskRead), 0.5),
            (Cause::Wait(WaitReason::ShuffleFetch), 0.3),
            (Cause::Planning, 0.2),
        ],
    );
    assert_eq!(parts(&base(), &after), [(CauseKind::AnotherPlan, 3.3)]);
}

#[test]
fn operators_outside_generated_loops_are_told_apart() {
    let after = run(
        &[
            ("Scan parquet", 1.0, 1000, true),
            ("BroadcastHashJoin", 4.0, 1000, false),
        ],
        &[
            (Cause::Wait(WaitReason::DiskRead), 0.5),
            (Cause::Planning, 0.2),
        ],
    );
    assert_eq!(parts(&base(), &after), [(CauseKind::Codegen, 2.0)]);
}

#[test]
fn waits_for_a_cpu_belong_to_the_work_that_waited_unless_they_grew_by_themselves() {
    let queue = |s| (Cause::Wait(WaitReason::RunQueue), s);
    let of = |join, waited| {
        run(
            &[
                ("Scan parquet", 1.0, 9, true),
                ("BroadcastHashJoin", join, 9, true),
            ],
            &[queue(waited)],
        )
    };
    // Twice the work, with as much waiting for each second of it.
    assert_eq!(
        parts(&of(1.0, 1.0), &of(3.0, 2.0)),
        [(CauseKind::Operator, 3.0)]
    );
    // The same work, with a neighbour.
    assert_eq!(
        parts(&of(1.0, 1.0), &of(1.0, 4.0)),
        [(CauseKind::Contention, 3.0)]
    );
}

#[test]
fn half_the_slots_take_twice_as_long() {
    let mut after = run(
        &[
            ("Scan parquet", 2.0, 1000, true),
            ("BroadcastHashJoin", 4.0, 1000, true),
        ],
        &[
            (Cause::Wait(WaitReason::DiskRead), 1.0),
            (Cause::Planning, 0.2),
        ],
    );
    after.slots = 1.0;
    assert_eq!(parts(&base(), &after), [(CauseKind::Slots, 3.5)]);
}

#[test]
fn waits_of_its_own_tasks_for_each_other_belong_to_the_slots() {
    let of = |join, waited, slots| {
        let mut run = run(
            &[("BroadcastHashJoin", join, 9, true)],
            &[(Cause::Wait(WaitReason::RunQueue), waited)],
        );
        run.slots = slots;
        run
    };
    // With one slot the join takes less CPU time for its work, and nobody waits.
    assert_eq!(
        parts(&of(2.0, 0.5, 2.0), &of(3.5, 0.0, 1.0)),
        [(CauseKind::Slots, 1.0)]
    );
}

#[test]
fn a_smaller_heap_has_its_collections_and_spills() {
    let of = |megabytes: u64, collected, gc, spilled, waited| {
        let waits = [
            (Cause::Wait(WaitReason::Safepoint), gc),
            (Cause::Spill, spilled),
            (Cause::Wait(WaitReason::RunQueue), waited),
        ];
        let mut run = run(&[("HashAggregate", 2.0, 9, true)], &waits);
        run.heap_bytes = megabytes << 20;
        run.collected = collected;
        run
    };
    // Of the waits for a CPU, those behind collections that run beside the tasks.
    assert_eq!(
        parts(&of(2048, 0.0, 0.1, 0.0, 0.0), &of(512, 0.5, 0.6, 1.0, 0.8)),
        [(CauseKind::Memory, 1.9), (CauseKind::Contention, 0.4)]
    );
    // The same heap: each has its own part.
    assert_eq!(
        parts(&of(2048, 0.0, 0.1, 0.0, 0.0), &of(2048, 0.0, 0.6, 1.0, 0.0)),
        [(CauseKind::Spill, 1.0), (CauseKind::Gc, 0.5)]
    );
}

#[test]
fn more_tasks_have_what_each_of_them_costs() {
    let of = |tasks, launching, prepared, joined| {
        let others = [
            (Cause::Scheduling, launching),
            (Cause::Heading("task: deserialization"), prepared),
        ];
        let mut run = run(&[("BroadcastHashJoin", joined, 9, true)], &others);
        run.tasks = tasks;
        run
    };
    assert_eq!(
        parts(&of(10, 0.1, 0.1, 2.0), &of(1500, 3.0, 1.5, 2.0)),
        [(CauseKind::Scheduling, 4.3)]
    );
    // Twice the tasks do not make each of them slower.
    assert_eq!(
        parts(&of(10, 0.5, 0.1, 2.0), &of(20, 2.1, 0.2, 3.0)),
        [
            (CauseKind::Scheduling, 1.1),
            (CauseKind::Operator, 1.0),
            (CauseKind::Scheduling, 0.6)
        ]
    );
}

#[test]
fn slots_of_another_query_are_contention_and_name_it() {
    let mut after = run(
        &[
            ("Scan parquet", 1.0, 1000, true),
            ("BroadcastHashJoin", 2.0, 1000, true),
        ],
        &[
            (Cause::Wait(WaitReason::DiskRead), 0.5),
            (Cause::Planning, 0.2),
            (Cause::TakenSlots, 3.0),
        ],
    );
    after.beside = Some("query 9: beside".to_owned());
    let (base, after) = (base(), after);
    assert_eq!(parts(&base, &after), [(CauseKind::Contention, 3.0)]);
    let named = difference(&Side::new(from_ref(&base)), &Side::new(from_ref(&after)));
    assert!(named[0].what.ends_with("query 9: beside"), "{named:?}");
}

/// The compiler counted the join's work at the scan in the second JVM.
#[test]
fn operators_of_one_loop_offset_each_other() {
    let of = |scanned, joined, rows| {
        let operators = [
            ("Scan parquet", scanned, rows, false),
            ("BroadcastHashJoin", joined, rows, true),
        ];
        let mut run = run(&operators, &[]);
        for facts in run.operators.values_mut() {
            facts.generated_loop = Some(1);
        }
        run
    };
    assert_eq!(
        parts(&of(0.5, 2.0, 1000), &of(2.0, 1.0, 1000)),
        [(CauseKind::Operator, 0.5)]
    );
    // Twice the rows, and a tenth more for each.
    assert_eq!(
        parts(&of(0.5, 2.0, 1000), &of(4.0, 1.5, 2000)),
        [(CauseKind::Data, 2.5), (CauseKind::Operator, 0.5)]
    );
}

#[test]
fn slots_that_nobody_had_before_do_not_make_a_query_slower() {
    let of = |taken, last, few| {
        let idle = [
            (Cause::TakenSlots, taken),
            (Cause::LastTasks, last),
            (Cause::FewTasks, few),
        ];
        run(&[("BroadcastHashJoin", 2.0, 9, true)], &idle)
    };
    let (alone, beside) = (of(0.0, 0.6, 0.5), of(3.0, 0.2, 0.0));
    assert_eq!(parts(&alone, &beside), [(CauseKind::Contention, 2.1)]);
    assert_eq!(parts(&beside, &alone), [(CauseKind::Contention, -2.1)]);
    // More idle slots are another cause.
    assert_eq!(
        parts(&of(0.0, 0.6, 0.0), &of(3.0, 1.1, 0.0)),
        [(CauseKind::Contention, 3.0), (CauseKind::Skew, 0.5)]
    );
}

#[test]
fn a_line_leads_to_the_command_that_shows_lines_whatever_its_operator_is_called() {
    for (line, option) in [
        (Some("clean(job.py:12)"), "--by line"),
        (None, "--kind off-cpu"),
    ] {
        let name = "MapInPandas, most of it in pieces";
        let mut run = run(&[(name, 4.0, 1_000, false)], &[]);
        if let Some(facts) = run.operators.get_mut(&key(name)) {
            facts.kind = unfuse_postprocess::OperatorKind::Python;
        }
        if let Some(line) = line {
            let lines = [(line.to_owned(), 4e9)];
            run.python.insert(key(name), lines.into());
        }
        let mut parts = Side::new(&[run]).parts();
        add_commands(&mut parts, "profile", 7, None, true);
        let python = parts.iter().find(|part| part.kind == CauseKind::Python);
        let command = python.and_then(|part| part.command.as_deref());
        assert!(
            command.is_some_and(|command| command.ends_with(option)),
            "{parts:?}"
        );
    }
}
