//! Commands that answer while an application runs.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use unfuse_format::{LiveMarker, ProfileDir, latest_processes, units};

use crate::remote;

/// How long a JVM may take from creating its profile to its first write.
const BEGINNING: Duration = Duration::from_secs(5);

/// Calls `answer` again and again until no JVM writes to the profile, and once more after that. `answer` gets the local
/// directory of the profile and whether a JVM still writes to it.
///
/// # Errors
/// Those of the last call. Earlier ones are printed: a profile that has just begun may have no answer yet.
pub fn follow(
    dir: &Path,
    every: Duration,
    mut answer: impl FnMut(&Path, bool) -> Result<()>,
) -> Result<()> {
    let started = Instant::now();
    let mut has_answered = false;
    loop {
        let root = match remote::local(dir) {
            // A file system can be away for a while.
            Err(error) if has_answered => {
                crate::say!("unfuse: no answer yet: {error:#}");
                std::thread::sleep(every);
                continue;
            }
            root => root?,
        };
        let running = is_running(dir, &root)? || started.elapsed() < BEGINNING;
        match answer(&root, running) {
            Err(error) if running => crate::say!("unfuse: no answer yet: {error:#}"),
            answered => {
                answered?;
                has_answered = true;
            }
        }
        if !running {
            return Ok(());
        }
        std::thread::sleep(every);
    }
}

/// Whether the profile still grows. A profile at a URI or an event log has JVMs that are not visible here. Its drivers
/// record when they end.
fn is_running(dir: &Path, root: &Path) -> Result<bool> {
    let profile = ProfileDir::open(root)?;
    if root == dir {
        return Ok(!LiveMarker::at_work(&profile).is_empty());
    }
    let processes = latest_processes(profile.read()?.rows);
    let mut drivers = processes.iter().filter(|row| row.executor == "driver");
    Ok(drivers.any(|row| row.ended == Some(false)))
}

/// The time between two answers, of a command line.
pub fn interval(text: &str) -> Result<Duration, String> {
    let interval = units::parse_duration(text)?;
    if interval < Duration::from_secs(1) {
        return Err("a duration of at least 1s is expected".to_owned());
    }
    Ok(interval)
}
