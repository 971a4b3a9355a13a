//! `unfuse check` on the same job twice, on one whose filter does more work, and on the same job beside other processes.

use std::path::Path;
use std::process::{Child, Command, Output};

use serde_json::Value;
use unfuse_tests::{record_check, run, unfuse};

/// Records six rounds of the program with as many hashes in its filter.
fn record(profile: &Path, hashes: u32) {
    record_check("4.3", profile, &[], 6, hashes);
}

fn check(profile: &Path, base: &Path, limit: &str, junit: &Path) -> (Output, Value) {
    let output = unfuse()
        .arg("check")
        .arg(profile)
        .arg("--against")
        .arg(base)
        .args([
            "--warm-up",
            "1",
            "--json",
            "--max-regression",
            limit,
            "--junit",
        ])
        .arg(junit)
        .output()
        .expect("unfuse runs");
    let answer = serde_json::from_slice(&output.stdout).expect("JSON");
    (output, answer)
}

/// Processes that use all CPUs until they are dropped.
struct BusyProcesses(Vec<Child>);

impl BusyProcesses {
    fn new(count: usize) -> Self {
        let spin = || {
            let mut sh = Command::new("sh");
            sh.args(["-c", "while :; do :; done"]);
            sh.spawn().expect("sh runs")
        };
        Self((0..count).map(|_| spin()).collect())
    }
}

impl Drop for BusyProcesses {
    fn drop(&mut self) {
        for process in &mut self.0 {
            process.kill().expect("killed");
            process.wait().expect("ended");
        }
    }
}

/// The measures in which something is slower.
fn regressions(answer: &Value) -> Vec<String> {
    let queries = answer["queries"].as_array().expect("queries");
    let comparisons = queries
        .iter()
        .flat_map(|query| query["comparisons"].as_array().expect("comparisons"));
    comparisons
        .filter(|of| of["status"] == "regression")
        .map(|of| of["measure"].as_str().expect("a measure").to_owned())
        .collect()
}

#[test]
fn a_slower_filter_fails_the_check_and_the_same_job_does_not() {
    let home = tempfile::tempdir().expect("a directory");
    let [base, same, slower, junit] =
        ["base", "same", "slower", "check.xml"].map(|name| home.path().join(name));
    record(&base, 1);
    let busy = BusyProcesses::new(2);
    record(&same, 1);
    drop(busy);
    // Four hashes for one, because CPU times on a host with other work differ by a third from run to run.
    record(&slower, 4);
    // CPU time grows a little beside other processes, and the wall time by as much as the job waits for a CPU.
    let (output, answer) = check(&same, &base, "60%", &junit);
    let slower_in = regressions(&answer);
    assert_eq!(output.status.code(), Some(0), "{slower_in:?}");
    let (output, answer) = check(&slower, &base, "20%", &junit);
    assert_eq!(output.status.code(), Some(1), "{answer:#}");
    let query = &answer["queries"][0];
    assert_eq!(query["name"], "quantity by flag", "{answer:#}");
    assert_eq!(
        (&query["runs_before"], &query["runs_now"]),
        (&5.into(), &5.into())
    );
    let comparisons = query["comparisons"].as_array().expect("comparisons");
    let found = |measure: &str, operator: &str| {
        comparisons.iter().any(|of| {
            let is_operator = of["operator"]
                .as_str()
                .unwrap_or_default()
                .starts_with(operator);
            of["measure"] == measure && is_operator && of["status"] == "regression"
        })
    };
    assert!(
        found("cpu", "") && found("operator", "Filter"),
        "{answer:#}"
    );
    // The parser of Python's library refuses what is not well-formed.
    let program = "import sys, xml.etree.ElementTree as tree\n\
                   print(*[case.get('name') for case in tree.parse(sys.argv[1]).iter('testcase') if case.find('failure') is not None], sep='\\n')";
    let output = run(Command::new("python3").args(["-c", program]).arg(&junit));
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        "quantity by flag"
    );
}
