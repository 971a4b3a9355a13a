//! `unfuse size` on event logs of a job with known times: its answers, and its messages about bad input.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

const PRICES: &str = "currency = 'USD'

[[instance]]
name = 'small'
slots = 2
on_demand = 0.10
spot = 0.03
at_most = 6

[[instance]]
name = 'large'
slots = 8
on_demand = 0.44
";

/// The end of a log.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Well,
    Failed,
    Killed,
}

fn unfuse(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_unfuse"))
        .arg("size")
        .args(arguments)
        .current_dir(dir)
        .output()
        .expect("unfuse starts")
}

fn text(dir: &Path, arguments: &[&str]) -> String {
    let output = unfuse(dir, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The message of a refused command.
fn refusal(dir: &Path, arguments: &[&str]) -> String {
    let output = unfuse(dir, arguments);
    assert!(!output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A job of `iterations` Spark jobs with a stage each. A stage has 6 tasks for each MB; every sixth takes 4 s, the others 1 s.
/// The first job starts after 3 s, and 0.5 s pass between two jobs.
fn log(path: &Path, name: &str, slots: usize, iterations: usize, size: usize, end: End) {
    let mut events = vec![
        json!({"Event": "SparkListenerLogStart", "Spark Version": "4.3.0"}),
        json!({"Event": "SparkListenerExecutorAdded", "Timestamp": 1_100, "Executor ID": "driver",
            "Executor Info": {"Host": "h", "Total Cores": slots, "Log Urls": {}}}),
        json!({"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": {"spark.unfuse.iterations": iterations.to_string()}}),
        json!({"Event": "SparkListenerApplicationStart", "App Name": name, "App ID": "a-1", "Timestamp": 1_000, "User": "u"}),
    ];
    let mut now = 4_000;
    for job in 0..iterations {
        let info = json!({"Stage ID": job, "Stage Attempt ID": 0, "Stage Name": "step at Job.scala:7", "Number of Tasks": 6 * size,
            "RDD Info": [{"RDD ID": job, "Name": "MapPartitionsRDD", "Scope": "{\"id\":\"1\",\"name\":\"map\"}", "Callsite": "",
                "Parent IDs": [], "Storage Level": {"Use Disk": false, "Use Memory": false}, "Number of Partitions": 6 * size,
                "Number of Cached Partitions": 0}],
            "Parent IDs": [], "Details": "", "Submission Time": now, "Accumulables": []});
        events.push(json!({"Event": "SparkListenerJobStart", "Job ID": job, "Submission Time": now, "Stage Infos": [info],
            "Stage IDs": [job], "Properties": {}}));
        events.push(
            json!({"Event": "SparkListenerStageSubmitted", "Stage Info": info, "Properties": {}}),
        );
        let mut free = vec![now; slots];
        for task in 0..6 * size {
            let slot = (0..slots).min_by_key(|slot| free[*slot]).expect("a slot");
            let launched = free[slot];
            free[slot] += if task % 6 == 5 { 4_000 } else { 1_000 };
            events.push(json!({"Event": "SparkListenerTaskEnd", "Stage ID": job, "Stage Attempt ID": 0, "Task Type": "ResultTask",
                "Task End Reason": {"Reason": "Success"},
                "Task Info": {"Task ID": job * 1000 + task, "Index": task, "Attempt": 0, "Launch Time": launched, "Executor ID": "driver",
                    "Host": "h", "Locality": "ANY", "Speculative": false, "Getting Result Time": 0, "Finish Time": free[slot],
                    "Failed": false, "Killed": false, "Accumulables": []},
                "Task Metrics": {"Executor Run Time": free[slot] - launched - 100, "Input Metrics": {"Bytes Read": 1_000_000 / 6, "Records Read": 1}}}));
        }
        now = free.into_iter().max().expect("a slot");
        let result = match end {
            End::Failed => {
                json!({"Result": "JobFailed", "Exception": {"Message": "Job aborted: out of memory", "Stack Trace": []}})
            }
            _ => json!({"Result": "JobSucceeded"}),
        };
        events.push(json!({"Event": "SparkListenerJobEnd", "Job ID": job, "Completion Time": now, "Job Result": result}));
        now += 500;
    }
    if end != End::Killed {
        events.push(json!({"Event": "SparkListenerApplicationEnd", "Timestamp": now}));
    }
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    fs::write(path, lines.join("\n") + "\n").expect("a log");
}

/// Twelve runs in `logs`, one more that failed and one that was killed, and a price table.
fn example() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let logs = dir.path().join("logs");
    fs::create_dir(&logs).expect("a directory");
    for slots in [2, 4, 8] {
        for (iterations, size) in [(2, 1), (2, 4), (6, 1), (6, 4)] {
            log(
                &logs.join(format!("run-{slots}-{iterations}-{size}")),
                "job",
                slots,
                iterations,
                size,
                End::Well,
            );
        }
    }
    log(&logs.join("failed"), "job", 4, 2, 1, End::Failed);
    log(&logs.join("killed"), "job", 4, 2, 1, End::Killed);
    fs::write(dir.path().join("prices.toml"), PRICES).expect("a table");
    dir
}

fn fitted() -> tempfile::TempDir {
    let dir = example();
    text(dir.path(), &["fit", "logs", "-o", "job.toml"]);
    dir
}

#[test]
fn a_profile_is_made_and_asked() {
    let dir = example();
    let dir = dir.path();
    insta::assert_snapshot!(text(dir, &["fit", "logs", "-o", "job.toml"]));
    let mode = fs::metadata(dir.join("job.toml"))
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o600, "for its user only");
    let asked = ["job.toml", "--iterations", "4", "--size", "2000000"];
    let ask =
        |question: &str, rest: &[&str]| text(dir, &[&[question][..], &asked[..], rest].concat());
    insta::assert_snapshot!(ask("predict", &["--slots", "3", "--deadline", "40s"]));
    insta::assert_snapshot!(ask("predict", &["--slots", "3", "--model", "closed-form"]));
    insta::assert_snapshot!(ask(
        "cheapest",
        &["--prices", "prices.toml", "--deadline", "30s"]
    ));
    insta::assert_snapshot!(ask(
        "cheapest",
        &[
            "--prices",
            "prices.toml",
            "--deadline",
            "1m",
            "--model",
            "closed-form"
        ]
    ));
    insta::assert_snapshot!(ask(
        "best",
        &["--prices", "prices.toml", "--budget", "0.003", "--spot"]
    ));
    insta::assert_snapshot!(ask(
        "curve",
        &["--prices", "prices.toml", "-o", "curve.svg"]
    ));
    let svg = fs::read_to_string(dir.join("curve.svg")).expect("a plot");
    assert!(
        svg.contains("cost of a run, USD")
            && svg.contains("small")
            && svg.trim_end().ends_with("</svg>")
    );
}

#[test]
fn json_says_the_same() {
    let dir = fitted();
    let dir = dir.path();
    let read = |arguments: &[&str]| -> Value {
        serde_json::from_str(&text(dir, arguments)).expect("JSON")
    };
    let fit = read(&["fit", "logs", "-o", "again.toml", "--json"]);
    assert_eq!(
        (&fit["runs"], &fit["chosen"]),
        (&json!(12), &json!("replay"))
    );
    assert_eq!(fit["left_out"].as_array().map(Vec::len), Some(2));
    let same = fs::read(dir.join("job.toml")).expect("a profile")
        == fs::read(dir.join("again.toml")).expect("a profile");
    assert!(same, "the same runs give the same profile");
    let asked = [
        "job.toml",
        "--iterations",
        "4",
        "--size",
        "2000000",
        "--json",
        "--prices",
        "prices.toml",
    ];
    let on_cluster = read(
        &[
            &["predict"][..],
            &asked[..],
            &["--cluster", "small=2,large=1"],
        ]
        .concat(),
    );
    assert_eq!(on_cluster["at"]["slots"], 12.0);
    let cheapest = read(&[&["cheapest"][..], &asked[..], &["--deadline", "30s"]].concat());
    let seconds = cheapest["seconds"].as_f64().expect("a time");
    assert!(seconds < 30.0 && cheapest["deadline"]["in_time"] == true);
    let sure = read(
        &[
            &["cheapest"][..],
            &asked[..],
            &["--deadline", "30s", "--sure"],
        ]
        .concat(),
    );
    assert!(
        sure["high"].as_f64().is_some_and(|high| high < 30.0),
        "{sure}"
    );
    let curve = read(&[&["curve"][..], &asked[..]].concat());
    let offers = curve["offers"].as_array().expect("offers");
    assert!(
        offers.len() > 1
            && offers
                .iter()
                .all(|offer| offer["cost"].as_f64().is_some_and(|cost| cost > 0.0))
    );
}

#[test]
fn what_cannot_be_answered_is_refused_with_what_can() {
    let dir = fitted();
    let dir = dir.path();
    let asked = ["job.toml", "--iterations", "4", "--size", "2000000"];
    let says = |question: &str, rest: &[&str], words: &str| {
        let text = refusal(dir, &[&[question][..], &asked[..], rest].concat());
        assert!(text.contains(words), "{text}");
    };
    let prices = ["--prices", "prices.toml"];
    let shop = |rest: &[&'static str]| [&prices[..], rest].concat();
    says(
        "cheapest",
        &shop(&["--deadline", "5s"]),
        "no cluster meets a deadline of 5.0 s. The best possible is",
    );
    says(
        "best",
        &shop(&["--budget", "0.00001"]),
        "no cluster costs 0.0000 USD or less. The cheapest is",
    );
    says("best", &shop(&["--budget", "-1"]), "budget");
    says(
        "predict",
        &["--slots", "40"],
        "40 slots are 5.0 times outside the runs of the profile (2 to 8)",
    );
    says("predict", &["--slots", "0"], "slots must be above zero");
    says(
        "predict",
        &shop(&["--cluster", "huge=1"]),
        "has no huge; it has small, large",
    );
    says(
        "predict",
        &shop(&["--cluster", "small"]),
        "TYPE=N is expected",
    );
    let text = refusal(dir, &["predict", "job.toml", "--slots", "4"]);
    assert!(
        text.contains("the runs had 2 to 6 iterations: choose a number with --iterations"),
        "{text}"
    );
    fs::write(
        dir.join("bad.toml"),
        "currency = 'USD'\n[[instance]]\nname = 'a'\nslots = 2\n",
    )
    .expect("a table");
    says(
        "cheapest",
        &["--prices", "bad.toml", "--deadline", "50s"],
        "bad.toml: is no price table",
    );
    assert!(
        refusal(dir, &["predict", "prices.toml", "--slots", "4"])
            .contains("prices.toml: is no profile")
    );
    assert!(
        refusal(dir, &["predict", "none.toml", "--slots", "4"])
            .contains("none.toml: cannot be read")
    );
}

#[test]
fn logs_that_do_not_suffice_are_told() {
    let dir = example();
    let dir = dir.path();
    let says = |arguments: &[&str], words: &[&str]| {
        let text = refusal(dir, &[&["fit"][..], arguments].concat());
        for words in words {
            assert!(text.contains(words), "{words}: {text}");
        }
    };
    let few = ["logs/failed", "logs/killed", "logs/run-2-2-1"];
    says(
        &few,
        &[
            "logs/failed is left out: job 0 failed (Job aborted",
            "logs/killed is left out: it has no end",
            "1 run is not enough",
        ],
    );
    says(&["nowhere"], &["nowhere: cannot be read"]);
    fs::create_dir(dir.join("empty")).expect("a directory");
    says(&["empty"], &["a directory without event logs and profiles"]);
    let older = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/canonical");
    says(
        &[older],
        &["canonical is left out: it has no jobs and executors: an older unfuse wrote it"],
    );
    fs::write(dir.join("no-log"), "hello\n").expect("a file");
    says(&["no-log"], &["no-log is left out"]);
    says(
        &["logs", "--app", "other"],
        &["no run of application other; the applications are: job"],
    );
    log(&dir.join("logs/other"), "other", 4, 2, 1, End::Well);
    says(&["logs"], &["runs of 2 applications: job, other"]);
    assert!(text(dir, &["fit", "logs", "--app", "job"]).contains("12 runs"));
    for (table, words) in [
        ("log,iterations\nrun-2-2-1,-3\n", "row 1: -3 is impossible"),
        (
            "log,iterations\nrun-2-2-1,3\nrun-2-2-1,4\n",
            "row 2: run-2-2-1 occurs twice",
        ),
        (
            "log,rounds\nrun-2-2-1,3\n",
            "the columns are log,iterations,bytes",
        ),
    ] {
        fs::write(dir.join("runs.csv"), table).expect("a table");
        says(&["logs", "--runs", "runs.csv"], &[words, "runs.csv"]);
    }
    fs::write(
        dir.join("runs.csv"),
        "log,iterations,bytes\nrun-8-6-4,12,\n",
    )
    .expect("a table");
    let fit = text(dir, &["fit", "logs", "--app", "job", "--runs", "runs.csv"]);
    assert!(fit.contains("2 to 12 iterations"), "{fit}");
}
