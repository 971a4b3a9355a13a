//! `unfuse advise` on a profile: its answers, and its messages about bad input.

use std::process::{Command, Output};

use crate::fixture::profile;
use serde_json::Value;

fn advise(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_unfuse"))
        .arg("advise")
        .arg(profile())
        .args(arguments)
        .output()
        .expect("unfuse starts")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn what_is_suggested_for_a_profile() {
    let place = profile().display().to_string();
    insta::assert_snapshot!(text(&advise(&[])).replace(&place, "DIR"));
}

#[test]
fn json_has_the_same_in_the_same_order() {
    let answer: Value = serde_json::from_str(&text(&advise(&["--json"]))).expect("JSON");
    let advice = answer["advice"].as_array().expect("a list");
    let saved = |one: &Value| {
        let number = |name: &str| one[name].as_f64().expect("a number");
        assert!(number("saves_low_s") <= number("saves_s"), "{one:#}");
        assert!(number("saves_s") <= number("saves_high_s"), "{one:#}");
        assert!(number("saves_s") <= number("measured_s") + 1e-9, "{one:#}");
        number("saves_s") * number("runs")
    };
    let saved: Vec<f64> = advice.iter().map(saved).collect();
    assert!(saved.is_sorted_by(|a, b| a >= b), "{saved:?}");
}

#[test]
fn what_cannot_be_answered_is_refused() {
    for (arguments, message) in [
        (["--query", "77"], "has no query 77 that ended well"),
        (["--app", "app-0"], "has no application app-0; it has"),
    ] {
        let output = advise(&arguments);
        assert!(!output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(message), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}
