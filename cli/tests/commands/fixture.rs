//! A recorded profile (the canonical query five times on Spark 4.3, local[2], 200 Hz) and the
//! commands' answers about it. To add a case, add a directory to `fixtures` and a test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The recorded profile.
pub fn profile() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/canonical")
}

/// The event log of a fixture of `analysis/eventlog`, the only entry of its folder.
pub fn log(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../analysis/eventlog/tests/fixtures")
        .join(name);
    let entry = fs::read_dir(&dir).expect("a fixture").next();
    entry.expect("a log").expect("an entry").path()
}

fn unfuse(arguments: &[&str]) -> String {
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/canonical");
    let output = Command::new(env!("CARGO_BIN_EXE_unfuse"))
        .args(arguments)
        .arg(fixture)
        .output()
        .expect("unfuse runs");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn top_shows_operators() {
    insta::assert_snapshot!(unfuse(&["top", "--query", "3"]));
}

/// The verdict above the table and the table show the same share of an operator, to the decimal.
#[test]
fn shares_of_the_verdict_are_those_of_the_table() {
    let text = unfuse(&["top"]);
    let (verdict, table) = text.split_once("\n\n").expect("a verdict above a table");
    let (_, said) = verdict.split_once(" used ").expect("an operator");
    let (said, _) = said.split_once("%)").expect("a range");
    let said = said.replace("% (", "%  ").replace(" to ", "-") + "%";
    let first = table.lines().nth(1).expect("a row").trim_start();
    assert!(first.starts_with(&said), "{said}: {first}");
}

#[test]
fn top_sums_by_other_things() {
    let tables: Vec<String> = ["line", "method", "stage", "query", "thread", "rule"]
        .iter()
        .map(|by| unfuse(&["top", "--limit", "8", "--by", by]))
        .collect();
    insta::assert_snapshot!(tables.join("\n"));
}

#[test]
fn plan_is_a_tree_with_the_cost_of_each_operator() {
    let short = unfuse(&["plan", "--query", "3"]);
    let all = unfuse(&["plan", "--query", "3", "--all"]);
    insta::assert_snapshot!(format!("{short}\n{all}"));
    let plans: Value =
        serde_json::from_str(&unfuse(&["plan", "--limit", "2", "--json"])).expect("JSON");
    let plans = plans.as_array().expect("plans");
    assert_eq!(plans.len(), 2);
    for plan in plans {
        let nodes = plan["nodes"].as_array().expect("operators");
        let headings = plan["headings"].as_array().expect("headings");
        let seconds = |row: &Value| row["cpu_s"].as_f64().expect("seconds");
        let sum: f64 = nodes.iter().chain(headings).map(seconds).sum();
        assert!((sum - seconds(plan)).abs() < 1e-6, "{sum} of {plan}");
    }
}

#[test]
fn why_divides_the_wall_time_of_a_run_and_a_difference() {
    let run = unfuse(&["why", "--query", "2"]);
    let difference = unfuse(&["why", "--query", "3", "--against-query", "2"]);
    // The profile's path differs between checkouts.
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/canonical");
    let text = format!("{run}\n{difference}").replace(fixture, "DIR");
    insta::assert_snapshot!(text);
}

#[test]
fn source_marks_regions_and_hot_lines() {
    insta::assert_snapshot!(unfuse(&["source", "--stage", "7"]));
}

#[test]
fn folded_stacks_have_lines_and_operators() {
    let folded = unfuse(&["export", "--format", "folded", "--stage", "7"]);
    let mut by_samples: Vec<(u64, &str)> = folded
        .lines()
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(stack, samples)| (samples.parse().expect("a count"), stack))
        .collect();
    by_samples.sort_by(|a, b| b.cmp(a));
    let top: Vec<String> = by_samples
        .iter()
        .take(5)
        .map(|(n, stack)| format!("{n} {stack}"))
        .collect();
    insta::assert_snapshot!(top.join("\n").replace(';', "\n  "));
}

#[test]
fn json_has_the_promised_fields() {
    let rows: serde_json::Value = serde_json::from_str(&unfuse(&["top", "--json"])).expect("JSON");
    let rows = rows.as_array().expect("an array");
    assert!(rows.len() > 20);
    let mut share = 0.0;
    for row in rows {
        for field in [
            "query",
            "stage",
            "node_id",
            "operator",
            "detail",
            "samples",
            "cpu_seconds",
            "share",
        ] {
            assert!(row.get(field).is_some(), "{field} is missing in {row}");
        }
        assert_eq!(row["heading"].as_bool(), Some(row["node_id"].is_null()));
        share += row["share"].as_f64().expect("a number");
    }
    assert!((share - 1.0).abs() < 1e-9, "shares add up to {share}");
    assert!(rows.iter().any(|row| row["operator"] == "unattributed"));
}

#[test]
fn history_lists_queries_and_the_runs_of_one() {
    let history = |arguments: &[&str]| {
        let mut all = vec!["history"];
        all.extend(arguments);
        all.push("--in");
        unfuse(&all)
    };
    let queries: serde_json::Value = serde_json::from_str(&history(&["--json"])).expect("JSON");
    let queries = queries.as_array().expect("an array");
    // The canonical query ran five times.
    let five = queries
        .iter()
        .find(|query| query["runs"].as_array().is_some_and(|runs| runs.len() == 5))
        .expect("five runs");
    let fingerprint = five["fingerprint"].as_str().expect("text");
    insta::assert_snapshot!([history(&["--limit", "4"]), history(&[&fingerprint[..8]])].join("\n"));
}

#[test]
fn a_query_alone_has_the_rows_that_it_has_among_all() {
    let rows = |arguments: &[&str]| -> Vec<Value> {
        let text = unfuse(&[&["top", "--json"], arguments].concat());
        let rows: Vec<Value> = serde_json::from_str(&text).expect("JSON");
        let columns = ["query", "stage", "node_id", "operator", "samples", "waits"];
        let of = |row: &Value| columns.map(|name| row[name].clone()).into();
        let mut rows: Vec<Value> = rows.iter().map(of).collect();
        rows.sort_by_key(ToString::to_string);
        rows
    };
    let all = rows(&[]);
    for query in 0..5 {
        let of_query = all.iter().filter(|row| row[0] == query);
        let expected: Vec<Value> = of_query.cloned().collect();
        let query = query.to_string();
        if !expected.is_empty() {
            assert_eq!(rows(&["--query", &query]), expected, "query {query}");
        }
    }
    assert!(all.iter().any(|row| row[0] == 3));
}
