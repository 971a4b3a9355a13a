//! Properties of every profile.

use proptest::prelude::*;
use unfuse_postprocess::Profile;
use unfuse_report::Report;

use crate::profile_builder::{COLLECTOR, DESERIALIZATION, DISK_READ, JIT, ProfileBuilder, SORT};

/// A profile with rows in every table; numbers may contradict each other, as in damaged profiles.
fn profiles() -> impl Strategy<Value = ProfileBuilder> {
    let samples = prop::collection::vec((0usize..6, 0i64..4, 0u64..20_000_000_000), 0..12);
    let tasks = prop::collection::vec((0i64..4, -5i64..20_000, -5i64..20_000), 0..6);
    let ends = prop::option::of(-5i64..30_000);
    (samples, tasks, ends, 0u32..5).prop_map(|(samples, tasks, ended_ms, cores)| {
        let mut builder = ProfileBuilder::default();
        let whole = ProfileBuilder::new();
        (builder.application, builder.executors) = (whole.application, whole.executors);
        builder.processes = whole.processes;
        builder.application[1].ended_ms = ended_ms;
        builder.executors[0].cores = cores;
        for query in 0..4 {
            builder.query(query, if query < 2 { "one" } else { "two" }, 100 * query);
        }
        for (query, ms, run_ms) in tasks {
            builder.task(query, ms).run_ms = run_ms;
        }
        for (what, query, ns) in samples {
            match what {
                0 | 1 => builder.cpu(query, SORT, ns),
                2 => builder.cpu(query, DESERIALIZATION, ns),
                3 => builder.wait(query, DISK_READ, ns),
                4 => builder.beside(JIT, ns),
                _ => builder.beside(COLLECTOR, ns),
            }
        }
        builder
    })
}

fn check(profile: &Profile) -> Result<(), TestCaseError> {
    let report = Report::new(profile).expect("a report");
    let summary = report.summary_with_verdict().expect("a verdict");
    let verdict = &summary.verdict;
    let sum: u64 = verdict.parts.iter().map(|part| part.ns).sum();
    prop_assert_eq!(sum, verdict.whole_ns);
    // All CPU time is in parts that are CPU time.
    let waits: u64 = profile.waits.iter().map(|(_, weight)| weight.ns).sum();
    prop_assert!(verdict.whole_ns >= summary.total.cpu_ns + waits);
    let percentages = verdict.sentences[0]
        .text
        .split(": ")
        .nth(1)
        .unwrap_or_default();
    if verdict.whole_ns > 0 {
        let without_lists = without_brackets(percentages);
        let all: u32 = without_lists
            .split(", ")
            .filter_map(|part| part.split('%').next()?.parse::<u32>().ok())
            .sum();
        prop_assert_eq!(all, 100, "{}", percentages);
    }
    let mut runs: Vec<usize> = summary
        .families
        .iter()
        .flat_map(|family| family.runs.clone())
        .collect();
    runs.sort_unstable();
    let queries = summary
        .queries
        .iter()
        .enumerate()
        .filter(|(_, query)| query.query.is_some());
    prop_assert_eq!(runs, queries.map(|(index, _)| index).collect::<Vec<_>>());
    for (number, family) in summary.families.iter().enumerate() {
        for index in &family.runs {
            prop_assert_eq!(summary.queries[*index].family, Some(number));
        }
        let cpu: u64 = family
            .runs
            .iter()
            .map(|index| summary.queries[*index].cost.cpu_ns)
            .sum();
        prop_assert_eq!(cpu, family.cost.cpu_ns);
    }
    for index in 0..summary.queries.len() {
        let detail = report.detail(index);
        let by_plan: u64 = detail.operators.cpu_ns.iter().sum();
        let by_code: u64 = detail.operators_by_code.cpu_ns.iter().sum();
        prop_assert_eq!(by_plan, summary.queries[index].cost.cpu_ns);
        prop_assert_eq!(by_code, by_plan);
        for node in &detail.nodes {
            for per_row in [node.ns_per_row_in, node.ns_per_row_out]
                .into_iter()
                .flatten()
            {
                prop_assert!(
                    per_row.low <= per_row.ns && per_row.ns <= per_row.high,
                    "{:?}",
                    per_row
                );
            }
            let hot: u64 = node.hot_lines.iter().map(|line| line.cost.cpu_ns).sum();
            prop_assert!(node.hot_lines.len() <= 3 && hot <= node.own.cpu_ns);
        }
    }
    Ok(())
}

fn without_brackets(text: &str) -> String {
    let mut depth = 0;
    let outside = |c: &char| {
        depth += i32::from(*c == '(') - i32::from(*c == ')');
        depth == 0 && *c != ')'
    };
    text.chars().filter(outside).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn sums_and_intervals_hold(builder in profiles()) {
        let (_home, profile) = builder.open();
        check(&profile)?;
    }
}
