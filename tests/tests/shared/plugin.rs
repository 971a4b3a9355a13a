//! Spark's plugin alone: a jar and `spark.plugins`, without a JVM flag and without files on nodes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use unfuse_tests::{
    agent, ask_number, brief_driver, jdk, plugin_jar, plugin_submit, queries, queries_for, root,
    run, samples, spark, spark_submit, top, with_command, without_archive,
};

use crate::bad_input::WITHOUT_PERF_EVENT;
use crate::spark::{
    check_executors, check_operators, check_owned, check_spark_4_in_threads, fused_stages, is_in,
};

const LOCAL: [&str; 4] = ["--master", "local[2]", "--driver-memory", "3g"];

fn stderr(command: &mut Command) -> String {
    String::from_utf8_lossy(&run(command).stderr).into_owned()
}

/// The profiler's lines in the output of a job.
pub fn ours(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| line.starts_with("unfuse:"))
        .collect()
}

/// Samples of operators and headings in the stages that scan lineitem, of the later half of the rounds: the first ones also
/// interpret and compile.
fn operators(profile: &Path) -> BTreeMap<String, u64> {
    let rows = top(profile, &[]);
    let stages = fused_stages(&rows);
    let stages = &stages[stages.len() / 2..];
    let mut operators = BTreeMap::new();
    for row in rows.iter().filter(|row| is_in(stages, row)) {
        let name = row["operator"].as_str().expect("a name");
        let kind = name.split(['(', '[']).next().expect("a word").trim();
        *operators.entry(kind.to_owned()).or_default() += row["samples"].as_u64().expect("a count");
    }
    operators
}

/// Checks that shares of operators with the plugin and with the flag differ no more than those of two runs by chance.
fn check_shares(plugin: &BTreeMap<String, u64>, flag: &BTreeMap<String, u64>) {
    let all = |of: &BTreeMap<String, u64>| of.values().sum::<u64>() as f64;
    let (all_plugin, all_flag) = (all(plugin), all(flag));
    assert!(
        all_plugin > 1000.0 && all_flag > 1000.0,
        "{all_plugin}, {all_flag}"
    );
    let count = |of: &BTreeMap<String, u64>, name| of.get(name).copied().unwrap_or(0) as f64;
    for name in plugin.keys().chain(flag.keys()) {
        let (p, q) = (
            count(plugin, name) / all_plugin,
            count(flag, name) / all_flag,
        );
        let both = (count(plugin, name) + count(flag, name)) / (all_plugin + all_flag);
        let deviation = (both * (1.0 - both) * (1.0 / all_plugin + 1.0 / all_flag)).sqrt();
        let tolerance = 3.0 * deviation + 0.02;
        assert!(
            (p - q).abs() < tolerance,
            "{name}: {p:.3} with the plugin, {q:.3} with the flag, at most {tolerance:.3} apart: {plugin:?}, {flag:?}"
        );
    }
}

fn check_local(mut command: Command, version: &str, profile: &Path, rounds: &str) {
    let text = stderr(queries(&mut command, rounds));
    assert_eq!(
        ours(&text),
        [format!("unfuse: profiling to {}", profile.display())]
    );
    check_operators(profile, &format!("{version} by the plugin"));
    let rows = top(profile, &[]);
    let unattributed = samples(&rows, |row| row["operator"] == "unattributed");
    let all = samples(&rows, |row| row["stage"].is_i64());
    assert!(
        unattributed * 100 <= all,
        "{unattributed} of {all} samples are unattributed"
    );
}

#[test]
fn spark_4_in_threads_is_profiled_by_the_flag_and_by_one_setting() {
    let dir = tempfile::tempdir().expect("a directory");
    let (profile, flag) = (dir.path().join("plugin"), dir.path().join("flag"));
    let mut command = plugin_submit("4.3", &profile, &LOCAL);
    without_archive(&mut command);
    check_local(command, "4.3", &profile, "4");
    check_spark_4_in_threads(&flag);
}

