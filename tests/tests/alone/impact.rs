//! Which resource limits a job: runs on this machine with less CPU, another disk and another network. Afterwards,
//! all settings are as before. Needs root, for control groups and namespaces.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use unfuse_tests::{
    PATIENCE, brief_driver, check_private, queries_for, run, spark, unfuse, wait_for, with_archive,
};

/// The control groups and the copies in memory that a measurement leaves on the machine.
fn left_behind(pid: u32) -> Vec<PathBuf> {
    let name = format!("unfuse-impact-{pid}");
    let mut found = copies(pid);
    let mut dirs = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name() == name.as_str() {
                    found.push(path.clone());
                }
                dirs.push(path);
            }
        }
    }
    found
}

/// The copies of inputs in memory that a measurement has made. Their names end with an unpredictable part.
fn copies(pid: u32) -> Vec<PathBuf> {
    let entries = fs::read_dir("/dev/shm").expect("a file system in memory");
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let name = format!("/dev/shm/unfuse-impact-{pid}-");
    found.retain(|path| path.to_string_lossy().starts_with(&name));
    found
}

fn measure(out: &Path, arguments: &[&str]) -> Command {
    let mut command = unfuse();
    command
        .args(["impact", "measure", "-o"])
        .arg(out)
        .args(arguments);
    command
}

/// The logs of the runs, in order, with their schemes.
fn logs(out: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(out.join("logs")).expect("logs");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let text = |path: &PathBuf| fs::read_to_string(path).expect("a log");
    let name = |path: &PathBuf| path.file_stem().expect("a name").to_string_lossy()[4..].to_owned();
    paths.iter().map(|path| (name(path), text(path))).collect()
}

#[test]
fn every_run_gets_what_its_scheme_says_and_nothing_is_left() {
    let dir = tempfile::tempdir().expect("a directory");
    let (out, input) = (dir.path().join("out"), dir.path().join("input"));
    fs::create_dir(&input).expect("a directory");
    fs::write(input.join("data"), "what it reads").expect("a file");
    // Prints its control groups, mounts and network. It works with both versions of control groups.
    let script = format!(
        "cat /proc/self/cgroup; cat {0}/data; echo; grep ' {0} ' /proc/mounts; ip -o link; tc qdisc show dev lo; \
         while read line; do case $line in *:cpu:*|0::/u*) f=${{line##*:}};; esac; done < /proc/self/cgroup; \
         cat /sys/fs/cgroup/cpu$f/cpu.cfs_quota_us /sys/fs/cgroup$f/cpu.max 2>/dev/null; true",
        input.display()
    );
    let schemes = ["cpu=0.5,1", "disk=disk,ram", "network=10mbit,loopback"];
    let mut command = measure(&out, &["--repeat", "1", "--input"]);
    command
        .arg(&input)
        .arg("--schemes")
        .args(schemes)
        .args(["--", "sh", "-c", &script]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let pid = child.id();
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("a bandwidth, not a frequency"), "{said}");
    assert_eq!(left_behind(pid), Vec::<PathBuf>::new());
    let logs = logs(&out);
    assert_eq!(logs.len(), 9, "8 schemes and a warm-up");
    for (scheme, text) in &logs {
        let [cpu, disk, network] = scheme.split('_').collect::<Vec<_>>()[..] else {
            panic!("{scheme}");
        };
        assert!(
            text.contains(&format!("unfuse-impact-{pid}")),
            "{scheme}: {text}"
        );
        assert!(text.contains("what it reads"), "{scheme}: {text}");
        assert_eq!(
            text.contains(&format!(" {} tmpfs", input.display())),
            disk == "ram",
            "{scheme}: {text}"
        );
        assert_eq!(
            text.lines().filter(|line| line.contains("link/")).count(),
            1,
            "{scheme}: {text}"
        );
        assert_eq!(
            text.contains("tbf"),
            network == "10mbit",
            "{scheme}: {text}"
        );
        let quota = if cpu == "0.5" { "10000" } else { "20000" };
        assert!(
            text.lines()
                .any(|line| line.split(' ').next() == Some(quota)),
            "{scheme}: {text}"
        );
    }
    let table = fs::read_to_string(out.join("runs.csv")).expect("a table");
    assert_eq!(table.lines().count(), 9, "{table}");
    check_private(&out);
    // A measurement never overwrites a table.
    let again = measure(&out, &["--", "true"]).output().expect("it starts");
    assert!(!again.status.success());
    assert!(String::from_utf8_lossy(&again.stderr).contains("exists already"));
}

/// A measurement whose command has begun to sleep.
fn sleeping(dir: &Path) -> (Child, PathBuf) {
    let (input, mark) = (dir.join("input"), dir.join("mark"));
    fs::write(&input, "data").expect("a file");
    let mut command = measure(&dir.join("out"), &["--input"]);
    // One process has its own session, as daemons have.
    let script = format!(
        "setsid sleep 4321 & echo $! > {0}.new; mv {0}.new {0}; sleep 4321",
        mark.display()
    );
    command.arg(&input).args(["--", "sh", "-c", &script]);
    let child = command.stderr(Stdio::null()).spawn().expect("it starts");
    wait_for("the command to start", || mark.exists());
    (child, mark)
}

