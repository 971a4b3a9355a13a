//! Functions and lines in Python worker processes.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use unfuse_tests::{
    brief_driver, marked, packages, python_environment, root, run, samples, spark, spark_submit_by,
    top, unfuse,
};

/// CPU time of the rows that `wanted` accepts, s.
fn seconds(rows: &[Value], wanted: impl Fn(&Value) -> bool) -> f64 {
    let rows = rows.iter().filter(|row| wanted(row));
    rows.filter_map(|row| row["cpu_seconds"].as_f64()).sum()
}

fn name(row: &Value) -> &str {
    row["operator"].as_str().unwrap_or_default()
}

/// The execution with this description.
fn query(profile: &Path, description: &str) -> String {
    let all = top(profile, &["--by", "query"]);
    let is_named = |row: &&Value| {
        row["detail"]
            .as_str()
            .is_some_and(|d| d.contains(description))
    };
    let row = all.iter().find(is_named);
    let row = row.unwrap_or_else(|| panic!("{description}: {all:?}"));
    row["query"].to_string()
}

/// Records the program; returns what it printed.
fn record(version: &str, profile: &Path, conf: &[&str], arguments: &[&str]) -> String {
    let brief = brief_driver();
    let mut options: Vec<&str> = brief.iter().map(String::as_str).collect();
    options.extend(["--master", "local[2]"]);
    options.extend(conf.iter().flat_map(|conf| ["--conf", conf]));
    let spark = spark(version);
    let mut command = spark_submit_by(&[], &spark, profile, &options);
    let path = format!(
        "{}:{}",
        packages(&spark.join("venv")).display(),
        packages(&python_environment("connect")).display()
    );
    command.env("PYTHONPATH", path);
    let output = run(command
        .arg(root().join("tests/programs/python_lines.py"))
        .args(arguments));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Checks that a query's workers were at this line for most of their time, and that the operator has it.
fn check_line(profile: &Path, description: &str, operator: &str, lines: &[String]) {
    let query = query(profile, description);
    let by_line = top(profile, &["--query", &query, "--by", "line"]);
    let worker = |row: &Value| name(row).contains(".py:") || name(row).contains("BasePythonRunner");
    let is_hot = |row: &Value| lines.iter().any(|line| name(row).ends_with(line));
    let (hot, all) = (samples(&by_line, is_hot), samples(&by_line, worker));
    assert!(
        all > 50 && 2 * hot > all,
        "{description}: {hot} of {all}: {by_line:?}"
    );
    let by_operator = top(profile, &["--query", &query]);
    let own = samples(&by_operator, |row| name(row).contains(operator));
    assert!(own >= hot, "{description}: {own} of {hot}: {by_operator:?}");
}

#[test]
fn the_line_that_computes_has_the_time_of_its_worker() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let slow = [marked("python_lines.py", "# slow: all")];
    let printed = record("4.3", &profile, &[], &["4000", "4000", "pandas"]);
    // Spark uses Arrow for plain functions too where it is installed.
    check_line(&profile, "plain", "EvalPython", &slow);
    check_line(&profile, "pandas", "ArrowEvalPython", &slow);
    check_line(&profile, "map", "MapInPandas", &slow);
    check_line(&profile, "apply", "FlatMapGroupsInPandas", &slow);

    // Two functions of one operator.
    let both = [slow[0].clone(), marked("python_lines.py", "# slow: other")];
    check_line(&profile, "two", "EvalPython", &both);
    let two = query(&profile, "two");
    let lines = top(&profile, &["--query", &two, "--by", "line"]);
    for line in &both {
        assert!(
            samples(&lines, |row| name(row).ends_with(line)) > 20,
            "{line}: {lines:?}"
        );
    }

    // Two operators of one stage.
    let chain = query(&profile, "chain");
    let operators = top(&profile, &["--query", &chain]);
    for operator in ["ArrowEvalPython", "MapInPandas"] {
        let own = seconds(&operators, |row| name(row) == operator);
        let all = seconds(&operators, |row| row["node_id"].is_i64());
        assert!(own > 0.25 * all, "{operator}: {operators:?}");
    }

    // Without SQL: all of the CPU time that the workers have measured.
    let measured = printed
        .lines()
        .find_map(|line| line.strip_prefix("measured "));
    let measured: f64 = measured.expect("a line").parse().expect("a number");
    let rows = top(&profile, &[]);
    let sampled = seconds(&rows, |row| {
        row["query"].is_null() && name(row) == "task: Python"
    });
    let ratio = sampled / measured;
    assert!((0.95..1.5).contains(&ratio), "{sampled} s of {measured} s");

    // The plan, the report and `source` say it too.
    let plain = query(&profile, "plain");
    let text = |arguments: &[&str]| {
        let output = run(unfuse().args(arguments).arg(&profile));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let plan = text(&["plan", "--query", &plain]);
    assert!(plan.contains("total = (total * 31 + i * i)"), "{plan}");
    assert!(plan.contains("python_lines.py:"), "{plan}");
    let source = text(&["source", "--query", &plain]);
    assert!(source.contains("python_lines.py, queries"), "{source}");
    assert!(source.contains("total = (total * 31 + i * i)"), "{source}");
    let why = text(&["why", "--query", &plain]);
    let says = format!("most of it in spin{}", slow[0]);
    assert!(why.contains(&says), "{why}");
}

#[test]
fn workers_without_a_daemon_have_lines_too() {
    let dir = tempfile::tempdir().expect("a directory");
    let slow = [marked("python_lines.py", "# slow: all")];
    for (version, conf) in [
        ("3.5", ["spark.python.use.daemon=false"]),
        ("3.5", ["spark.python.worker.reuse=false"]),
    ] {
        let profile = dir.path().join(conf[0]);
        record(version, &profile, &conf, &["2000", "4000"]);
        check_line(&profile, "plain", "BatchEvalPython", &slow);
    }
}

/// The command without CAP_SYS_PTRACE, which root has otherwise.
fn without_inspection(command: &Command) -> Command {
    let mut without = Command::new("setpriv");
    without
        .args(["--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace"])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => without.env(name, value),
            None => without.env_remove(name),
        };
    }
    without
}

