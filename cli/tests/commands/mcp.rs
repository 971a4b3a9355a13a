//! `unfuse mcp` as an assistant uses it: messages in lines, answers in lines.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// Sends messages to a server of the fixtures; returns its answers.
fn talk(messages: &[Value]) -> Vec<Value> {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
    let mut server = Command::new(env!("CARGO_BIN_EXE_unfuse"))
        .args(["mcp", fixtures])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("unfuse starts");
    let mut stdin = server.stdin.take().expect("a pipe");
    for message in messages {
        writeln!(stdin, "{message}").expect("the server reads");
    }
    drop(stdin);
    let output = server.wait_with_output().expect("the server ends");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("text");
    let answer = |line| serde_json::from_str(line).expect("JSON");
    text.lines().map(answer).collect()
}

fn call(id: u32, name: &str, arguments: Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

#[test]
fn an_assistant_reads_a_profile() {
    let answers = talk(&[
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        call(1, "list_profiles", json!({})),
        call(2, "top", json!({"profile": "canonical", "by": "line"})),
        call(3, "plan", json!({"profile": "canonical", "query": 3})),
        call(4, "why", json!({"profile": "canonical", "query": 99})),
        call(5, "blame", json!({"profile": "canonical"})),
        call(6, "list_queries", json!({"profile": "canonical"})),
        call(7, "skew", json!({"profile": "canonical"})),
        call(8, "source", json!({"profile": "canonical", "query": 3})),
    ]);
    let ids: Vec<u64> = answers
        .iter()
        .filter_map(|one| one["id"].as_u64())
        .collect();
    assert_eq!(ids, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let text = |index: usize| {
        let result = &answers[index]["result"];
        (
            result["content"][0]["text"].as_str().unwrap_or_default(),
            result["isError"].as_bool(),
        )
    };
    assert_eq!(text(1), ("canonical\n", Some(false)));
    for (index, part) in [
        (2, "  total"),
        (3, "HashAggregate"),
        (6, "aggregate"),
        (8, "hashAgg"),
    ] {
        let (text, is_error) = text(index);
        assert!(
            text.contains(part) && is_error == Some(false),
            "{part}: {text}"
        );
    }
    let (refusal, is_error) = text(4);
    assert!(
        refusal.contains("99") && is_error == Some(true),
        "{refusal}"
    );
    assert_eq!(text(5).1, Some(false), "{}", text(5).0);
    assert_eq!(text(7).1, Some(false), "{}", text(7).0);
}
