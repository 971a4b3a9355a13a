//! `unfuse why` and `unfuse advise` on runs of a query that differ by a known cause.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use unfuse_tests::{root, run, spark, spark_submit, top, tpch, unfuse};

/// Rounds of the program. The last three are compared: until then the JVM compiles most of the code.
const ROUNDS: usize = 5;

/// Variants of the query in the program.
const VARIANTS: usize = 4;

/// The answer of a command in JSON.
fn answer(profile: &Path, command: &str, arguments: &[&str]) -> Value {
    let mut unfuse = unfuse();
    unfuse.arg(command).arg(profile).arg("--json");
    serde_json::from_slice(&run(unfuse.args(arguments)).stdout).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// Checks that the parts add up. Returns the kind of the largest and its lower bound in s.
fn first_part(profile: &Path, query: i64, against: i64) -> (String, f64) {
    let (query, against) = (query.to_string(), against.to_string());
    let options = ["--query", &query, "--against-query", &against];
    let answer = answer(profile, "why", &options);
    let parts = answer["parts"].as_array().expect("parts");
    let sum: f64 = parts.iter().map(|part| number(&part["seconds"])).sum();
    let difference = number(&answer["difference_s"]);
    assert!((sum - difference).abs() < 1e-6, "{sum} s of {difference} s");
    // Contention with other processes on the machine also changes between runs.
    let first = parts.iter().find(|part| part["kind"] != "contention");
    let first = first.expect("a part");
    let kind = first["kind"].as_str().expect("a kind");
    (kind.to_owned(), number(&first["seconds_low"]))
}

#[test]
fn the_cause_of_a_slower_run_comes_first() {
    let home = tempfile::tempdir().expect("a directory");
    let profile = home.path().join("profile");
    run(
        spark_submit(&spark("4.3"), &profile, &["--master", "local[2]"])
            .arg(root().join("tests/programs/why.py"))
            .arg(tpch("0.2"))
            .arg(home.path())
            .arg(ROUNDS.to_string()),
    );
    let rows = top(&profile, &["--runs", "--limit", "1000"]);
    let of_query = rows
        .iter()
        .filter(|row| row["query_name"] == "revenue by nation");
    let queries: BTreeSet<i64> = of_query.filter_map(|row| row["query"].as_i64()).collect();
    let queries: Vec<i64> = queries.into_iter().collect();
    assert_eq!(queries.len(), VARIANTS * ROUNDS, "{queries:?}");
    let rounds: Vec<&[i64]> = queries.chunks_exact(VARIANTS).skip(ROUNDS - 3).collect();
    for (variant, kind) in [(1, "another_plan"), (2, "data"), (3, "codegen")] {
        let first: Vec<(String, f64)> = rounds
            .iter()
            .map(|round| first_part(&profile, round[variant], round[0]))
            .collect();
        // A pause of the machine can be longer than the cause in one of them.
        let found = first.iter().filter(|(of, low)| of == kind && *low > 0.0);
        assert!(found.count() >= 2, "{kind}: {first:?}");
    }
    // The broadcast was disabled in the second variant.
    let first: Vec<(String, f64)> = rounds
        .iter()
        .map(|round| {
            let answer = answer(&profile, "advise", &["--query", &round[1].to_string()]);
            let advice = &answer["advice"][0];
            let rule = advice["rule"].as_str().unwrap_or("nothing");
            (rule.to_owned(), advice["saves_s"].as_f64().unwrap_or(0.0))
        })
        .collect();
    let found = first
        .iter()
        .filter(|(rule, saves)| rule == "broadcast" && *saves > 0.0);
    assert!(found.count() >= 2, "{first:?}");
    let text = rows
        .iter()
        .find(|row| row["query_name"] == "lines of text")
        .expect("the query");
    check_text_files(&profile, text["query"].as_i64().expect("a number"));
}

/// Checks that the advice on a query that parses CSV is another format, and that parsing is a large part of its tasks' time.
fn check_text_files(profile: &Path, query: i64) {
    let answer = answer(profile, "advise", &["--query", &query.to_string()]);
    let advice = answer["advice"].as_array().expect("a list");
    let found = advice.iter().find(|one| one["rule"] == "text-files");
    let found = found.unwrap_or_else(|| panic!("{answer:#}"));
    let [share, saves, of] = ["share", "saves_s", "measured_s"].map(|name| number(&found[name]));
    assert!(share > 0.3 && 0.0 < saves && saves < of, "{found:#}");
}
