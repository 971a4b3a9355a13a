//! The report's model, on the recorded profile of `fixtures/canonical`.

use std::path::Path;

use unfuse_format::{ExecutionRow, ProfileDir, SegmentWriter};
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

fn unfuse(arguments: &[&std::ffi::OsStr]) -> std::process::Output {
    std::process::Command::new(env!("CARGO_BIN_EXE_unfuse"))
        .args(arguments)
        .output()
        .expect("unfuse runs")
}

#[test]
fn texts_of_a_query_are_nowhere_in_the_file_as_they_are() {
    let tmp = tempfile::tempdir().expect("a directory");
    let dir = ProfileDir::create(&tmp.path().join("profile")).expect("a profile");
    let mut executions = SegmentWriter::new(&dir, "test-1");
    executions.push(ExecutionRow {
        description: "</script><img src=x onerror=alert(1)>".to_owned(),
        started_ms: Some(5),
        ..ExecutionRow::default()
    });
    executions.flush().expect("written");
    let page = tmp.path().join("report.html");
    std::fs::write(&page, "an older report").expect("written");
    let output = unfuse(&[
        "report".as_ref(),
        dir.path().as_ref(),
        "-o".as_ref(),
        page.as_ref(),
    ]);
    assert!(output.status.success(), "{output:?}");
    // No progress in a pipe, only where the file is.
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("report.html"), "{said}");
    let text = std::fs::read_to_string(&page).expect("text");
    assert!(text.contains("id=\"block-summary\"") && text.contains("id=\"block-query-0\""));
    assert!(!text.contains("onerror="));
    let files = std::fs::read_dir(tmp.path()).expect("a directory").count();
    assert_eq!(
        files, 2,
        "nothing is left beside the profile and the report"
    );
}

#[test]
fn a_report_that_cannot_be_written_leaves_the_old_one() {
    let tmp = tempfile::tempdir().expect("a directory");
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/canonical");
    let output = unfuse(&[
        "report".as_ref(),
        fixture.as_ref(),
        "-o".as_ref(),
        tmp.path().as_ref(),
    ]);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("Is a directory") && said.contains("-o"),
        "{said}"
    );
    assert_eq!(
        std::fs::read_dir(tmp.path()).expect("a directory").count(),
        0
    );
}