/// What C2 inlines differs between two JVMs, and shares of operators with it: those of the exchange between 3 and 7%, with
/// the plugin or without. C1 compiles the same code in every JVM.
#[test]
fn operators_have_the_same_shares_by_the_plugin_and_by_the_flag() {
    let dir = tempfile::tempdir().expect("a directory");
    let (profile, flag) = (dir.path().join("plugin"), dir.path().join("flag"));
    let jobs = [
        plugin_submit("4.3", &profile, &LOCAL),
        spark_submit(&spark("4.3"), &flag, &LOCAL),
    ];
    for mut command in jobs {
        command.env("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1");
        run(queries(&mut command, "2"));
    }
    check_shares(&operators(&profile), &operators(&flag));
}

#[test]
fn spark_3_5_is_profiled_by_one_setting() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let command = plugin_submit("3.5", &profile, &LOCAL);
    check_local(command, "3.5", &profile, "2");
}

#[test]
fn spark_3_3_on_jdk_11_is_profiled_by_the_flag_and_by_one_setting() {
    let dir = tempfile::tempdir().expect("a directory");
    let (profile, flag) = (dir.path().join("plugin"), dir.path().join("flag"));
    let java = jdk("11");
    let mut command = plugin_submit("3.3", &profile, &LOCAL);
    command.env("JAVA_HOME", &java);
    check_local(command, "3.3 on JDK 11", &profile, "2");
    let mut command = spark_submit(&spark("3.3"), &flag, &LOCAL);
    run(queries(command.env("JAVA_HOME", &java), "2"));
    check_operators(&flag, "3.3 on JDK 11 by the flag");
    // Names of interpreted methods need the layout of the JVM's structures.
    let sql = "select count(*) filter (f.method != '') / count(*) from (select unnest(frames) f from 'DIR/stacks/*.parquet') \
               where f.kind = 'interpreted'";
    let named = ask_number(&flag, sql);
    assert!(named > 0.99, "{named} of the interpreted frames have names");
}

#[test]
fn executors_load_the_plugin_themselves() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let mut command = plugin_submit("4.3", &profile, &["--master", "local-cluster[2,1,1536]"]);
    command
        .args(["--conf", "spark.executor.cores=1"])
        .args(["--conf", "spark.executor.memory=1g"])
        .args(["--conf", "spark.scheduler.minRegisteredResourcesRatio=1.0"])
        // Relative to the driver's working directory, for executors too.
        .args(["--conf", "spark.unfuse.dir=profile"])
        .current_dir(dir.path())
        .env("SPARK_LOCAL_IP", "127.0.0.1");
    run(queries(&mut command, "3"));
    check_executors(&profile, 3, "local-cluster");
    check_owned(&profile, 90, "local-cluster");
}

/// Runs a short job, which must succeed, and returns the profiler's lines.
fn brief(command: &mut Command) -> Vec<String> {
    let text = stderr(queries_for(command, "0.2", "0"));
    ours(&text).into_iter().map(str::to_owned).collect()
}

/// A job whose JVM ends soon.
fn brief_submit(profile: &Path, settings: &[&str]) -> Command {
    let mut command = plugin_submit("4.3", profile, &LOCAL);
    command.args(brief_driver());
    for setting in settings {
        command.args(["--conf", setting]);
    }
    command
}

#[test]
fn a_job_runs_without_what_the_plugin_needs() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let missing = format!("spark.unfuse.native.dir={}/missing", dir.path().display());
    for (setting, says) in [
        (missing.as_str(), "spark.unfuse.native.dir"),
        ("spark.unfuse.dir=/proc/nowhere", "/proc/nowhere"),
    ] {
        let lines = brief(&mut brief_submit(&profile, &[setting]));
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0].starts_with("unfuse: not profiling: ") && lines[0].contains(says),
            "{lines:?}"
        );
    }
    assert!(!profile.exists());
}

