//! Completion time: profiles of real runs give the same fit as their event logs.

use std::fs;
use std::path::Path;

use serde_json::Value;
use unfuse_tests::{brief_driver, root, run, spark, spark_submit, unfuse};

/// The file that a fit writes, without names of its inputs, and its JSON answer.
fn fitted(dir: &Path, from: &[&str]) -> (String, Value) {
    let mut command = unfuse();
    command
        .args(["size", "fit", "--json"])
        .args(from)
        .current_dir(dir);
    let said = run(&mut command).stdout;
    let text = fs::read_to_string(dir.join("sizing.toml")).expect("a profile");
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("log = "));
    let said = serde_json::from_slice(&said).expect("JSON");
    (lines.collect::<Vec<_>>().join("\n"), said)
}

#[test]
fn profiles_make_the_fit_of_event_logs() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path();
    let logs = dir.join("logs");
    fs::create_dir_all(&logs).expect("a directory");
    fs::create_dir(dir.join("profiles")).expect("a directory");
    let event_logs = format!("spark.eventLog.dir=file://{}", logs.display());
    for (version, slots) in [("4.3", 1), ("3.5", 2), ("4.3", 4), ("3.5", 3)] {
        let master = format!("local[{slots}]");
        let profile = dir.join("profiles").join(format!("slots-{slots}"));
        let options = [
            "--master",
            &master,
            "--conf",
            "spark.eventLog.enabled=true",
            "--conf",
            &event_logs,
            "--conf",
            "spark.unfuse.bytes=70000",
            "--conf",
            "spark.sql.shuffle.partitions=4",
        ];
        let mut command = spark_submit(&spark(version), &profile, &options);
        command
            .args(brief_driver())
            .arg(root().join("tests/programs/sleeps.py"))
            .args(["100", "50"]);
        run(&mut command);
    }
    let (from_logs, said) = fitted(dir, &["logs"]);
    assert_eq!(said["runs"], 4, "{said:#}");
    assert_eq!(said["category"], "sql", "{said:#}");
    let slots = &said["ranges"]["slots"];
    assert_eq!(
        (&slots["least"], &slots["most"]),
        (&1.0.into(), &4.0.into())
    );
    assert_eq!(said["ranges"]["bytes"]["most"], 70000.0, "{said:#}");
    let (from_profiles, _) = fitted(dir, &["profiles"]);
    assert_eq!(from_profiles, from_logs);
    // Both together are four runs, not eight.
    let (from_both, said) = fitted(dir, &["logs", "profiles"]);
    assert_eq!(from_both, from_logs);
    let left_out = said["left_out"].as_array().expect("a list");
    assert!(
        left_out.len() == 4
            && left_out.iter().all(|one| one["why"]
                .as_str()
                .is_some_and(|why| why.contains("same run"))),
        "{left_out:?}"
    );
}
