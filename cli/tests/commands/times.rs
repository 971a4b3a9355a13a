//! `--since` and `--until`: parts of the time of a recorded profile add up to the whole.

use std::process::{Command, Output};

use crate::fixture::profile;
use serde_json::Value;
use unfuse_format::{ProfileDir, SampleRow};

const SECOND: i64 = 1_000_000_000;

fn unfuse(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_unfuse"))
        .args(arguments)
        .arg(profile())
        .env("TZ", "Asia/Kolkata")
        .output()
        .expect("unfuse runs")
}

/// Samples of `unfuse top` in a part of the time.
fn samples(times: &[&str]) -> u64 {
    let output = unfuse(&[&["top", "--json"], times].concat());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = rows.as_array().expect("an array").iter();
    rows.map(|row| row["samples"].as_u64().expect("a number"))
        .sum()
}

/// The whole second in the middle of the samples, s since the epoch.
fn middle() -> i64 {
    let dir = ProfileDir::open(&profile()).expect("a profile");
    let rows = dir.read::<SampleRow>().expect("samples").rows;
    let starts = || rows.iter().map(|row| row.start_ns);
    let (first, last) = (starts().min(), starts().max());
    (first.expect("a sample") + last.expect("a sample")) / 2 / SECOND
}

fn date(seconds: i64, format: &str, zone: &str) -> String {
    let output = Command::new("date")
        .arg(format!("--date=@{seconds}"))
        .arg(format!("+{format}"))
        .env("TZ", zone)
        .output()
        .expect("date runs");
    String::from_utf8(output.stdout)
        .expect("text")
        .trim()
        .to_owned()
}

#[test]
fn two_parts_of_the_time_are_the_whole() {
    let all = samples(&[]);
    let middle = middle();
    let local = "Asia/Kolkata";
    for time in [
        date(middle, "%Y-%m-%dT%H:%M:%SZ", "UTC"),
        date(middle, "%Y-%m-%dT%H:%M:%S", local),
        date(middle, "%Y-%m-%d %H:%M:%S%:z", "America/New_York"),
        date(middle, "%H:%M:%S", local),
    ] {
        let (before, after) = (samples(&["--until", &time]), samples(&["--since", &time]));
        assert_eq!(before + after, all, "{time}");
        assert!(
            before > all / 10 && after > all / 10,
            "{before} and {after}"
        );
        assert_eq!(samples(&["--since", &time, "--until", "0s"]), after);
    }
    assert_eq!(samples(&["--since", "1d"]), all);
    assert!(samples(&["--since", "3s"]) < all);
}

#[test]
fn a_part_without_samples_is_refused() {
    let refused = |arguments: &[&str]| {
        let output = unfuse(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let year = date(middle(), "%Y", "UTC");
    for command in [&["top"][..], &["source"], &["report", "-o", "-"]] {
        let text = refused(&[command, &["--until", "2001-01-01"]].concat());
        assert!(text.contains(&format!("recorded from {year}-")), "{text}");
    }
    let text = refused(&["top", "--since", "1m", "--until", "2m"]);
    assert!(text.contains("--since is not before --until"), "{text}");
    let wrong = unfuse(&["top", "--since", "soon"]);
    assert_eq!(wrong.status.code(), Some(2));
    let text = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(text.contains("a time such as 14:30"), "{text}");
}

#[test]
fn every_command_with_a_time_takes_it() {
    let time = date(middle(), "%Y-%m-%dT%H:%M:%SZ", "UTC");
    for command in [
        &["report", "-o", "-"][..],
        &["flame", "-o", "-"],
        &["source"],
        &["export", "--format", "folded"],
        &["export", "--format", "firefox"],
        &["blame", "--json"],
    ] {
        let part = unfuse(&[command, &["--since", &time]].concat());
        let text = String::from_utf8_lossy(&part.stderr).into_owned();
        assert!(part.status.success(), "{command:?}: {text}");
        let whole = unfuse(command);
        assert_ne!(part.stdout, whole.stdout, "{command:?}");
    }
}
