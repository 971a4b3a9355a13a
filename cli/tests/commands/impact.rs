//! `unfuse impact` on tables: its answers, and its messages
//! about bad ones. `measure` is tested end to end.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// A job that mostly reads. With an SSD it is about twice as fast, and the CPU limits it.
const DISK_BOUND: &str = "cpu,disk,network,seconds,cpu_util,disk_util
1.2,HDD,1Gbps,100.2,0.2,0.9
1.2,HDD,1Gbps,101.1,0.2,0.9
1.2,HDD,1Gbps,100.6,0.2,0.9
2.4,HDD,1Gbps,79.8,,
2.4,HDD,1Gbps,80.1,,
2.4,HDD,1Gbps,79.5,,
1.2,SSD,1Gbps,44.1,,
1.2,SSD,1Gbps,44.5,,
1.2,SSD,1Gbps,44.0,,
2.4,SSD,1Gbps,23.4,,
2.4,SSD,1Gbps,23.1,,
2.4,SSD,1Gbps,23.2,,
1.2,HDD,10Gbps,100.0,,
1.2,HDD,10Gbps,100.9,,
2.4,HDD,10Gbps,79.1,,
2.4,HDD,10Gbps,79.9,,
1.2,SSD,10Gbps,43.6,,
1.2,SSD,10Gbps,43.9,,
2.4,SSD,10Gbps,22.8,,
2.4,SSD,10Gbps,22.9,,
";

fn unfuse(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_unfuse"))
        .arg("impact")
        .args(arguments)
        .output()
        .expect("unfuse starts")
}

fn table(name: &str, text: &str) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join(name);
    fs::write(&path, text).expect("a file");
    (dir, path.display().to_string())
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The message of a refused command.
fn refusal(arguments: &[&str]) -> String {
    let output = unfuse(arguments);
    assert!(!output.status.success(), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn all_four_indicators_are_told() {
    let (_dir, path) = table("runs.csv", DISK_BOUND);
    insta::assert_snapshot!(text(&unfuse(&[&path])));
}

#[test]
fn several_workloads_and_single_runs_are_told() {
    let rows = "workload,cpu,disk,network,seconds,ipc,stalled
q1,1,disk,host,10,1.2,0.3
q1,2,disk,host,5.2,1.1,
q2,1,disk,host,10,,
q2,1,disk,host,10.2,,
q2,2,disk,host,10.9,,
q2,2,disk,host,11,,
q2,2,ram,host,3,,
";
    let (_dir, path) = table("runs.csv", rows);
    insta::assert_snapshot!(text(&unfuse(&[&path])));
}

#[test]
fn json_has_what_the_text_has() {
    let (_dir, path) = table("runs.csv", DISK_BOUND);
    let answer: Value = serde_json::from_str(&text(&unfuse(&[&path, "--json"]))).expect("JSON");
    let workload = &answer["workloads"][0];
    assert_eq!(answer["confidence"], 0.95);
    assert_eq!(workload["verdict"]["certainty"], "sure");
    assert_eq!(workload["verdict"]["resources"], "disk");
    let indicators = workload["indicators"].as_array().expect("indicators");
    assert_eq!(indicators.len(), 4);
    for indicator in indicators {
        let bound = |field: &str| indicator["interval"][field].as_f64().expect("a number");
        let value = indicator["value"].as_f64().expect("a number");
        assert!(bound("low") < value && value < bound("high"), "{indicator}");
    }
    assert_eq!(workload["utilisation"]["disk"], 0.9);
}

#[test]
fn another_base_may_be_asked_for() {
    let (_dir, path) = table("runs.csv", DISK_BOUND);
    let answer = text(&unfuse(&[&path, "--base", "1.2/SSD/1Gbps"]));
    assert!(answer.contains("The bottleneck is the CPU."), "{answer}");
    let said = refusal(&[&path, "--base", "2.4/HDD/1Gbps"]);
    assert!(said.contains("2.4 is above 1.2"), "{said}");
    let said = refusal(&[&path, "--base", "1.2/tape/1Gbps"]);
    assert!(
        said.contains("no run at the base scheme 1.2/tape/1Gbps"),
        "{said}"
    );
    assert!(refusal(&[&path, "--base", "slow"]).contains("1.2/HDD/1Gbps"));
}

#[test]
fn tables_that_cannot_be_are_refused_with_the_reason() {
    for (name, rows, words) in [
        ("runs.csv", "cpu,seconds\n", "no rows"),
        (
            "runs.csv",
            "cpu,seconds\n1,0\n2,1\n",
            "0 s is no possible running time",
        ),
        (
            "runs.csv",
            "cpu,seconds\n1,-2\n2,1\n",
            "-2 s is no possible running time",
        ),
        ("runs.csv", "cpu,seconds\n1,soon\n", "line: 2"),
        (
            "runs.csv",
            "cpu,seconds\n1,1\n1,2\n",
            "no run with a faster CPU",
        ),
        (
            "runs.csv",
            "speed,seconds\n1,1\n",
            "the columns are workload, cpu",
        ),
        ("runs.toml", "base = {}\n", "line 1"),
    ] {
        let (_dir, path) = table(name, rows);
        let said = refusal(&[&path]);
        assert!(said.contains(words) && said.contains(name), "{said}");
    }
    assert!(refusal(&["/nowhere/runs.csv"]).contains("/nowhere/runs.csv"));
    let dir = tempfile::tempdir().expect("a directory");
    let said = refusal(&[&dir.path().display().to_string()]);
    assert!(said.contains("has no runs.csv"), "{said}");
}

#[test]
fn levels_that_cannot_be_are_refused_with_the_reason() {
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let input = input.display().to_string();
    for (schemes, words) in [
        ("cpu=2", "at least two levels"),
        ("cpu=1,0.5", "must rise"),
        ("cpu=0,1", "not possible"),
        ("cpu=1,NaN", "not possible"),
        ("cpu=1,2GHz", "cannot be mixed"),
        ("cpu=1,100000", "this machine has"),
        ("cpu=slow,fast", "a number of CPUs such as 0.5"),
        ("disk=tape", "disk, ram or a rate such as 50MBps"),
        ("disk=0MBps", "disk, ram or a rate"),
        ("disk=ram,ram", "one level is given twice"),
        ("network=fast", "host, loopback or a rate such as 100mbit"),
        ("network=host,loopback", "cannot be compared"),
        ("memory=1,2", "\"memory\" is unknown"),
        ("cpu", "RESOURCE=LEVEL,… is expected"),
    ] {
        let dry = [
            "measure",
            "--dry-run",
            "--input",
            &input,
            "--schemes",
            schemes,
        ];
        let said = refusal(&[&dry[..], &["--", "true"]].concat());
        assert!(said.contains(words), "{schemes}: {said}");
    }
    let said = refusal(&["measure", "--schemes", "disk=disk,ram", "--", "true"]);
    assert!(said.contains("levels of the disk need --input"), "{said}");
    let said = refusal(&["measure", "--input", "/nowhere", "--", "true"]);
    assert!(said.contains("--input /nowhere: no such file"), "{said}");
    let said = refusal(&["measure"]);
    assert!(said.contains("COMMAND"), "{said}");
}

#[test]
fn a_fixture_profile_without_waits_is_refused() {
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/canonical");
    let said = refusal(&["--profiles", &format!("1/disk/host={fixture}")]);
    assert!(said.contains("has no waits"), "{said}");
    assert!(refusal(&["--profiles", fixture]).contains("1.2/HDD/1Gbps=DIR"));
}
