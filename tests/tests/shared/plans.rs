//! Plans of every shape: whatever runs a task is told, and each run is told from the others.

use std::path::Path;

use serde_json::Value;
use unfuse_tests::{root, run, samples, spark, spark_submit, top, tpch, unfuse};

/// The executions whose description has `name`, in order.
fn ids(profile: &Path, name: &str) -> Vec<i64> {
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
    ids
}

/// Their rows by operator.
fn executions(profile: &Path, name: &str) -> Vec<Vec<Value>> {
    ids(profile, name)
        .into_iter()
        .map(|id| top(profile, &["--query", &id.to_string()]))
        .collect()
}

/// What functions a marked operator calls, and the operators.
const MARKS: [(&str, &str); 4] = [
    ("sha256", "Filter"),
    ("md5Hex", "BroadcastHashJoin"),
    ("levenshtein", "Project"),
    ("CRC32", "HashAggregate"),
];

/// A function is called by generated code directly or through some of Spark's; readers of Parquet use CRC32 too, far away.
const MOST_CALLS: usize = 4;

/// Every sample of a function that one operator alone calls is that operator's; in fused code it is proved to be.
fn check_marks(profile: &Path, name: &str, version: &str, proved: bool) {
    let query = ids(profile, name)[0].to_string();
    let arguments = ["export", "--format", "json", "--query", &query];
    let exported = run(unfuse().args(arguments).arg(profile)).stdout;
    let exported: Value = serde_json::from_slice(&exported).expect("JSON");
    let frames = exported["frames"].as_array().expect("frames");
    let all = exported["samples"].as_array().expect("samples");
    for (mark, operator) in MARKS {
        let marked = |sample: &&Value| {
            let stack = sample["stack"].as_array().expect("a stack");
            let frames = stack
                .iter()
                .filter_map(|frame| frames.get(frame.as_u64()? as usize));
            // Operators' names have the functions' names in them. What counts is what the innermost generated code
            // calls: optimized code that called it may be described as another inlined function.
            let code = frames.filter(|frame| frame["kind"] == "java" || frame["kind"] == "native");
            let text =
                |frame: &Value, field: &str| frame[field].as_str().unwrap_or_default().to_owned();
            let (mut is_marked, mut calls_away) = (false, usize::MAX);
            for frame in code {
                if text(frame, "file").starts_with("generated_") {
                    (is_marked, calls_away) = (false, 0);
                } else {
                    calls_away = calls_away.saturating_add(1);
                    is_marked |= calls_away <= MOST_CALLS && text(frame, "name").contains(mark);
                }
            }
            is_marked
        };
        let of_mark: Vec<Value> = all.iter().filter(marked).cloned().collect();
        let text =
            |sample: &Value, field: &str| sample[field].as_str().unwrap_or_default().to_owned();
        let right = samples(&of_mark, |sample| {
            let rule = text(sample, "rule");
            let is_unproved =
                text(sample, "operator").starts_with('[') || proved && rule.starts_with("guess");
            !is_unproved && text(sample, "operator").starts_with(operator)
        });
        let count = samples(&of_mark, |_| true);
        assert!(count >= 20, "{version} {name}: {mark} has {count} samples");
        let mut others: Vec<String> = of_mark
            .iter()
            .map(|sample| format!("{} by {}", text(sample, "operator"), text(sample, "rule")))
            .collect();
        others.sort_unstable();
        others.dedup();
        eprintln!("{version} {name}: {right} of {count} samples in {mark} are of {operator}");
        // At most 3%, and no more than chance (three standard deviations) makes of 1%.
        let wrong = (count - right) as f64 / count as f64;
        let chance = 0.01 + 3.0 * (0.01 * 0.99 / count as f64).sqrt();
        assert!(
            wrong <= chance.min(0.03),
            "{version} {name}: {right} of {count} samples in {mark} are of {operator}: {others:?}"
        );
    }
}

/// Samples of queries by what the rules are worth that placed them.
fn standing(profile: &Path, queries: &[i64], standing: &str) -> u64 {
    let of = |query: &i64| top(profile, &["--by", "rule", "--query", &query.to_string()]);
    let rows: Vec<Value> = queries.iter().flat_map(of).collect();
    samples(&rows, |row| row["standing"] == standing)
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

    check_marks(&profile, "marked", version, true);
    // Which of several projections of a stage a class without regions is of may be a guess.
    check_marks(&profile, "unfused", version, false);

    let broadcast = one("broadcast");
    assert!(
        of(&broadcast, "BroadcastExchange") > 0,
        "{version}: rows of a broadcast are packed for its node: {broadcast:?}"
    );
    let results = one("results");
    assert!(
        of(&results, "task: result rows") > 0 && of(&results, "task: collected rows") == 0,
        "{version}: rows for the program are results: {results:?}"
    );

    // Some of them are short: a share of a few samples says nothing.
    let written = [
        "again",
        "subquery",
        "reused",
        "marked",
        "broadcast",
        "interpreted",
        "python",
        "stream",
    ];
    let queries: Vec<i64> = written
        .iter()
        .flat_map(|name| ids(&profile, name))
        .collect();
    let [proved, guessed, headings, unattributed] =
        ["proved", "guessed", "heading", "unattributed"]
            .map(|name| standing(&profile, &queries, name));
    let found = format!(
        "{version}: {proved} proved, {guessed} guessed, {headings} under headings, {unattributed} unattributed"
    );
    let all = proved + guessed + headings + unattributed;
    assert!(unattributed * 100 <= all, "{found}");
    assert!(guessed * 50 <= all, "{found}");
    assert!(
        proved * 100 >= 95 * (proved + guessed + unattributed),
        "{found}"
    );
    for rows in written.iter().flat_map(|name| executions(&profile, name)) {
        assert_eq!(
            of(&rows, "task: result rows") + of(&rows, "task: collected rows"),
            0,
            "{version}: what writes its result has no result rows: {rows:?}"
        );
    }

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
