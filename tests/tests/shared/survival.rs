//! Many threads, and killed processes: the job is not affected, and the samples until then are kept.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use unfuse_tests::{
    Mark, PATIENCE, agent, compile, cpu_time, is, jdks, run, samples, signal, thread, top, unfuse,
};

/// Samples a second of CPU time.
const RATE: u32 = 500;

/// A directory with the compiled programs and the profile.
struct Place {
    dir: tempfile::TempDir,
    home: PathBuf,
}

impl Place {
    fn new(home: &Path) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        compile(home, "Hot.java", dir.path());
        compile(home, "Threads.java", dir.path());
        Self {
            dir,
            home: home.to_owned(),
        }
    }

    fn profile(&self) -> PathBuf {
        self.dir.path().join("profile")
    }

    /// `unfuse run` of Threads.
    fn threads(&self, arguments: &[&str]) -> Command {
        let mut command = unfuse();
        command
            .current_dir(self.dir.path())
            .args(["run", "--rate", &RATE.to_string(), "--out", "profile", "--"])
            .arg(self.home.join("bin/java"))
            .arg("-cp")
            .arg(self.dir.path())
            .arg("Threads")
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// Checks that the job printed its usual output, and the profiler one line with the path of the profile
/// and before it a complaint, if expected.
fn check_job(output: &Output, says: &str, complaint: Option<&str>) {
    let ours = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("{says}\n"),
        "{ours}"
    );
    assert_eq!(output.status.code(), Some(7), "{ours}");
    let lines: Vec<&str> = ours.lines().collect();
    assert_eq!(
        lines.len(),
        1 + usize::from(complaint.is_some()),
        "{complaint:?}: {ours}"
    );
    if let Some(complaint) = complaint {
        assert!(lines[0].starts_with("unfuse: "), "{ours}");
        assert!(lines[0].contains(complaint), "{complaint:?}: {ours}");
    }
}

#[test]
fn five_hundred_threads_are_all_in_the_profile() {
    for home in jdks() {
        let place = Place::new(&home);
        let mut command = place.threads(&["crowd", "500", "2000"]);
        let mark = Mark::on(&mut command, place.dir.path());
        let mut run = command.stdin(Stdio::piped()).spawn().expect("it runs");
        mark.wait_for_samplers(500, |name| name.starts_with("worker-"));
        drop(run.stdin.take());
        let output = run.wait_with_output().expect("it ends");
        check_job(&output, "crowd: 500 threads, 1000000 rounds", None);
        mark.wait_for_end();
        let rows = top(&place.profile(), &["--by", "thread"]);
        let seen = rows.iter().filter(|row| is(row, "worker-")).count();
        assert!(seen >= 495, "{seen} of 500 threads, {}", home.display());
        let rows = top(&place.profile(), &["--by", "method"]);
        let of = |method| samples(&rows, |row| is(row, method)) as f64;
        let ratio = of("Hot.sum") / of("Hot.mix");
        assert!((1.5..2.7).contains(&ratio), "{ratio}, truly about 2");
    }
}

/// Threads of a millisecond end before they can be sampled. The profile has their number.
#[test]
fn ten_thousand_brief_threads_are_counted() {
    let place = Place::new(&jdks()[0]);
    let mut command = place.threads(&["brief", "10000", "100"]);
    let mark = Mark::on(&mut command, place.dir.path());
    let output = command.output().expect("it runs");
    check_job(&output, "brief: 10000 threads, 1000000 rounds", None);
    mark.wait_for_end();
    let top = run(unfuse().arg("top").arg(place.profile()));
    let text = String::from_utf8_lossy(&top.stdout).into_owned();
    let note = text.lines().find_map(|line| {
        line.strip_prefix("note: ")?
            .split_once(" threads ended too early to be sampled")
    });
    let (threads, _) = note.unwrap_or_else(|| panic!("no note: {text}"));
    let threads: u64 = threads.parse().expect("a number");
    assert!(threads > 5000, "{text}");
}

