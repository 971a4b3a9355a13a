//! The report's model, on the recorded profile of `fixtures/canonical`.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::DeflateDecoder;
use serde_json::Value;
use unfuse_format::{
    ExecutionRow, ProfileDir, RecordInRow, RecordOutRow, RecordSourceKind, RecordSourceRow,
    RecordTargetRow, RecordTextRow, SegmentWriter, StageRow, Table, TaskKey, TaskRow,
};
use unfuse_postprocess::Profile;
use unfuse_report::{Cost, Flame, QueryDetail, Report};

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
    let report = Report::new(&profile).expect("a report");
    let summary = report.summary();
    let groups = profile.groups.iter().map(|(_, weight)| Cost::from(*weight));
    assert_eq!(sum(groups), summary.total);
    assert_eq!(sum(summary.queries.iter().map(|q| q.cost)), summary.total);
    for (index, query) in summary.queries.iter().enumerate() {
        let detail = report.detail(index);
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
    let report = Report::new(&profile).expect("a report");
    let mut summary = report.summary().clone();
    summary.profile = "DIR".to_owned();
    insta::assert_snapshot!(
        "report_summary",
        serde_json::to_string_pretty(&summary).expect("JSON")
    );
    let position = summary
        .queries
        .iter()
        .position(|query| query.query == Some(3));
    let mut detail = report.detail(position.expect("query 3"));
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
    let before = Report::new(&profile).expect("a report");
    let after = Report::new(&profile)
        .expect("a report")
        .against(&before)
        .expect("a comparison");
    let comparison = after.comparison().expect("compared");
    assert!(comparison.only_before.is_empty() && comparison.only_after.is_empty());
    assert!(comparison.pairs.iter().any(|pair| pair.after_runs == 5));
    let rows = comparison.pairs.iter().flat_map(|pair| &pair.rows);
    assert!(
        rows.filter_map(|row| row.after_ns_per_row)
            .any(|ns| ns > 0.0)
    );
    for pair in &comparison.pairs {
        assert_eq!(pair.before_ns, pair.after_ns);
        let own: u64 = pair.rows.iter().filter_map(|row| row.after_ns).sum();
        let rounding = pair.rows.len() as u64 + 1;
        assert!(own.abs_diff(pair.after_ns) <= rounding, "{pair:?}");
        assert!(pair.rows.iter().all(|row| row.before_ns == row.after_ns));
        let mut rows = pair.rows.iter();
        assert!(rows.all(|row| row.before_ns_per_row == row.after_ns_per_row));
    }
}

fn unfuse(arguments: &[&OsStr]) -> std::process::Output {
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
    // A pipe gets no progress, only the place of the file.
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("report.html"), "{said}");
    let text = std::fs::read_to_string(&page).expect("text");
    assert!(text.contains("id=\"block-summary\"") && text.contains("id=\"block-details-0\""));
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

/// A query with a stage of 32 tasks. One of them takes 9 s for the same amount of data.
fn skewed(path: &Path) -> ProfileDir {
    let dir = ProfileDir::create(path).expect("a profile");
    write(
        &dir,
        [("one slow record", Some(5), None), ("", None, Some(9000))].map(
            |(description, started_ms, ended_ms)| ExecutionRow {
                app: "app-1".to_owned(),
                execution: 3,
                description: description.to_owned(),
                started_ms,
                ended_ms,
                ..ExecutionRow::default()
            },
        ),
    );
    write(
        &dir,
        [StageRow {
            app: "app-1".to_owned(),
            stage: 7,
            execution: Some(3),
            name: "count at job.py:5".to_owned(),
            tasks: 32,
            ..StageRow::default()
        }],
    );
    write(
        &dir,
        (0..32).map(|index| {
            let ms = if index == 9 {
                9000
            } else {
                1000 + 7 * i64::from(index % 5)
            };
            TaskRow {
                app: "app-1".to_owned(),
                stage: 7,
                task: i64::from(index),
                index,
                executor: "1".to_owned(),
                host: "worker-1".to_owned(),
                finished_ms: ms,
                status: "SUCCESS".to_owned(),
                run_ms: ms,
                cpu_ns: ms * 1_000_000,
                input_records: 1000,
                input_bytes: 80_000,
                ..TaskRow::default()
            }
        }),
    );
    dir
}

