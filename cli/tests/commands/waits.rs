//! A small profile with waits, and the commands' answers about it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use unfuse_format::{
    Frame, IntervalRow, PlanRow, ProfileDir, SampleRow, SegmentWriter, StackRow, StageRow, Table,
};
use unfuse_postprocess::Profile;
use unfuse_report::Report;

const APP: &str = "app-1";

fn write<T: Table>(dir: &ProfileDir, rows: Vec<T>) {
    let mut segment = SegmentWriter::new(dir, "test-1");
    rows.into_iter().for_each(|row| segment.push(row));
    segment.flush().expect("written");
}

fn stack(frames: &[(&str, &str, &str)]) -> StackRow {
    let frame = |(kind, class, method): &(&str, &str, &str)| Frame {
        kind: (*kind).into(),
        class: (*class).to_owned(),
        method: (*method).to_owned(),
        ..Frame::default()
    };
    StackRow::from_frames(frames.iter().map(frame).collect())
}

/// A sort that runs for 1 s and reads files for 2 s; an exchange that only waits, 4 s for blocks and 1 s for a CPU;
/// and a thread of Spark that waits for a task. Writes only samples of the given kinds.
fn make(root: &Path, kinds: &[&str]) -> ProfileDir {
    let dir = ProfileDir::create(root).expect("a profile");
    let sort = (
        "java",
        "org.apache.spark.sql.execution.UnsafeExternalRowSorter",
        "sort",
    );
    let fetch = (
        "java",
        "org.apache.spark.storage.ShuffleBlockFetcherIterator",
        "next",
    );
    let park = ("java", "jdk.internal.misc.Unsafe", "park");
    let stacks = [
        stack(&[sort]),
        stack(&[sort, ("java", "java.io.FileInputStream", "readBytes")]),
        stack(&[sort, fetch, park]),
        stack(&[sort, fetch, park, ("wait", "", "[run queue]")]),
        stack(&[
            ("java", "java.util.concurrent.ThreadPoolExecutor", "getTask"),
            park,
        ]),
    ];
    let sample = |kind: &str, stack: &StackRow, seconds: u64, stage: Option<i32>| SampleRow {
        app: APP.to_owned(),
        kind: kind.into(),
        stage,
        stage_attempt: stage.map(|_| 0),
        task: stage.map(|_| 1),
        stack: stack.stack,
        count: 10 * seconds,
        weight_ns: seconds * 1_000_000_000,
        ..SampleRow::default()
    };
    let mut samples = vec![
        sample("cpu", &stacks[0], 1, Some(3)),
        sample("off-cpu", &stacks[1], 2, Some(3)),
        sample("off-cpu", &stacks[2], 4, Some(3)),
        sample("off-cpu", &stacks[3], 1, Some(3)),
        sample("off-cpu", &stacks[4], 100, None),
    ];
    samples.retain(|sample| kinds.contains(&sample.kind.as_str()));
    write(&dir, samples);
    write(&dir, stacks.to_vec());
    let node = |node: i32, operator: &str| PlanRow {
        app: APP.to_owned(),
        execution: 7,
        node,
        parent: (node > 0).then(|| node - 1),
        operator: operator.to_owned(),
        detail: operator.to_owned(),
        ..PlanRow::default()
    };
    write(&dir, vec![node(0, "Sort"), node(1, "Exchange")]);
    write(
        &dir,
        vec![StageRow {
            app: APP.to_owned(),
            stage: 3,
            execution: Some(7),
            ..StageRow::default()
        }],
    );
    dir
}

