//! `unfuse blame --prove` on queries that run side by side: one that takes the CPUs, and one that sleeps. Needs root.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use unfuse_tests::{ask_number, brief_driver, root, run, spark, spark_submit, unfuse};

/// The scheduling policy SCHED_IDLE in `/proc/PID/stat`.
const IDLE: &str = "5";

/// An application with endless queries.
struct Endless {
    submit: Child,
    stop: std::path::PathBuf,
}

impl Endless {
    fn start(dir: &Path, profile: &Path) -> Self {
        let stop = dir.join("stop");
        let brief = brief_driver();
        let mut options: Vec<&str> = brief.iter().map(String::as_str).collect();
        options.extend(["--master", "local[12]"]);
        let submit = spark_submit(&spark("4.3"), profile, &options)
            .arg(root().join("tests/programs/prove.py"))
            .arg(&stop)
            .stdout(Stdio::null())
            .spawn()
            .expect("spark-submit starts");
        Self { submit, stop }
    }

    fn end(&mut self) {
        fs::write(&self.stop, "").expect("a file");
        assert!(self.submit.wait().expect("it ends").success());
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        // After a failed assertion, nothing may run on.
        let _ = fs::write(&self.stop, "");
        let _ = self.submit.wait();
    }
}

fn prove(profile: &Path, culprit: &str, length: &str) -> Command {
    let mut command = unfuse();
    command.arg("blame").arg(profile);
    command.args([
        "--victim", "victim", "--prove", culprit, "--for", length, "--json",
    ]);
    command
}

/// What the command says when it refuses.
fn refusal(command: &mut Command) -> String {
    let output = command.output().expect("unfuse starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "it was not refused: {said}");
    said
}

fn answer(command: &mut Command) -> Value {
    serde_json::from_slice(&run(command).stdout).expect("JSON")
}

/// Number of threads of a process that wait for idle CPUs.
fn held(pid: u32) -> usize {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("threads");
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok())
        .filter(|stat| {
            let fields = stat.rsplit(')').next().expect("fields");
            fields.split_whitespace().nth(38) == Some(IDLE)
        })
        .count()
}

/// Waits until a number of held threads is as wanted; the end of the test's patience is a failure.
fn wait_for(pid: u32, wanted: impl Fn(usize) -> bool) {
    for _ in 0..3000 {
        if wanted(held(pid)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{} threads of process {pid} are held back", held(pid));
}

#[test]
fn holding_a_query_back_shows_whether_it_slows_another_one_down() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let mut application = Endless::start(dir.path(), &profile);
    // The profile knows queries some seconds after they have begun.
    let is_known = |name: &str| {
        let mut command = prove(&profile, "nothing", "10s");
        refusal(&mut command).contains(&format!("({name})"))
    };
    while !["victim", "culprit", "bystander"]
        .iter()
        .all(|name| is_known(name))
    {
        let ended = application.submit.try_wait().expect("its state");
        assert!(ended.is_none(), "the application ended");
        std::thread::sleep(Duration::from_millis(500));
    }
    let pid = ask_number(&profile, "SELECT max(pid) FROM 'DIR/processes/*.parquet'") as u32;

    for (culprit, why) in [
        ("victim", "the victim is the query to hold back"),
        ("nothing", "no query nothing runs"),
        ("warm-up", "query warm-up has ended"),
    ] {
        let said = refusal(&mut prove(&profile, culprit, "10s"));
        assert!(said.contains(why), "{said}");
    }

    let proven = answer(&mut prove(&profile, "culprit", "30s"));
    assert_eq!(proven["verdict"], "proven", "{proven:#}");
    assert!(
        proven["faster_low"].as_f64() > Some(0.0)
            && proven["sooner_seconds_low"].as_f64() > Some(0.0),
        "{proven:#}"
    );
    assert!(
        proven["culprit_held_cpus"].as_f64() < proven["culprit_free_cpus"].as_f64(),
        "{proven:#}"
    );
    assert_eq!(held(pid), 0, "threads run as before");

    // It uses no CPU, so holding it back cannot help.
    let bystander = answer(&mut prove(&profile, "bystander", "15s"));
    assert_eq!(bystander["verdict"], "not-shown", "{bystander:#}");
    assert_eq!(held(pid), 0, "threads run as before");

    // Whoever kills the command leaves nothing behind: the guardian releases all threads.
    let mut killed = prove(&profile, "culprit", "5m")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("unfuse starts");
    wait_for(pid, |held| held > 0);
    killed.kill().expect("it is killed");
    killed.wait().expect("it has ended");
    wait_for(pid, |held| held == 0);

    application.end();
    let said = refusal(&mut prove(&profile, "culprit", "10s"));
    assert!(said.contains("no JVM of this host writes"), "{said}");
}
