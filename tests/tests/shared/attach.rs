//! `unfuse record` on running JVMs that were started without any flag.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use unfuse_format::{Frame, ProcessRow, ProfileDir, SampleKind, SampleRow, StackId, StackRow};
use unfuse_tests::{
    HotTruth, PATIENCE, check_hot, compile, is, jdks, of_main, run, samples, top, unfuse,
};

/// The part of all samples that must be in the hot lines. Code of HotSpot's first compiler and interpreted code have coarser
/// lines, and a busy machine runs more of it.
const LINES: f64 = 0.6;

/// Longer than any test, ms. The test ends `Hot` after the recording.
const LONG: u32 = 300_000;
const DONE: &str = "true profile: sum 300000\n";

/// A running program of `tests/programs` that has had time to be compiled.
struct Running {
    java: Child,
    truth: HotTruth,
}

impl Running {
    fn start(home: &Path, dir: &Path, options: &[&str], program: &str, millis: u32) -> Self {
        compile(home, &format!("{program}.java"), dir);
        let truth = HotTruth::in_dir(dir);
        let java = Command::new(home.join("bin/java"))
            .args(options)
            .args([&truth.option(), "-cp"])
            .arg(dir)
            .args([program, &millis.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("java starts");
        let running = Self { java, truth };
        if program == "Hot" {
            running.truth.wait_until_warm();
        } else {
            std::thread::sleep(Duration::from_millis(2500));
        }
        running
    }

    fn pid(&self) -> String {
        self.java.id().to_string()
    }

    fn recorder(&self, profile: &Path, more: &[&str]) -> Command {
        let mut command = unfuse();
        command
            .args(["record", "--rate", "1000", "--pid", &self.pid(), "--out"])
            .arg(profile)
            .args(more);
        command
    }

    fn record(&self, profile: &Path, more: &[&str]) -> String {
        let output = run(&mut self.recorder(profile, more));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// The profiler's threads and processes for this JVM.
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

    /// Waits until a recorder has a sampler for one of its threads.
    fn wait_until_recorded(&self) {
        let until = Instant::now() + PATIENCE;
        while !self.ours().iter().any(|name| name.starts_with("unfuse-s-")) {
            assert!(Instant::now() < until, "nothing records it");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends the program; returns its output.
    fn output(mut self) -> String {
        self.truth.stop();
        let mut text = String::new();
        let stdout = self.java.stdout.as_mut().expect("a pipe");
        stdout.read_to_string(&mut text).expect("text");
        assert!(self.java.wait().expect("an exit code").success());
        text
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.java.kill();
        let _ = self.java.wait();
    }
}

#[test]
fn a_running_jvm_gives_the_true_profile_twice_and_is_left_as_it_was() {
    for home in jdks() {
        let what = home.display().to_string();
        let dir = tempfile::tempdir().expect("a directory");
        let java = Running::start(&home, dir.path(), &[], "Hot", LONG);
        for round in ["first", "second"] {
            let profile = dir.path().join(round);
            let told = java.record(&profile, &["--for", "3s"]);
            assert!(
                told.contains("profile in") && told.contains("unfuse top"),
                "{told}"
            );
            check_hot(&profile, &java.truth, LINES, &format!("{what}, {round}"));
            let ours = java.ours();
            assert!(ours.is_empty(), "{what}: {ours:?} stay behind");
        }
        assert_eq!(java.output(), DONE, "{what}");
    }
}

/// Compiled code has no frame pointers there. Nearly all stacks without undescribed frames are whole. From the time on at
/// which the profile is complete, nearly all stacks are described.
#[test]
fn callers_are_complete() {
    for home in jdks() {
        let what = home.display().to_string();
        let dir = tempfile::tempdir().expect("a directory");
        let java = Running::start(&home, dir.path(), &[], "Callers", 14_000);
        let profile = dir.path().join("profile");
        let told = java.record(&profile, &["--for", "6s"]);
        let recorded = Stacks::read(&profile);
        recorded.check_whole(&what);
        let complete_from = recorded.process.complete_from_ns.expect("an attached JVM");
        assert_eq!(
            told.contains("is complete from"),
            complete_from > recorded.process.start_ns,
            "{told}"
        );
        assert_eq!(java.output(), "done true\n", "{what}");
    }
}

/// Samples of the main thread of `Callers`.
struct Stacks {
    process: ProcessRow,
    samples: Vec<SampleRow>,
    stacks: HashMap<StackId, Vec<Arc<Frame>>>,
}

impl Stacks {
    fn read(profile: &Path) -> Self {
        let dir = ProfileDir::open(profile).expect("a profile");
        let processes = dir.read::<ProcessRow>().expect("processes").rows;
        let stacks = dir.read::<StackRow>().expect("stacks").rows;
        let samples = dir.read::<SampleRow>().expect("samples").rows;
        Self {
            process: processes
                .into_iter()
                .max_by_key(|process| process.end_ns)
                .expect("a process"),
            samples: samples
                .into_iter()
                .filter(|row| row.thread == "main" && row.kind == SampleKind::Cpu)
                .collect(),
            stacks: stacks
                .into_iter()
                .map(|row| (row.stack, row.frames))
                .collect(),
        }
    }

    /// Number of samples in the rows that `wanted` accepts, and in those of them whose stack is `good`.
    fn count(
        &self,
        wanted: impl Fn(&SampleRow) -> bool,
        good: impl Fn(&[Arc<Frame>]) -> bool,
    ) -> (f64, f64) {
        let rows = self.samples.iter().filter(|row| wanted(row));
        rows.fold((0.0, 0.0), |(all, goods), row| {
            let count = row.count as f64;
            let is_good = good(&self.stacks[&row.stack]);
            (all + count, goods + if is_good { count } else { 0.0 })
        })
    }

    fn check_whole(&self, what: &str) {
        let is_described = |stack: &[Arc<Frame>]| !stack.iter().any(|frame| frame.is_undescribed());
        let (all, whole) = self.count(
            |row| is_described(&self.stacks[&row.stack]),
            |stack| {
                let of = |method: &str| {
                    let frames = stack.iter().filter(|frame| frame.class == "Callers");
                    frames.filter(|frame| frame.method == method).count()
                };
                let calls = (of("main"), of("even"), of("odd"));
                // Between two calls, `main` has only short stacks.
                calls == (1, 16, 15) || calls == (1, 0, 0) && stack.len() < 6
            },
        );
        assert!(all > 100.0, "{what}: only {all} samples");
        assert!(
            whole > 0.95 * all,
            "{what}: {whole} of {all} stacks are whole"
        );
        let from = self.process.complete_from_ns.expect("an attached JVM");
        assert!(from < self.process.end_ns, "{what}: it is never complete");
        // A row covers up to two seconds, so rows that begin later are complete.
        let (later, described) = self.count(|row| row.start_ns >= from, is_described);
        assert!(
            described >= 0.95 * later,
            "{what}: {described} of {later} are described once it is complete"
        );
    }
}

/// Without recompilation, methods are known, and unknown lines are not guessed.
#[test]
fn kept_code_has_methods() {
    let home = &jdks()[0];
    let dir = tempfile::tempdir().expect("a directory");
    let java = Running::start(home, dir.path(), &[], "Hot", LONG);
    let profile = dir.path().join("profile");
    java.record(&profile, &["--for", "2s", "--keep-code"]);
    let rows = top(&profile, &["--by", "method"]);
    let all = of_main(&profile);
    let hot = samples(&rows, |row| is(row, "Hot.")) as f64;
    assert!(hot > 0.85 * all, "{hot} of {all}");
    let lines = top(&profile, &["--by", "line"]);
    let none = samples(&lines, |row| {
        is(row, "(Hot.java:0)") || is(row, "(Hot.java)")
    });
    assert!(none as f64 > 0.8 * all, "{none} of {all}: {lines:?}");
}

/// When a recorder is killed, its threads and processes end, too.
#[test]
fn a_killed_recorder_leaves_nothing_behind() {
    let home = &jdks()[0];
    let dir = tempfile::tempdir().expect("a directory");
    let java = Running::start(home, dir.path(), &[], "Hot", LONG);
    let mut recorder = java
        .recorder(&dir.path().join("killed"), &["--for", "60s"])
        .spawn()
        .expect("it runs");
    java.wait_until_recorded();
    recorder.kill().expect("a running recorder");
    recorder.wait().expect("a killed recorder");
    let until = Instant::now() + PATIENCE;
    while !java.ours().is_empty() {
        assert!(Instant::now() < until, "{:?} stay behind", java.ours());
        std::thread::sleep(Duration::from_millis(50));
    }
    let profile = dir.path().join("next");
    java.record(&profile, &["--for", "2s"]);
    check_hot(&profile, &java.truth, LINES, "after a killed recorder");
    assert_eq!(java.output(), DONE);
}

/// If the JVM ends early, the profile has the samples until then.
#[test]
fn a_jvm_that_ends_gives_what_there_was() {
    let home = &jdks()[0];
    let dir = tempfile::tempdir().expect("a directory");
    let java = Running::start(home, dir.path(), &[], "Hot", LONG);
    let profile = dir.path().join("profile");
    let told = std::thread::scope(|scope| {
        scope.spawn(|| {
            java.wait_until_recorded();
            std::thread::sleep(Duration::from_secs(3));
            java.truth.stop();
        });
        java.record(&profile, &["--for", "60s"])
    });
    assert!(told.contains("ended before"), "{told}");
    check_hot(&profile, &java.truth, LINES, "ended");
    assert_eq!(java.output(), DONE);
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
        let java = Running::start(&home, dir.path(), &[option], "Hot", LONG);
        refused(&java.pid(), "DisableAttachMechanism", dir.path());
        assert_eq!(java.output(), DONE);
    }
}

#[test]
fn a_jvm_is_recorded_once_at_a_time() {
    let home = &jdks()[0];
    let dir = tempfile::tempdir().expect("a directory");
    let java = Running::start(home, dir.path(), &[], "Hot", LONG);
    let profile = dir.path().join("profile");
    let mut first = java
        .recorder(&profile, &["--for", "4s"])
        .spawn()
        .expect("it runs");
    java.wait_until_recorded();
    refused(&java.pid(), "being profiled already", dir.path());
    assert!(first.wait().expect("it ends").success());
    check_hot(&profile, &java.truth, LINES, "the first");
    assert_eq!(java.output(), DONE);
}
