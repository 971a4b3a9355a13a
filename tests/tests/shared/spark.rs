//! Real Spark: both versions, in threads and in processes.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use unfuse_tests::{
    ask_number, brief_driver, queries, queries_for, run, samples, spark, spark_submit,
    spark_submit_by, top, unfuse, without_archive,
};

/// Options of a job that runs in threads.
const LOCAL: [&str; 4] = ["--master", "local[2]", "--driver-memory", "3g"];

/// Operators of the canonical query's fused stage that do work.
const FUSED: [&str; 5] = [
    "HashAggregate",
    "BroadcastHashJoin",
    "Filter",
    "ColumnarToRow",
    "Scan parquet",
];

/// Runs a job with options of `unfuse run`, and others of `spark-submit`.
fn profile_queries(how: &[&str], profile: &Path, options: &[&str]) {
    let options = [&LOCAL[..], options].concat();
    let mut command = spark_submit_by(how, &spark("4.3"), profile, &options);
    run_queries(queries(&mut command, "2"));
}

fn run_queries(command: &mut Command) {
    let output = run(command);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.starts_with("rounds "),
        "the job's output comes through: {text}"
    );
}

/// Classes that the patches name must be there in the oldest Spark: a job that runs without unfuse must run with it.
#[test]
fn the_oldest_spark_runs_and_has_operators() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let mut command = spark_submit(&spark("3.3"), &profile, &LOCAL);
    run(queries_for(&mut command, "0.2", "6"));
    let rows = top(&profile, &["--limit", "1000"]);
    for operator in FUSED {
        let has = |row: &Value| {
            row["operator"]
                .as_str()
                .is_some_and(|found| found.contains(operator))
        };
        assert!(samples(&rows, has) > 0, "{operator}: {rows:#?}");
    }
    let open = ask_number(
        &profile,
        "SELECT count(*) FROM (SELECT execution FROM 'DIR/executions/*.parquet' GROUP BY 1 HAVING max(ended_ms) IS NULL)",
    );
    assert_eq!(open, 0.0, "each query has an end");
}

/// Whether a row belongs to one of these stages.
pub fn is_in(stages: &[i64], row: &Value) -> bool {
    let stage = row["stage"].as_i64();
    stage.is_some_and(|stage| stages.contains(&stage))
}

/// The stages that scan lineitem: those with more than 2% of all samples.
pub fn fused_stages(rows: &[Value]) -> Vec<i64> {
    let stages: BTreeSet<i64> = rows
        .iter()
        .filter_map(|row| row["stage"].as_i64())
        .collect();
    let of = |stage: i64| samples(rows, |row| row["stage"].as_i64() == Some(stage));
    let all = samples(rows, |_| true);
    stages
        .into_iter()
        .filter(|stage| of(*stage) * 50 > all)
        .collect()
}

/// At least so many per cent of the samples in the stages that scan lineitem are on operators.
pub fn check_owned(profile: &Path, least: u64, what: &str) {
    let rows = top(profile, &[]);
    let stages = fused_stages(&rows);
    let all = samples(&rows, |row| is_in(&stages, row));
    let owned = samples(&rows, |row| is_in(&stages, row) && row["node_id"].is_i64());
    assert!(
        all > 100 && owned * 100 >= least * all,
        "{what}: {owned} of {all} samples carry an operator"
    );
}

/// So many JVMs of Spark, driver included, are in the profile. Before Spark has started, a process has no executor id.
pub fn check_executors(profile: &Path, count: u32, what: &str) {
    let executors =
        "select count(distinct executor) from 'DIR/processes/*.parquet' where executor != ''";
    assert_eq!(ask_number(profile, executors), f64::from(count), "{what}");
}

pub fn check_operators(profile: &Path, what: &str) {
    let rows = top(profile, &[]);
    let stages = fused_stages(&rows);
    assert!(!stages.is_empty(), "{what}: no stage stands out");
    let inside: Vec<Value> = rows
        .iter()
        .filter(|row| {
            row["stage"]
                .as_i64()
                .is_some_and(|stage| stages.contains(&stage))
        })
        .cloned()
        .collect();
    let all = samples(&inside, |_| true);
    let owned = samples(&inside, |row| row["node_id"].is_i64());
    assert!(
        owned as f64 >= 0.95 * all as f64,
        "{what}: {owned} of {all} samples carry an operator"
    );
    for operator in FUSED {
        let found = samples(&inside, |row| {
            row["operator"]
                .as_str()
                .is_some_and(|name| name.starts_with(operator))
        });
        assert!(found > 0, "{what}: {operator} has no sample");
    }
    assert!(
        rows.iter()
            .any(|row| row["operator"] == "unattributed" && row["heading"] == true),
        "{what}: unattributed is said even if it is nothing"
    );
}

