//! Spark under the constraints of a Kubernetes pod: a user id without a capability, a read-only root, a CPU limit, and
//! perf_event_open allowed or denied. The plugin is all of unfuse that is there.

use std::fs;
use std::path::Path;
use std::process::Command;

use unfuse_tests::{
    Container, executor_options, plugin_submit, pyspark, queries, run, spark, with_command,
};

use crate::bad_input::WITHOUT_PERF_EVENT;
use crate::spark::{check_executors, check_owned};

/// As root: the root is read-only but for the directory of the test, the user has an entry as Spark's images make one, and
/// the Worker of `local-cluster` can write its files. Then the command runs as user 10001, without capabilities.
const POD: &str = "mount --make-rprivate /
mount --bind \"$POD\" \"$POD\"
cp /etc/passwd \"$POD/passwd\"; echo 'spark:x:10001:10001::/nonexistent:/bin/false' >> \"$POD/passwd\"
mount --bind \"$POD/passwd\" /etc/passwd
mkdir -p \"$POD/work\" \"$SPARK_HOME/work\"; mount --bind \"$POD/work\" \"$SPARK_HOME/work\"
mount -o remount,bind,ro /
exec unshare --user --map-user=10001 --map-group=10001 setpriv --no-new-privs \"$@\"";

/// Runs queries in a pod, with an executor of its own; returns what it prints.
fn in_a_pod(dir: &Path, settings: &[&str], wrap: &[&str]) -> String {
    let spark = spark("4.3");
    let profile = dir.join("profile");
    let mut command = plugin_submit("4.3", &profile, &["--master", "local-cluster[1,1,1536]"]);
    command
        .args(["--conf", "spark.executor.memory=1g"])
        .args(["--conf", "spark.scheduler.minRegisteredResourcesRatio=1.0"])
        .args(settings)
        .env("SPARK_LOCAL_IP", "127.0.0.1");
    queries(&mut command, "3");
    fs::create_dir(dir.join("tmp")).expect("a directory");
    let mut pod = Command::new("unshare");
    pod.args(["--mount", "bash", "-e", "-c", POD, "bash"])
        .args(wrap)
        .env("POD", dir)
        .env("TMPDIR", dir.join("tmp"))
        .env("HOME", dir)
        .env("SPARK_LOCAL_DIRS", dir.join("tmp"))
        .env(
            "JDK_JAVA_OPTIONS",
            format!("-Djava.io.tmpdir={}", dir.join("tmp").display()),
        );
    with_command(&mut pod, &command).env("SPARK_HOME", pyspark(&spark));
    let container = Container::with_cpus(1.5);
    let output = run(container.command(&pod).current_dir(dir));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn check(profile: &Path, least: u64) {
    check_owned(profile, least, "a pod");
    check_executors(profile, 2, "a pod");
}

#[test]
fn a_pod_that_allows_perf_event_has_samples() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = in_a_pod(dir.path(), &[], &[]);
    assert!(text.contains("unfuse: profiling to "), "{text}");
    check(&dir.path().join("profile"), 90);
}

#[test]
fn a_pod_that_denies_perf_event_has_samples_by_timers() {
    let dir = tempfile::tempdir().expect("a directory");
    let pointers = executor_options(&spark("4.3"), "-XX:+PreserveFramePointer");
    let settings = [
        "--driver-java-options",
        "-XX:+PreserveFramePointer",
        "--conf",
        &pointers,
    ];
    let text = in_a_pod(
        dir.path(),
        &settings,
        &["python3", "-c", WITHOUT_PERF_EVENT],
    );
    assert!(text.contains("CPU timers inside the JVM"), "{text}");
    // By CPU timers, as with the flag.
    check(&dir.path().join("profile"), 80);
}
