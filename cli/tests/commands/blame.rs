//! `unfuse blame` on CSV files: its answers, and its messages about bad files.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use unfuse_format::{IntervalRow, ProfileDir, SegmentWriter, StageRow, Table, TaskRow};

const HEAD: &str = "host,query,stage,task,kind,start_ns,end_ns,units,blocked_ns\n";
/// Example 3.3 of the paper, with query 1 blocked for 0.6 s.
const ROWS: &str = "w1,1,0,a,io-read,0,1000000000,30,600000000
w1,2,0,b,io-read,0,1000000000,60,0
w1,3,0,c,io-read,0,1000000000,120,0
";

fn blame(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_unfuse"))
        .arg("blame")
        .arg(dir)
        .args(arguments)
        .output()
        .expect("unfuse starts")
}

fn example(rows: &str) -> tempfile::TempDir {
    with_head(HEAD, rows)
}

fn with_head(head: &str, rows: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("intervals.csv"), format!("{head}{rows}")).expect("a file");
    dir
}

fn answer(dir: &Path, arguments: &[&str]) -> Value {
    let json = text(&blame(dir, &[arguments, &["--json"]].concat()));
    serde_json::from_str(&json).expect("JSON")
}

fn write<T: Table>(dir: &ProfileDir, rows: impl IntoIterator<Item = T>) {
    let mut segment = SegmentWriter::new(dir, "test-1");
    rows.into_iter().for_each(|row| segment.push(row));
    segment.flush().expect("written");
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The message of a refused command.
fn refusal(dir: &Path, arguments: &[&str]) -> String {
    let output = blame(dir, arguments);
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_example_of_the_paper_is_told() {
    let dir = example(ROWS);
    insta::assert_snapshot!(text(&blame(dir.path(), &["--victim", "1"])));
    insta::assert_snapshot!(text(&blame(dir.path(), &[])));
}

#[test]
fn operators_come_from_folded_stacks() {
    let dir = example(&ROWS.replace("io-read", "cpu"));
    let stacks = dir.path().join("stacks");
    let folded = |text: &str| {
        fs::write(&stacks, text).expect("a file");
        stacks.display().to_string()
    };
    let file = folded("query 3 stage 0;Exchange;Sort 8\nquery 3 stage 0;Exchange 8\nmain 1\n");
    let answer = answer(dir.path(), &["--victim", "1", "--folded", &file]);
    assert_eq!(answer["ranked"][0]["name"], "query 3");
    let operators = serde_json::json!([["Exchange", 0.5], ["Sort", 0.5]]);
    assert_eq!(answer["ranked"][0]["operators"], operators);
    let file = folded("query 3 stage 0;Sort 30\nSort\n");
    let message = refusal(dir.path(), &["--folded", &file]);
    assert!(
        message.contains("line 2: \"Sort\" is no folded stack"),
        "{message}"
    );
    let file = folded("query 7 stage 0;Sort 30\n");
    let message = refusal(dir.path(), &["--folded", &file]);
    assert!(message.contains("no stack begins with"), "{message}");
}

#[test]
fn parts_of_the_blocked_time_add_up() {
    let dir = example(ROWS);
    for by in ["culprit", "stage", "resource", "kind", "host"] {
        let json = text(&blame(dir.path(), &["--victim", "1", "--json", "--by", by]));
        let answer: Value = serde_json::from_str(&json).expect("JSON");
        let blocked = answer["victims"][0]["blocked_seconds"].as_f64();
        assert!(
            blocked.is_some_and(|s| (s - 0.6).abs() < 1e-9),
            "{by}: {blocked:?}"
        );
        let rows = answer["ranked"].as_array().expect("rows");
        let sum: f64 = rows
            .iter()
            .filter_map(|row| row["responsibility"].as_f64())
            .sum();
        assert!((sum - 1.0).abs() < 1e-9, "{by}: {sum}");
    }
}

#[test]
fn the_graph_is_exported() {
    let dir = example(ROWS);
    let graph = text(&blame(dir.path(), &["--victim", "1", "--graph", "json"]));
    let graph: Value = serde_json::from_str(&graph).expect("JSON");
    assert_eq!(graph["nodes"][0]["label"], "query 1");
    assert!(text(&blame(dir.path(), &["--graph", "graphml"])).contains("</graphml>"));
    assert!(text(&blame(dir.path(), &["--graph", "cypher"])).contains("CREATE (:Contention"));
    let file = dir.path().join("graph.xml");
    let written = blame(
        dir.path(),
        &["--graph", "graphml", "-o", file.to_str().expect("a name")],
    );
    assert!(text(&written).is_empty());
    assert!(
        fs::read_to_string(&file)
            .expect("a file")
            .ends_with("</graphml>\n")
    );
}

#[test]
fn hosts_tell_of_processes_outside() {
    let dir = example("w1,1,0,a,cpu,0,1000000000,0.5,500000000\n");
    fs::write(
        dir.path().join("hosts.csv"),
        "host,resource,start_ns,end_ns,units,capacity\nw1,CPU,0,1000000000,2,2\n",
    )
    .expect("a file");
    let json = text(&blame(dir.path(), &["--victim", "1", "--json"]));
    let answer: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(answer["ranked"][0]["name"], "External-CPU");
    assert_eq!(answer["ranked"][0]["kind"], "process");
    assert_eq!(answer["explanations"][0]["culprit_kind"], "process");
    assert_eq!(answer["ranked"][0]["seconds"], 0.5);
    assert_eq!(answer["suggestions"][0]["action"], "look-outside");
}

#[test]
fn what_cannot_be_is_refused_with_its_row() {
    let dir = example(ROWS);
    let says = |arguments: &[&str], words: &str| {
        let text = refusal(dir.path(), arguments);
        assert!(text.contains(words), "{text}");
    };
    says(&["--victim", "9"], "has no query 9; it has queries 1, 2, 3");
    says(&["--host", "w9"], "has no host w9; it has w1");
    says(&["--user", "eve"], "no query has user eve");
    says(&["--window", "50..60"], "tasks ran for 1.0 s");
    says(&["--window", "soon"], "10..60");
    says(&["--follow"], "this directory holds CSV files");
    for (rows, words) in [
        ("", "no rows"),
        (
            "w1,1,0,a,disk,0,10,1,0\n",
            "kind \"disk\" is not known; there are: lock, cpu",
        ),
        (
            "w1,1,0,a,cpu,0,10,1,11\n",
            "row 1: blocked for 11 ns in 10 ns",
        ),
        (
            "w1,1,0,a,cpu,10,0,1,0\n",
            "row 1: it begins at 10 ns and ends at 0 ns",
        ),
        (
            "w1,1,0,a,cpu,0,10,-1,0\n",
            "row 1: -1 is no possible amount",
        ),
        (
            "w1,1,0,a,cpu,0,10,NaN,0\n",
            "row 1: NaN is no possible amount",
        ),
        ("w1,1,0,a,cpu,zero,10,1,0\n", "line: 2"),
        ("w1,1,0,a,cpu,0\n", "line: 2"),
    ] {
        let text = refusal(example(rows).path(), &[]);
        assert!(
            text.contains(words) && text.contains("intervals.csv"),
            "{text}"
        );
    }
}

#[test]
fn empty_spans_and_nothing_used_give_no_nonsense() {
    let dir = example("w1,1,0,a,cpu,5,5,0,0\nw1,1,0,a,cpu,0,1000000000,0,900000000\n");
    let output = text(&blame(dir.path(), &["--victim", "1"]));
    assert!(
        output.contains("1 interval without length left out"),
        "{output}"
    );
    assert!(output.contains("Unknown"), "{output}");
    assert!(
        !output.contains("NaN") && !output.contains("inf"),
        "{output}"
    );
    // No task waited for a culprit of this user, so others are to blame.
    let dir = example("w1,1,0,a,cpu,5,5,0,0\nw1,1,0,a,cpu,0,1000000000,0,900000000\n");
    fs::write(dir.path().join("queries.csv"), "query,user\n1,ann\n").unwrap();
    let output = text(&blame(dir.path(), &["--user", "ann"]));
    assert!(output.contains("others are"), "{output}");
    // No task waited for anything.
    let dir = example("w1,1,0,a,cpu,0,1000000000,1,0\n");
    let output = text(&blame(dir.path(), &["--victim", "1"]));
    assert!(output.contains("No task waited for anything"), "{output}");
}

#[test]
fn a_window_is_that_of_all_numbers() {
    let dir = example(ROWS);
    let json = text(&blame(
        dir.path(),
        &["--victim", "1", "--json", "--window", "0..0.5"],
    ));
    let answer: Value = serde_json::from_str(&json).expect("JSON");
    let victim = &answer["victims"][0];
    let baselines = &answer["baselines"];
    for (found, seconds) in [
        (&victim["blocked_seconds"], 0.3),
        (&victim["task_seconds"], 0.5),
        (&baselines["naive_overlap"][0][1], 0.5),
        (&baselines["deep_overlap"][0][1], 0.5),
        (&baselines["blocked_io_network"], 0.3),
    ] {
        let found = found.as_f64().unwrap_or(f64::NAN);
        assert!((found - seconds).abs() < 1e-9, "{answer:#}");
    }
}

#[test]
fn what_was_not_recorded_is_no_acquittal() {
    let canonical = Path::new("tests/fixtures/canonical");
    let output = text(&blame(canonical, &[]));
    assert!(output.contains("no data about waits"), "{output}");
    assert!(!output.contains("No task waited for anything"), "{output}");
}

#[test]
fn queries_are_asked_for_by_their_names() {
    let dir = example(
        "w1,etl,0,a,io-read,0,1000000000,30,600000000
w1,dash,0,b,io-read,0,1000000000,60,0
w1,20240101_1_abc,0,c,io-read,0,1000000000,120,0
",
    );
    insta::assert_snapshot!(text(&blame(dir.path(), &["--victim", "etl"])));
    assert_eq!(answer(dir.path(), &[])["victims"][0]["name"], "etl");
    let refused = refusal(dir.path(), &["--victim", "0"]);
    assert!(
        refused.contains("has no query 0; it has queries "),
        "{refused}"
    );
    for name in ["etl", "dash", "20240101_1_abc"] {
        assert!(refused.contains(name), "{refused}");
    }
    // The message names only the first of many queries.
    let many: String = (0..100)
        .map(|index| format!("w1,q{index},0,a,cpu,0,1000,1,0\n"))
        .collect();
    let refused = refusal(example(&many).path(), &["--victim", "etl"]);
    assert!(refused.trim_end().ends_with("q19, …"), "{refused}");
}

/// A query with two attempts of a stage. A process outside slows down one. Part of the time of both is unexplained.
fn attempts() -> tempfile::TempDir {
    let dir = with_head(
        "host,query,stage,attempt,task,kind,start_ns,end_ns,units,blocked_ns\n",
        "w1,1,0,0,a,io-read,0,1000000000,30,600000000
w1,1,0,1,a,io-read,1000000000,2000000000,30,600000000
w1,2,7,0,b,io-read,0,1000000000,60,0
w1,2,7,1,b,io-read,1000000000,2000000000,60,0
",
    );
    fs::write(
        dir.path().join("hosts.csv"),
        "host,resource,start_ns,end_ns,units,capacity\nw1,IO,0,1000000000,150,180\n",
    )
    .expect("a file");
    fs::write(dir.path().join("queries.csv"), "query,label\n3,idle\n").expect("a file");
    dir
}

#[test]
fn sentences_say_what_was_asked_for() {
    let dir = attempts();
    let path = dir.path().display().to_string();
    let told = |arguments: &[&str]| text(&blame(dir.path(), arguments)).replace(&path, "DIR");
    insta::assert_snapshot!(told(&["--victim", "1", "--by", "stage"]));
    insta::assert_snapshot!(told(&[
        "--victim",
        "1",
        "--stages",
        "all",
        "--resource",
        "io",
        "--host",
        "w1",
        "--window",
        "0..0.5"
    ]));
    // Only the name of this query is known.
    insta::assert_snapshot!(told(&["--victim", "3"]));
    let json = answer(dir.path(), &["--victim", "3"]);
    for (what, seconds) in [
        ("victims", "task_seconds"),
        ("baselines", "blocked_io_network"),
    ] {
        let found = match what {
            "victims" => &json["victims"][0][seconds],
            _ => &json[what][seconds],
        };
        let found = found.as_f64().expect("a number");
        assert!(
            found == 0.0 && found.is_sign_positive(),
            "{seconds}: {found}"
        );
    }
    assert!(!told(&[]).contains("-0.0"));
}

#[test]
fn blocked_time_is_told_apart_by_who_can_help_it() {
    let dir = attempts();
    fs::write(
        dir.path().join("intervals.csv"),
        format!(
            "{HEAD}w1,1,0,a,io-read,0,1000000000,30,600000000
w1,1,0,b,io-read,0,1000000000,30,0
w1,1,0,b,pause,0,1000000000,0.5,100000000
w1,2,7,c,io-read,0,1000000000,60,0
"
        ),
    )
    .expect("a file");
    let answer = answer(dir.path(), &["--victim", "1"]);
    let victim = &answer["victims"][0];
    let seconds = |what: &str| victim[what].as_f64().expect("a number");
    // The disk's capacity is 180. The victim's task got 30, its
    // other task 30, the other query 60, and a process outside 30.
    for (what, expected) in [
        ("blocked_seconds", 0.7),
        ("by_others_seconds", 0.36),
        ("by_itself_seconds", 0.12),
        ("by_gc_seconds", 0.1),
        ("by_jvm_seconds", 0.0),
        ("by_own_limit_seconds", 0.0),
        ("by_hypervisor_seconds", 0.0),
        ("by_unknown_seconds", 0.12),
    ] {
        let found = seconds(what);
        assert!((found - expected).abs() < 1e-9, "{what}: {answer:#}");
    }
    let rows = answer["ranked"].as_array().expect("rows");
    let mut kinds: Vec<&str> = rows.iter().filter_map(|row| row["kind"].as_str()).collect();
    kinds.sort_unstable();
    assert_eq!(
        kinds,
        ["gc", "nobody", "process", "query", "self"],
        "{answer:#}"
    );
    // Resources are no culprits.
    let by_resource = self::answer(dir.path(), &["--victim", "1", "--by", "resource"]);
    assert!(
        by_resource["ranked"][0].get("kind").is_none(),
        "{by_resource:#}"
    );
}

#[test]
fn more_than_the_capacity_is_noted_wherever_notes_are() {
    let dir = example(ROWS);
    fs::write(
        dir.path().join("hosts.csv"),
        "host,resource,start_ns,end_ns,units,capacity\nw1,IO,0,1000000000,210,0.0002\n",
    )
    .expect("a file");
    let note = "in 1 window more IO of w1 was used than its capacity, up to 1050000 times as much";
    let output = text(&blame(dir.path(), &[]));
    assert_eq!(output.matches(note).count(), 1, "{output}");
    let graph = text(&blame(dir.path(), &["--graph", "json"]));
    let graph: Value = serde_json::from_str(&graph).expect("JSON");
    let notes = graph["notes"].as_array().expect("notes");
    assert!(
        notes
            .iter()
            .any(|text| text.as_str().is_some_and(|text| text.starts_with(note))),
        "{notes:?}"
    );
    assert_eq!(graph["capacities"][0]["basis"], "Exceeded");
    for format in ["graphml", "cypher"] {
        let output = blame(dir.path(), &["--graph", format]);
        assert!(!text(&output).contains(note), "{output:?}");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains(&format!("note: {note}")), "{told}");
        assert!(told.contains("note: no stages.csv"), "{told}");
    }
}

/// Tables of tasks and their used resources, as another engine could write them: two jobs of one application that use a
/// CPU, and one of another.
fn without_samples(root: &Path) -> ProfileDir {
    let dir = ProfileDir::create(root).expect("a profile");
    let jobs = [
        ("app-1", 1, Some(1), 2.0),
        ("app-1", 2, Some(2), 8.0),
        ("app-2", 1, None, 6.0),
    ];
    write(
        &dir,
        jobs.map(|(app, stage, execution, _)| StageRow {
            app: app.to_owned(),
            stage,
            execution,
            submitted_ms: Some(0),
            completed_ms: Some(10_000),
            ..StageRow::default()
        }),
    );
    write(
        &dir,
        jobs.map(|(app, stage, ..)| TaskRow {
            app: app.to_owned(),
            stage,
            task: stage.into(),
            host: "w1".to_owned(),
            finished_ms: 10_000,
            ..TaskRow::default()
        }),
    );
    write(
        &dir,
        jobs.map(|(app, stage, _, units)| IntervalRow {
            app: app.to_owned(),
            host: "w1".to_owned(),
            stage,
            task: stage.into(),
            kind: "cpu".to_owned(),
            end_ns: 10_000_000_000,
            units,
            ..IntervalRow::default()
        }),
    );
    dir
}

#[test]
fn a_profile_without_samples_is_one() {
    let tmp = tempfile::tempdir().expect("a directory");
    let dir = without_samples(&tmp.path().join("profile"));
    insta::assert_snapshot!(text(&blame(dir.path(), &["--victim", "1"])));
    let refused = refusal(dir.path(), &["--victim", "3"]);
    assert!(
        refused.contains(
            "1 (app-1 query 1), 2 (app-1 query 2), 1999999999 (app-2 jobs without a query)"
        ),
        "{refused}"
    );
    // An empty profile is refused.
    let empty = ProfileDir::create(&tmp.path().join("empty")).expect("a profile");
    let refused = refusal(empty.path(), &[]);
    assert!(refused.contains("has no tasks"), "{refused}");
}

#[test]
fn weights_are_those_of_pools() {
    // Both stages of query 2 do the same harm, so there is no advice to delay one.
    let dir = example(
        "w1,1,0,a,cpu,0,2000000000,1,1000000000
w1,2,0,b,cpu,0,1000000000,1,0
w1,2,1,c,cpu,1000000000,2000000000,1,0
",
    );
    let advice = |queries: &str| {
        let queries = format!("query,pool,weight\n{queries}");
        fs::write(dir.path().join("queries.csv"), queries).expect("a file");
        let answer = answer(dir.path(), &["--victim", "1"]);
        let texts = answer["suggestions"].as_array().expect("advice").iter();
        let texts = texts.map(|advice| advice["text"].as_str().expect("text").to_owned());
        texts.collect::<Vec<_>>()
    };
    assert_eq!(
        advice("1,dash,1\n2,etl,2\n"),
        [
            "give pool dash, in which query 1 runs, a weight above 2 (fairscheduler.xml, with \
             spark.scheduler.mode=FAIR): query 2 in pool etl has the same weight and uses resources all the time"
        ]
    );
    assert_eq!(
        advice("1,etl,1\n2,etl,1\n"),
        [
            "give query 2 a pool of its own (spark.scheduler.pool, with spark.scheduler.mode=FAIR): it shares pool etl \
             with query 1"
        ]
    );
}
