//! Plans of every shape: the profile names the work of every task and separates all executions of a query.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use unfuse_tests::{root, run, samples, spark, spark_submit_by, top, tpch, unfuse};

/// Answers of `unfuse` about a profile. Each command runs once, because it reads the whole profile.
struct Answers {
    by_query: Vec<Value>,
    by_operator: Vec<Value>,
    by_rule: Vec<Value>,
    exported: Value,
}

impl Answers {
    fn read(profile: &Path) -> Self {
        let export = ["export", "--format", "json"];
        let exported = run(unfuse().args(export).arg(profile)).stdout;
        Self {
            by_query: top(profile, &["--by", "query"]),
            by_operator: top(profile, &[]),
            by_rule: top(profile, &["--by", "rule"]),
            exported: serde_json::from_slice(&exported).expect("JSON"),
        }
    }

    /// The executions whose description has `name`, in order.
    fn ids(&self, name: &str) -> Vec<i64> {
        let is_named = |row: &&Value| text(row, "detail").contains(name);
        let named = self.by_query.iter().filter(is_named);
        let mut ids: Vec<i64> = named.filter_map(|row| row["query"].as_i64()).collect();
        ids.sort_unstable();
        ids
    }

    /// The rows by operator of these executions.
    fn executions(&self, name: &str) -> Vec<Vec<Value>> {
        let of = |id: &i64| -> Vec<Value> {
            let rows = self.by_operator.iter();
            rows.filter(|row| row["query"] == *id).cloned().collect()
        };
        self.ids(name).iter().map(of).collect()
    }

    /// The rows of the only execution of a name.
    fn one(&self, name: &str) -> Vec<Value> {
        let mut found = self.executions(name);
        assert_eq!(found.len(), 1, "executions called {name}");
        found.remove(0)
    }

    fn exported(&self, what: &str) -> &[Value] {
        self.exported[what].as_array().expect("an array")
    }

    /// The samples of these queries.
    fn samples_of(&self, queries: &[i64]) -> impl Iterator<Item = &Value> {
        self.exported("samples").iter().filter(|sample| {
            sample["query"]
                .as_i64()
                .is_some_and(|query| queries.contains(&query))
        })
    }

    /// Samples of queries that rules with this standing attributed.
    fn standing(&self, queries: &[i64], standing: &str) -> u64 {
        let is_worth = |rule: &Value| rule["standing"] == standing;
        let rules = self.by_rule.iter().filter(|rule| is_worth(rule));
        let rules: BTreeSet<&str> = rules.map(|rule| text(rule, "operator")).collect();
        let placed = self.samples_of(queries);
        placed
            .filter(|sample| rules.contains(text(sample, "rule")))
            .filter_map(|sample| sample["samples"].as_u64())
            .sum()
    }
}

fn text<'a>(of: &'a Value, field: &str) -> &'a str {
    of[field].as_str().unwrap_or_default()
}

/// Functions that only one operator of a marked query calls, and the operators.
const MARKS: [(&str, &str); 4] = [
    ("sha256", "Filter"),
    ("md5Hex", "BroadcastHashJoin"),
    ("levenshtein", "Project"),
    ("CRC32", "HashAggregate"),
];

/// Generated code calls a function directly or through a few of Spark's. Readers of Parquet use CRC32 through more calls.
const MOST_CALLS: usize = 4;

