//! What the end-to-end tests share. They use the front door only: `unfuse`, built in release mode.

mod churn;
mod cluster;
mod consumers;
mod hdfs;
mod processes;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

pub use churn::{Churned, Compared};
pub use cluster::{Cluster, executors, free_port, pyspark, wait_for};
pub use consumers::Consumers;
pub use hdfs::Hdfs;
pub use processes::{Mark, signal, thread};

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

/// Runs a command and wants it to succeed.
///
/// # Panics
/// With its output if it does not.
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

/// Whether a row of `unfuse top` is of something with this text in its name.
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

/// Both hot lines of `Hot.java`, two to one, are nearly all there is, in more than `least` samples.
pub fn check_hot(profile: &Path, least: u64, what: &str) {
    let rows = top(profile, &["--by", "line"]);
    let of = |method: &str| {
        let line = marked("Hot.java", &format!("HOT {method}"));
        samples(&rows, |row| {
            is(row, &format!("Hot.{method}")) && is(row, &line)
        })
    };
    // The program's own thread; others do next to nothing.
    let (sum, mix, all) = (of("sum"), of("mix"), samples(&rows, |_| true));
    assert!(all > least, "{what}: only {all} samples");
    assert!(
        (sum + mix) as f64 > 0.85 * all as f64,
        "{what}: {sum} + {mix} of {all} in the hot lines"
    );
    let ratio = sum as f64 / mix as f64;
    assert!(
        (1.5..2.7).contains(&ratio),
        "{what}: sum is {ratio} times mix, truly about 2"
    );
}

/// Every JDK from 17 on that this machine has: the one on the PATH and those in /usr/lib/jvm.
///
/// # Panics
/// If there is none.
pub fn jdks() -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = std::fs::read_dir("/usr/lib/jvm")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| std::fs::canonicalize(entry.path()).ok())
        .filter(|home| home.join("bin/javac").exists() && release(home) >= 17)
        .collect();
    homes.sort();
    homes.dedup();
    assert!(!homes.is_empty(), "no JDK 17 or newer in /usr/lib/jvm");
    homes
}

fn release(home: &Path) -> u32 {
    let output = Command::new(home.join("bin/java")).arg("-version").output();
    let text = output
        .map(|o| String::from_utf8_lossy(&o.stderr).into_owned())
        .unwrap_or_default();
    let version = text.split('"').nth(1).unwrap_or_default().to_owned();
    version
        .split('.')
        .next()
        .and_then(|major| major.parse().ok())
        .unwrap_or(0)
}

/// Compiles a program of `tests/programs` into `into`; it may use those that are there already.
pub fn compile(home: &Path, program: &str, into: &Path) {
    let source = root().join("tests/programs").join(program);
    run(Command::new(home.join("bin/javac"))
        .arg("-cp")
        .arg(into)
        .arg("-d")
        .arg(into)
        .arg(source));
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

/// TPC-H data at scale factor 1.
pub fn tpch() -> PathBuf {
    let output = run(unfuse().args(["setup", "--tpch", "1"]));
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

/// `unfuse skew … -- spark-submit` in an installed Spark: records are followed by a job there.
pub fn skew_on_spark(spark: &Path, profile: &Path, how: &[&str]) -> Command {
    let mut command = unfuse_beside(spark);
    command.arg("skew").arg(profile).args(how);
    submit(&mut command, spark, &["--master", "local[2]"]);
    command
}

/// `unfuse` where programs of an installed Spark are found first.
fn unfuse_beside(spark: &Path) -> Command {
    let bin = spark.join("venv/bin");
    let mut path = bin.clone().into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut command = unfuse();
    command
        .env("PATH", path)
        .env("PYSPARK_PYTHON", bin.join("python"))
        .env_remove("SPARK_HOME");
    command
}

fn submit(command: &mut Command, spark: &Path, options: &[&str]) {
    command
        .arg("--")
        .arg(spark.join("venv/bin/spark-submit"))
        .args([
            "--conf",
            "spark.ui.enabled=false",
            "--conf",
            "spark.log.level=ERROR",
        ])
        .args(options);
}

/// Lets a job run the queries of `programs/queries.py` for so many seconds, at least once.
pub fn queries<'a>(command: &'a mut Command, seconds: &str) -> &'a mut Command {
    command
        .arg(root().join("tests/programs/queries.py"))
        .arg(tpch())
        .arg(seconds)
}

/// The single row of an SQL query over a local profile, which it calls `DIR`, as JSON.
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

/// The same where it is one number.
///
/// # Panics
/// If it is none.
pub fn ask_number(profile: &Path, sql: &str) -> f64 {
    ask(profile, sql)[0].as_f64().expect("a number")
}

/// `~/.cache/unfuse`, as `unfuse setup` has it.
fn cache() -> PathBuf {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let base = base.or_else(home).expect("HOME or XDG_CACHE_HOME is set");
    base.join("unfuse")
}

/// What tells these files from others, for the name of what they are installed in.
fn stamp(files: &[impl AsRef<Path>]) -> u32 {
    let bytes = files
        .iter()
        .flat_map(|file| std::fs::read(file).expect("the lock files are there"));
    bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    }) as u32
}
