//! Faults of inputs and of the environment, and the messages about them. The profiled job never fails because of them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use unfuse_tests::{PATIENCE, agent, compile, jdks, run, top, unfuse};

fn fails(command: &mut Command, says: &[&str]) {
    let output = command.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success(),
        "{command:?} should fail; it said {text}"
    );
    assert!(text.starts_with("unfuse: "), "{text}");
    for part in says {
        assert!(
            text.contains(part),
            "{command:?}: {part:?} is missing in: {text}"
        );
    }
}

/// A real profile of a short plain Java run.
fn small_profile(dir: &Path) -> std::path::PathBuf {
    let home = &jdks()[0];
    compile(home, "Hot.java", dir);
    let profile = dir.join("profile");
    run(unfuse()
        .args(["run", "--out"])
        .arg(&profile)
        .arg("--")
        .arg(home.join("bin/java"))
        .arg("-cp")
        .arg(dir)
        .args(["Hot", "1200"]));
    profile
}

/// Runs Hot with the agent's flag. The job's result must be the same with any options.
fn hot_with(options: &str, dir: &Path) -> Output {
    let home = &jdks()[0];
    compile(home, "Hot.java", dir);
    let flag = format!("-agentpath:{}={options}", agent().display());
    let output = run(Command::new(home.join("bin/java"))
        .arg(flag)
        .arg("-cp")
        .arg(dir)
        .args(["Hot", "600"]));
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "true profile: sum 600\n"
    );
    output
}

#[test]
fn directories_that_are_no_profiles() {
    let dir = tempfile::tempdir().expect("a directory");
    for command in [
        &["top"][..],
        &["source"],
        &["export", "--format", "folded"],
        &["flame", "-o", "/dev/null"],
    ] {
        fails(
            unfuse().args(command).arg(dir.path()),
            &["is not an unfuse profile", "unfuse run"],
        );
        fails(
            unfuse().args(command).arg(dir.path().join("nowhere")),
            &["no such directory"],
        );
    }
}

#[test]
fn empty_newer_and_damaged_profiles() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("unfuse.json"), "{\"format\":1}").expect("written");
    fails(
        unfuse().arg("top").arg(dir.path()),
        &["the profile is empty", "doctor"],
    );
    fs::write(dir.path().join("unfuse.json"), "{\"format\":99}").expect("written");
    fails(
        unfuse().arg("top").arg(dir.path()),
        &["format 99", "update unfuse"],
    );
    fs::write(dir.path().join("unfuse.json"), "{\"form").expect("written");
    fails(unfuse().arg("top").arg(dir.path()), &["damaged"]);
}

#[test]
fn a_torn_segment_is_left_out_and_the_rest_is_used() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = small_profile(dir.path());
    let before = top(&profile, &["--by", "line"]);
    let segment = fs::read_dir(profile.join("samples"))
        .expect("samples")
        .flatten()
        .next()
        .expect("one")
        .path();
    let bytes = fs::read(&segment).expect("read");
    fs::write(
        profile.join("samples/torn-1-00000.parquet"),
        &bytes[..bytes.len() / 2],
    )
    .expect("written");
    let output = run(unfuse()
        .args(["top", "--json", "--by", "line"])
        .arg(&profile));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("torn-1-00000.parquet: left out"), "{text}");
    let after: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(after.as_array().expect("rows"), &before);
}

#[test]
fn selections_that_are_not_there_and_places_that_cannot_be_written() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = small_profile(dir.path());
    fails(
        unfuse().arg("top").arg(&profile).args(["--query", "77"]),
        &["no samples of that query", "queries none"],
    );
    fails(
        unfuse()
            .arg("flame")
            .arg(&profile)
            .args(["-o", "/nowhere/x.svg"]),
        &["/nowhere/x.svg", "choose another"],
    );
    fails(
        unfuse().args(["run", "--out", "/proc/nowhere", "--", "java", "-version"]),
        &["/proc/nowhere", "-o (or dir=)"],
    );
    fails(
        unfuse().arg("source").arg(&profile),
        &["generated code", "--by method"],
    );
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = small_profile(dir.path());
    let top = format!(
        "{} top {} --by line | true",
        unfuse().get_program().to_string_lossy(),
        profile.display()
    );
    let output = run(Command::new("bash").args(["-o", "pipefail", "-c", &top]));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn unknown_agent_options_are_said_and_ignored() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let output = hot_with(&format!("colour=red,dir={}", profile.display()), dir.path());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        text.contains("unfuse: unknown option \"colour\" ignored"),
        "{text}"
    );
    assert!(profile.join("unfuse.json").exists());
}

#[test]
fn a_directory_that_cannot_be_written_does_not_stop_the_job() {
    let dir = tempfile::tempdir().expect("a directory");
    let output = hot_with("dir=/proc/nowhere", dir.path());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        text.contains("unfuse: not profiling: cannot write the profile to /proc/nowhere"),
        "{text}"
    );
}

/// Python code that runs a command with a seccomp filter against perf_event_open, as containers have. A classic BPF
/// filter: EACCES for perf_event_open (298 on x86-64), everything else allowed.
pub const WITHOUT_PERF_EVENT: &str = "import ctypes, os, struct, sys\n\
    libc = ctypes.CDLL(None, use_errno=True)\n\
    code = [(0x20, 0, 0, 0), (0x15, 0, 1, 298), (0x06, 0, 0, 0x0005000d), (0x06, 0, 0, 0x7fff0000)]\n\
    filters = b''.join(struct.pack('HBBI', *c) for c in code)\n\
    buffer = ctypes.create_string_buffer(filters)\n\
    program = struct.pack('HxxxxxxP', len(code), ctypes.addressof(buffer))\n\
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program): sys.exit(3)\n\
    os.execv(sys.argv[1], sys.argv[1:])\n";

#[test]
fn perf_event_denied_falls_back_to_timers() {
    let dir = tempfile::tempdir().expect("a directory");
    let home = &jdks()[0];
    compile(home, "Hot.java", dir.path());
    let profile = dir.path().join("profile");
    let flag = format!("-agentpath:{}=dir={}", agent().display(), profile.display());
    let java = home.join("bin/java");
    let output = run(Command::new("python3")
        .args(["-c", WITHOUT_PERF_EVENT])
        .arg(&java)
        .arg(flag)
        .arg("-cp")
        .arg(dir.path())
        // Two seconds of CPU time, however long that takes.
        .args(["Hot", "2000"]));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        text.contains("perf_event_open is not allowed here"),
        "{text}"
    );
    let until = Instant::now() + PATIENCE;
    while fs::read_dir(profile.join("live")).map_or(true, |mut live| live.next().is_some()) {
        assert!(Instant::now() < until, "the writer is still at work");
        std::thread::sleep(Duration::from_millis(50));
    }
    let rows = top(&profile, &["--by", "method"]);
    let hot = unfuse_tests::samples(&rows, |row| {
        row["operator"]
            .as_str()
            .is_some_and(|n| n.starts_with("Hot."))
    });
    assert!(hot > 200, "{hot} samples in Hot");
}

#[test]
fn a_missing_program_is_said() {
    let dir = tempfile::tempdir().expect("a directory");
    let output = unfuse()
        .args(["run", "--out"])
        .arg(dir.path().join("p"))
        .args(["--", "no-such-program"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot run no-such-program"));
}

#[test]
fn doctor_says_what_it_found() {
    let output = run(unfuse().args(["doctor", "--spark"]));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in [
        "perf_event",
        "libunfuse.so",
        "the agent loads",
        "Spark plugin",
        "no regions=exact",
    ] {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
}