/// Checks that samples of a function that only one operator calls belong to that operator, in fused code by a proof.
fn check_marks(answers: &Answers, name: &str, version: &str, proved: bool) {
    let queries = &answers.ids(name)[..1];
    let frames = answers.exported("frames");
    for (mark, operator) in MARKS {
        let marked = |sample: &&Value| {
            let stack = sample["stack"].as_array().expect("a stack");
            let frames = stack
                .iter()
                .filter_map(|frame| frames.get(frame.as_u64()? as usize));
            // Names of operators contain names of functions. Only calls by the innermost generated code count: the JVM may
            // describe its optimized callers as another inlined function.
            let code = frames.filter(|frame| frame["kind"] == "java" || frame["kind"] == "native");
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
        let all = answers.samples_of(queries);
        let of_mark: Vec<Value> = all.filter(marked).cloned().collect();
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
        // At most 3% may be wrong, and no more than 1% plus three standard deviations.
        let wrong = (count - right) as f64 / count as f64;
        let chance = 0.01 + 3.0 * (0.01 * 0.99 / count as f64).sqrt();
        assert!(
            wrong <= chance.min(0.03),
            "{version} {name}: {right} of {count} samples in {mark} are of {operator}: {others:?}"
        );
    }
}

fn operator(row: &Value) -> &str {
    text(row, "operator")
}

fn check(version: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let options = ["--master", "local[2]", "--driver-memory", "3g"];
    // At a high rate, so that little data is enough.
    let mut command = spark_submit_by(&["--rate", "1000"], &spark(version), &profile, &options);
    run(command
        .arg(root().join("tests/programs/plans.py"))
        .arg(tpch("0.2")));
    let answers = Answers::read(&profile);

    let of = |rows: &[Value], name: &str| samples(rows, |row| operator(row).contains(name));

    let again = answers.executions("again");
    assert_eq!(again.len(), 2, "{version}: the same query twice is two");
    for rows in &again {
        assert!(of(rows, "HashAggregate") > 0, "{version}: {rows:?}");
    }

    let subquery = answers.one("subquery");
    let scans: BTreeSet<i64> = subquery
        .iter()
        .filter(|row| operator(row).contains("Scan"))
        .filter_map(|row| row["node_id"].as_i64())
        .collect();
    assert!(
        scans.len() >= 2,
        "{version}: the subquery's scan is its own: {subquery:?}"
    );

    let reused = answers.one("reused");
    assert!(
        of(&reused, "Exchange") > 0 && of(&reused, "Join") > 0,
        "{version}: {reused:?}"
    );

    let interpreted = answers.one("interpreted");
    assert!(of(&interpreted, "Filter") > 0, "{version}: {interpreted:?}");
    assert!(
        of(&interpreted, "HashAggregate") > 0,
        "{version}: {interpreted:?}"
    );

    let python = answers.one("python");
    let all = samples(&python, |_| true);
    assert!(
        2 * of(&python, "EvalPython") > all,
        "{version}: the worker's time is its operator's: {python:?}"
    );

    let streams = answers.executions("stream");
    assert!(
        streams.len() >= 3,
        "{version}: each micro-batch is an execution: {}",
        streams.len()
    );

    check_marks(&answers, "marked", version, true);
    // A class without regions may belong to any of several projections of a stage, so its operator may be a guess.
    check_marks(&answers, "unfused", version, false);

    check_rows(&answers, version);
    check_standing(&answers, version);

    let rows = answers.by_operator.iter();
    let without_query: Vec<Value> = rows
        .filter(|row| row["query"].is_null() && row["stage"].is_i64())
        .cloned()
        .collect();
    assert!(
        of(&without_query, "task: Python") * 2 > samples(&without_query, |_| true),
        "{version}: a job without SQL says what it does: {without_query:?}"
    );
    assert!(
        samples(&answers.by_operator, |row| operator(row)
            .starts_with("jvm: "))
            > 0,
        "{version}: the JVM's own work is told"
    );
}

/// Checks that packing rows for the driver belongs to the broadcast, or to the results, and reading cached rows to the scan.
fn check_rows(answers: &Answers, version: &str) {
    let of = |rows: &[Value], name: &str| samples(rows, |row| operator(row).contains(name));
    let broadcast = answers.one("broadcast");
    assert!(
        of(&broadcast, "BroadcastExchange") > 0,
        "{version}: rows of a broadcast are packed for its node: {broadcast:?}"
    );
    let results = answers.one("results");
    assert!(
        of(&results, "task: result rows") > 0 && of(&results, "task: collected rows") == 0,
        "{version}: rows for the program are results: {results:?}"
    );
    let cached = answers.one("cached");
    assert!(
        of(&cached, "In-memory table comments") > 0,
        "{version}: rows of a cached table are read by its scan: {cached:?}"
    );
}

/// Checks how much of the queries' time is proved.
fn check_standing(answers: &Answers, version: &str) {
    // All of them together, because some are short and have few samples.
    let written = [
        "again",
        "subquery",
        "reused",
        "marked",
        "broadcast",
        "cached",
        "interpreted",
        "python",
        "stream",
    ];
    let queries: Vec<i64> = written.iter().flat_map(|name| answers.ids(name)).collect();
    let [proved, guessed, headings, unattributed] =
        ["proved", "guessed", "heading", "unattributed"]
            .map(|name| answers.standing(&queries, name));
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
    let is_collected = |row: &Value| {
        ["task: result rows", "task: collected rows"]
            .iter()
            .any(|heading| operator(row).contains(heading))
    };
    for rows in written.iter().flat_map(|name| answers.executions(name)) {
        assert_eq!(
            samples(&rows, is_collected),
            0,
            "{version}: what writes its result has no result rows: {rows:?}"
        );
    }
}

#[test]
fn every_plan_of_spark_4_lands_on_its_operators() {
    check("4.3");
}

#[test]
fn every_plan_of_spark_3_5_lands_on_its_operators() {
    check("3.5");
}
