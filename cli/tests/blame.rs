//! `unfuse blame` on CSV files: the answer, and what it says of bad ones.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const HEAD: &str = "host,query,stage,task,kind,start_ns,end_ns,units,blocked_ns\n";
/// Example 3.3 of the paper, of which query 1 was blocked for 0.6 s.
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
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("intervals.csv"), format!("{HEAD}{rows}")).expect("a file");
    dir
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What it says when it refuses.
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
    says(&["--follow"], "CSV files do not grow");
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
    assert!(output.contains("1 intervals have no length"), "{output}");
    assert!(output.contains("Unknown"), "{output}");
    assert!(
        !output.contains("NaN") && !output.contains("inf"),
        "{output}"
    );
    // Culprits of whom nobody waited for are others.
    let dir = example("w1,1,0,a,cpu,5,5,0,0\nw1,1,0,a,cpu,0,1000000000,0,900000000\n");
    fs::write(dir.path().join("queries.csv"), "query,user\n1,ann\n").unwrap();
    let output = text(&blame(dir.path(), &["--user", "ann"]));
    assert!(output.contains("others are"), "{output}");
    // Nothing was waited for.
    let dir = example("w1,1,0,a,cpu,0,1000000000,1,0\n");
    let output = text(&blame(dir.path(), &["--victim", "1"]));
    assert!(output.contains("Nobody is to blame"), "{output}");
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
    assert!(output.contains("was not recorded"), "{output}");
    assert!(!output.contains("Nobody is to blame"), "{output}");
}