/// The record that kept its slow task busy, with its content.
fn slow_record(dir: &ProfileDir) {
    let text = Some("<script>alert(1)</script>");
    record(dir, 9, ("hdfs://in.csv", 4711), 7_900_000_000, text);
}

/// A record that kept a task busy, from an offset in a file, with its content if that was kept.
fn record(dir: &ProfileDir, task: i32, (file, offset): (&str, i64), ns: i64, text: Option<&str>) {
    let (app, task_key) = ("app-1".to_owned(), TaskKey(i64::from(task)));
    write(
        dir,
        [RecordSourceRow {
            app: app.clone(),
            stage: 7,
            task: task_key.0,
            partition: task,
            task_key,
            kind: RecordSourceKind::File,
            name: "in.csv HadoopRDD[0]".to_owned(),
            count: 1,
            timed: true,
            output: -1,
            files: vec![file.to_owned()],
            file_starts: vec![0],
            file_positions: vec![0],
            ..RecordSourceRow::default()
        }],
    );
    write(
        dir,
        [RecordTargetRow {
            app,
            stage: 7,
            task: task_key.0,
            partition: task,
            task_key,
            link: "result".to_owned(),
            count: 1,
            ..RecordTargetRow::default()
        }],
    );
    write(
        dir,
        [RecordInRow {
            task_key,
            id: offset,
            ns,
            ..RecordInRow::default()
        }],
    );
    write(
        dir,
        [RecordOutRow {
            task_key,
            ns,
            count: 1,
            ..RecordOutRow::default()
        }],
    );
    write(
        dir,
        [RecordTextRow {
            task_key,
            output: -1,
            ns,
            text: text.map(str::to_owned),
            ..RecordTextRow::default()
        }],
    );
}

fn write<T: Table>(dir: &ProfileDir, rows: impl IntoIterator<Item = T>) {
    let mut writer = SegmentWriter::new(dir, "test-1");
    rows.into_iter().for_each(|row| writer.push(row));
    writer.flush().expect("written");
}

