//! `unfuse pause` and `unfuse resume` on a program that computes all the time.

use std::process::{Command, Stdio};
use std::time::Duration;

use unfuse_tests::{HotTruth, Mark, agent, compile, is, jdks, run, top, unfuse};

/// CPU time of the program in each part: before, during and after the pause.
const PART: Duration = Duration::from_secs(2);

/// The message of `unfuse COMMAND --pid PID` if it fails.
fn refusal(command: &mut Command) -> Option<String> {
    let output = command.output().expect("unfuse starts");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then_some(text)
}

#[test]
fn a_pause_has_no_samples() {
    let home = &jdks()[0];
    for source in ["perf", "timer"] {
        let dir = tempfile::tempdir().expect("a directory");
        compile(home, "Hot.java", dir.path());
        let (profile, truth) = (dir.path().join("profile"), HotTruth::in_dir(dir.path()));
        let options = format!(
            "dir={},rate=500,source={source},threads=all",
            profile.display()
        );
        let mut java = Command::new(home.join("bin/java"));
        let mark = Mark::on(&mut java, dir.path());
        let mut java = java
            .arg(format!("-agentpath:{}={options}", agent().display()))
            .args([&truth.option(), "-cp"])
            .arg(dir.path())
            .args(["Hot", "3600000"])
            .stdout(Stdio::null())
            .spawn()
            .expect("java starts");
        let pid = java.id().to_string();
        truth.wait_for(PART);
        run(unfuse().args(["pause", "--pid", &pid]));
        let before = truth.cpu();
        truth.wait_for(before + PART);
        run(unfuse().args(["resume", "--pid", &pid]));
        let paused = truth.cpu() - before;
        truth.wait_for(before + paused + PART);
        truth.stop();
        java.wait().expect("java ends");
        mark.wait_for_end();
        let rows = top(&profile, &["--by", "method"]);
        let of_hot = rows.iter().filter(|row| is(row, "Hot."));
        let sampled: f64 = of_hot
            .map(|row| row["cpu_seconds"].as_f64().expect("seconds"))
            .sum();
        let recorded = (truth.cpu() - paused).as_secs_f64();
        let ratio = sampled / recorded;
        assert!(
            (0.9..1.1).contains(&ratio),
            "{source}: {sampled} s in samples, {recorded} s outside the pause of {paused:?}"
        );
        let said = run(unfuse().arg("top").arg(&profile));
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.contains("recording was paused for"), "{said}");
        let gone = refusal(unfuse().args(["pause", "--pid", &pid])).expect("it has ended");
        assert!(gone.contains(&format!("no process {pid}")), "{gone}");
    }
}

#[test]
fn a_process_without_a_profiler_is_refused() {
    let this = std::process::id().to_string();
    let refused = refusal(unfuse().args(["pause", "--pid", &this])).expect("it is no JVM");
    assert!(refused.contains("is not being profiled"), "{refused}");
}
