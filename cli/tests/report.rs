//! The report's model, on the recorded profile of `fixtures/canonical`.

use std::path::Path;

use unfuse_postprocess::Profile;
use unfuse_postprocess::report::{Cost, Flame, QueryDetail, Report};

fn fixture() -> Profile {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/canonical");
    Profile::open(Path::new(path)).expect("a profile")
}

fn sum(costs: impl Iterator<Item = Cost>) -> Cost {
    costs.fold(Cost::default(), |a, b| Cost {
        cpu_ns: a.cpu_ns + b.cpu_ns,
        samples: a.samples + b.samples,
    })
}

fn flame_sum(flame: &Flame) -> Cost {
    sum(flame.cpu_ns.iter().zip(&flame.samples).map(|(ns, n)| Cost {
        cpu_ns: *ns,
        samples: *n,
    }))
}

fn own(detail: &QueryDetail) -> Cost {
    let nodes = detail.nodes.iter().map(|node| node.own);
    sum(nodes.chain(detail.headings.iter().map(|heading| heading.cost)))
}

#[test]
fn every_sum_is_the_profiles_total() {
    let profile = fixture();
    let report = Report::of(&profile).expect("a report");
    let summary = report.summary();
    let groups = profile.groups.iter().map(|(_, weight)| Cost::from(*weight));
    assert_eq!(sum(groups), summary.total);
    assert_eq!(sum(summary.queries.iter().map(|q| q.cost)), summary.total);
    for (at, query) in summary.queries.iter().enumerate() {
        let detail = report.detail(at);
        assert_eq!(
            own(&detail),
            query.cost,
            "{query:?}: operators and headings"
        );
        assert_eq!(
            flame_sum(&detail.operators),
            query.cost,
            "{query:?}: operators' flames"
        );
        assert_eq!(
            flame_sum(&detail.frames),
            query.cost,
            "{query:?}: frames' flames"
        );
        let roots = detail.nodes.iter().filter(|node| node.parent.is_none());
        let headings = detail.headings.iter().map(|heading| heading.cost);
        let total = sum(roots.map(|node| node.total).chain(headings));
        assert_eq!(total, query.cost, "{query:?}: totals of the roots");
        if query.query.is_some() {
            let stages = sum(detail.stages.iter().map(|stage| stage.cost));
            assert_eq!(stages, query.cost, "{query:?}: stages");
        }
        assert_eq!(detail.tasks.index.len(), query.tasks);
    }
}

#[test]
fn the_model_of_the_canonical_query() {
    let profile = fixture();
    let report = Report::of(&profile).expect("a report");
    let mut summary = report.summary().clone();
    summary.profile = "DIR".to_owned();
    insta::assert_snapshot!(
        "report_summary",
        serde_json::to_string_pretty(&summary).expect("JSON")
    );
    let at = summary
        .queries
        .iter()
        .position(|query| query.query == Some(3));
    let mut detail = report.detail(at.expect("query 3"));
    detail.frames = Flame::default();
    let mut text = String::new();
    for node in &detail.nodes {
        let name: String = node.detail.chars().take(60).collect();
        let (own, total) = (node.own.cpu_ns / 1_000_000, node.total.cpu_ns / 1_000_000);
        let rows = node
            .rows
            .map_or_else(|| "-".to_owned(), |rows| rows.to_string());
        text += &format!(
            "{:>3} {own:>5} {total:>5} ms {rows:>8} rows  {name}\n",
            node.id
        );
    }
    detail.nodes.clear();
    text += &serde_json::to_string(&detail)
        .expect("JSON")
        .replace("],\"", "],\n\"");
    insta::assert_snapshot!("report_detail", text);
}

#[test]
fn a_profile_compared_with_itself_has_no_differences() {
    let profile = fixture();
    let before = Report::of(&profile).expect("a report");
    let after = Report::of(&profile).expect("a report").against(&before);
    let comparison = after.comparison().expect("compared");
    assert!(comparison.only_before.is_empty() && comparison.only_after.is_empty());
    assert!(comparison.pairs.iter().any(|pair| pair.after_runs == 5));
    for pair in &comparison.pairs {
        assert_eq!(pair.before_ns, pair.after_ns);
        let own: u64 = pair.rows.iter().filter_map(|row| row.after_ns).sum();
        let rounding = pair.rows.len() as u64 + 1;
        assert!(own.abs_diff(pair.after_ns) <= rounding, "{pair:?}");
        assert!(pair.rows.iter().all(|row| row.before_ns == row.after_ns));
    }
}
