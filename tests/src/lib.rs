//! Code that the end-to-end tests share. They run `unfuse`, built in release mode, as users do.

mod archive;
mod cache;
mod churn;
mod cluster;
mod consumers;
mod container;
mod hdfs;
mod hot;
mod jdk;
mod locks;
mod network;
mod notebook;
mod plugin;
mod processes;
mod python;
mod s3;
mod server;
mod yarn;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use archive::archive_options;
use serde_json::Value;

pub use churn::{ChurnedClasses, ClassComparison};
pub use cluster::{Cluster, executors, free_port, pyspark, wait_for};
pub use consumers::Consumers;
pub use container::Container;
pub use hdfs::Hdfs;
pub use hot::{HotTruth, check_hot, of_main};
pub use jdk::{compile, compile_against, jdks};
pub use locks::{LOCK_CASES, LockWaits, lock_waits, record_locks};
pub use network::SlowNetwork;
pub use notebook::Notebook;
pub use plugin::{executor_options, plugin_jar, plugin_submit};
pub use processes::{Mark, cpu_time, signal, thread};
pub use python::{packages, python_environment};
pub use s3::S3;
pub use server::Server;
pub use yarn::Yarn;

/// How long tests wait for an expected event. Only failures take this long, on a busy machine too.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// The built `unfuse`.
///
/// # Panics
/// If it is not built: `make test` builds it first.
pub fn unfuse() -> Command {
    let program = root().join("target/release/unfuse");
    assert!(
        program.is_file(),
        "{} is not built; run `make build`",
        program.display()
    );
    Command::new(program)
}

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The agent.
pub fn agent() -> PathBuf {
    root().join("target/release/libunfuse.so")
}

/// Runs a command, which must succeed.
///
/// # Panics
/// If it fails. The message has its output.
pub fn run(command: &mut Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Rows of `unfuse top --json` with more arguments.
pub fn top(profile: &Path, arguments: &[&str]) -> Vec<Value> {
    let output = run(unfuse()
        .arg("top")
        .arg(profile)
        .arg("--json")
        .args(arguments));
    let rows: Value = serde_json::from_slice(&output.stdout).expect("top --json prints JSON");
    rows.as_array().expect("an array").clone()
}

/// Samples of the rows that `wanted` accepts.
pub fn samples(rows: &[Value], wanted: impl Fn(&Value) -> bool) -> u64 {
    rows.iter()
        .filter(|row| wanted(row))
        .filter_map(|row| row["samples"].as_u64())
        .sum()
}

/// Whether the name in a row of `unfuse top` contains this text.
pub fn is(row: &Value, text: &str) -> bool {
    row["operator"]
        .as_str()
        .is_some_and(|name| name.contains(text))
}

/// `(PROGRAM:LINE)` of the line of a program of `tests/programs` that holds a marker.
pub fn marked(program: &str, marker: &str) -> String {
    let text =
        std::fs::read_to_string(root().join("tests/programs").join(program)).expect("the program");
    let line = text.lines().position(|line| line.contains(marker));
    format!("({program}:{})", line.expect("the marker") + 1)
}

/// Checks that only its user can access a path and everything below it.
///
/// # Panics
/// If a directory has another mode than 0700, or a file another than 0600.
pub fn check_private(path: &Path) {
    let metadata = std::fs::symlink_metadata(path).expect("it is there");
    let (expected, inside) = match metadata.is_dir() {
        true => (0o700, Some(std::fs::read_dir(path).expect("a directory"))),
        false => (0o600, None),
    };
    let mode = metadata.permissions().mode() & 0o7777;
    assert_eq!(mode, expected, "{} has mode {mode:o}", path.display());
    for entry in inside.into_iter().flatten() {
        check_private(&entry.expect("a name").path());
    }
}

/// An installed Spark (`unfuse setup`), by version.
pub fn spark(version: &str) -> PathBuf {
    let output = run(unfuse().args(["setup", "--spark", version]));
    PathBuf::from(
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .next()
            .expect("a path"),
    )
}

/// A Java runtime that `unfuse setup` installs, for JAVA_HOME.
pub fn jdk(release: &str) -> PathBuf {
    let output = run(unfuse().args(["setup", "--jdk", release]));
    PathBuf::from(
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .last()
            .expect("a path"),
    )
}

/// TPC-H data at a scale factor, 1 or 0.2.
pub fn tpch(scale: &str) -> PathBuf {
    let output = run(unfuse().args(["setup", "--tpch", scale]));
    PathBuf::from(
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .last()
            .expect("a path"),
    )
}

/// `unfuse run … spark-submit` in an installed Spark.
pub fn spark_submit(spark: &Path, profile: &Path, options: &[&str]) -> Command {
    spark_submit_by(&[], spark, profile, options)
}

/// The same with options of `unfuse run`.
pub fn spark_submit_by(how: &[&str], spark: &Path, profile: &Path, options: &[&str]) -> Command {
    let mut command = unfuse_beside(spark);
    command.args(["run", "--out"]).arg(profile).args(how);
    submit(&mut command, spark, options);
    command
}

/// Options of JVMs that end before the second compiler would save time.
const BRIEF: [&str; 2] = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];

