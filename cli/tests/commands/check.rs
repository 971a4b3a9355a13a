//! `unfuse check`: its answer on the recorded profile, the files for CI servers, the baseline and the exit codes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use quick_xml::events::Event;
use serde_json::Value;
use unfuse_format::{ExecutionRow, ProfileDir, SegmentWriter};

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/canonical");

fn check(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_unfuse"))
        .arg("check")
        .args(arguments)
        .output()
        .expect("unfuse runs")
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("an exit code")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A profile of an application with queries: description, duration in ms, and why it failed.
fn profile(path: &Path, queries: &[(&str, i64, Option<&str>)]) -> String {
    let dir = ProfileDir::create(path).expect("a profile");
    let mut executions = SegmentWriter::new(&dir, "test-1");
    for (number, (description, ms, error)) in (0..).zip(queries) {
        executions.push(ExecutionRow {
            app: format!("app-{}", path.display()),
            execution: number,
            description: (*description).to_owned(),
            started_ms: Some(number),
            ended_ms: Some(number + ms),
            error: error.map(str::to_owned),
        });
    }
    executions.flush().expect("written");
    path.to_str().expect("text").to_owned()
}

#[test]
fn a_profile_against_itself_has_nothing_to_report() {
    let output = check(&[FIXTURE, "--against", FIXTURE]);
    assert_eq!((code(&output), &*said(&output)), (0, ""));
    let text = String::from_utf8(output.stdout).expect("text");
    insta::assert_snapshot!(text.replace(FIXTURE, "DIR"));
    let json = check(&[FIXTURE, "--against", FIXTURE, "--json"]);
    let answer: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(answer["failed"], false);
    let queries = answer["queries"].as_array().expect("queries");
    let comparisons = queries
        .iter()
        .flat_map(|query| query["comparisons"].as_array().expect("an array"));
    let mut operators = 0;
    for comparison in comparisons {
        assert_eq!(
            (&comparison["status"], comparison["change"].as_f64()),
            (&"ok".into(), Some(0.0))
        );
        operators += usize::from(comparison["measure"] == "operator");
    }
    assert!(operators > 3, "{answer:#}");
}

#[test]
fn wrong_use_and_nothing_to_compare_have_their_own_exit_code() {
    let home = tempfile::tempdir().expect("a directory");
    let other = profile(&home.path().join("other"), &[("another query", 5, None)]);
    let empty = profile(&home.path().join("empty"), &[]);
    for (arguments, says) in [
        (&[FIXTURE][..], "--against"),
        (
            &[FIXTURE, "--against", FIXTURE, "--max-regression", "5"],
            "write 5%",
        ),
        (&[FIXTURE, "--against", FIXTURE, "--update"], "--update"),
        (&[FIXTURE, "--against", &other], "no query in common"),
        (&[FIXTURE, "--against", &empty], "has no SQL query"),
        (
            &[FIXTURE, "--against", "/no/such/profile"],
            "/no/such/profile",
        ),
        (&[FIXTURE, "--baseline", "/no/such/baseline"], "--update"),
    ] {
        let output = check(arguments);
        assert_eq!(code(&output), 2, "{arguments:?}: {}", said(&output));
        assert!(
            said(&output).contains(says),
            "{arguments:?}: {}",
            said(&output)
        );
    }
}

/// The text of each test case's failure, by name; the file must be well-formed.
fn failures(xml: &str) -> Vec<(String, Option<String>)> {
    let mut reader = quick_xml::Reader::from_str(xml);
    reader.config_mut().check_end_names = true;
    let attribute = |element: &quick_xml::events::BytesStart<'_>, name: &str| {
        let found = element.try_get_attribute(name).expect("well-formed");
        let value = found
            .expect("an attribute")
            .normalized_value(quick_xml::XmlVersion::Implicit1_0);
        value.expect("well-formed").into_owned()
    };
    let (mut cases, mut depth) = (Vec::new(), 0usize);
    loop {
        let event = reader.read_event().expect("well-formed");
        depth += usize::from(matches!(event, Event::Start(_)));
        match event {
            Event::Start(element) | Event::Empty(element) => match element.name().as_ref() {
                b"testcase" => cases.push((attribute(&element, "name"), None)),
                b"failure" => {
                    let case = cases.last_mut().expect("a case");
                    case.1 = Some(attribute(&element, "message"));
                }
                _ => {}
            },
            Event::End(_) => depth -= 1,
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(depth, 0);
    cases
}

#[test]
fn ci_servers_get_a_test_case_for_each_query() {
    let home = tempfile::tempdir().expect("a directory");
    let hostile = "</testcase>|`@team` \u{1b}[2J\u{0}\u{fffe}]]> \"&<b>\n'";
    let before = profile(
        &home.path().join("before"),
        &[
            (hostile, 100, None),
            ("steady", 100, None),
            ("gone", 9, None),
        ],
    );
    let now = profile(
        &home.path().join("now"),
        &[
            (hostile, 9, Some("it <failed>")),
            ("steady", 100, None),
            ("new", 9, None),
        ],
    );
    let [junit, markdown] = ["check.xml", "check.md"].map(|name| home.path().join(name));
    let output = check(&[
        &now,
        "--against",
        &before,
        "--junit",
        junit.to_str().expect("text"),
        "--markdown",
        markdown.to_str().expect("text"),
    ]);
    assert_eq!(code(&output), 1, "{}", said(&output));
    let xml = fs::read_to_string(&junit).expect("a file");
    let cases = failures(&xml);
    assert_eq!(cases.len(), 4, "{xml}");
    assert_eq!(cases[0].1.as_deref(), Some("it <failed>"));
    assert!(cases[1..].iter().all(|(_, failure)| failure.is_none()));
    assert!(
        xml.contains("tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"2\""),
        "{xml}"
    );
    let table = fs::read_to_string(&markdown).expect("a file");
    assert!(
        table.contains("### unfuse check failed") && !table.contains("<b>"),
        "{table}"
    );
    for file in [&junit, &markdown] {
        let mode = fs::metadata(file).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_baseline_is_made_kept_private_and_compared_with() {
    let home = tempfile::tempdir().expect("a directory");
    let baseline = home.path().join("baseline");
    let baseline = baseline.to_str().expect("text");
    let of = |name: &str, ms: i64| {
        let runs: Vec<_> = [0, 1, 2].map(|more| ("query", ms + more, None)).to_vec();
        profile(&home.path().join(name), &runs)
    };
    let first = check(&[&of("1", 10_000), "--baseline", baseline, "--update"]);
    assert_eq!(code(&first), 0, "{}", said(&first));
    let directory = fs::metadata(baseline).expect("a directory");
    assert_eq!(directory.permissions().mode() & 0o777, 0o700);
    let files: Vec<_> = fs::read_dir(baseline).expect("files").flatten().collect();
    assert_eq!(files.len(), 1);
    assert_eq!(
        files[0].metadata().expect("a file").permissions().mode() & 0o777,
        0o600
    );
    let same = check(&[&of("2", 10_010), "--baseline", baseline, "--update"]);
    assert_eq!(code(&same), 0, "{}", said(&same));
    let slower = check(&[&of("3", 12_000), "--baseline", baseline, "--update"]);
    assert_eq!(code(&slower), 1, "{}", said(&slower));
    assert!(
        said(&slower).contains("remove the file to accept"),
        "{}",
        said(&slower)
    );
    let text = String::from_utf8_lossy(&slower.stdout).into_owned();
    assert!(
        text.contains("wall time of query") && text.contains("regression"),
        "{text}"
    );
    let file = files[0].path();
    let stored: Value = serde_json::from_slice(&fs::read(&file).expect("a file")).expect("JSON");
    assert_eq!(stored["query"]["runs"].as_array().map(Vec::len), Some(6));
    fs::write(&file, "[").expect("written");
    let damaged = check(&[&of("4", 10_000), "--baseline", baseline]);
    assert_eq!(code(&damaged), 2);
    assert!(said(&damaged).contains("remove it"), "{}", said(&damaged));
}
