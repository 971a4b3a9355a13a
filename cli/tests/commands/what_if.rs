//! `unfuse what-if` on a profile and on an event log: its answers, and its messages about bad input.

use std::path::Path;
use std::process::{Command, Output};

use crate::fixture::{log, profile};
use serde_json::Value;

fn what_if(from: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_unfuse"))
        .arg("what-if")
        .arg(from)
        .args(arguments)
        .output()
        .expect("unfuse starts")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(from: &Path, arguments: &[&str]) -> Value {
    let arguments = [&["--json"], arguments].concat();
    serde_json::from_str(&text(&what_if(from, &arguments))).expect("JSON")
}

/// The message of a refused command.
fn refusal(from: &Path, arguments: &[&str]) -> String {
    let output = what_if(from, arguments);
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(message.lines().count(), 1, "{message}");
    message
}

#[test]
fn changes_and_floors_of_a_query_and_of_an_application() {
    let answers = [
        text(&what_if(&profile(), &["--query", "3"])),
        text(&what_if(&profile(), &[])),
        text(&what_if(&profile(), &["slots=1", "gc=0", "--query", "3"])),
    ];
    let place = profile().display().to_string();
    insta::assert_snapshot!(answers.join("\n").replace(&place, "DIR"));
}

#[test]
fn json_adds_up() {
    let answer = json(&profile(), &["gc=0", "skew=0", "--query", "3"]);
    let number = |value: &Value| value.as_f64().expect("a number");
    let found = &answer["estimate"];
    let sum = number(&found["then_s"]) + number(&found["saves_s"]);
    assert!((sum - number(&answer["now_s"])).abs() < 1e-9, "{answer:#}");
    assert!(number(&found["then_low_s"]) <= number(&found["then_s"]));
    assert!(number(&found["then_s"]) <= number(&found["then_high_s"]));
    assert_eq!(answer["changes"], serde_json::json!(["gc=0", "skew=0"]));
    assert_eq!(answer["reliable"], true);
    let all = json(&profile(), &["--query", "3"]);
    assert_eq!(all["estimate"], Value::Null);
    assert_eq!(all["floors"].as_array().expect("floors").len(), 5);
    let saves = all["each"].as_array().expect("changes").iter();
    let saves: Vec<f64> = saves.map(|one| number(&one["saves_s"])).collect();
    assert!(saves.is_sorted_by(|a, b| a >= b), "{saves:?}");
}

#[test]
fn an_event_log_is_enough_for_slots() {
    let log = log("causes-4.3");
    let answer = json(&log, &["slots=1"]);
    let number = |value: &Value| value.as_f64().expect("a number");
    assert!(number(&answer["estimate"]["saves_s"]) < 0.0, "{answer:#}");
    assert_eq!(answer["reliable"], true, "{answer:#}");
    assert!(refusal(&log, &["disk=inf"]).contains("it has no waits"));
    assert!(refusal(&log, &["operator:1=2x"]).contains("is an event log"));
    assert!(refusal(&log, &["--query", "77"]).contains("has no query 77; it has 0"));
}

#[test]
fn what_cannot_be_answered_is_refused() {
    let refused = |arguments: &[&str]| refusal(&profile(), arguments);
    assert!(refused(&["memory=2x"]).contains("is no change; the changes are slots=N"));
    assert!(refused(&["slots=2", "cores=inf"]).contains("cannot both hold"));
    assert!(refused(&["gc=0", "--query", "77"]).contains("has no query 77; it has"));
    assert!(refused(&["operator:1=2x"]).contains("choose it with --query"));
    let message = refused(&["operator:999=2x", "--query", "3"]);
    assert!(message.contains("no node 999; it has 0 "), "{message}");
    assert!(refused(&["python=2x", "--query", "3"]).contains("it has no waits"));
    assert!(refused(&["without-query=3", "--query", "3"]).contains("without itself"));
    assert!(refused(&["without-query=2", "--query", "3"]).contains("did not run at the same time"));
    assert!(refused(&["--app", "app-0"]).contains("no application app-0; it has"));
    let nothing = refusal(Path::new("/nowhere"), &[]);
    assert!(nothing.contains("/nowhere"), "{nothing}");
}

#[test]
fn a_cached_table_saves_a_part_of_its_scans() {
    let answer = json(&profile(), &["cache=lineitem", "--query", "3"]);
    let number = |name: &str| answer["estimate"][name].as_f64().expect("a number");
    assert_eq!(answer["changes"], serde_json::json!(["cache=lineitem"]));
    assert!(number("saves_s") > 0.0, "{answer:#}");
    assert!(number("saves_low_s") <= number("saves_s") && number("saves_s") < number("then_s"));
    // The same table by its file.
    for other in ["lineitem.parquet", "/tmp/tpch/lineitem.parquet"] {
        let same = json(&profile(), &[&format!("cache={other}"), "--query", "3"]);
        assert_eq!(same["estimate"], answer["estimate"], "{other}");
    }
    let notes = answer["notes"].as_array().expect("notes").iter();
    let notes: Vec<&str> = notes.filter_map(Value::as_str).collect();
    assert!(
        notes.iter().any(|note| note.contains("fill the cache")),
        "{notes:?}"
    );
    assert!(
        notes
            .iter()
            .any(|note| note.contains("the cached rows take")),
        "{notes:?}"
    );
}

#[test]
fn a_table_that_the_query_does_not_read_is_refused_with_those_that_it_reads() {
    let message = refusal(&profile(), &["cache=orders", "--query", "3"]);
    assert!(
        message.contains("cache=orders") && message.contains("it reads lineitem, supplier"),
        "{message}"
    );
    assert!(refusal(&log("causes-4.3"), &["cache=t"]).contains("is an event log"));
    let twice = refusal(&profile(), &["cache=a", "cache=a", "--query", "3"]);
    assert!(twice.contains("twice"), "{twice}");
}
