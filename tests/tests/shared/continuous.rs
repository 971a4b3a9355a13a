//! Profiles of jobs that never end: limits of size, and profiles of a part of the tasks.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use unfuse_tests::{ask, compile, jdks, queries, run, spark, spark_submit_by, top, unfuse};

use crate::spark::{fused_stages, is_in};

/// Size of the tables to which limits apply, bytes.
fn size(profile: &Path) -> u64 {
    let tables = fs::read_dir(profile).into_iter().flatten().flatten();
    tables
        .filter(|table| table.file_name() != "source_index" && table.file_name() != "sources")
        .flat_map(|table| fs::read_dir(table.path()).into_iter().flatten().flatten())
        .filter_map(|segment| Some(segment.metadata().ok()?.len()))
        .sum()
}

/// The oldest generation of samples. Names of segments are `…-gGENERATION-NUMBER.parquet`.
fn oldest_generation(profile: &Path) -> Option<u32> {
    let segments = fs::read_dir(profile.join("samples")).into_iter().flatten();
    let generation = |name: &str| name.split("-g").nth(1)?.get(..5)?.parse().ok();
    segments
        .flatten()
        .filter_map(|segment| generation(segment.file_name().to_str()?))
        .min()
}

#[test]
fn a_profile_stays_within_its_size_and_every_sample_has_its_stack() {
    let home = jdks().remove(0);
    let dir = tempfile::tempdir().expect("a directory");
    compile(&home, "Churn.java", dir.path());
    let profile = dir.path().join("profile");
    let mut command = unfuse();
    command
        .args(["run", "--rate", "1000", "--keep", "1MB", "--out"])
        .arg(&profile)
        .arg("--")
        .arg(home.join("bin/java"))
        .arg("-cp")
        .arg(dir.path())
        .args(["Churn", "180000"]);
    let stop = dir.path().join("stop");
    command.arg(&stop);
    let watched = profile.clone();
    let ended = AtomicBool::new(false);
    let most = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut most = 0;
            while !ended.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(500));
                most = most.max(size(&watched));
                // By then, the first two generations are deleted.
                if oldest_generation(&watched) >= Some(2) {
                    fs::write(&stop, "").expect("a file");
                }
            }
            most
        });
        run(&mut command);
        ended.store(true, Ordering::Relaxed);
        watch.join().expect("a size")
    });
    // The slack is what a writer writes between two checks: five seconds with 1000 samples each.
    assert!(most < (1 << 20) + (300 << 10), "{most} bytes at most");
    let methods = top(&profile, &["--by", "method"]);
    assert!(!methods.is_empty());
    let lost = methods.iter().find(|row| row["operator"] == "[no frame]");
    assert!(lost.is_none(), "samples without a stack: {lost:?}");
    assert!(
        oldest_generation(&profile) >= Some(2),
        "two generations are gone"
    );
    let generations = |table: &str| {
        let segments = fs::read_dir(profile.join(table)).expect("segments");
        let mut names: Vec<String> = segments
            .flatten()
            .filter_map(|segment| segment.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    };
    assert!(
        generations("samples")[0].contains("-g"),
        "{:?}",
        generations("samples")
    );
    assert_eq!(generations("processes").len(), 1, "only the last word");
}

/// Asserts that `unfuse run` refuses these options with this message and runs nothing.
fn check_refused(options: &[&str], why: &str) {
    let output = unfuse()
        .arg("run")
        .args(options)
        .args(["--", "java", "-version"])
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains(why), "{said}");
}

#[test]
fn limits_that_are_none_are_refused() {
    for (flag, value) in [("--keep", "2"), ("--keep", "1KB"), ("--keep-for", "soon")] {
        check_refused(&[flag, value], "is expected");
    }
}

#[test]
fn limits_of_a_profile_on_a_file_system_of_hadoop_are_refused() {
    for (flag, value) in [("--keep", "1MB"), ("--keep-for", "1h")] {
        check_refused(
            &[flag, value, "--out", "hdfs://nowhere/p"],
            "need a local directory",
        );
    }
}

