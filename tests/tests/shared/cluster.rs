//! Spark on a standalone cluster of real processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use unfuse_format::{ProfileDir, SampleRow};
use unfuse_tests::{
    Cluster, Hdfs, S3, ask, ask_number, executors, is, pyspark, queries, queries_for, run, samples,
    signal, spark, top, unfuse, wait_for,
};

use crate::records::a_spark_job_follows_records_of_a_profile_on_hdfs;

/// Operators that must have samples.
const FUSED: [&str; 3] = ["HashAggregate", "BroadcastHashJoin", "Scan parquet"];

/// Number of executors with samples of tasks; CPU time of finished tasks, s, by samples and by Spark.
fn counts(profile: &Path) -> (u64, f64, f64) {
    let row = ask(
        profile,
        "with done as (select task, cpu_ns + deserialize_cpu_ns as ns from 'DIR/tasks/*.parquet'
                       where status = 'SUCCESS')
         select (select count(distinct executor) from 'DIR/samples/*.parquet' where task is not null),
                (select sum(count) / 200 from 'DIR/samples/*.parquet'
                 where kind = 'cpu' and task in (select task from done)),
                (select sum(ns) / 1e9 from done)",
    );
    (
        row[0].as_u64().expect("a count"),
        row[1].as_f64().expect("seconds"),
        row[2].as_f64().expect("seconds"),
    )
}

fn check(profile: &Path, least_executors: u64, tolerance: f64) {
    let (executors, sampled, spark) = counts(profile);
    println!("{executors} executors, {sampled} s sampled, Spark says {spark} s");
    assert!(executors >= least_executors, "{executors} executors");
    assert!(
        (sampled / spark - 1.0).abs() < tolerance,
        "{sampled} s sampled, Spark says {spark} s"
    );
    let rows = top(profile, &[]);
    for operator in FUSED {
        assert!(
            samples(&rows, |row| is(row, operator)) > 0,
            "{operator} has no sample"
        );
    }
    let output = run(unfuse().arg("top").arg(profile));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "",
        "nothing is damaged"
    );
    assert!(!has_unfinished(profile));
}

/// Whether the profile does not have the end of a JVM.
fn has_unfinished(profile: &Path) -> bool {
    let output = run(unfuse().arg("top").arg(profile));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{text}");
    text.contains("did not finish")
}

/// Checks that few samples are left in spools: those that JVMs took after the end of their plugin.
fn assert_little_is_left(spools: &Path, profile: &Path) {
    let spools = fs::read_dir(spools).expect("spools").flatten();
    let left = spools.map(|spool| spool.path().join("samples"));
    let left: f64 = left
        .filter(|samples| {
            samples
                .read_dir()
                .is_ok_and(|mut files| files.next().is_some())
        })
        .map(|samples| ask_number(&samples, "select sum(count) from 'DIR/*.parquet'"))
        .sum();
    let copied = ask_number(profile, "select sum(count) from 'DIR/samples/*.parquet'");
    println!("{left} samples left in spools, {copied} copied");
    assert!(left < 0.02 * copied, "{left} samples left, {copied} copied");
}

/// Whether samples of tasks in this process have been copied. Tests call it often, so it starts no program.
fn has_task_samples(profile: &Path, pid: i32) -> bool {
    let samples = ProfileDir::open(profile).and_then(|dir| dir.read::<SampleRow>());
    samples.is_ok_and(|samples| {
        let mut rows = samples.rows.iter();
        rows.any(|row| i64::from(row.pid) == i64::from(pid) && row.task.is_some())
    })
}

fn uri(path: &Path) -> PathBuf {
    PathBuf::from(format!("file://{}", path.display()))
}

/// What `unfuse top` says of a profile by its URI. The mirror goes to a cache directory of this test, one for each scheme.
fn read_far(
    profile: &Path,
    dir: &Path,
    client: impl for<'a> Fn(&'a mut Command) -> &'a mut Command,
) -> Vec<u8> {
    let scheme = profile.to_string_lossy();
    let scheme = scheme.split(':').next().unwrap_or_default().to_owned();
    let mut command = unfuse();
    client(&mut command)
        .env("XDG_CACHE_HOME", dir.join(format!("cache-{scheme}")))
        .env("SPARK_HOME", pyspark(&spark("4.3")))
        .args(["top", "--json"])
        .arg(profile);
    run(&mut command).stdout
}