/// Options of `spark-submit` for a short job, in tests that do not check how compiled code is profiled. The second compiler
/// takes half of the CPU time of such a job.
pub fn brief_driver() -> [String; 2] {
    ["--driver-java-options".to_owned(), BRIEF.join(" ")]
}

/// Records `check.py` in a brief driver on two slots, with other options of `spark-submit`: as many rounds of a query whose filter
/// hashes a column so often.
pub fn record_check(version: &str, profile: &Path, options: &[&str], rounds: u32, hashes: u32) {
    let brief = brief_driver();
    let mut all: Vec<&str> = brief.iter().map(String::as_str).collect();
    all.extend(["--master", "local[2]"]);
    all.extend(options);
    run(spark_submit(&spark(version), profile, &all)
        .arg(root().join("tests/programs/check.py"))
        .arg(tpch("0.2"))
        .args([rounds.to_string(), hashes.to_string()]));
}

/// Options of the JVM of a daemon of an installed Spark.
pub fn daemon_options(spark: &Path) -> String {
    format!("{} {}", BRIEF.join(" "), archive_options(spark))
}

/// `unfuse skew … -- spark-submit` in an installed Spark, where a job follows the records.
pub fn skew_on_spark(spark: &Path, profile: &Path, how: &[&str]) -> Command {
    let mut command = unfuse_beside(spark);
    command.arg("skew").arg(profile).args(how);
    submit(&mut command, spark, &["--master", "local[2]"]);
    command.args(brief_driver());
    command
}

/// `unfuse` with the programs of an installed Spark.
fn unfuse_beside(spark: &Path) -> Command {
    let mut command = unfuse();
    with_archive(&mut command, spark);
    command
}

/// Lets a command find the programs of an installed Spark first. Their JVMs use an archive of Spark's classes. The JVM in
/// which spark-submit makes its command lines gets the options for brief JVMs.
pub fn with_archive<'a>(command: &'a mut Command, spark: &Path) -> &'a mut Command {
    in_spark(spark, command)
        .env("SPARK_SUBMIT_OPTS", archive_options(spark))
        .env("SPARK_LAUNCHER_OPTS", BRIEF.join(" "))
}

/// Undoes [`with_archive`], so that a test has the JVM options of most users.
pub fn without_archive(command: &mut Command) -> &mut Command {
    command
        .env_remove("SPARK_SUBMIT_OPTS")
        .env_remove("SPARK_LAUNCHER_OPTS")
}

/// Appends a command and its environment to one that runs it.
pub fn with_command<'a>(outer: &'a mut Command, command: &Command) -> &'a mut Command {
    outer.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer
}

/// Lets a command find the programs of an installed Spark first.
fn in_spark<'a>(spark: &Path, command: &'a mut Command) -> &'a mut Command {
    let bin = spark.join("venv/bin");
    let mut path = bin.clone().into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    command
        .env("PATH", path)
        .env("PYSPARK_PYTHON", bin.join("python"))
        .env_remove("SPARK_HOME")
}

/// `spark-submit` of an installed Spark, without unfuse.
pub fn spark_alone(spark: &Path) -> Command {
    let bin = spark.join("venv/bin");
    let mut command = Command::new(bin.join("spark-submit"));
    command
        .env("PYSPARK_PYTHON", bin.join("python"))
        .env_remove("SPARK_HOME")
        .args(QUIET);
    command
}

/// Options of `spark-submit` for jobs without a web page and with few log lines.
const QUIET: [&str; 4] = [
    "--conf",
    "spark.ui.enabled=false",
    "--conf",
    "spark.log.level=ERROR",
];

fn submit(command: &mut Command, spark: &Path, options: &[&str]) {
    command
        .arg("--")
        .arg(spark.join("venv/bin/spark-submit"))
        .args(QUIET)
        .args(options);
}

/// Lets a job run the queries of `programs/queries.py` for this number of rounds, on TPC-H data of scale factor 1.
pub fn queries<'a>(command: &'a mut Command, rounds: &str) -> &'a mut Command {
    queries_for(command, "1", "0").args(["0", rounds])
}

/// Lets a job run the queries of `programs/queries.py` for this number of seconds, at least once, on TPC-H data of a scale
/// factor.
pub fn queries_for<'a>(command: &'a mut Command, scale: &str, seconds: &str) -> &'a mut Command {
    command
        .arg(root().join("tests/programs/queries.py"))
        .arg(tpch(scale))
        .arg(seconds)
}

/// The single row of an SQL query over a local profile, as JSON. `DIR` in the query stands for the profile.
///
/// # Panics
/// If it has none.
pub fn ask(profile: &Path, sql: &str) -> Vec<Value> {
    let script = format!(
        "import duckdb, json\n\
         print(json.dumps(list(duckdb.sql(\"\"\"{}\"\"\").fetchone()), default=float))",
        sql.replace("DIR", &profile.display().to_string())
    );
    let python = spark("4.3").join("venv/bin/python");
    let output = run(Command::new(python).args(["-c", &script]));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The same for a row with one number.
///
/// # Panics
/// If it is none.
pub fn ask_number(profile: &Path, sql: &str) -> f64 {
    ask(profile, sql)[0].as_f64().expect("a number")
}