#[test]
fn workers_that_may_not_be_read_have_their_time_and_one_line_says_why() {
    // Only a process with CAP_SYS_PTRACE may read one that is not dumpable. Spark's options do not make workers so.
    const PROTECTED: &str = "import ctypes\nctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE\n";
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    std::fs::write(dir.path().join("sitecustomize.py"), PROTECTED).expect("a file");
    let brief = brief_driver();
    let mut options: Vec<&str> = brief.iter().map(String::as_str).collect();
    options.extend(["--master", "local[2]"]);
    let mut command = spark_submit_by(&[], &spark("3.5"), &profile, &options);
    command
        .env("PYTHONPATH", dir.path())
        .arg(root().join("tests/programs/python_lines.py"))
        .args(["1000", "2000"]);
    let own = std::fs::metadata("/proc/self").expect("this process");
    // Other users have no such right anyway.
    let mut command = match own.uid() {
        0 => without_inspection(&command),
        _ => command,
    };
    let output = run(&mut command);
    assert!(String::from_utf8_lossy(&output.stdout).contains("measured "));
    let log = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("Python workers have CPU time but no lines"))
        .collect();
    assert!(
        said.len() == 1 && said[0].contains("kernel.yama.ptrace_scope=0"),
        "{said:?}"
    );
    let threads = top(&profile, &["--by", "thread"]);
    assert!(seconds(&threads, |row| name(row) == "Python worker") > 0.0);
    let lines = top(&profile, &["--by", "line"]);
    let of_python = samples(&lines, |row| name(row).contains(".py:"));
    assert_eq!(of_python, 0, "{lines:?}");
}

#[test]
fn a_total_has_no_lines_and_off_has_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    for (detail, has_time) in [("total", true), ("off", false)] {
        let profile = dir.path().join(detail);
        let agent = format!("python={detail}");
        let brief = brief_driver();
        let mut options: Vec<&str> = brief.iter().map(String::as_str).collect();
        options.extend(["--master", "local[2]"]);
        let mut command = spark_submit_by(
            &["--agent-options", &agent],
            &spark("3.5"),
            &profile,
            &options,
        );
        run(command
            .arg(root().join("tests/programs/python_lines.py"))
            .args(["1000", "2000"]));
        let lines = top(&profile, &["--by", "line"]);
        assert_eq!(
            samples(&lines, |row| name(row).contains(".py:")),
            0,
            "{lines:?}"
        );
        let threads = top(&profile, &["--by", "thread"]);
        let time = seconds(&threads, |row| name(row) == "Python worker");
        assert_eq!(time > 0.0, has_time, "{threads:?}");
    }
}
