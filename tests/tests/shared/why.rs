//! `unfuse why` and `unfuse advise` on runs of a query that differ by a known cause.

use std::collections::BTreeSet;

use serde_json::Value;
use unfuse_tests::{root, run, spark, spark_submit, top, tpch, unfuse};

/// Rounds of the program; the last one is compared.
const ROUNDS: usize = 5;

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
    assert_eq!(queries.len(), 3 * ROUNDS, "{queries:?}");
    let last: Vec<i64> = queries.into_iter().skip(3 * (ROUNDS - 1)).collect();
    for (query, kind) in [(last[1], "another_plan"), (last[2], "data")] {
        let output = run(unfuse().arg("why").arg(&profile).args([
            "--json",
            "--query",
            &query.to_string(),
            "--against-query",
            &last[0].to_string(),
        ]));
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let number = |value: &Value| value.as_f64().expect("a number");
        let parts = answer["parts"].as_array().expect("parts");
        let sum: f64 = parts.iter().map(|part| number(&part["seconds"])).sum();
        let difference = number(&answer["difference_s"]);
        assert!((sum - difference).abs() < 1e-6, "{answer:#}");
        // Contention with other processes on the machine also changes between runs.
        let first = parts.iter().find(|part| part["kind"] != "contention");
        let first = first.expect("a part");
        assert_eq!(first["kind"], kind, "{answer:#}");
        assert!(number(&first["seconds_low"]) > 0.0, "{answer:#}");
    }
    // The broadcast was disabled in the second one.
    let output =
        run(unfuse()
            .arg("advise")
            .arg(&profile)
            .args(["--json", "--query", &last[1].to_string()]));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let first = &answer["advice"][0];
    assert_eq!(first["rule"], "broadcast", "{answer:#}");
    let saved = first["saves_s"].as_f64().expect("a number");
    assert!(saved > 0.0, "{answer:#}");
}