/// Where programs may not run, as on nodes whose /tmp is mounted so.
#[test]
fn a_directory_without_programs_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let (profile, mount) = (dir.path().join("profile"), dir.path().join("tmp"));
    fs::create_dir(&mount).expect("a directory");
    let setting = format!("spark.unfuse.native.dir={}", mount.display());
    let mut command = brief_submit(&profile, &[&setting]);
    queries_for(&mut command, "0.2", "0");
    let setup = format!(
        "mount -t tmpfs -o noexec none {}; exec \"$@\"",
        mount.display()
    );
    let mut outer = Command::new("unshare");
    outer
        .args(["--map-root-user", "--mount", "bash", "-e", "-c", &setup])
        .arg("bash");
    let text = stderr(with_command(&mut outer, &command));
    let lines = ours(&text);
    assert_eq!(lines.len(), 1, "{text}");
    let named = mount.display().to_string();
    assert!(
        lines[0].contains("not profiling") && lines[0].contains(&named),
        "{text}"
    );
}

#[test]
fn without_perf_event_there_are_tasks_and_no_samples() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let mut command = brief_submit(&profile, &[]);
    queries_for(&mut command, "0.2", "0");
    let mut outer = Command::new("python3");
    outer.args(["-c", WITHOUT_PERF_EVENT]);
    let text = stderr(with_command(&mut outer, &command));
    let lines = ours(&text);
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].contains("no samples"), "{text}");
    let tasks = ask_number(&profile, "select count(*) from 'DIR/tasks/*.parquet'");
    assert!(tasks > 3.0, "{tasks} tasks");
    assert!(!profile.join("samples").exists(), "there are samples");
}

/// As in a pod with the container runtime's own seccomp profile.
#[test]
fn without_perf_event_timers_take_samples_by_frame_pointers() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let mut command = plugin_submit("4.3", &profile, &LOCAL);
    command.args(["--driver-java-options", "-XX:+PreserveFramePointer"]);
    queries(&mut command, "3");
    let mut outer = Command::new("python3");
    outer.args(["-c", WITHOUT_PERF_EVENT]);
    let text = stderr(with_command(&mut outer, &command));
    let lines = ours(&text);
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].contains("CPU timers inside the JVM"), "{text}");
    // CPU timers do not read the stack where a function keeps no frame pointer, so more samples have no callers than with
    // perf_event; with the flag it is the same.
    check_owned(&profile, 80, "the plugin with timers");
}

#[test]
fn what_needs_the_flag_is_said() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let settings = [
        "spark.unfuse.regions=exact",
        "spark.unfuse.colour=red",
        // It describes the job for `unfuse size`.
        "spark.unfuse.iterations=2",
    ];
    let lines = brief(&mut brief_submit(&profile, &settings));
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].contains("unknown option \"colour\""), "{lines:?}");
    assert!(
        lines[1].contains("option regions=exact needs -agentpath"),
        "{lines:?}"
    );
    assert!(!top(&profile, &[]).is_empty());
}

#[test]
fn the_flag_counts_where_both_are_given() {
    let dir = tempfile::tempdir().expect("a directory");
    let (by_plugin, by_flag) = (dir.path().join("plugin"), dir.path().join("flag"));
    let flag = format!("-agentpath:{}=dir={}", agent().display(), by_flag.display());
    let mut command = plugin_submit("4.3", &by_plugin, &LOCAL);
    let lines = brief(command.args(["--driver-java-options", &flag]));
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("this JVM has -agentpath"), "{lines:?}");
    assert!(!by_plugin.exists() && !top(&by_flag, &[]).is_empty());
}

#[test]
fn of_two_versions_one_is_used_and_the_other_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let (profile, parts) = (dir.path().join("profile"), dir.path().join("parts"));
    fs::create_dir(&parts).expect("a directory");
    for name in ["unfuse", "libunfuse.so"] {
        fs::write(parts.join(name), "of another version").expect("a file");
    }
    let other = dir.path().join("unfuse-spark-0.0.1.jar");
    run(Command::new(root().join("dist/plugin_jar.sh"))
        .arg(&other)
        .arg(format!("linux-{}", std::env::consts::ARCH))
        .arg(&parts));
    let ours = plugin_jar();
    let mut command = brief_submit(&profile, &[]);
    let jars = format!("{},{}", ours.display(), other.display());
    let lines = brief(command.args(["--jars", &jars]));
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[0].contains("several versions of the plugin")
            && lines[0].contains("not ")
            && lines[0].contains("unfuse-spark-0.0.1.jar; remove one"),
        "{lines:?}"
    );
    assert!(!top(&profile, &[]).is_empty());
}
