//! `unfuse trino`, with answers that a real Trino gave.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;

const QUERY: &str = "20261128_021350_00003_x82za";
const EARLY: &str = include_str!("../../../analysis/trino/src/meter/fixtures/early.json");
const LATE: &str = include_str!("../../../analysis/trino/src/meter/fixtures/late.json");
const STATUS: &str = r#"{"nodeId": "x", "processors": 2, "systemCpuLoad": 1.0,
    "memoryInfo": {"pool": {"maxBytes": 1000000000, "reservedBytes": 5000000}}}"#;

/// A coordinator whose only query runs at the first two requests for it, and has ended at the third. Its task's server is the
/// coordinator. Returns its address.
fn coordinator(list: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let own = address.clone();
    thread::spawn(move || {
        let (mut asked, mut lists) = (0, 0);
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let reader = BufReader::new(stream.try_clone().expect("a stream"));
            let lines = reader.lines().map(|line| line.expect("a line"));
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let path = head[0].split(' ').nth(1).unwrap_or_default();
            let is_for_all = path == "/v1/status";
            let has_user = head.iter().any(|line| line == "X-Trino-User: anna");
            // Servers other than the coordinator must not get its headers.
            assert_eq!(has_user, !is_for_all, "{head:?}");
            let text = match path {
                "/v1/query" => {
                    lists += 1;
                    let state = if lists > 3 { "FINISHED" } else { "RUNNING" };
                    list.replace("STATE", state)
                }
                "/v1/status" => STATUS.to_owned(),
                _ => {
                    assert_eq!(path, format!("/v1/query/{QUERY}"));
                    asked += 1;
                    let text = if asked == 1 { EARLY } else { LATE };
                    text.replace("http://127.0.0.1:18080", &own)
                }
            };
            let length = text.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

fn trino(address: &str, dir: &Path, time: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_unfuse"))
        .args([
            "trino", address, "--user", "anna", "--for", time, "--output",
        ])
        .arg(dir)
        .output()
        .expect("it runs")
}

#[test]
fn queries_of_trino_are_recorded_for_blame() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("queries");
    let list = r#"[{"queryId": "20261128_021350_00003_x82za", "state": "STATE"}]"#;
    let output = trino(&coordinator(list), &dir, "4s");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        dir.display().to_string()
    );
    let blamed = Command::new(env!("CARGO_BIN_EXE_unfuse"))
        .arg("blame")
        .arg(&dir)
        .args(["--json", "--victim", QUERY])
        .output()
        .expect("it runs");
    let answer: serde_json::Value = serde_json::from_slice(&blamed.stdout).expect("JSON");
    let victim = &answer["victims"][0];
    assert_eq!(
        victim["label"],
        format!("query {QUERY}: victim"),
        "{answer:#}"
    );
    // Its drivers waited for threads and CPUs, in four seconds.
    let blocked = victim["blocked_seconds"].as_f64().expect("a number");
    assert!(blocked > 1.0, "{answer:#}");
    let hosts = fs::read_to_string(dir.join("hosts.csv")).expect("a file");
    assert!(hosts.lines().filter(|line| line.contains(",CPU,")).count() >= 1);
}

/// Asserts that nothing is made, and that this is said.
fn check_refused(address: &str, why: &str) {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("queries");
    let output = trino(address, &dir, "1s");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(why), "{said}");
    assert!(!dir.exists(), "{why}");
}

#[test]
fn what_is_no_coordinator_is_refused() {
    check_refused(
        "http://127.0.0.1:1",
        "cannot reach http://127.0.0.1:1/v1/query",
    );
    check_refused("localhost:8080", "an address such as");
    check_refused(&coordinator("{}"), "does not answer as Trino 476 does");
    check_refused(
        &coordinator("[{\"queryId\": 7}]"),
        "does not answer as Trino 476 does",
    );
}

#[test]
fn a_directory_that_exists_is_kept() {
    let home = tempfile::tempdir().expect("a directory");
    let output = trino(&coordinator("[]"), home.path(), "1s");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("exists"),
        "{said}"
    );
}
