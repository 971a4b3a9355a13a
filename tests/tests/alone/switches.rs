//! A JVM on one of two CPUs, and who had it: counted by the kernel (option `switches`), or by use. Needs root.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use unfuse_tests::{ask_number, root, run, spark, spark_submit_by, with_command};

use crate::blame::{Neighbour, blame, program, query, ranking};

/// On one CPU.
fn pinned(cpu: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", cpu]);
    command
}

/// A program that computes on one CPU under its own name.
fn hog(program: &Path, cpu: &str) -> Neighbour {
    let script = ["-c", "while :; do :; done"];
    Neighbour::spawn(pinned(cpu).arg(program).args(script))
}

/// Run-queue waits that a culprit caused, s.
fn queued(answer: &Value, start: &str) -> f64 {
    let paths = answer["explanations"].as_array().expect("paths");
    let has_name = |path: &&Value| {
        path["culprit"]
            .as_str()
            .is_some_and(|name| name.starts_with(start))
    };
    let own = paths.iter().filter(has_name);
    let own = own.filter(|path| path["kind"] == "run-queue wait");
    own.filter_map(|path| path["seconds"].as_f64()).sum()
}

/// A query on the first CPU, beside processes there and on the second CPU.
struct BesideBoth {
    dir: tempfile::TempDir,
    /// Blame for the query.
    answer: Value,
    /// Run-queue waits that the processes on its CPU caused, s.
    guilty: f64,
    /// Those that the others caused, s.
    innocent: f64,
}

impl BesideBoth {
    fn profile(&self) -> PathBuf {
        self.dir.path().join("profile")
    }
}

/// Runs the query with these options of the agent.
fn beside_both(options: &str) -> BesideBoth {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let (here, elsewhere) = (
        program(dir.path(), "here"),
        program(dir.path(), "elsewhere"),
    );
    // As many on each CPU. Slots for all tasks, so that they wait for the CPU only.
    let hogs: Vec<Neighbour> = [(&here, "0"), (&elsewhere, "1")]
        .into_iter()
        .flat_map(|(program, cpu)| [hog(program, cpu), hog(program, cpu)])
        .collect();
    let spark = spark("4.3");
    let how = ["--agent-options", options];
    let mut job = spark_submit_by(&how, &spark, &profile, &["--master", "local[12]"]);
    job.arg(root().join("tests/programs/contention.py"))
        .args(["alone", "40000000"]);
    run(with_command(&mut pinned("0"), &job));
    drop(hogs);
    let victim = query(&profile, "victim");
    let answer = blame(&profile, &["--victim", &victim, "--top", "1000"]);
    let [guilty, innocent] = ["here (", "elsewhere ("].map(|name| queued(&answer, name));
    BesideBoth {
        dir,
        answer,
        guilty,
        innocent,
    }
}

/// By use, the CPU set counts as one CPU, and only processes that may run there have used it.
#[test]
fn a_process_outside_the_cpu_set_is_not_to_blame() {
    let ran = beside_both("switches=off");
    let (answer, guilty, innocent) = (&ran.answer, ran.guilty, ran.innocent);
    assert!(
        guilty > 1.0 && innocent == 0.0,
        "{guilty} s, {innocent} s {}",
        ranking(answer)
    );
    let others = "SELECT count(*) FROM 'DIR/hosts/*.parquet' WHERE cpu_set IS DISTINCT FROM '0' OR set_cpus <> 1";
    assert_eq!(ask_number(&ran.profile(), others), 0.0);
    let part = "SELECT sum(set_cpu_s) / sum((end_ns - start_ns) / 1e9) FROM 'DIR/hosts/*.parquet'";
    let part = ask_number(&ran.profile(), part);
    assert!((0.5..1.1).contains(&part), "{part} of one CPU");
}

#[test]
fn only_the_process_on_the_same_cpu_is_to_blame() {
    let ran = beside_both("switches=on");
    let (answer, guilty, innocent) = (&ran.answer, ran.guilty, ran.innocent);
    // A small part is not counted.
    assert!(
        guilty > 1.0 && innocent < 0.2 * guilty,
        "{guilty} s, {innocent} s {}",
        ranking(answer)
    );
    let about = &answer["victims"][0];
    let [all, counted] = ["queued_seconds", "counted_seconds"].map(|name| about[name].as_f64());
    assert!(counted > all.map(|all| 0.8 * all), "{about:#}");
    let rows = answer["ranked"].as_array().expect("rows");
    let begins = |row: &&Value| {
        row["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("here ("))
    };
    let guilty = rows.iter().find(begins).expect("a row");
    assert_eq!(guilty["exact"], true, "{}", ranking(answer));
    let counted = ask_number(
        &ran.profile(),
        "SELECT coalesce(sum(waited_ns), 0) / 1e9 FROM 'DIR/cpu_waits/*.parquet' WHERE command = 'elsewhere'",
    );
    assert!(counted < 0.1, "{counted} s");
}
