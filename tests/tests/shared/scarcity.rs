//! Disks, directories, maps and code caches that are too small, and clocks that are wrong.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use unfuse_tests::{
    ChurnedClasses, Mark, PATIENCE, agent, compile, is, jdks, root, run, samples, top, unfuse,
};

/// A directory with these compiled programs.
fn programs(names: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    for name in names {
        compile(&jdks()[0], name, dir.path());
    }
    dir
}

fn java() -> PathBuf {
    jdks()[0].join("bin/java")
}

/// `unfuse run` of a Java program.
fn profiled(dir: &Path, profile: &Path, options: &[&str], program: &[&str]) -> Command {
    let mut command = unfuse();
    command.args(["run", "--out"]).arg(profile).args(options);
    command.arg("--").arg(java()).arg("-cp").arg(dir);
    command.args(program);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The same in its own namespaces, which `unshare` makes. The shell command `setup` runs there first.
fn inside(namespaces: &[&str], setup: &str, command: &Command) -> Command {
    let mut outer = Command::new("unshare");
    // A user other than root needs a user namespace for them.
    if !run(Command::new("id").arg("-u")).stdout.starts_with(b"0\n") {
        outer.arg("--map-root-user");
    }
    outer
        .args(namespaces)
        .args(["bash", "-e", "-c", &format!("{setup}\nexec \"$@\""), "bash"])
        .arg(command.get_program())
        .args(command.get_args());
    outer.stdout(Stdio::piped()).stderr(Stdio::piped());
    outer
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !there() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// So many samples that chance hardly changes the ratio of two methods, on a busy machine too. The programs run for so long that
/// the start of the JVM has a small part of them.
const OFTEN: [&str; 2] = ["--rate", "1000"];

/// Checks that `sum` has about twice the samples of `mix`, and that there is little else.
fn check_hot(profile: &Path) {
    let rows = top(profile, &["--by", "method"]);
    let of = |name: &str| samples(&rows, |row| is(row, name)) as f64;
    let (sum, mix, all) = (of("Hot.sum"), of("Hot.mix"), of(""));
    assert!(all > 100.0, "only {all} samples");
    assert!(sum + mix > 0.8 * all, "{sum} + {mix} of {all}");
    let ratio = sum / mix;
    assert!((1.4..2.8).contains(&ratio), "{ratio}, truly about 2");
}

/// Number of lines that `unfuse run` prints at the end. Before that, the agent prints a line that the profile cannot be
/// written, if it notices that while the job runs.
fn closing_lines(text: &str) -> usize {
    let is_early = |line: &&str| line.contains("the profile cannot be written any more");
    let early = text.lines().filter(is_early).count();
    assert!(early <= 1, "{text}");
    text.lines().count() - early
}

/// The disk fills up after the first write. This part stays readable, and a message reports the fault.
#[test]
fn a_disk_that_fills_up() {
    let dir = programs(&["Hot.java"]);
    let disk = dir.path().join("disk");
    std::fs::create_dir(&disk).expect("a mount point");
    let kept = dir.path().join("kept");
    let mut job = profiled(dir.path(), &disk.join("profile"), &[], &["Hot", "8000"]);
    // The mount is visible in the namespace only, so the job copies the profile out.
    job = inside(
        &["--mount"],
        &format!(
            "mount -t tmpfs -o size=256k none {disk}\n\
             (until [ -e {disk}/profile/samples ]; do sleep 0.1; done; sleep 0.5\n\
             cat /dev/zero > {disk}/fill || true) 2> /dev/null &\n\
             filler=$!\n\
             job() {{ \"$@\"; code=$?; wait $filler; cp -a {disk}/profile {kept}; exit $code; }}\n\
             job \"$@\"",
            disk = disk.display(),
            kept = kept.display()
        ),
        &job,
    );
    let mark = Mark::on(&mut job, &disk);
    let output = run(&mut job);
    let text = said(&output);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "true profile: sum 8000\n"
    );
    assert_eq!(closing_lines(&text), 2, "{text}");
    assert!(text.contains("No space left on device"), "{text}");
    mark.wait_for_end();
    check_hot(&kept);
    let top = run(unfuse().arg("top").arg(&kept));
    assert!(said(&top).contains("not complete"), "{}", said(&top));
    let halves = std::fs::read_dir(kept.join("samples")).expect("samples");
    assert!(
        halves
            .flatten()
            .all(|entry| entry.path().extension().is_some_and(|e| e == "parquet")),
        "no half segment is left"
    );
}

/// A limit on file sizes must not become a signal that ends the JVM.
#[test]
fn files_that_may_not_grow() {
    let dir = programs(&["Hot.java"]);
    let flag = format!(
        "-agentpath:{}=dir={}",
        agent().display(),
        dir.path().join("profile").display()
    );
    let output = run(Command::new("bash")
        .args(["-c", "ulimit -f 1; exec \"$@\"", "bash"])
        .arg(java())
        .args(["-XX:-UsePerfData", &flag, "-cp"])
        .arg(dir.path())
        .args(["Hot", "600"]));
    let text = said(&output);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "true profile: sum 600\n"
    );
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("unfuse: not profiling:"), "{text}");
}