/// The page that `unfuse report` writes of a profile.
fn report(dir: &ProfileDir) -> String {
    let output = unfuse(&[
        "report".as_ref(),
        dir.path().as_ref(),
        "-o".as_ref(),
        "-".as_ref(),
    ]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("a page")
}

fn block(page: &str, name: &str) -> Value {
    let (_, rest) = page
        .split_once(&format!("id=\"block-{name}\">"))
        .unwrap_or_else(|| panic!("no block {name}"));
    let packed = rest
        .split('<')
        .next()
        .and_then(|text| STANDARD.decode(text).ok());
    let mut text = String::new();
    DeflateDecoder::new(&packed.expect("base64")[..])
        .read_to_string(&mut text)
        .expect("deflated text");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn the_page_says_of_skew_what_unfuse_skew_says() {
    let tmp = tempfile::tempdir().expect("a directory");
    let dir = skewed(&tmp.path().join("profile"));
    slow_record(&dir);
    let output = unfuse(&["skew".as_ref(), dir.path().as_ref(), "--json".as_ref()]);
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(said["skewed"], 1, "{said:#}");
    assert_eq!(said["findings"][0]["description"], "one slow record");

    let page = report(&dir);
    assert!(!page.contains("<script>alert"));
    let summary = block(&page, "summary");
    assert_eq!(summary["skew"], true);
    let query = &summary["queries"][0];
    assert_eq!((&query["query"], &query["skew"]), (&3.into(), &true.into()));
    let mut of_query = block(&page, "skew-0");
    let times = of_query["findings"][0]["times"].take();
    assert_eq!(times["of"], 1);
    assert_eq!(times["ms"].as_array().map(Vec::len), Some(32));
    let slow = &said["findings"][0]["tasks"][0];
    assert_eq!(slow["index"], times["index"][9]);
    assert_eq!(slow["slower_ms"], times["slower_ms"][9]);
    assert_eq!(times["slower_ms"][8], 0.0);
    let finding = of_query["findings"][0].as_object_mut().expect("a stage");
    finding.remove("times");
    assert_eq!(of_query, said);
    let record = &said["records"]["slow_records"][0];
    assert_eq!(record["at"]["content"], "<script>alert(1)</script>");
    assert_eq!(record["at"]["offset"], 4711);

    // The block of all queries is the same, except for the tasks.
    let mut all = block(&page, "skew");
    let finding = all["findings"][0].as_object_mut().expect("a stage");
    for what in ["tasks", "next"] {
        finding.insert(what.to_owned(), said["findings"][0][what].clone());
    }
    assert_eq!(all, said);
}

/// A foreign profile may name any file of the user who reads it.
#[test]
fn a_file_that_a_profile_names_is_read_only_where_that_is_asked_for() {
    let tmp = tempfile::tempdir().expect("a directory");
    let dir = skewed(&tmp.path().join("profile"));
    slow_record(&dir);
    let named = tmp.path().join("named.txt");
    std::fs::write(&named, "its first line\nits second line\n").expect("a file");
    let file = format!("file:{}", named.display());
    record(&dir, 10, (file.as_str(), 15), 900_000_000, None);
    let skew = |more: &[&str]| {
        let mut arguments = vec![OsStr::new("skew"), dir.path().as_os_str()];
        arguments.extend(more.iter().map(OsStr::new));
        let output = unfuse(&arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let secret = "its second line";
    let unasked: [&[&str]; 2] = [&[], &["--json"]];
    for said in unasked.map(skew) {
        assert!(
            said.contains("--read-inputs") && !said.contains(secret),
            "{said}"
        );
    }
    assert!(skew(&["--json", "--read-inputs"]).contains(secret));
    let page = report(&dir);
    for name in ["skew", "skew-0"] {
        let told = block(&page, name).to_string();
        assert!(
            told.contains("named.txt") && !told.contains(secret),
            "{told}"
        );
    }
}

#[test]
fn records_that_cannot_be_read_are_a_note() {
    let tmp = tempfile::tempdir().expect("a directory");
    let dir = skewed(&tmp.path().join("profile"));
    let of_records = dir.path().join("record_sources");
    std::fs::create_dir_all(&of_records).expect("a directory");
    std::fs::write(of_records.join("test-1-00000.parquet"), b"PAR1").expect("a file");
    let page = report(&dir);
    let all = block(&page, "skew");
    assert_eq!(all["skewed"], 1);
    let notes = all["notes"].to_string();
    assert!(notes.contains("records are not shown"), "{notes}");
}

#[test]
fn of_an_application_only_its_own_skew_is_told() {
    let tmp = tempfile::tempdir().expect("a directory");
    let dir = skewed(&tmp.path().join("profile"));
    slow_record(&dir);
    let mut executions = SegmentWriter::new(&dir, "test-2");
    executions.push(ExecutionRow {
        app: "app-2".to_owned(),
        started_ms: Some(5),
        ..ExecutionRow::default()
    });
    executions.flush().expect("written");
    let of = |app: &str| {
        let output = unfuse(&[
            "report".as_ref(),
            dir.path().as_ref(),
            "--app".as_ref(),
            app.as_ref(),
            "-o".as_ref(),
            "-".as_ref(),
        ]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("a page")
    };
    assert_eq!(block(&of("app-1"), "skew")["records"]["results"], 1);
    // This application has no tasks.
    assert!(!of("app-2").contains("block-skew"));
}
