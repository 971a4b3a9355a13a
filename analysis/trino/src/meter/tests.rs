//! Answers of a real Trino 476: a join of TPC-H tables beside an aggregation, asked twice.

use super::*;

const EARLY: &str = include_str!("fixtures/early.json");
const LATE: &str = include_str!("fixtures/late.json");

fn info(text: &str) -> QueryInfo {
    serde_json::from_str(text).expect("an answer of Trino")
}

/// Units and blocked seconds of a kind.
fn sum(rows: &Rows, kind: &str) -> (f64, f64) {
    let rows = rows.intervals.iter().filter(|row| row.kind == kind);
    rows.fold((0.0, 0.0), |(units, blocked), row| {
        (units + row.units, blocked + row.blocked_ns as f64 / 1e9)
    })
}

/// A sum over all tasks of an answer.
fn total(stage: &Stage, of: fn(&TaskStats) -> f64) -> f64 {
    let tasks: f64 = stage.tasks.iter().map(|task| of(&task.stats)).sum();
    let below: f64 = stage.sub_stages.iter().map(|stage| total(stage, of)).sum();
    tasks + below
}

#[test]
fn rows_add_up_to_what_the_server_says() {
    let (early, late) = (info(EARLY), info(LATE));
    let mut meter = Meter::default();
    let (first, second) = (meter.look(&early), meter.look(&late));
    assert_eq!(first.queries[0].label, "victim");
    assert_eq!(first.queries[0].user, "anna");
    let mut stages: Vec<(u32, &str)> = first
        .stages
        .iter()
        .chain(&second.stages)
        .map(|row| (row.stage, row.parents.as_str()))
        .collect();
    stages.sort_unstable();
    assert_eq!(stages, [(0, "1"), (1, "2"), (2, "3 4"), (3, ""), (4, "")]);
    let output = late.output_stage.as_ref().expect("a plan");
    for (kind, of) in [
        ("cpu", (|stats| stats.cpu_s) as fn(&TaskStats) -> f64),
        ("slot", |stats| stats.scheduled_s),
        ("network", |stats| stats.network_bytes),
        ("execution-memory", |stats| {
            stats.cumulative_user_memory / 1e3
        }),
    ] {
        let rows = sum(&first, kind).0 + sum(&second, kind).0;
        let said = total(output, of);
        assert!(said > 0.0, "{kind}");
        assert!((rows - said).abs() <= 1e-6 * said, "{kind}: {rows}, {said}");
    }
    // Nothing new, nothing said.
    assert_eq!(meter.look(&late), Rows::default());
    assert_eq!(
        meter.servers().collect::<Vec<_>>(),
        ["http://127.0.0.1:18080"]
    );
}

#[test]
fn a_driver_is_not_blocked_for_longer_than_its_row() {
    let mut meter = Meter::default();
    let rows = [meter.look(&info(EARLY)), meter.look(&info(LATE))];
    let rows = rows.iter().flat_map(|rows| &rows.intervals);
    let mut blocked: BTreeMap<(&str, i64), i64> = BTreeMap::new();
    let mut waits = false;
    for row in rows {
        assert!(row.start_ns < row.end_ns && row.units >= 0.0, "{row:?}");
        let sum = blocked.entry((&row.task, row.start_ns)).or_default();
        *sum += row.blocked_ns;
        waits |= row.kind == "cpu" && row.blocked_ns > 0;
    }
    assert!(waits, "two queries on busy CPUs");
}

#[test]
fn waits_that_a_task_cannot_have_are_cut() {
    let early = info(EARLY);
    let task = &early.output_stage.as_ref().expect("a plan").tasks[0];
    let stats = TaskStats {
        cpu_s: 1.0,
        scheduled_s: 1000.0,
        reading_s: 100.0,
        queued_drivers: 2,
        running_drivers: u32::MAX,
        ..task.stats.clone()
    };
    let drivers = Drivers::new(&at_start(&stats), &stats, (0, 1_000_000_000));
    assert!(drivers.number <= MOST_DRIVERS);
    let mut of_first = 0;
    for (driver, _, _, blocked_ns) in drivers.rows() {
        if driver == 0 {
            of_first += blocked_ns;
        }
    }
    assert!(of_first <= 1_000_000_000, "{of_first}");
}

#[test]
fn a_server_has_rows_from_the_second_look_on() {
    let status: NodeStatus = serde_json::from_str(
        r#"{"nodeId": "x", "processors": 2, "systemCpuLoad": 0.25,
            "memoryInfo": {"pool": {"maxBytes": 1000, "reservedBytes": 100}}}"#,
    )
    .expect("a status");
    let at = |seconds| DateTime::from_timestamp(seconds, 0).expect("a time");
    let mut meter = Meter::default();
    assert_eq!(meter.host(&status, at(10)), []);
    let rows = meter.host(&status, at(14));
    let said: Vec<_> = rows
        .iter()
        .map(|row| (row.resource, row.units, row.capacity))
        .collect();
    assert_eq!(said, [("memory", 400.0, 1000.0), ("CPU", 2.0, 2.0)]);
}
