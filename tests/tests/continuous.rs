//! Profiles of jobs that never end: limits.

use std::fs;
use std::path::Path;
use std::time::Duration;

use unfuse_tests::{compile, jdks, run, top, unfuse};

/// Bytes of the tables that limits are for.
fn size(profile: &Path) -> u64 {
    let tables = fs::read_dir(profile).expect("the profile").flatten();
    tables
        .filter(|table| table.file_name() != "source_index" && table.file_name() != "sources")
        .flat_map(|table| fs::read_dir(table.path()).into_iter().flatten().flatten())
        .filter_map(|segment| Some(segment.metadata().ok()?.len()))
        .sum()
}

#[test]
fn a_profile_stays_within_its_size_and_every_sample_has_its_stack() {
    let home = jdks().remove(0);
    let dir = tempfile::tempdir().expect("a directory");
    compile(&home, "Churn.java", dir.path());
    let profile = dir.path().join("profile");
    let mut command = unfuse();
    command
        .args(["run", "--rate", "1000", "--keep", "1MB", "--out"])
        .arg(&profile)
        .arg("--")
        .arg(home.join("bin/java"))
        .arg("-cp")
        .arg(dir.path())
        .args(["Churn", "90000"]);
    let watched = profile.clone();
    let watch = std::thread::spawn(move || {
        let mut most = 0;
        for _ in 0..80 {
            std::thread::sleep(Duration::from_secs(1));
            most = most.max(size(&watched));
        }
        most
    });
    run(&mut command);
    let most = watch.join().expect("a size");
    // The slack is what a writer writes between two looks: five seconds of 1000 samples each.
    assert!(most < (1 << 20) + (300 << 10), "{most} bytes at most");
    let methods = top(&profile, &["--by", "method"]);
    assert!(!methods.is_empty());
    let lost = methods.iter().find(|row| row["operator"] == "[no frame]");
    assert!(lost.is_none(), "samples without a stack: {lost:?}");
    let generations = |table: &str| {
        let segments = fs::read_dir(profile.join(table)).expect("segments");
        let mut names: Vec<String> = segments
            .flatten()
            .filter_map(|segment| segment.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    };
    assert!(
        generations("samples")[0].contains("-g"),
        "{:?}",
        generations("samples")
    );
    assert_eq!(generations("processes").len(), 1, "only the last word");
}

/// Asserts that `unfuse run` with these options says so and runs nothing.
fn check_refused(options: &[&str], why: &str) {
    let output = unfuse()
        .arg("run")
        .args(options)
        .args(["--", "java", "-version"])
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains(why), "{said}");
}

#[test]
fn limits_that_are_none_are_refused() {
    for (flag, value) in [("--keep", "2"), ("--keep", "1KB"), ("--keep-for", "soon")] {
        check_refused(&[flag, value], "is expected");
    }
}

#[test]
fn limits_of_a_profile_on_a_file_system_of_hadoop_are_refused() {
    for (flag, value) in [("--keep", "1MB"), ("--keep-for", "1h")] {
        check_refused(
            &[flag, value, "--out", "hdfs://nowhere/p"],
            "hold for local directories",
        );
    }
}
