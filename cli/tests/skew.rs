//! `unfuse skew` on logs of real runs and on a profile: the answer, and what it says of bad input.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn skew(from: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_unfuse"))
        .arg("skew")
        .arg(from)
        .args(arguments)
        .output()
        .expect("unfuse starts")
}

/// The log of a fixture: the one entry of its folder.
fn log(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../eventlog/tests/fixtures")
        .join(name);
    let entry = fs::read_dir(&dir).expect("a fixture").next();
    entry.expect("a log").expect("an entry").path()
}

fn profile() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/canonical")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(from: &Path, arguments: &[&str]) -> Value {
    let arguments = [&["--json"], arguments].concat();
    serde_json::from_str(&text(&skew(from, &arguments))).expect("JSON")
}

/// What it says when it refuses.
fn refusal(from: &Path, arguments: &[&str]) -> String {
    let output = skew(from, arguments);
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn skewed_stages_are_told_with_their_reasons() {
    insta::assert_snapshot!(text(&skew(&log("causes-4.3"), &["--top", "4"])));
}

#[test]
fn one_stage_is_told_skewed_or_not() {
    insta::assert_snapshot!(text(&skew(&log("causes-4.3"), &["--stage", "1"])));
    insta::assert_snapshot!(text(&skew(&log("failures-3.5"), &["--stage", "3"])));
}

#[test]
fn a_log_that_goes_on_is_read_as_far_as_it_is() {
    let text = text(&skew(&log("killed-4.3"), &[]));
    assert!(
        text.contains("note: the log has no end of the application"),
        "{text}"
    );
}

#[test]
fn a_profile_is_judged_as_a_log_is() {
    let answer = json(&profile(), &[]);
    assert!(
        answer["stages"].as_u64().is_some_and(|stages| stages > 0),
        "{answer}"
    );
    assert_eq!(answer["notes"], Value::Array(vec![]));
}

#[test]
fn json_has_all_of_it() {
    let answer = json(&log("causes-3.5"), &["--top", "1"]);
    assert_eq!(answer["stages"], 9);
    let worst = &answer["findings"][0];
    assert_eq!(worst["verdict"]["skewed"], "computation");
    assert!(
        worst["sure"]
            .as_f64()
            .is_some_and(|sure| (0.9..=1.0).contains(&sure))
    );
    let next = worst["next"].as_str().expect("what to do");
    assert!(
        next.contains("--records") && next.contains("--kind off-cpu"),
        "{next}"
    );
}

#[test]
fn what_cannot_be_read_is_refused_with_what_to_do() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).expect("a file");
        path
    };
    let says = |from: &Path, arguments: &[&str], words: &str| {
        let text = refusal(from, arguments);
        assert!(text.contains(words), "{text}");
    };
    says(&file("empty", b""), &[], "has written no event yet");
    says(&file("a.csv", b"a,b\n"), &[], "is no event log of Spark");
    says(
        &file("other.json", b"{\"x\":1}\n"),
        &[],
        "no task of Spark has ended in it",
    );
    says(dir.path(), &[], "neither an event log nor a profile");
    says(
        &dir.path().join("gone"),
        &[],
        "neither an event log nor a profile",
    );
    says(
        &log("causes-3.5"),
        &["--stage", "99"],
        "has no tasks of stage 99; it has those of stages 0, 1, 2",
    );
}

#[test]
fn what_is_good_of_a_broken_log_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let whole = fs::read(log("causes-3.5")).expect("a log");
    let cut = dir.path().join("cut.zstd");
    fs::write(&cut, &whole[..whole.len() * 3 / 4]).expect("a file");
    let answer = json(&cut, &[]);
    assert!(
        answer["findings"][0]["verdict"]["skewed"] == "computation",
        "{answer}"
    );
    let notes = answer["notes"].to_string();
    assert!(notes.contains("what came before counts"), "{notes}");
}
