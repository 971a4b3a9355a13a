//! `unfuse export` without other programs; `tests/tests/shared/formats.rs`
//! opens the files with the programs they are for.

use std::process::{Command, Output};

fn export(arguments: &[&str]) -> Output {
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/canonical");
    let output = Command::new(env!("CARGO_BIN_EXE_unfuse"))
        .args(["export", fixture, "--format"])
        .args(arguments)
        .output()
        .expect("unfuse runs");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success(), "{arguments:?}");
    output
}

fn text(arguments: &[&str]) -> String {
    String::from_utf8(export(arguments).stdout).expect("text")
}

#[test]
fn the_same_directory_gives_the_same_bytes() {
    for format in [
        "folded",
        "speedscope",
        "pprof",
        "otlp",
        "firefox",
        "json",
        "prometheus",
    ] {
        let part = [format, "--stage", "7"];
        assert!(export(&part).stdout == export(&part).stdout, "{format}");
    }
}

#[test]
fn inferno_draws_folded_stacks() {
    let folded = text(&["folded", "--stage", "7"]);
    let samples: u64 = folded
        .lines()
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok())
        .sum();
    let mut svg = Vec::new();
    let mut options = inferno::flamegraph::Options::default();
    inferno::flamegraph::from_reader(&mut options, folded.as_bytes(), &mut svg).expect("a graph");
    let all = format!("total_samples=\"{samples}\"");
    assert!(String::from_utf8_lossy(&svg).contains(&all), "no {all}");
}

#[test]
fn speedscope_has_a_profile_of_the_stage() {
    let file = text(&["speedscope", "--stage", "7", "--level", "operator"]);
    insta::assert_snapshot!(pretty(&file));
}

#[test]
fn firefox_has_operators_as_categories() {
    let file: serde_json::Value =
        serde_json::from_str(&text(&["firefox", "--stage", "7"])).expect("JSON");
    insta::assert_snapshot!(serde_json::to_string_pretty(&file["meta"]).expect("JSON"));
}

#[test]
fn json_has_operators_and_stacks() {
    let file = text(&["json", "--stage", "18", "--level", "operator"]);
    insta::assert_snapshot!(pretty(&file));
}

#[test]
fn prometheus_has_sums_by_operator() {
    insta::assert_snapshot!(text(&["prometheus", "--stage", "7"]));
}

fn pretty(json: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(json).expect("JSON");
    serde_json::to_string_pretty(&value).expect("JSON")
}
