//! `unfuse skew` on logs of real runs and on a profile: the answer, and what it says of bad input.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use unfuse_format::{
    ProfileDir, RecordInRow, RecordOutRow, RecordSourceRow, RecordTargetRow, SegmentWriter, Table,
    TaskRow,
};

fn skew(from: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_unfuse"))
        // What a failed job said stays.
        .env("TMPDIR", env!("CARGO_TARGET_TMPDIR"))
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

/// A profile with a result of one record, which took 2 s.
fn with_records(root: &Path) {
    fn write<T: Table>(dir: &ProfileDir, row: T) {
        let mut writer = SegmentWriter::new(dir, "host-1");
        writer.push(row);
        writer.flush().expect("written");
    }
    let dir = ProfileDir::create(root).expect("a profile");
    write(
        &dir,
        TaskRow {
            finished: 3000,
            run_ms: 3000,
            status: "SUCCESS".to_owned(),
            ..TaskRow::default()
        },
    );
    write(
        &dir,
        RecordSourceRow {
            tap: 7,
            kind: "file".to_owned(),
            count: 1,
            timed: true,
            output: -1,
            ..RecordSourceRow::default()
        },
    );
    write(
        &dir,
        RecordTargetRow {
            tap: 7,
            link: "result".to_owned(),
            count: 1,
            ..RecordTargetRow::default()
        },
    );
    write(
        &dir,
        RecordInRow {
            tap: 7,
            ns: 2_000_000_000,
            ..RecordInRow::default()
        },
    );
    write(
        &dir,
        RecordOutRow {
            tap: 7,
            ns: 2_000_000_000,
            count: 1,
            ..RecordOutRow::default()
        },
    );
}

/// What a job would answer of it.
const ANSWER: &str = r#"{"results": 1, "inputs": 1, "unlinked": 0, "damaged": 0, "slowest": [{"tap": 7, "output": 0, "position": 0,
    "base_ns": 0, "own_ns": 2000000000, "root": {"tap": 7, "source": 0, "position": 0}, "root_ns": 2000000000,
    "peak": {"tap": 7, "source": 0, "position": 0}, "peak_ns": 2000000000, "lineage": 1}],
    "records": [{"tap": 7, "source": 0, "position": 0, "id": 0, "ns": 2000000000}]}"#;

#[test]
fn records_are_followed_by_a_job_that_is_named() {
    let home = tempfile::tempdir().expect("a directory");
    let profile = home.path().join("profile");
    with_records(&profile);
    let submit = |name: &str, text: &str| {
        let path = home.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("it may run");
        path.display().to_string()
    };
    let refused = |from: &Path, submit: &str| refusal(from, &["--", submit, "--master", "local"]);

    let says = refused(&profile, "/no/such/spark-submit");
    assert!(
        says.contains("/no/such/spark-submit was not found; behind -- goes"),
        "{says}"
    );
    let says = refused(&profile, &submit("fails", "echo no room >&2\nexit 3"));
    assert!(
        says.contains("(exit status: 3):\n  no room\n") && says.contains("client mode"),
        "{says}"
    );
    let says = refused(&profile, &submit("silent", ""));
    assert!(says.contains("--deploy-mode client"), "{says}");
    let says = refused(&log("causes-4.3"), "spark-submit");
    assert!(says.contains("is an event log"), "{says}");
    let empty = home.path().join("empty");
    with_records(&empty);
    fs::remove_dir_all(empty.join("record_sources")).expect("it was there");
    fs::remove_dir_all(empty.join("record_targets")).expect("it was there");
    let says = refused(&empty, "spark-submit");
    assert!(says.contains("unfuse run --records"), "{says}");

    let answers = submit(
        "answers",
        &format!(
            "test \"$1 $2 $4\" = \"--master local file://{}\" && grep -q tap \"$5\" && cat > \"$6\" <<'END'\n{ANSWER}\nEND",
            profile.display()
        ),
    );
    let by_a_job = json(&profile, &["--", &answers, "--master", "local"]);
    assert_eq!(by_a_job["records"]["slow_results"][0]["seconds"], 2.0);
    assert_eq!(by_a_job, json(&profile, &[]));
}