/// `unfuse run` does not guess a reason that the agent has printed.
#[test]
fn one_line_says_why_nothing_is_profiled() {
    let dir = programs(&["Hot.java"]);
    let profile = dir.path().join("profile");
    let job = profiled(
        dir.path(),
        &profile,
        &[],
        &["-XX:-UsePerfData", "Hot", "600"],
    );
    let output = run(Command::new("bash")
        .args(["-c", "ulimit -f 1; exec \"$@\"", "bash"])
        .arg(job.get_program())
        .args(job.get_args()));
    let text = said(&output);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("cannot make the code map"), "{text}");
    let top = unfuse().arg("top").arg(&profile).output().expect("it runs");
    let text = said(&top);
    assert!(text.contains("File too large"), "{text}");
    assert!(
        text.contains("the agent could not profile the JVM"),
        "{text}"
    );
}

#[test]
fn a_deleted_directory_stays_deleted() {
    let dir = programs(&["Hot.java"]);
    let profile = dir.path().join("profile");
    let mut job = profiled(dir.path(), &profile, &[], &["Hot", "3000"]);
    let mark = Mark::on(&mut job, &profile);
    let job = job.spawn().expect("it starts");
    wait_for("a first segment", || profile.join("processes").exists());
    std::fs::remove_dir_all(&profile).expect("deleted");
    let output = job.wait_with_output().expect("it ends");
    assert!(output.status.success());
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "true profile: sum 3000\n"
    );
    let text = said(&output);
    assert_eq!(closing_lines(&text), 1, "{text}");
    assert!(text.contains("was deleted while the command ran"), "{text}");
    mark.wait_for_end();
    assert!(!profile.exists());
}

/// Code that is not in the map has no name, and never a wrong one.
#[test]
fn a_full_code_map_names_nothing_wrongly() {
    let dir = programs(&["Churn.java"]);
    let profile = dir.path().join("profile");
    let options = ["--rate", "1000", "--agent-options", "map=4"];
    let output = run(&mut profiled(
        dir.path(),
        &profile,
        &options,
        // Compiles nearly all code that runs.
        &["-XX:CompileThresholdScaling=0.02", "Churn", "8000"],
    ));
    let text = String::from_utf8_lossy(&run(unfuse().arg("top").arg(&profile)).stdout).into_owned();
    assert!(text.contains("did not fit into the code map"), "{text}");
    let compared = ChurnedClasses::read(&output.stdout).compare(&profile);
    for (name, truth, samples) in compared.kinds() {
        let seen = samples / compared.all;
        assert!(
            seen < truth + 0.04,
            "{name} ran {truth:.3} of the time and has {seen:.3} of the samples"
        );
    }
}

/// HotSpot discards code to make room, and puts other code there.
#[test]
fn a_tiny_code_cache_gives_the_true_profile() {
    for home in jdks() {
        let jvm = ["-XX:ReservedCodeCacheSize=3m", "-XX:-SegmentedCodeCache"];
        let (_, compared) = ChurnedClasses::profiled(&home, &[], &jvm, 12_000);
        compared.check(&home.display().to_string());
    }
}

#[test]
fn two_jvms_at_once_in_one_directory_and_in_two() {
    let dir = programs(&["Hot.java", "Threads.java"]);
    for (first, second) in [("both", "both"), ("one", "two")] {
        let (first, second) = (dir.path().join(first), dir.path().join(second));
        let hot = profiled(dir.path(), &first, &[], &["Hot", "3000"])
            .spawn()
            .expect("it starts");
        let threads = profiled(dir.path(), &second, &[], &["Threads", "until", "1", "3000"])
            .spawn()
            .expect("it starts");
        let hot = hot.wait_with_output().expect("it ends");
        let threads = threads.wait_with_output().expect("it ends");
        assert_eq!(hot.stdout, b"true profile: sum 3000\n");
        assert_eq!(threads.stdout, b"until: 1 threads\n");
        assert_eq!(
            (hot.status.code(), threads.status.code()),
            (Some(0), Some(7))
        );
        assert_eq!(
            (said(&hot).lines().count(), said(&threads).lines().count()),
            (1, 1)
        );
        check_hot(&first);
        check_hot(&second);
        let of = |profile: &Path, thread: &str| {
            samples(&top(profile, &["--by", "thread"]), |row| is(row, thread))
        };
        // The main thread of Threads only waits. Both threads use three seconds of CPU time, on a busy machine too.
        let (main, worker) = (of(&first, "main"), of(&second, "worker-0"));
        assert!(main > 150 && worker > 150, "{main} and {worker} samples");
        if first != second {
            assert_eq!(of(&first, "worker-0"), 0);
            assert!(of(&second, "main") < 150);
        }
    }
}

/// Samples use CPU time and CLOCK_MONOTONIC, so setting the wall clock changes nothing.
#[test]
fn a_wall_clock_that_is_set_back() {
    let dir = programs(&["Hot.java", "Clock.java"]);
    let library = dir.path().join("step.so");
    run(Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(root().join("tests/programs/step.c")));
    let profile = dir.path().join("profile");
    let output =
        run(profiled(dir.path(), &profile, &OFTEN, &["Clock", "8000"]).env("LD_PRELOAD", &library));
    assert_eq!(output.stdout, b"the clock was set back: true\n");
    assert_eq!(said(&output).lines().count(), 1, "{}", said(&output));
    check_hot(&profile);
}

/// In a time namespace, CLOCK_MONOTONIC differs from the clock of perf_event's timestamps.
#[test]
fn a_container_with_its_own_monotonic_clock() {
    let dir = programs(&["Hot.java"]);
    let profile = dir.path().join("profile");
    let job = profiled(dir.path(), &profile, &OFTEN, &["Hot", "5000"]);
    let namespaces = ["--time", "--monotonic", "100000", "--fork"];
    let output = run(&mut inside(&namespaces, ":", &job));
    assert_eq!(output.stdout, b"true profile: sum 5000\n");
    check_hot(&profile);
}