#[test]
fn a_jvm_killed_at_any_moment_leaves_a_profile_or_a_message() {
    let home = &jdks()[0];
    let place = Place::new(home);
    // The first moments are in the start of the JVM, of the manager and of the first samplers.
    let mut moments = vec![1, 10, 25, 50, 80, 120, 200, 350];
    let mut random = 20_240_607u64;
    moments.extend((0..5).map(|_| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        400 + (random >> 33) % 1600
    }));
    let mut readable = 0;
    for (run, moment) in moments.iter().enumerate() {
        let profile = place.dir.path().join(format!("profile-{run}"));
        let flag = format!("-agentpath:{}=dir={}", agent().display(), profile.display());
        let mut command = Command::new(home.join("bin/java"));
        command
            .arg(flag)
            .arg("-cp")
            .arg(place.dir.path())
            .args(["Hot", "60000"]);
        let mark = Mark::on(&mut command, &profile);
        let mut java = command.spawn().expect("java starts");
        std::thread::sleep(Duration::from_millis(*moment));
        java.kill().expect("a running JVM");
        java.wait().expect("a killed JVM");
        mark.wait_for_end();
        let top = unfuse().arg("top").arg(&profile).output().expect("it runs");
        let said = String::from_utf8_lossy(&top.stderr).into_owned();
        if top.status.success() {
            assert_eq!(said, "", "after {moment} ms");
            readable += 1;
        } else {
            assert_eq!(said.lines().count(), 1, "after {moment} ms: {said}");
            assert!(
                [
                    "no such directory",
                    "the profile is empty",
                    "the profile has no samples",
                    "no unfuse.json"
                ]
                .iter()
                .any(|known| said.contains(known)),
                "after {moment} ms: {said}"
            );
        }
    }
    assert!(readable > 0, "a JVM that ran two seconds has samples");
}

const WORKERS: [&str; 2] = ["worker-0", "worker-1"];

/// Runs two busy threads, sends a signal to one of the profiler's processes meanwhile, and checks the job. Also returns the
/// CPU time of each thread before the signal; for the writer, before its first write with samples was seen.
fn with_a_signal_for(
    victim: &str,
    signal_name: &str,
    milliseconds: &str,
    complaint: &str,
) -> (Place, [Duration; 2]) {
    let place = Place::new(&jdks()[0]);
    let mut command = place.threads(&["until", "2", milliseconds]);
    let mark = Mark::on(&mut command, place.dir.path());
    let job = command.spawn().expect("it starts");
    let jvm = mark.wait_for("java");
    let until = Instant::now() + PATIENCE;
    let sampled = |worker: &str| loop {
        if let Some(thread) = thread(jvm, worker) {
            break (mark.wait_for(&format!("unfuse-s-{thread}")), thread);
        }
        assert!(Instant::now() < until, "{worker} does not start");
        std::thread::sleep(Duration::from_millis(20));
    };
    let workers = WORKERS.map(sampled);
    let used = || workers.map(|(_, thread)| cpu_time(jvm, thread).expect("it runs"));
    let mut before = used();
    let pid = match victim {
        "sampler" => workers[0].0,
        "writer" => {
            // The signal must come after its first write with samples.
            while !place.profile().join("samples").exists() {
                assert!(Instant::now() < until, "nothing is written");
                before = used();
                std::thread::sleep(Duration::from_millis(50));
            }
            std::thread::sleep(Duration::from_millis(200));
            mark.wait_for("unfuse-writer")
        }
        _ => mark.wait_for("unfuse-manager"),
    };
    signal(pid, signal_name);
    let output = job.wait_with_output().expect("it ends");
    check_job(&output, "until: 2 threads", Some(complaint));
    mark.wait_for_end();
    (place, before)
}

fn of_thread(place: &Place, thread: &str) -> u64 {
    samples(&top(&place.profile(), &["--by", "thread"]), |row| {
        is(row, thread)
    })
}

#[test]
fn a_killed_manager_leaves_the_samplers_at_work() {
    let (place, _) = with_a_signal_for("manager", "KILL", "5000", "the manager process was killed");
    for worker in WORKERS {
        let seen = of_thread(&place, worker);
        assert!(seen > 300, "{seen} samples of {worker}");
    }
}

/// A crash has the effect of a kill, and must not cause a crash report of the JVM.
#[test]
fn a_killed_sampler_costs_its_own_thread_only() {
    for name in ["KILL", "SEGV"] {
        let (place, _) = with_a_signal_for(
            "sampler",
            name,
            "5000",
            "samples of 1 thread(s) are missing",
        );
        let seen = of_thread(&place, "worker-1");
        assert!(seen > 300, "{seen} samples of worker-1");
        let report = std::fs::read_dir(place.dir.path())
            .expect("the directory")
            .flatten()
            .find(|entry| entry.file_name().to_string_lossy().starts_with("hs_err"));
        assert!(report.is_none(), "{report:?}");
    }
}

#[test]
fn a_killed_writer_leaves_what_it_wrote() {
    let (place, before) =
        with_a_signal_for("writer", "KILL", "8000", "the writer process was killed");
    // What was sampled shortly before the first write is not in it.
    for (worker, cpu) in WORKERS.into_iter().zip(before) {
        let seen = Duration::from_secs(of_thread(&place, worker)) / RATE;
        assert!(
            seen * 3 > cpu,
            "{seen:?} of samples of {worker}, which ran for {cpu:?}"
        );
    }
}
