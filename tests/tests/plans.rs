//! Plans of every shape: whatever runs a task is told, and each run is told from the others.

use serde_json::Value;
use unfuse_tests::{root, run, samples, spark, spark_submit, top, tpch};

/// The executions whose description is `name`, in order.
fn executions(profile: &std::path::Path, name: &str) -> Vec<Vec<Value>> {
    let mut ids: Vec<i64> = top(profile, &["--by", "query"])
        .iter()
        .filter(|row| {
            row["detail"]
                .as_str()
                .is_some_and(|detail| detail.contains(name))
        })
        .filter_map(|row| row["query"].as_i64())
        .collect();
    ids.sort_unstable();
    ids.into_iter()
        .map(|id| top(profile, &["--query", &id.to_string()]))
        .collect()
}

fn operator(row: &Value) -> &str {
    row["operator"].as_str().unwrap_or_default()
}

fn check(version: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let options = ["--master", "local[2]", "--driver-memory", "3g"];
    let mut command = spark_submit(&spark(version), &profile, &options);
    run(command
        .arg(root().join("tests/programs/plans.py"))
        .arg(tpch()));

    let owned = |rows: &[Value]| samples(rows, |row| row["node_id"].is_i64());
    let of = |rows: &[Value], name: &str| samples(rows, |row| operator(row).contains(name));
    let one = |name: &str| {
        let mut found = executions(&profile, name);
        assert_eq!(found.len(), 1, "{version}: executions called {name}");
        found.remove(0)
    };

    let again = executions(&profile, "again");
    assert_eq!(again.len(), 2, "{version}: the same query twice is two");
    for rows in &again {
        assert!(of(rows, "HashAggregate") > 0, "{version}: {rows:?}");
    }

    let subquery = one("subquery");
    let scans: std::collections::BTreeSet<i64> = subquery
        .iter()
        .filter(|row| operator(row).contains("Scan"))
        .filter_map(|row| row["node_id"].as_i64())
        .collect();
    assert!(
        scans.len() >= 2,
        "{version}: the subquery's scan is its own: {subquery:?}"
    );

    let reused = one("reused");
    assert!(
        of(&reused, "Exchange") > 0 && of(&reused, "Join") > 0,
        "{version}: {reused:?}"
    );

    let interpreted = one("interpreted");
    assert!(of(&interpreted, "Filter") > 0, "{version}: {interpreted:?}");
    assert!(
        of(&interpreted, "HashAggregate") > 0,
        "{version}: {interpreted:?}"
    );

    let python = one("python");
    let all = samples(&python, |_| true);
    assert!(
        2 * of(&python, "EvalPython") > all,
        "{version}: the worker's time is its operator's: {python:?}"
    );

    let streams = executions(&profile, "stream");
    assert!(
        streams.len() >= 3,
        "{version}: each micro-batch is an execution: {}",
        streams.len()
    );

    // Some of them are short: a share of a few samples says nothing.
    let queries: Vec<Value> = [
        &again[0],
        &again[1],
        &subquery,
        &reused,
        &interpreted,
        &python,
    ]
    .into_iter()
    .chain(&streams)
    .flatten()
    .cloned()
    .collect();
    let unattributed = samples(&queries, |row| operator(row) == "unattributed");
    let all = samples(&queries, |_| true);
    assert!(
        unattributed * 50 <= all,
        "{version}: {unattributed} of {all} samples unattributed: {queries:?}"
    );
    let fused: u64 = [&again[1], &subquery, &reused]
        .into_iter()
        .map(|rows| owned(rows))
        .sum();
    assert!(fused > 0, "{version}: operators have samples");

    let without_query: Vec<Value> = top(&profile, &[])
        .into_iter()
        .filter(|row| row["query"].is_null() && row["stage"].is_i64())
        .collect();
    assert!(
        of(&without_query, "task: Python") * 2 > samples(&without_query, |_| true),
        "{version}: a job without SQL says what it does: {without_query:?}"
    );
    assert!(
        samples(&top(&profile, &[]), |row| operator(row)
            .starts_with("jvm: "))
            > 0,
        "{version}: the JVM's own work is told"
    );
}

#[test]
fn every_plan_of_spark_4_lands_on_its_operators() {
    check("4.3");
}

#[test]
fn every_plan_of_spark_3_5_lands_on_its_operators() {
    check("3.5");
}