/// Checks the sampled CPU time of tasks against both of Spark's counts. `executorCpuTime` leaves out that tasks are
/// deserialized and report their results. `executorDeserializeCpuTime` adds the first of the two.
fn check_cpu_time(profile: &Path, what: &str) {
    let spark = |columns: &str| {
        let sql = format!("select sum({columns}) / 1e9 from 'DIR/tasks/*.parquet'");
        ask_number(profile, &sql)
    };
    let (run, with) = (spark("cpu_ns"), spark("cpu_ns + deserialize_cpu_ns"));
    let rows: Vec<Value> = top(profile, &[])
        .into_iter()
        .filter(|row| row["stage"].is_i64())
        .collect();
    let seconds = |wanted: &dyn Fn(&str) -> bool| -> f64 {
        rows.iter()
            .filter(|row| row["operator"].as_str().is_some_and(wanted))
            .filter_map(|row| row["cpu_seconds"].as_f64())
            .sum()
    };
    let sampled = seconds(&|_| true);
    let in_run =
        seconds(&|operator| !["task: deserialization", "task: reporting"].contains(&operator));
    let found = format!(
        "{what}: {sampled} s sampled, {in_run} s of it while tasks ran; Spark says {run} s, {with} s with deserialization"
    );
    assert!((0.97..1.05).contains(&(sampled / with)), "{found}");
    assert!((0.97..1.05).contains(&(in_run / run)), "{found}");
}

/// Profiles a job in threads, without an archive of Spark's classes, as users run it.
fn check_threads(version: &str, rounds: &str, profile: &Path) {
    let mut command = spark_submit(&spark(version), profile, &LOCAL);
    run_queries(queries(without_archive(&mut command), rounds));
    let what = format!("{version} local");
    check_operators(profile, &what);
    check_cpu_time(profile, &what);
}

/// Profiles four rounds on Spark 4 by the flag, and checks what readers make of them.
pub fn check_spark_4_in_threads(profile: &Path) {
    check_threads("4.3", "4", profile);

    let svg = profile.with_extension("svg");
    run(unfuse().arg("flame").arg(profile).arg("-o").arg(&svg));
    let svg = std::fs::read_to_string(svg).expect("the flame graph");
    assert!(
        svg.contains("HashAggregate(keys=["),
        "operators have their real names"
    );

    let source = run(unfuse().arg("source").arg(profile)).stdout;
    let source = String::from_utf8_lossy(&source);
    assert!(
        source.contains("GeneratedIteratorForCodegenStage"),
        "{source}"
    );
    assert!(
        source
            .lines()
            .any(|line| line.contains("&lt;HashAggregate") || line.contains("<HashAggregate"))
    );

    let folded = run(unfuse()
        .arg("export")
        .arg(profile)
        .args(["--format", "folded"]))
    .stdout;
    let folded = String::from_utf8_lossy(&folded);
    assert!(folded.lines().all(|line| {
        line.rsplit_once(' ')
            .is_some_and(|(_, n)| n.parse::<u64>().is_ok())
    }));
    assert!(folded.contains(".java@L"), "frames have lines");
}

#[test]
fn spark_3_5_in_threads() {
    let dir = tempfile::tempdir().expect("a directory");
    check_threads("3.5", "4", &dir.path().join("profile"));
}

#[test]
fn spark_4_in_executor_processes() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let options = [
        "--master",
        "local-cluster[2,1,1536]",
        "--conf",
        "spark.executor.memory=1536m",
    ];
    let mut command = spark_submit(&spark("4.3"), &profile, &options);
    run(queries(without_archive(&mut command), "4"));
    let rows = top(&profile, &[]);
    let stages = fused_stages(&rows);
    let inside = |row: &Value| is_in(&stages, row);
    // In the first rounds, each executor spends seconds on loading the classes of its tasks and compiling the generated
    // code. Later, it may still run a stage for the first time.
    let mut executions: Vec<i64> = rows
        .iter()
        .filter_map(|row| row["query"].as_i64())
        .collect();
    executions.sort_unstable();
    executions.dedup();
    let cold = executions[4.min(executions.len() - 1)];
    let check = |what: &str, wanted: &dyn Fn(i64) -> bool, least: f64| {
        let of = |row: &Value| inside(row) && row["query"].as_i64().is_some_and(wanted);
        let all = samples(&rows, of);
        let owned = samples(&rows, |row| of(row) && row["node_id"].is_i64());
        let unattributed = samples(&rows, |row| of(row) && row["operator"] == "unattributed");
        let rest: Vec<&Value> = rows
            .iter()
            .filter(|row| of(row) && row["heading"] == true)
            .collect();
        assert!(all > 100, "{what}: only {all} samples");
        assert!(
            owned as f64 >= least * all as f64,
            "{what}: {owned} of {all} samples carry an operator, {rest:?}"
        );
        assert!(
            unattributed * 50 <= all,
            "{what}: {unattributed} of {all} samples are unattributed"
        );
    };
    check("cold", &|query| query < cold, 0.0);
    check("warm", &|query| query >= cold, 0.95);
}

/// The agent changes generated classes when they are loaded. The JVM must not print the agent's compiler commands.
#[test]
fn exact_regions_have_operators_too() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let how = ["--agent-options", "regions=exact"];
    profile_queries(&how, &profile, &[]);
    check_operators(&profile, "regions=exact");
}

/// Spark 4's second compiler of generated code.
#[test]
fn the_jdk_compiler_has_operators_too() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let options = ["--conf", "spark.sql.codegen.compiler=jdk"];
    profile_queries(&[], &profile, &options);
    check_operators(&profile, "JDK compiler");
}

#[test]
fn the_jobs_exit_code_comes_through() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let mut command = spark_submit(&spark("4.3"), &profile, &["--master", "local[2]"]);
    queries_for(command.args(brief_driver()), "0.2", "0").arg("7");
    let status = command.output().expect("it runs").status;
    assert_eq!(status.code(), Some(7));
    assert!(
        !top(&profile, &[]).is_empty(),
        "the profile of a failed job is there"
    );
}
