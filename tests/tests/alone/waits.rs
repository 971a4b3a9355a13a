//! Where threads wait, and for what.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;
use unfuse_tests::{ask_number, compile, is, jdks, root, run, spark, spark_submit, top, unfuse};

/// Seconds waited, of the rows that `wanted` accepts.
fn waited(rows: &[Value], wanted: impl Fn(&Value) -> bool) -> f64 {
    rows.iter()
        .filter(|row| wanted(row))
        .filter_map(|row| row["waiting_seconds"].as_f64())
        .sum()
}

/// Runs `Waits` for this time. Returns the seconds that it reports for each kind of wait.
fn run_waits(home: &Path, dir: &Path, ms: &str, options: &str) -> HashMap<String, f64> {
    compile(home, "Waits.java", dir);
    let mut command = unfuse();
    command
        .args(["run", "--out"])
        .arg(dir.join("profile"))
        .args(["--agent-options", options, "--"])
        .arg(home.join("bin/java"))
        // If an interpreted method waits inside the JVM, the profiler cannot find the reason.
        .args(["-Xcomp", "-XX:CompileCommand=quiet"])
        .arg("-XX:CompileCommand=compileonly,Waits::*")
        .arg("-cp")
        .arg(dir)
        .args(["Waits", ms])
        .arg(dir.join("fifo"));
    let text = String::from_utf8_lossy(&run(&mut command).stdout).into_owned();
    let words: Vec<&str> = text.split_whitespace().skip(1).collect();
    words
        .chunks(2)
        .map(|pair| {
            let ms: f64 = pair[1].parse().expect("milliseconds");
            (pair[0].to_owned(), ms / 1000.0)
        })
        .collect()
}

#[test]
fn waits_are_where_and_as_long_as_they_truly_are() {
    for home in jdks() {
        let dir = tempfile::tempdir().expect("a directory");
        let truth = run_waits(&home, dir.path(), "4000", "threads=all");
        let profile = dir.path().join("profile");
        let what = home.display();
        let rows = top(&profile, &["--kind", "off-cpu", "--by", "method"]);
        // The lock is not here: its time is that of parking, and the helper parks, too.
        for (part, method) in [
            ("sleep", "java.lang.Thread.sleep"),
            ("monitor", "Waits.monitor"),
            ("read", "java.io.FileInputStream.read"),
        ] {
            let (found, truth) = (waited(&rows, |row| is(row, method)), truth[part]);
            assert!(
                (0.8..1.25).contains(&(found / truth)),
                "{what}: {part} {found} s, truly {truth} s: {rows:#?}"
            );
        }
        let rows = top(&profile, &["--kind", "off-cpu"]);
        let class = |name: &str| waited(&rows, |row| row["waiting_for"] == name);
        // After a wait, the time until the thread runs again counts as run queue.
        let queue = class("run queue");
        for (name, least) in [
            ("sleep", truth["sleep"]),
            ("disk read", truth["read"]),
            ("lock", truth["monitor"] + truth["lock"]),
        ] {
            assert!(
                class(name) + queue > 0.8 * least,
                "{what}: {name} {} s and {queue} s in the run queue, truly {least} s",
                class(name)
            );
        }
        // On a busy machine, the computing thread also waits for a CPU.
        let rows = top(&profile, &["--kind", "wall", "--by", "method"]);
        let seconds = |row: &Value| {
            let of = |field: &str| row[field].as_f64().unwrap_or_default();
            of("cpu_seconds") + of("waiting_seconds")
        };
        let computed = rows.iter().filter(|row| is(row, "Waits.computes"));
        let computed: f64 = computed.map(seconds).sum();
        assert!(
            (0.7..1.25).contains(&(computed / truth["cpu"])),
            "{what}: {computed} s in what computes, truly {} s",
            truth["cpu"]
        );
        graph(&profile, dir.path());
    }
}

/// Checks that leaves of the flame graph name the reasons of waits.
fn graph(profile: &Path, dir: &Path) {
    let svg = dir.join("waits.svg");
    run(unfuse()
        .arg("flame")
        .arg(profile)
        .args(["--kind", "off-cpu", "--level", "full", "-o"])
        .arg(&svg));
    let svg = std::fs::read_to_string(svg).expect("the graph");
    for leaf in [
        "[waiting: sleep]",
        "[waiting: disk read]",
        "[waiting: lock]",
    ] {
        assert!(svg.contains(leaf), "{leaf} is in the graph");
    }
}

#[test]
fn without_waits_there_are_none_and_it_is_said() {
    let dir = tempfile::tempdir().expect("a directory");
    run_waits(&jdks()[0], dir.path(), "500", "waits=off");
    let output = unfuse()
        .arg("top")
        .arg(dir.path().join("profile"))
        .args(["--kind", "off-cpu"])
        .output()
        .expect("unfuse runs");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the profile has no waits"), "{said}");
}

#[test]
fn a_sleeping_operator_waits_and_cpu_and_waiting_are_the_tasks_time() {
    let home = spark("4.3");
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let mut command = spark_submit(&home, &profile, &["--master", "local[2]"]);
    command
        .arg(root().join("tests/programs/sleeps.py"))
        .args(["800", "10"]);
    run(&mut command);

    let rows = top(&profile, &["--kind", "off-cpu"]);
    let slept = waited(&rows, |row| {
        is(row, "Filter") && row["waiting_for"] == "sleep"
    });
    assert!((7.5..9.5).contains(&slept), "{slept} s of sleep: {rows:#?}");
    let elsewhere = waited(&rows, |row| {
        !is(row, "Filter") && row["waiting_for"] == "sleep"
    });
    assert!(elsewhere < 0.3, "{elsewhere} s of sleep elsewhere");

    let ran = ask_number(
        &profile,
        "select sum(run_ms + deserialize_ms) / 1e3 from 'DIR/tasks/*.parquet'",
    );
    let rows = top(&profile, &["--kind", "wall", "--by", "stage"]);
    let wall: f64 = rows
        .iter()
        .filter(|row| row["stage"].is_i64())
        .map(|row| {
            let seconds = |field: &str| row[field].as_f64().unwrap_or_default();
            seconds("cpu_seconds") + seconds("waiting_seconds")
        })
        .sum();
    assert!(
        (0.93..1.07).contains(&(wall / ran)),
        "{wall} s on and off the CPU, Spark says {ran} s"
    );
}
