//! `unfuse export --push --every` while a job runs.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use unfuse_tests::{record_check, root, run, unfuse};

/// Samples of folded stacks.
fn samples(folded: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(folded);
    let counts = text.lines().filter_map(|line| line.rsplit_once(' '));
    counts
        .map(|(_, count)| count.parse::<u64>().expect("a number"))
        .sum()
}

#[test]
fn a_running_job_is_sent_once() {
    let home = tempfile::tempdir().expect("a directory");
    let [profile, bodies] = ["profile", "bodies"].map(|name| home.path().join(name));
    fs::create_dir(&bodies).expect("a directory");
    let mut server = Command::new("python3")
        .arg(root().join("tests/programs/receiver.py"))
        .arg(&bodies)
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut port = String::new();
    let said = server.stdout.take().expect("a pipe");
    BufReader::new(said).read_line(&mut port).expect("a port");
    let url = format!("http://127.0.0.1:{}/ingest", port.trim());
    std::thread::scope(|scope| {
        let job = scope.spawn(|| record_check("4.3", &profile, &[], 12, 1));
        while !profile.join("unfuse.json").exists() && !job.is_finished() {
            std::thread::sleep(Duration::from_millis(100));
        }
        let mut export = unfuse();
        export
            .arg("export")
            .arg(&profile)
            .args(["--format", "folded"]);
        run(export.args(["--every", "2s", "--push", &url]));
    });
    server.kill().expect("killed");
    server.wait().expect("ended");
    let bodies = fs::read_dir(&bodies).expect("a directory");
    let sent: Vec<u64> = bodies
        .map(|entry| samples(&fs::read(entry.expect("an entry").path()).expect("a body")))
        .collect();
    let folded = run(unfuse()
        .arg("export")
        .arg(&profile)
        .args(["--format", "folded"]))
    .stdout;
    // It sends while the job runs, and the rest at its end.
    assert!(sent.len() > 2, "{sent:?}");
    assert_eq!(sent.iter().sum::<u64>(), samples(&folded), "{sent:?}");
}