fn run(dir: &ProfileDir, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_unfuse"))
        .args(arguments)
        .arg(dir.path())
        .output()
        .expect("unfuse runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Operator, reason of its wait, share in percent, seconds on and off the CPU.
fn rows(dir: &ProfileDir, kind: &str) -> Vec<(String, Option<String>, f64, f64, f64)> {
    let rows: Value =
        serde_json::from_str(&run(dir, &["top", "--json", "--kind", kind])).expect("JSON");
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let row = |row: &Value| {
        (
            text(&row["operator"]).expect("a name"),
            text(&row["waiting_for"]),
            (row["share"].as_f64().expect("a share") * 100.0).round(),
            row["cpu_seconds"].as_f64().expect("s"),
            row["waiting_seconds"].as_f64().expect("s"),
        )
    };
    let rows = rows.as_array().expect("an array");
    let rows = rows.iter().filter(|row| row["operator"] != "unattributed");
    rows.map(row).collect()
}

#[test]
fn top_and_flame_tell_cpu_time_waiting_and_both() {
    let tmp = tempfile::tempdir().expect("a directory");
    let dir = make(&tmp.path().join("profile"), &["cpu", "off-cpu"]);
    let named =
        |operator: &str, share, cpu, waiting| (operator.to_owned(), None, share, cpu, waiting);
    assert_eq!(
        rows(&dir, "cpu"),
        [
            named("Sort", 100.0, 1.0, 2.0),
            named("Exchange", 0.0, 0.0, 5.0)
        ]
    );
    assert_eq!(
        rows(&dir, "wall"),
        [
            named("Exchange", 63.0, 0.0, 5.0),
            named("Sort", 38.0, 1.0, 2.0)
        ]
    );
    let waits = |operator: &str, what: &str, share, s| {
        (operator.to_owned(), Some(what.to_owned()), share, 0.0, s)
    };
    assert_eq!(
        rows(&dir, "off-cpu"),
        [
            waits("Exchange", "shuffle fetch", 57.0, 4.0),
            waits("Sort", "disk read", 29.0, 2.0),
            waits("Exchange", "run queue", 14.0, 1.0)
        ]
    );
    let text = run(&dir, &["top", "--kind", "off-cpu"]);
    assert!(text.contains("[shuffle fetch] Exchange"), "{text}");
    assert!(text.contains("waits  wait s"), "{text}");
    assert!(!text.contains("ns/row"), "{text}");
    assert!(run(&dir, &["top"]).contains("cpu s  wait s"));

    let svg = tmp.path().join("waits.svg");
    let out = svg.to_str().expect("text");
    run(&dir, &["flame", "--kind", "off-cpu", "-o", out]);
    let svg = std::fs::read_to_string(&svg).expect("a graph");
    for leaf in ["shuffle fetch", "disk read", "run queue"] {
        assert!(svg.contains(&format!("[waiting: {leaf}]")), "{leaf}");
    }
    assert!(!svg.contains("[waiting: work]"), "idle threads of Spark");

    let folded = run(&dir, &["export", "--format", "folded"]);
    assert_eq!(folded.lines().count(), 1, "CPU time only: {folded}");
}

/// For example, the JVM ended before its first sample was due.
#[test]
fn a_profile_of_waits_alone_says_how_to_see_them() {
    let tmp = tempfile::tempdir().expect("a directory");
    let dir = make(&tmp.path().join("profile"), &["off-cpu"]);
    let output = Command::new(env!("CARGO_BIN_EXE_unfuse"))
        .arg("top")
        .arg(dir.path())
        .output()
        .expect("unfuse runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.contains("only waits: `--kind off-cpu`"), "{said}");
    let waits = run(&dir, &["top", "--kind", "off-cpu"]);
    assert!(waits.contains("[shuffle fetch] Exchange"), "{waits}");
}

#[test]
fn the_report_has_the_waits_of_every_operator() {
    let tmp = tempfile::tempdir().expect("a directory");
    let dir = make(&tmp.path().join("profile"), &["cpu", "off-cpu"]);
    let profile = Profile::open(dir.path()).expect("a profile");
    let report = Report::new(&profile).expect("a report");
    let position = report
        .summary()
        .queries
        .iter()
        .position(|q| q.query == Some(7));
    let detail = report.detail(position.expect("query 7"));
    assert_eq!(detail.waiting_ns, Some(7_000_000_000));
    let nodes: Vec<_> = detail
        .nodes
        .iter()
        .map(|node| {
            let waits = node
                .waits
                .iter()
                .map(|wait| (wait.what, wait.ns / 1_000_000_000));
            (
                waits.collect::<Vec<_>>(),
                node.total_waiting_ns / 1_000_000_000,
            )
        })
        .collect();
    assert_eq!(
        nodes,
        [
            (vec![("disk read", 2)], 7),
            (vec![("shuffle fetch", 4), ("run queue", 1)], 5)
        ]
    );
}

/// Where context switches cannot be sampled, waits have no stack.
/// blame then takes disk waits from Spark's metrics, with a note.
#[test]
fn blame_takes_sparks_metrics_where_waits_have_no_stack() {
    const S: i64 = 1_000_000_000;
    let tmp = tempfile::tempdir().expect("a directory");
    let dir = ProfileDir::create(&tmp.path().join("profile")).expect("a profile");
    let waiting = stack(&[("java", "A", "run"), ("wait", "", "[waiting]")]);
    let sample = SampleRow {
        app: APP.to_owned(),
        host: "h".to_owned(),
        kind: "off-cpu".into(),
        stage: Some(3),
        stage_attempt: Some(0),
        task: Some(1),
        stack: waiting.stack,
        count: 1,
        weight_ns: 6 * S.cast_unsigned(),
        start_ns: 0,
        end_ns: 8 * S,
        ..SampleRow::default()
    };
    let row = IntervalRow {
        app: APP.to_owned(),
        host: "h".to_owned(),
        stage: 3,
        task: 1,
        kind: "io-read".to_owned(),
        end_ns: 8 * S,
        units: 100.0,
        blocked_ns: 5 * S,
        ..IntervalRow::default()
    };
    let stage = StageRow {
        app: APP.to_owned(),
        stage: 3,
        execution: Some(7),
        ..StageRow::default()
    };
    write(&dir, vec![sample]);
    write(&dir, vec![waiting]);
    write(&dir, vec![row]);
    write(&dir, vec![stage]);
    let json = run(&dir, &["blame", "--json", "--victim", "7"]);
    let answer: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(answer["victims"][0]["blocked_seconds"], 5.0);
    assert_eq!(answer["partial"], true);
    let notes = answer["notes"].to_string();
    assert!(notes.contains("most waits have no stack"), "{notes}");
}
