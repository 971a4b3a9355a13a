//! Plain Java programs whose true profile is known.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use unfuse_tests::{
    ChurnedClasses, HotTruth, PATIENCE, agent, check_hot, compile, is, jdks, marked, root, run,
    samples, top, unfuse,
};

fn hot(home: &Path, options: &[&str], agent_options: &str, what: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    compile(home, "Hot.java", dir.path());
    let profile = dir.path().join("profile");
    let mut truth = HotTruth::in_dir(dir.path());
    if agent_options.contains("timer") {
        truth = truth.by_ticks();
    }
    let mut command = unfuse();
    command
        .args(["run", "--rate", "1000", "--out"])
        .arg(&profile)
        .args(["--agent-options", agent_options, "--"]);
    command
        .arg(home.join("bin/java"))
        .args(options)
        .args([&truth.option(), "-cp"])
        .arg(dir.path())
        .args(["Hot", "4000"]);
    let output = run(&mut command);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "true profile: sum 4000\n",
        "{what}"
    );
    check_hot(&profile, &truth, 0.8, what);
}

#[test]
fn every_jdk_gives_the_true_profile() {
    for home in jdks() {
        hot(&home, &[], "threads=all", &home.display().to_string());
    }
}

#[test]
fn every_collector_gives_the_true_profile() {
    for home in jdks() {
        for collector in [
            "-XX:+UseSerialGC",
            "-XX:+UseParallelGC",
            "-XX:+UseG1GC",
            "-XX:+UseZGC",
        ] {
            let what = format!("{}: {collector}", home.display());
            hot(&home, &[collector], "threads=all", &what);
        }
    }
}

/// HotSpot's first compiler describes only calls and branches: methods are right, lines coarse.
#[test]
fn code_of_the_first_compiler_has_methods() {
    for home in jdks() {
        let dir = tempfile::tempdir().expect("a directory");
        let truth = HotTruth::in_dir(dir.path());
        let mode = ["-XX:TieredStopAtLevel=1", &truth.option()];
        let counts = methods_of_hot(&home, &mode, dir.path());
        let what = home.display().to_string();
        truth.check_ratio(&dir.path().join("profile"), counts, &what);
    }
}

/// In the interpreter, every bytecode costs about the same: lines of the loops have samples, too.
#[test]
fn interpreted_code_has_methods_and_lines() {
    for home in jdks() {
        let dir = tempfile::tempdir().expect("a directory");
        let (sum, mix) = methods_of_hot(&home, &["-Xint"], dir.path());
        let rows = top(&dir.path().join("profile"), &["--by", "line"]);
        for (method, whole) in [("sum", sum), ("mix", mix)] {
            let hot = samples(&rows, |row| {
                is(row, &marked("Hot.java", &format!("HOT {method}")))
            });
            let share = hot as f64 / whole as f64;
            assert!(
                (0.4..0.95).contains(&share),
                "{}: {share} of {method} in its line",
                home.display()
            );
        }
    }
}

/// Runs Hot in a mode. Returns the samples in `sum` and in `mix`, which must be nearly all.
fn methods_of_hot(home: &Path, mode: &[&str], dir: &Path) -> (u64, u64) {
    compile(home, "Hot.java", dir);
    let profile = dir.join("profile");
    let mut command = unfuse();
    command
        .args(["run", "--rate", "1000", "--out"])
        .arg(&profile)
        .arg("--")
        .arg(home.join("bin/java"));
    run(command.args(mode).arg("-cp").arg(dir).args(["Hot", "4000"]));
    let rows = top(&profile, &["--by", "line"]);
    let of = |method: &str| samples(&rows, |row| is(row, method));
    let (sum, mix, all) = (of("Hot.sum("), of("Hot.mix("), of(""));
    assert!(
        (sum + mix) as f64 > 0.85 * all as f64,
        "{} {mode:?}: {sum} + {mix} of {all}",
        home.display()
    );
    (sum, mix)
}

#[test]
fn cpu_timers_give_the_same_files() {
    hot(&jdks()[0], &[], "source=timer", "source=timer");
}

#[test]
fn classes_without_line_tables_still_have_methods() {
    let home = &jdks()[0];
    let dir = tempfile::tempdir().expect("a directory");
    let source = root().join("tests/programs/Hot.java");
    run(Command::new(home.join("bin/javac"))
        .args(["-g:none", "-d"])
        .arg(dir.path())
        .arg(source));
    let profile = dir.path().join("profile");
    let mut command = unfuse();
    command
        .args(["run", "--out"])
        .arg(&profile)
        .arg("--")
        .arg(home.join("bin/java"));
    run(command.arg("-cp").arg(dir.path()).args(["Hot", "4000"]));
    let rows = top(&profile, &["--by", "method"]);
    let (hot, all) = (
        samples(&rows, |row| is(row, "Hot.")),
        samples(&rows, |_| true),
    );
    assert!(
        hot as f64 > 0.8 * all as f64,
        "{hot} of {all} samples in Hot"
    );
}

/// Code is compiled and unloaded all the time. No sample may name a class that did not run then.
#[test]
fn churning_classes_never_give_a_wrong_method() {
    for home in jdks() {
        let what = home.display().to_string();
        let options = ["--agent-options", "map=8"];
        let (ran, compared) = ChurnedClasses::profiled(&home, &options, &["-Xmx256m"], 15_000);
        assert!(ran.classes() > 100, "{} came and went", ran.classes());
        compared.check(&what);
    }
}

/// After SIGKILL, the samples until then are readable.
#[test]
fn a_killed_jvm_leaves_its_profile() {
    let home = &jdks()[0];
    let dir = tempfile::tempdir().expect("a directory");
    compile(home, "Hot.java", dir.path());
    let profile = dir.path().join("profile");
    let truth = HotTruth::in_dir(dir.path());
    let flag = format!("-agentpath:{}=dir={}", agent().display(), profile.display());
    let mut java = Command::new(home.join("bin/java"))
        .args([&flag, &truth.option()])
        .arg("-cp")
        .arg(dir.path())
        .args(["Hot", "60000"])
        .spawn()
        .expect("java starts");
    // The JVM's start takes tenths of a second of the same thread's CPU time.
    truth.wait_for(Duration::from_secs(6));
    java.kill().expect("a running JVM");
    java.wait().expect("a killed JVM");
    let until = Instant::now() + PATIENCE;
    while std::fs::read_dir(profile.join("live")).is_ok_and(|mut live| live.next().is_some()) {
        assert!(Instant::now() < until, "the writer is still at work");
        std::thread::sleep(Duration::from_millis(50));
    }
    check_hot(&profile, &truth, 0.8, "killed");
}
