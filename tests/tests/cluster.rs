//! Spark on a cluster: a standalone one of real processes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use unfuse_tests::{
    Cluster, executors, is, root, run, samples, signal, spark, top, tpch, unfuse, wait_for,
};

/// What must be on the plan.
const FUSED: [&str; 3] = ["HashAggregate", "BroadcastHashJoin", "Scan parquet"];

fn queries(command: &mut Command, seconds: &str) {
    command
        .arg(root().join("tests/programs/queries.py"))
        .arg(tpch())
        .arg(seconds);
}

/// The single row of an SQL query over a local profile, as JSON.
fn ask(profile: &Path, sql: &str) -> Vec<Value> {
    let script = format!(
        "import duckdb, json\n\
         print(json.dumps(list(duckdb.sql(\"\"\"{}\"\"\").fetchone()), default=float))",
        sql.replace("DIR", &profile.display().to_string())
    );
    let python = spark("4.3").join("venv/bin/python");
    let output = run(Command::new(python).args(["-c", &script]));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Executors with samples of tasks; samples of finished tasks as seconds; what Spark says they are.
fn counts(profile: &Path) -> (u64, f64, f64) {
    let row = ask(
        profile,
        "with done as (select task, cpu_ns + deserialize_cpu_ns as ns from 'DIR/tasks/*.parquet'
                       where status = 'SUCCESS')
         select (select count(distinct executor) from 'DIR/samples/*.parquet' where task is not null),
                (select sum(count) / 200 from 'DIR/samples/*.parquet' where task in (select task from done)),
                (select sum(ns) / 1e9 from done)",
    );
    (
        row[0].as_u64().expect("a count"),
        row[1].as_f64().expect("seconds"),
        row[2].as_f64().expect("seconds"),
    )
}

fn check(profile: &Path, least_executors: u64, tolerance: f64) {
    let (executors, sampled, spark) = counts(profile);
    println!("{executors} executors, {sampled} s sampled, Spark says {spark} s");
    assert!(executors >= least_executors, "{executors} executors");
    assert!(
        (sampled / spark - 1.0).abs() < tolerance,
        "{sampled} s sampled, Spark says {spark} s"
    );
    let rows = top(profile, &[]);
    for operator in FUSED {
        assert!(samples(&rows, |row| is(row, operator)) > 0, "{operator} has no sample");
    }
    let output = run(unfuse().arg("top").arg(profile));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "nothing is damaged");
}

fn uri(path: &Path) -> PathBuf {
    PathBuf::from(format!("file://{}", path.display()))
}

#[test]
fn executors_of_two_workers_share_a_directory() {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start(&spark("4.3"), 2, dir.path());
    let profile = dir.path().join("profile");
    let mut command = cluster.submit(&profile, 2, &[]);
    queries(&mut command, "20");
    run(&mut command);
    check(&profile, 2, 0.03);
}

#[test]
fn segments_are_copied_to_a_uri() {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start(&spark("4.3"), 2, dir.path());
    let profile = dir.path().join("profile");
    let mut command = cluster.submit(&uri(&profile), 2, &[]);
    queries(&mut command, "20");
    run(&mut command);
    check(&profile, 2, 0.03);
    // The same by its URI.
    assert_eq!(top(&uri(&profile), &[]), top(&profile, &[]));
}

#[test]
fn a_killed_executor_costs_no_counts() {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start(&spark("4.3"), 2, dir.path());
    let profile = dir.path().join("profile");
    let mut command = cluster.submit(&uri(&profile), 2, &[]);
    queries(&mut command, "30");
    let job = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let of_ours = profile.display().to_string();
    wait_for("two executors", || executors(&of_ours).len() == 2);
    wait_for("samples", || profile.join("samples").is_dir());
    std::thread::sleep(Duration::from_secs(5));
    signal(executors(&of_ours)[0], "KILL");
    let output = job.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    check(&profile, 3, 0.03);
}