/// Whether the process runs. It may be a zombie for some time.
fn is_alive(mark: &Path) -> bool {
    let pid = fs::read_to_string(mark).expect("a mark");
    let status = fs::read_to_string(Path::new("/proc").join(pid.trim()).join("status"));
    status.is_ok_and(|status| !status.contains("State:\tZ"))
}

#[test]
fn being_killed_restores_everything() {
    for signal in ["-KILL", "-TERM", "-INT"] {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut child, mark) = sleeping(dir.path());
        let pid = child.id();
        assert!(left_behind(pid).len() >= 2, "{:?}", left_behind(pid));
        let [copies] = &copies(pid)[..] else {
            panic!("one directory of copies");
        };
        let mode = fs::metadata(copies).expect("there").permissions().mode();
        assert_eq!(mode & 0o7777, 0o700, "nobody else may read what is copied");
        run(Command::new("kill").args([signal, &pid.to_string()]));
        let status = child.wait().expect("it ends");
        let begun = Instant::now();
        // A killed measurement does not wait for its guardian, which restores the settings.
        while !left_behind(pid).is_empty() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(left_behind(pid), Vec::<PathBuf>::new(), "{signal}");
        assert!(!is_alive(&mark), "{signal}: the command's process goes on");
        match signal {
            "-KILL" => assert_eq!(status.signal(), Some(9)),
            "-TERM" => assert_eq!(status.code(), Some(143)),
            _ => assert_eq!(status.code(), Some(130)),
        }
    }
}

#[test]
fn a_command_that_fails_is_told_and_what_was_measured_is_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    let (out, count) = (dir.path().join("out"), dir.path().join("count"));
    // The warm-up and the first counted run succeed.
    let script = format!(
        "echo x >> {0}; test $(wc -l < {0}) -lt 3 || {{ echo the disk is full; exit 7; }}",
        count.display()
    );
    let output = measure(&out, &["--", "sh", "-c", &script])
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(
        said.contains("exit code 7") && said.contains("the disk is full"),
        "{said}"
    );
    assert!(said.contains("earlier runs are kept"), "{said}");
    assert_eq!(
        fs::read_to_string(out.join("runs.csv"))
            .expect("a table")
            .lines()
            .count(),
        2
    );
    let output = measure(&dir.path().join("none"), &["--", "/no/such/program"])
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("cannot run /no/such/program"),
        "{said}"
    );
}

#[test]
fn a_dry_run_changes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let (out, input) = (dir.path().join("out"), dir.path().join("input"));
    fs::write(&input, "data").expect("a file");
    let mut command = measure(
        &out,
        &[
            "--dry-run",
            "--schemes",
            "cpu=0.5,1",
            "disk=10MBps,ram",
            "--input",
        ],
    );
    command
        .arg(&input)
        .args(["--", "touch"])
        .arg(dir.path().join("ran"));
    let text = String::from_utf8_lossy(&run(&mut command).stdout).into_owned();
    for words in [
        "13 runs (1 to warm up",
        "in memory",
        "10485760",
        "mount namespace",
        "a bandwidth, not",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!out.exists() && !dir.path().join("ran").exists());
}

#[test]
fn a_spark_job_has_indicators_by_operator() {
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("out");
    let spark = spark("4.3");
    let mut command = measure(
        &out,
        &[
            "--schemes",
            "cpu=1,2",
            "--repeat",
            "2",
            "--warm-up",
            "0",
            "--profile",
            "--",
        ],
    );
    with_archive(&mut command, &spark)
        .arg(spark.join("venv/bin/spark-submit"))
        .args(["--master", "local[2]", "--conf", "spark.ui.enabled=false"])
        .args(brief_driver());
    // One round, however long it takes.
    run(queries_for(&mut command, "0.2", "0"));
    let answer = run(unfuse().arg("impact").arg(&out).arg("--json"));
    let answer: Value = serde_json::from_slice(&answer.stdout).expect("JSON");
    let whole = &answer["workloads"][0]["indicators"];
    assert_eq!(whole[0]["resource"], "cpu", "{answer:#}");
    let queries = answer["queries"].as_array().expect("queries");
    let operators: Vec<&Value> = queries
        .iter()
        .flat_map(|query| query["operators"].as_array().expect("operators"))
        .collect();
    assert!(
        operators.iter().any(|o| o["operator"] == "HashAggregate"),
        "{answer:#}"
    );
    for operator in operators {
        let cri = &operator["analysis"]["indicators"][0];
        assert!(
            cri["value"].is_number() && cri["interval"]["low"].is_number(),
            "{operator:#}"
        );
        assert_eq!(
            operator["analysis"]["schemes"].as_array().map(Vec::len),
            Some(2)
        );
    }
    let text = run(unfuse().arg("impact").arg(&out));
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.contains("the query, from its start to its end"),
        "{text}"
    );
    assert!(!text.contains("NaN") && !text.contains("inf "), "{text}");
}
