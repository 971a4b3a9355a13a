//! An event log of Spark and the profile of the same run give the same answers, as far as a log knows.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use unfuse_tests::{record_check, run, unfuse};

/// Causes of which both know the same.
const COMMON: [&str; 5] = ["driver", "skew", "few_tasks", "scheduling", "failed_tasks"];

/// A run of a program with both: profile and log.
fn recorded(home: &Path, version: &str) -> (PathBuf, PathBuf) {
    let (profile, logs) = (home.join("profile"), home.join("logs"));
    fs::create_dir(&logs).expect("a directory");
    let dir = format!("spark.eventLog.dir=file://{}", logs.display());
    let options = ["--conf", "spark.eventLog.enabled=true", "--conf", &dir];
    record_check(version, &profile, &options, 2, 1);
    let mut entries = fs::read_dir(&logs).expect("a directory");
    let log = entries.next().expect("a log").expect("a log").path();
    (profile, log)
}

fn answer(command: &str, source: &Path, options: &[&str]) -> Value {
    let output = run(unfuse().args([command, "--json"]).arg(source).args(options));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Seconds of the parts of each kind.
fn by_kind(answer: &Value) -> BTreeMap<String, f64> {
    let mut kinds = BTreeMap::new();
    for part in answer["parts"].as_array().expect("parts") {
        let kind = part["kind"].as_str().expect("a kind").to_owned();
        *kinds.entry(kind).or_default() += part["seconds"].as_f64().expect("a number");
    }
    kinds
}

/// Text, codegen stage and rows of each node of a query's plan.
fn nodes(source: &Path, query: &str) -> Vec<[String; 3]> {
    let plans = answer("plan", source, &["--query", query]);
    let nodes = plans[0]["nodes"].as_array().expect("nodes").iter();
    nodes
        .map(|node| ["detail", "codegen_stage", "rows"].map(|field| node[field].to_string()))
        .collect()
}

fn check(version: &str) {
    let home = tempfile::tempdir().expect("a directory");
    let (profile, log) = recorded(home.path(), version);
    let [by_profile, by_log] = [&profile, &log].map(|source| answer("why", source, &[]));
    assert_eq!(by_profile["now"]["queries"], by_log["now"]["queries"]);
    assert_eq!(by_profile["fingerprint"], by_log["fingerprint"]);
    assert_eq!(by_profile["now"]["wall_s"], by_log["now"]["wall_s"]);
    let wall_s = by_log["now"]["wall_s"].as_f64().expect("a number");
    let [of_profile, of_log] = [&by_profile, &by_log].map(by_kind);
    let seconds = |of: &BTreeMap<String, f64>, kind: &str| of.get(kind).copied().unwrap_or(0.0);
    for kind in COMMON {
        // Parts of less than half a per cent are in the remainder.
        let apart = (seconds(&of_profile, kind) - seconds(&of_log, kind)).abs();
        assert!(apart <= 0.01 * wall_s, "{kind}: {of_profile:?}, {of_log:?}");
    }
    assert!(seconds(&of_log, "task") > 0.0 && seconds(&of_log, "operator") == 0.0);
    let parts = by_log["parts"].as_array().expect("parts");
    let is_scan = |part: &&Value| {
        let what = part["what"].as_str().expect("a text");
        what.starts_with("CPU time of Scan parquet") && what.contains("Filter")
    };
    assert!(parts.iter().any(|part| is_scan(&part)), "{parts:#?}");
    // Compared with each other, both are divided by what a log knows, so nothing differs.
    let query = by_log["now"]["queries"][0].to_string();
    let against = log.to_str().expect("UTF-8");
    let options = [
        "--query",
        &query,
        "--against",
        against,
        "--against-query",
        &query,
    ];
    let compared = answer("why", &profile, &options);
    assert_eq!(compared["difference_s"], 0.0, "{compared:#}");
    for part in compared["parts"].as_array().expect("parts") {
        let seconds = part["seconds"].as_f64().expect("a number");
        assert!(seconds.abs() < 1e-3 * wall_s, "{part:#}");
    }
    // The plan has the same nodes in the same generated loops, with as many rows.
    let [of_profile, of_log] = [&profile, &log].map(|source| nodes(source, &query));
    assert!(
        of_log
            .iter()
            .any(|[_, stage, rows]| stage != "null" && rows != "null")
    );
    assert_eq!(of_profile, of_log);
    let refused = unfuse().arg("top").arg(&log).output().expect("unfuse runs");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("an event log has no samples"),
        "{said}"
    );
}

#[test]
fn an_event_log_of_spark_4_answers_like_the_profile_of_its_run() {
    check("4.3");
}

#[test]
fn an_event_log_of_spark_3_5_answers_like_the_profile_of_its_run() {
    check("3.5");
}