/// Profiles two queries with many tasks, with these options of the agent.
fn many_tasks(profile: &Path, agent_options: &str) {
    let how = ["--rate", "1000", "--agent-options", agent_options];
    let many = "spark.sql.files.maxPartitionBytes=4m";
    let options = ["--master", "local[2]", "--conf", many];
    let mut command = spark_submit_by(&how, &spark("4.3"), profile, &options);
    run(queries(&mut command, "4"));
}

/// Operators with more than 2% of all operators' CPU time in the stages that scan lineitem, and their shares, of the
/// later half of the rounds. In the first rounds, shares depend on when the compilers have a CPU.
fn shares(profile: &Path) -> Vec<(String, f64)> {
    let rows = top(profile, &["--by", "operator"]);
    let stages = fused_stages(&rows);
    let stages = &stages[stages.len() / 2..];
    let text = |row: &Value| row["operator"].as_str().expect("a name").to_owned();
    let share = |row: &Value| row["share"].as_f64().expect("a share");
    let of_tasks = rows
        .iter()
        .filter(|row| is_in(stages, row) && row["node_id"].is_i64());
    let mut sums = std::collections::BTreeMap::new();
    for row in of_tasks {
        *sums.entry(text(row)).or_insert(0.0) += share(row);
    }
    let all: f64 = sums.values().sum();
    sums.into_iter()
        .map(|(operator, share)| (operator, share / all))
        .filter(|(_, share)| *share > 0.02)
        .collect()
}

/// Tasks that are long enough to have samples.
#[derive(Debug)]
struct TaskCounts {
    tasks: f64,
    /// Those with samples.
    profiled: f64,
    /// CPU time of these, s, by Spark and by their samples.
    spark_s: f64,
    sampled_s: f64,
}

impl TaskCounts {
    fn read(profile: &Path) -> Self {
        let row = ask(
            profile,
            "with sampled as (select task, sum(weight_ns) as ns from 'DIR/samples/*.parquet'
                              where kind = 'cpu' and task is not null group by task),
                  long as (select task, cpu_ns + deserialize_cpu_ns as ns from 'DIR/tasks/*.parquet'
                           where cpu_ns > 10000000)
             select count(*), count(sampled.ns), sum(long.ns) filter (sampled.ns is not null) / 1e9,
                    sum(sampled.ns) / 1e9 from long left join sampled using (task)",
        );
        let number = |column: usize| row[column].as_f64().expect("a number");
        Self {
            tasks: number(0),
            profiled: number(1),
            spark_s: number(2),
            sampled_s: number(3),
        }
    }
}

#[test]
fn a_part_of_the_tasks_stands_for_all_of_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let (whole, part) = (dir.path().join("whole"), dir.path().join("part"));
    many_tasks(&whole, "tasks=1");
    many_tasks(&part, "tasks=1/4");

    let (all, some) = (TaskCounts::read(&whole), TaskCounts::read(&part));
    println!("{all:?}, {some:?}");
    assert!(some.tasks > 60.0, "{some:?}: too few to judge");
    assert_eq!(all.profiled, all.tasks);
    // Four standard deviations.
    let allowed = 4.0 * (some.tasks * 0.25 * 0.75).sqrt();
    assert!(
        (some.profiled - some.tasks / 4.0).abs() < allowed,
        "{some:?}: a quarter is {allowed} away"
    );
    // Spark's count leaves out a small part of every task.
    let ratio = some.sampled_s / some.spark_s / (all.sampled_s / all.spark_s);
    assert!((3.8..4.2).contains(&ratio), "each stands for {ratio}");

    let (whole, part) = (shares(&whole), shares(&part));
    for (operator, share) in whole {
        let other = part.iter().find(|(name, _)| *name == operator);
        let other = other.map_or(0.0, |(_, share)| *share);
        // Compilation differs in each JVM, and changes shares more than the choice of tasks does.
        assert!(
            (other - share).abs() < 0.15,
            "{operator}: {share} of all, {other} of the part"
        );
    }
}
