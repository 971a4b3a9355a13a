//! Rules are complete: each is explained, and has a job that it helps.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::joins::broadcast_side;
use super::*;

fn text_of(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::read_to_string(root.join(path)).expect("a file of the repository")
}

fn name(rule: &Rule) -> String {
    let name = serde_json::to_value(rule.kind).expect("a name");
    name.as_str().expect("a text").to_owned()
}

#[test]
fn each_rule_is_explained_and_has_a_job() {
    let (docs, jobs) = (
        text_of("docs/advice.md"),
        text_of("bench/assets/advise.toml"),
    );
    let mut kinds = BTreeSet::new();
    for rule in RULES.iter() {
        let name = name(rule);
        assert!(kinds.insert(rule.kind), "{name} is there twice");
        let shares = match rule.saves {
            Some([least, likely, most]) => {
                assert!(
                    0.0 < least && least <= likely && likely <= most && most <= 1.0,
                    "{name}"
                );
                format!("{least}, {likely}, {most}")
            }
            None => "the replay".to_owned(),
        };
        let row = format!("| {:.0}% | {shares} |", 100.0 * rule.at_least);
        let has_row = |line: &str| line.starts_with(&format!("| [{name}]")) && line.ends_with(&row);
        assert!(
            docs.lines().any(has_row),
            "docs/advice.md has no row of {name} with {row}"
        );
        assert!(docs.contains(&format!("\n### {name}\n")), "{name}");
        assert!(jobs.contains(&format!("rule = \"{name}\"\n")), "{name}");
    }
}

#[test]
fn texts_have_no_other_places_to_fill() {
    for rule in RULES.iter() {
        for text in [
            &rule.title,
            &rule.why,
            &rule.action,
            &rule.risk,
            &rule.command,
        ] {
            let places = text.split('{').skip(1);
            for place in places.map(|rest| rest.split('}').next().unwrap_or_default()) {
                let known = [
                    "subject", "detail", "value", "percent", "query", "stage", "app",
                ];
                assert!(known.contains(&place), "{}: {place}", name(rule));
            }
        }
    }
}

#[test]
fn a_side_whose_rows_must_all_come_out_is_not_broadcast() {
    // The sizes of the sides; which of them is broadcast.
    for (detail, left, right, expected) in [
        ("SortMergeJoin [a#1], [b#2], Inner", 1000, 10, Some(10)),
        ("SortMergeJoin [a#1], [b#2], Inner", 10, 1000, Some(10)),
        ("SortMergeJoin [a#1], [b#2], LeftOuter", 1000, 10, Some(10)),
        ("SortMergeJoin [a#1], [b#2], LeftOuter", 10, 1000, None),
        ("SortMergeJoin [a#1], [b#2], RightOuter", 10, 1000, Some(10)),
        ("SortMergeJoin [a#1], [b#2], RightOuter", 1000, 10, None),
        ("SortMergeJoin [a#1], [b#2], LeftAnti", 1000, 10, Some(10)),
        ("SortMergeJoin [a#1], [b#2], FullOuter", 10, 1000, None),
        // Not much smaller, and too large.
        ("SortMergeJoin [a#1], [b#2], Inner", 10, 15, None),
        ("SortMergeJoin [a#1], [b#2], Inner", 1 << 30, 1 << 40, None),
    ] {
        let side = |bytes| joins::Side {
            sort: None,
            exchange: 0,
            bytes,
        };
        let found = broadcast_side(detail, side(left), side(right));
        assert_eq!(found.map(|(small, _)| small.bytes), expected, "{detail}");
    }
}

#[test]
fn only_conditions_on_values_let_files_be_skipped() {
    for (pushed, expected) in [
        ("PushedFilters: [], ReadSchema: struct<>", true),
        ("PushedFilters: [IsNotNull(a), IsNotNull(b)], Read", true),
        (
            "PushedFilters: [IsNotNull(a), GreaterThan(a,3)], Read",
            false,
        ),
        ("PushedFilters: [In(a, [1,2])], Read", false),
        // Cut text.
        ("PushedFilters: [IsNotNull(a), IsNot", false),
        ("Format: Parquet", false),
    ] {
        assert_eq!(scans::has_no_condition(pushed), expected, "{pushed}");
    }
}

#[test]
fn operators_without_generated_code_are_not_to_be_fused() {
    let rule = RULES.iter().find(|rule| rule.kind == RuleName::NotFused);
    let rule = rule.expect("the rule");
    for (operator, detail, expected) in [
        ("Project", "Project [(a#1 + 1) AS b#2]", true),
        (
            "HashAggregate",
            "HashAggregate(keys=[], functions=[sum(a#1)])",
            true,
        ),
        (
            "Project",
            "Project [transform(a#1, lambdafunction((lambda x#3 + 1), lambda x#3, false)) AS b#2]",
            false,
        ),
        (
            "HashAggregate",
            "HashAggregate(keys=[], functions=[approx_count_distinct(a#1, 0.05, 0, 0)])",
            false,
        ),
        ("ObjectHashAggregate", "ObjectHashAggregate(keys=[])", false),
        ("Window", "Window [row_number()]", false),
    ] {
        assert_eq!(code::is_about(rule, operator, detail), expected, "{detail}");
    }
}
