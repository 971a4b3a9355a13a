//! `unfuse record`: JVMs that run already, started without any flag.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use unfuse_tests::{check_hot, compile, is, jdks, run, samples, top, unfuse};

/// A program of `tests/programs`, running; it has had time to be compiled.
struct Running(Child);

impl Running {
    fn start(home: &Path, dir: &Path, options: &[&str], program: &str, millis: u32) -> Self {
        compile(home, &format!("{program}.java"), dir);
        let java = Command::new(home.join("bin/java"))
            .args(options)
            .arg("-cp")
            .arg(dir)
            .args([program, &millis.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("java starts");
        std::thread::sleep(Duration::from_millis(2500));
        Self(java)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn record(&self, profile: &Path, more: &[&str]) -> String {
        let mut command = unfuse();
        command.args(["record", "--pid", &self.pid(), "--out"]);
        let output = run(command.arg(profile).args(more));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Threads and processes of ours that serve this JVM.
    fn ours(&self) -> Vec<String> {
        let tasks = format!("/proc/{}/task", self.pid());
        let threads: Vec<_> = fs::read_dir(tasks)
            .expect("a running JVM")
            .flatten()
            .map(|task| task.file_name().to_string_lossy().into_owned())
            .collect();
        let mut ours: Vec<String> = threads
            .iter()
            .filter_map(|tid| {
                let comm = format!("/proc/{}/task/{tid}/comm", self.pid());
                fs::read_to_string(comm).ok()
            })
            .filter(|name| name.starts_with("unfuse"))
            .collect();
        let processes = fs::read_dir("/proc").expect("/proc").flatten();
        // Zombies have no title.
        let titles = processes.filter_map(|p| fs::read_to_string(p.path().join("cmdline")).ok());
        ours.extend(titles.filter(|title| {
            let title = title.trim_end_matches('\0');
            threads.iter().any(|tid| title == format!("unfuse-s-{tid}"))
        }));
        ours
    }

    /// Waits for its end; what it printed.
    fn output(mut self) -> String {
        let mut text = String::new();
        let stdout = self.0.stdout.as_mut().expect("a pipe");
        stdout.read_to_string(&mut text).expect("text");
        assert!(self.0.wait().expect("an exit code").success());
        text
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_running_jvm_gives_the_true_profile_twice_and_is_left_as_it_was() {
    for home in jdks() {
        let what = home.display().to_string();
        let dir = tempfile::tempdir().expect("a directory");
        let java = Running::start(&home, dir.path(), &[], "Hot", 16_000);
        for round in ["first", "second"] {
            let profile = dir.path().join(round);
            let told = java.record(&profile, &["--for", "3s"]);
            assert!(
                told.contains("profile in") && told.contains("unfuse top"),
                "{told}"
            );
            check_hot(&profile, 200, &format!("{what}, {round}"));
            let ours = java.ours();
            assert!(ours.is_empty(), "{what}: {ours:?} stay behind");
        }
        assert_eq!(java.output(), "true profile: sum 16000\n", "{what}");
    }
}

/// Compiled code has no frame pointers there.
#[test]
fn callers_are_complete() {
    for home in jdks() {
        let what = home.display().to_string();
        let dir = tempfile::tempdir().expect("a directory");
        let java = Running::start(&home, dir.path(), &[], "Callers", 9_000);
        let profile = dir.path().join("profile");
        java.record(&profile, &["--for", "3s", "--rate", "500"]);
        let export = run(unfuse()
            .arg("export")
            .arg(&profile)
            .args(["--format", "folded"]));
        let (mut all, mut whole) = (0u64, 0u64);
        for line in String::from_utf8_lossy(&export.stdout).lines() {
            let (stack, count) = line.rsplit_once(' ').expect("a count");
            let count: u64 = count.parse().expect("a number");
            let frames: Vec<&str> = stack.split(';').collect();
            let of = |name: &str| frames.iter().filter(|frame| **frame == name).count();
            if frames[0] == "main" {
                all += count;
                let calls = (of("Callers.main"), of("Callers.even"), of("Callers.odd"));
                whole += if calls == (1, 16, 15) { count } else { 0 };
            }
        }
        assert!(all > 500, "{what}: only {all} samples");
        assert!(
            whole as f64 > 0.95 * all as f64,
            "{what}: {whole} of {all} stacks are whole"
        );
        assert_eq!(java.output(), "done true\n", "{what}");
    }
}

/// Without compiling again, methods are known, and a line that is not is not made up.
#[test]
fn kept_code_has_methods() {
    let home = &jdks()[0];
    let dir = tempfile::tempdir().expect("a directory");
    let java = Running::start(home, dir.path(), &[], "Hot", 9_000);
    let profile = dir.path().join("profile");
    java.record(&profile, &["--for", "2s", "--keep-code"]);
    let rows = top(&profile, &["--by", "method"]);
    let (hot, all) = (
        samples(&rows, |row| is(row, "Hot.")),
        samples(&rows, |_| true),
    );
    assert!(hot as f64 > 0.85 * all as f64, "{hot} of {all}");
    let lines = top(&profile, &["--by", "line"]);
    let none = samples(&lines, |row| {
        is(row, "(Hot.java:0)") || is(row, "(Hot.java)")
    });
    assert!(none as f64 > 0.8 * all as f64, "{none} of {all}: {lines:?}");
}

/// A recorder that is killed takes everything with it.
#[test]
fn a_killed_recorder_leaves_nothing_behind() {
    let home = &jdks()[0];
    let dir = tempfile::tempdir().expect("a directory");
    let java = Running::start(home, dir.path(), &[], "Hot", 12_000);
    let mut recorder = unfuse()
        .args(["record", "--pid", &java.pid(), "--for", "60s", "--out"])
        .arg(dir.path().join("killed"))
        .spawn()
        .expect("it runs");
    std::thread::sleep(Duration::from_millis(2500));
    assert!(!java.ours().is_empty(), "it records");
    recorder.kill().expect("a running recorder");
    recorder.wait().expect("a killed recorder");
    let until = Instant::now() + Duration::from_secs(10);
    while !java.ours().is_empty() {
        assert!(Instant::now() < until, "{:?} stay behind", java.ours());
        std::thread::sleep(Duration::from_millis(50));
    }
    let profile = dir.path().join("next");
    java.record(&profile, &["--for", "2s"]);
    check_hot(&profile, 200, "after a killed recorder");
    assert_eq!(java.output(), "true profile: sum 12000\n");
}

/// The profile of a JVM that ends meanwhile is what there was.
#[test]
fn a_jvm_that_ends_gives_what_there_was() {
    let home = &jdks()[0];
    let dir = tempfile::tempdir().expect("a directory");
    let java = Running::start(home, dir.path(), &[], "Hot", 7_000);
    let profile = dir.path().join("profile");
    let told = java.record(&profile, &["--for", "60s"]);
    assert!(told.contains("ended before"), "{told}");
    check_hot(&profile, 200, "ended");
    assert_eq!(java.output(), "true profile: sum 7000\n");
}

fn refused(pid: &str, says: &str, dir: &Path) {
    let profile = dir.join("refused");
    let output = unfuse()
        .args(["record", "--for", "1s", "--pid", pid, "--out"])
        .arg(&profile)
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains(says), "{text}");
    assert!(!profile.exists(), "an empty profile stays");
}

#[test]
fn what_cannot_be_recorded_is_told_and_not_disturbed() {
    let dir = tempfile::tempdir().expect("a directory");
    refused("4194304", "there is no process", dir.path());
    let mut sleep = Command::new("sleep").arg("60").spawn().expect("it runs");
    refused(&sleep.id().to_string(), "is not a HotSpot JVM", dir.path());
    assert!(
        sleep.try_wait().expect("a child").is_none(),
        "it still runs"
    );
    sleep.kill().expect("a running process");
    sleep.wait().expect("a killed process");
    let option = "-XX:+DisableAttachMechanism";
    for home in jdks() {
        let java = Running::start(&home, dir.path(), &[option], "Hot", 4_000);
        refused(&java.pid(), "DisableAttachMechanism", dir.path());
        assert_eq!(java.output(), "true profile: sum 4000\n");
    }
}

#[test]
fn a_jvm_is_recorded_once_at_a_time() {
    let home = &jdks()[0];
    let dir = tempfile::tempdir().expect("a directory");
    let java = Running::start(home, dir.path(), &[], "Hot", 10_000);
    let profile = dir.path().join("profile");
    let mut first = unfuse()
        .args(["record", "--pid", &java.pid(), "--for", "4s", "--out"])
        .arg(&profile)
        .spawn()
        .expect("it runs");
    std::thread::sleep(Duration::from_millis(2500));
    refused(&java.pid(), "being profiled already", dir.path());
    assert!(first.wait().expect("it ends").success());
    check_hot(&profile, 200, "the first");
    assert_eq!(java.output(), "true profile: sum 10000\n");
}
