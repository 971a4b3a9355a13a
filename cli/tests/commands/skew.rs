//! `unfuse skew` on logs of real runs and on a profile: its answers, and its messages about bad input.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::fixture::{log, profile};
use serde_json::{Value, json as json_of};
use unfuse_format::{
    ProfileDir, RecordInRow, RecordOutRow, RecordSourceKind, RecordSourceRow, RecordTargetRow,
    RecordTextRow, SegmentWriter, Table, TaskKey, TaskRow,
};

fn skew(from: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_unfuse"))
        // Output of failed jobs is kept here.
        .env("TMPDIR", env!("CARGO_TARGET_TMPDIR"))
        .arg("skew")
        .arg(from)
        .args(arguments)
        .output()
        .expect("unfuse starts")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(from: &Path, arguments: &[&str]) -> Value {
    let arguments = [&["--json"], arguments].concat();
    serde_json::from_str(&text(&skew(from, &arguments))).expect("JSON")
}

/// The message of a refused command.
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

/// The log of a running application. 99 tasks of a stage took about 1 s, and one task has been running for an hour.
fn with_a_hanging_task(path: &Path) {
    let task = |index: u64, launched: u64| {
        json_of!({
            "Task ID": index, "Index": index, "Attempt": 0, "Partition ID": index, "Launch Time": launched, "Executor ID": "1",
            "Host": "host-1", "Locality": "PROCESS_LOCAL", "Speculative": false, "Failed": false, "Killed": false,
        })
    };
    let of_stage = |event: &str, task: Value| json_of!({"Event": event, "Stage ID": 0, "Stage Attempt ID": 0, "Task Info": task});
    let mut events = vec![
        json_of!({"Event": "SparkListenerLogStart", "Spark Version": "3.5.1"}),
        json_of!({"Event": "SparkListenerApplicationStart", "App Name": "a", "App ID": "app-1", "Timestamp": 0, "User": "u"}),
        json_of!({"Event": "SparkListenerStageSubmitted", "Stage Info": {
            "Stage ID": 0, "Stage Attempt ID": 0, "Stage Name": "map at Job.scala:7", "Number of Tasks": 100, "Submission Time": 0,
        }}),
    ];
    for index in 0..100 {
        let launched = index / 8 * 1100;
        let run = 970 + index * 37 % 60;
        events.push(of_stage("SparkListenerTaskStart", task(index, launched)));
        if index == 42 {
            continue;
        }
        let mut end = of_stage("SparkListenerTaskEnd", task(index, launched));
        end["Task Type"] = "ShuffleMapTask".into();
        end["Task End Reason"] = json_of!({"Reason": "Success"});
        end["Task Info"]["Finish Time"] = (launched + run + 5).into();
        end["Task Metrics"] =
            json_of!({"Executor Run Time": run, "Executor CPU Time": run * 1_000_000});
        events.push(end);
    }
    // This event is the only one that shows the present time.
    events.push(json_of!({"Event": "SparkListenerJobEnd", "Job ID": 9, "Completion Time": 3_600_500, "Job Result": {"Result": "JobSucceeded"}}));
    let lines: Vec<String> = events.iter().map(|event| format!("{event}\n")).collect();
    fs::write(path, lines.concat()).expect("a log");
}

#[test]
fn a_stage_that_waits_for_a_task_that_runs_still_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = dir.path().join("app-1.inprogress");
    with_a_hanging_task(&log);
    let says = text(&skew(&log, &[]));
    for words in [
        "In 1 of 1 stage a task still runs, for much longer than the others took.\n",
        "Task 42 has been running for 3595 s on executor 1 of host-1, 35",
        "times as long as a typical task took. Its cause is unknown until it ends.",
    ] {
        assert!(says.contains(words), "{words}: {says}");
    }
    assert!(!says.contains("No slow tasks"), "{says}");
    let answer = json(&log, &[]);
    assert_eq!(
        (&answer["skewed"], &answer["hanging"]),
        (&0.into(), &1.into())
    );
    let hanging = &answer["findings"][0]["hanging"][0];
    assert_eq!(hanging["index"], 42, "{answer:#}");
    assert_eq!(hanging["running_ms"], 3_595_000.0, "{answer:#}");
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
        "has no finished Spark task",
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
        "has no tasks of stage 99; it has tasks of stages 0, 1, 2",
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

fn write<T: Table>(dir: &ProfileDir, row: T) {
    let mut writer = SegmentWriter::new(dir, "host-1");
    writer.push(row);
    writer.flush().expect("written");
}

/// A profile with a result of one record that took 2 s.
fn with_records(root: &Path) {
    let dir = ProfileDir::create(root).expect("a profile");
    write(
        &dir,
        TaskRow {
            finished_ms: 3000,
            run_ms: 3000,
            status: "SUCCESS".to_owned(),
            ..TaskRow::default()
        },
    );
    follow(&dir, TaskKey(7), 0);
}

/// The input and output of a task of the stage with the same number: a record that took 2 s.
fn follow(dir: &ProfileDir, task_key: TaskKey, number: i32) {
    write(
        dir,
        RecordSourceRow {
            task_key,
            stage: number,
            task: number.into(),
            kind: RecordSourceKind::File,
            count: 1,
            timed: true,
            output: -1,
            ..RecordSourceRow::default()
        },
    );
    write(
        dir,
        RecordTargetRow {
            task_key,
            stage: number,
            task: number.into(),
            link: "result".to_owned(),
            count: 1,
            ..RecordTargetRow::default()
        },
    );
    write(
        dir,
        RecordInRow {
            task_key,
            ns: 2_000_000_000,
            ..RecordInRow::default()
        },
    );
    write(
        dir,
        RecordOutRow {
            task_key,
            ns: 2_000_000_000,
            count: 1,
            ..RecordOutRow::default()
        },
    );
}

/// Records the content of that record.
fn keep(dir: &ProfileDir, task_key: TaskKey, content: &str) {
    write(
        dir,
        RecordTextRow {
            task_key,
            output: -1,
            ns: 2_000_000_000,
            text: Some(content.to_owned()),
            ..RecordTextRow::default()
        },
    );
}

#[test]
fn records_are_those_of_the_stage_that_was_asked_for() {
    let home = tempfile::tempdir().expect("a directory");
    let root = home.path().join("profile");
    with_records(&root);
    let dir = ProfileDir::open(&root).expect("a profile");
    write(
        &dir,
        TaskRow {
            stage: 1,
            task: 1,
            finished_ms: 3000,
            run_ms: 3000,
            status: "SUCCESS".to_owned(),
            ..TaskRow::default()
        },
    );
    follow(&dir, TaskKey(8), 1);
    keep(&dir, TaskKey(7), "of stage 0");
    keep(&dir, TaskKey(8), "of stage 1");
    let told = |arguments: &[&str]| {
        let answer = json(&root, arguments);
        let records = &answer["records"];
        let slow = records["slow_records"].as_array().expect("rows");
        let results = records["slow_results"].as_array().expect("rows");
        let of_slow = slow.iter().map(|row| row["at"]["content"].to_string());
        let of_results = results.iter().map(|row| row["stage"].to_string());
        of_slow.chain(of_results).collect::<Vec<_>>()
    };
    assert_eq!(told(&[]).len(), 4);
    assert_eq!(told(&["--stage", "0"]), ["\"of stage 0\"", "0"]);
    // The records of other stages do not take its place, even if they are as slow.
    assert_eq!(
        told(&["--stage", "1", "--top", "1"]),
        ["\"of stage 1\"", "1"]
    );
}

#[test]
fn a_record_saves_what_its_stage_would_end_sooner() {
    let home = tempfile::tempdir().expect("a directory");
    let root = home.path().join("profile");
    let dir = ProfileDir::create(&root).expect("a profile");
    let task = |attempt, task: i32, launched, run_ms| TaskRow {
        attempt,
        task: task.into(),
        index: task % 10,
        launched_ms: launched,
        finished_ms: launched + run_ms,
        run_ms,
        status: "SUCCESS".to_owned(),
        ..TaskRow::default()
    };
    // On two slots: a task of 3 s with a record of 2 s, and three tasks of 1 s.
    for (number, launched, run_ms) in [(0, 0, 3000), (1, 0, 1000), (2, 1000, 1000), (3, 2000, 1000)]
    {
        write(&dir, task(0, number, launched, run_ms));
    }
    // A copy of a task that succeeded too, but later.
    write(
        &dir,
        TaskRow {
            index: 1,
            ..task(0, 11, 0, 9000)
        },
    );
    follow(&dir, TaskKey(7), 0);
    keep(&dir, TaskKey(7), "slow");
    let answer = json(&root, &[]);
    let record = &answer["records"]["slow_records"][0];
    assert_eq!(record["at"]["content"], "slow", "{answer:#}");
    // Not the 2 s of the record, because its slot would then run one of the other tasks.
    assert_eq!(record["saves_seconds"], 1.0, "{answer:#}");
}

/// The answer of a job for this profile.
const ANSWER: &str = r#"{"results": 1, "inputs": 1, "unlinked": 0, "damaged": 0, "slowest": [{"task_key": 7, "output": 0, "position": 0,
    "base_ns": 0, "own_ns": 2000000000, "root": {"task_key": 7, "source": 0, "position": 0}, "root_ns": 2000000000,
    "peak": {"task_key": 7, "source": 0, "position": 0}, "peak_ns": 2000000000, "lineage": 1}],
    "records": [{"task_key": 7, "source": 0, "position": 0, "id": 0, "ns": 2000000000}]}"#;

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
        says.contains(
            "/no/such/spark-submit was not found; give spark-submit and its options after --"
        ),
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
            "test \"$1 $2 $4\" = \"--master local file://{}\" && grep -q task_key \"$5\" && cat > \"$6\" <<'END'\n{ANSWER}\nEND",
            profile.display()
        ),
    );
    let by_a_job = json(&profile, &["--", &answers, "--master", "local"]);
    assert_eq!(by_a_job["records"]["slow_results"][0]["seconds"], 2.0);
    assert_eq!(by_a_job, json(&profile, &[]));
}
