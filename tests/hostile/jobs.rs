//! Event logs of a plausible job, from which `unfuse size` can fit a profile.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use unfuse_tests::{run, unfuse};

/// Fits a profile to runs of an application of this name; returns the profile's text.
pub(crate) fn profile(dir: &Path, name: &str) -> String {
    let logs = dir.join("logs");
    fs::create_dir_all(&logs).expect("a directory");
    for slots in [2, 4, 8] {
        for (iterations, tasks) in [(2, 6), (2, 24), (6, 6), (6, 24)] {
            let events = events(name, slots, iterations, tasks);
            let lines: Vec<String> = events.iter().map(Value::to_string).collect();
            let path = logs.join(format!("run-{slots}-{iterations}-{tasks}"));
            fs::write(path, lines.join("\n") + "\n").expect("written");
        }
    }
    let out = dir.join("fitted.toml");
    run(unfuse()
        .args(["size", "fit"])
        .arg(&logs)
        .arg("-o")
        .arg(&out));
    fs::read_to_string(out).expect("a profile")
}

fn events(name: &str, slots: usize, iterations: usize, tasks: usize) -> Vec<Value> {
    let mut events = vec![
        json!({"Event": "SparkListenerLogStart", "Spark Version": "4.3.0"}),
        json!({"Event": "SparkListenerExecutorAdded", "Timestamp": 1_100, "Executor ID": "driver",
            "Executor Info": {"Host": "h", "Total Cores": slots, "Log Urls": {}}}),
        json!({"Event": "SparkListenerEnvironmentUpdate",
            "Spark Properties": {"spark.unfuse.iterations": iterations.to_string()}}),
        json!({"Event": "SparkListenerApplicationStart", "App Name": name, "App ID": "a-1", "Timestamp": 1_000,
            "User": name}),
    ];
    let mut now = 4_000;
    for job in 0..iterations {
        let stage = json!({"Stage ID": job, "Stage Attempt ID": 0, "Stage Name": name, "Number of Tasks": tasks,
            "RDD Info": [], "Parent IDs": [], "Submission Time": now});
        events.push(
            json!({"Event": "SparkListenerJobStart", "Job ID": job, "Submission Time": now,
            "Stage Infos": [stage], "Stage IDs": [job], "Properties": {}}),
        );
        events.push(
            json!({"Event": "SparkListenerStageSubmitted", "Stage Info": stage, "Properties": {}}),
        );
        let mut free = vec![now; slots];
        for task in 0..tasks {
            let slot = (0..slots).min_by_key(|slot| free[*slot]).expect("a slot");
            let launched = free[slot];
            free[slot] += if task % 6 == 5 { 4_000 } else { 1_000 };
            events.push(json!({"Event": "SparkListenerTaskEnd", "Stage ID": job, "Stage Attempt ID": 0,
                "Task End Reason": {"Reason": "Success"},
                "Task Info": {"Task ID": job * 1000 + task, "Index": task, "Attempt": 0, "Launch Time": launched,
                    "Executor ID": "driver", "Host": "h", "Locality": "ANY", "Speculative": false,
                    "Finish Time": free[slot]},
                "Task Metrics": {"Executor Run Time": free[slot] - launched - 100,
                    "Input Metrics": {"Bytes Read": 1_000_000 / 6, "Records Read": 1}}}));
        }
        now = free.into_iter().max().expect("a slot");
        events.push(
            json!({"Event": "SparkListenerJobEnd", "Job ID": job, "Completion Time": now,
            "Job Result": {"Result": "JobSucceeded"}}),
        );
        now += 500;
    }
    events.push(json!({"Event": "SparkListenerApplicationEnd", "Timestamp": now}));
    events
}