/// The mirror of the profile of a scheme that was read far.
fn mirror_of(dir: &Path, scheme: &str) -> PathBuf {
    let mirrors = dir.join(format!("cache-{scheme}/unfuse/remote"));
    let mirrors = fs::read_dir(mirrors).expect("a mirror");
    let mut mirrors = mirrors.flatten().map(|mirror| mirror.path());
    let mirror = mirrors.find(|mirror| !mirror.ends_with("conf"));
    mirror.expect("a mirror")
}

/// One cluster for all cases, because starting one takes as long as a job.
#[test]
fn profiles_of_a_cluster_are_whole_wherever_they_go() {
    let dir = tempfile::tempdir().expect("a directory");
    let newest = spark("4.3");
    let cluster = Cluster::start(&newest, 2, dir.path());
    println!("segments are copied to a URI although an executor is killed");
    to_a_uri_although_an_executor_is_killed(&cluster, dir.path());
    println!("executors of two workers share a directory");
    to_a_shared_directory(&cluster, dir.path());
    println!("a profile on HDFS is written and read");
    let hdfs = Hdfs::start(&newest, "127.0.0.1", dir.path());
    to_hdfs(&cluster, &hdfs, dir.path());
    println!("a Spark job follows records of a profile on HDFS");
    a_spark_job_follows_records_of_a_profile_on_hdfs(&hdfs, dir.path());
    println!("a profile in an object store is written and read");
    to_s3(&cluster, dir.path());
}

fn to_a_shared_directory(cluster: &Cluster, dir: &Path) {
    let profile = dir.join("directory");
    run(queries(&mut cluster.submit(&profile, 2, &[]), "1"));
    check(&profile, 2, 0.03);
}

fn to_a_uri_although_an_executor_is_killed(cluster: &Cluster, dir: &Path) {
    let (profile, stop) = (dir.join("uri"), dir.join("stop"));
    let mut command = cluster.submit(&uri(&profile), 2, &[]);
    let job = queries_for(&mut command, "1", "3600")
        .env("UNFUSE_TEST_STOP", &stop)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let of_ours = profile.display().to_string();
    wait_for("two executors", || executors(&of_ours).len() == 2);
    let before = executors(&of_ours);
    let victim = before[0];
    wait_for("samples of its tasks", || {
        has_task_samples(&profile, victim)
    });
    signal(victim, "KILL");
    wait_for("samples of tasks of another", || {
        let now = executors(&of_ours).into_iter();
        let mut others = now.filter(|pid| !before.contains(pid));
        others.any(|pid| has_task_samples(&profile, pid))
    });
    fs::write(&stop, "").expect("the file that ends the queries");
    let output = job.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    check(&profile, 3, 0.03);
    assert_little_is_left(cluster.spools(), &profile);
    // Reading by the URI gives the same result.
    assert_eq!(top(&uri(&profile), &[]), top(&profile, &[]));
}

fn to_hdfs(cluster: &Cluster, hdfs: &Hdfs, dir: &Path) {
    let profile = hdfs.uri("profile");
    run(queries(&mut cluster.submit(&profile, 2, &[]), "1"));
    let far = || read_far(&profile, dir, |command| command);
    far();
    let mirror = mirror_of(dir, "hdfs");
    // A Worker kills an executor ten seconds after it has asked it to end. On a busy machine, the end of its profile may still
    // be in its spool then. The next JVM copies it.
    if has_unfinished(&mirror) {
        println!("an executor was killed before its profile was copied");
        run(queries(&mut cluster.submit(&profile, 2, &[]), "1"));
    }
    let first = far();
    check(&mirror, 2, 0.03);
    // The second call finds nothing new.
    assert_eq!(far(), first);
}

/// Spark copies the client to the executors, as it does with `--packages`.
fn to_s3(cluster: &Cluster, dir: &Path) {
    let s3 = S3::start(dir);
    let profile = s3.uri("profile");
    let options = s3.options();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let submit = || {
        let mut command = cluster.submit(&profile, 2, &options);
        run(queries(s3.with_keys(&mut command), "1"));
    };
    submit();
    let far = || read_far(&profile, dir, |command| s3.with_client(command));
    far();
    let mirror = mirror_of(dir, "s3a");
    if has_unfinished(&mirror) {
        println!("an executor was killed before its profile was copied");
        submit();
    }
    let first = far();
    check(&mirror, 2, 0.03);
    assert_eq!(far(), first);
}
