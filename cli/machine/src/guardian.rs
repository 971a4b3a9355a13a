//! Settings of the machine that are put back however this process ends.
//!
//! A guardian is a process of its own that reads from a pipe what must be undone. When the pipe closes, since all is
//! done or since the process at the other end was killed, it undoes everything, the last first.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::unistd::{Pid, setsid};
use serde::{Deserialize, Serialize};

/// What it says when it listens.
const READY: &str = "ready";

/// How long processes may take to end when they are asked to.
const PATIENCE: Duration = Duration::from_secs(5);

/// How something is put back. It may be told before it is done, so undoing what was not done does nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undo {
    /// A file gets this text.
    Write {
        /// The file.
        path: PathBuf,
        /// What was in it.
        text: String,
    },
    /// Processes in a control group are ended, and it is removed.
    ControlGroup(PathBuf),
    /// A file or directory is removed with all that is in it.
    Remove(PathBuf),
}

/// The end of the pipe at which settings are made.
#[derive(Debug)]
pub struct Guardian {
    process: Child,
    pipe: ChildStdin,
}

impl Guardian {
    /// Starts one: a command that calls [`guard`].
    ///
    /// # Errors
    /// If it does not come up.
    pub fn start(mut command: Command) -> Result<Self> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the guardian that restores settings cannot be started")?;
        let (Some(pipe), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            bail!("the guardian has no pipes");
        };
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        if line.trim() != READY {
            bail!("the guardian that restores settings did not come up");
        }
        Ok(Self { process, pipe })
    }

    /// Tells it what to undo. Call it before the change: whoever is killed in between leaves nothing behind.
    ///
    /// # Errors
    /// If the guardian is gone; then nothing may be changed.
    pub fn will(&mut self, undo: &Undo) -> Result<()> {
        let mut line = serde_json::to_string(undo)?;
        line.push('\n');
        self.pipe
            .write_all(line.as_bytes())
            .context("the guardian that restores settings is gone")
    }

    /// Has everything undone, and waits for it.
    ///
    /// # Errors
    /// If something could not be; the guardian has said what.
    pub fn restore(self) -> Result<()> {
        let Self { mut process, pipe } = self;
        drop(pipe);
        let status = process.wait()?;
        if !status.success() {
            bail!("not all settings could be restored; see above");
        }
        Ok(())
    }
}

/// The guardian's work: reads what to undo until the pipe closes, then undoes it. It outlives signals that are meant
/// for the program it watches.
///
/// # Errors
/// With all that could not be undone.
pub fn guard() -> Result<()> {
    // A session of its own: no terminal, and not in the group that Ctrl-C is sent to.
    let _ = setsid();
    for ignored in [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGQUIT,
        Signal::SIGPIPE,
    ] {
        // SAFETY: ignoring installs no handler.
        let _ = unsafe { signal(ignored, SigHandler::SigIgn) };
    }
    println!("{READY}");
    let told: Vec<String> = std::io::stdin()
        .lock()
        .lines()
        .map_while(Result::ok)
        .collect();
    let mut failures = Vec::new();
    for line in told.iter().rev() {
        // The last line may be torn: then what it announces was not done.
        let Ok(undo) = serde_json::from_str::<Undo>(line) else {
            continue;
        };
        if let Err(error) = undo.run() {
            failures.push(format!("{error:#}"));
        }
    }
    if !failures.is_empty() {
        bail!("{}", failures.join("\nunfuse: "));
    }
    Ok(())
}

impl Undo {
    fn run(&self) -> Result<()> {
        match self {
            Self::Write { path, text } => fs::write(path, text)
                .with_context(|| format!("{text:?} could not be restored in {}", path.display())),
            Self::ControlGroup(dir) => {
                end_all(dir);
                removed(fs::remove_dir(dir))
                    .with_context(|| format!("{} could not be removed; rmdir it", dir.display()))
            }
            Self::Remove(path) => {
                let is_dir = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
                let result = match is_dir {
                    true => fs::remove_dir_all(path),
                    false => fs::remove_file(path),
                };
                removed(result).with_context(|| format!("{} could not be removed", path.display()))
            }
        }
    }
}

/// What is not there was not made.
fn removed(result: std::io::Result<()>) -> std::io::Result<()> {
    match result {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Ends the processes of a control group: asks them, and after a while kills them. Says how many there were.
pub fn end_all(group: &Path) -> usize {
    let members = || -> Vec<Pid> {
        let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        text.lines()
            .filter_map(|line| line.parse().ok())
            .map(Pid::from_raw)
            .collect()
    };
    let begun = Instant::now();
    let first = members();
    for pid in &first {
        let _ = kill(*pid, Signal::SIGTERM);
    }
    loop {
        let left = members();
        if left.is_empty() || begun.elapsed() > 2 * PATIENCE {
            return first.len();
        }
        if begun.elapsed() > PATIENCE {
            for pid in left {
                let _ = kill(pid, Signal::SIGKILL);
            }
        }
        sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_done_is_undone_without_complaint() {
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("gone");
        assert!(Undo::Remove(gone.clone()).run().is_ok());
        assert!(Undo::ControlGroup(gone.clone()).run().is_ok());
        let text = "x".to_owned();
        let lost = Undo::Write {
            path: gone.join("file"),
            text,
        }
        .run();
        assert!(
            lost.unwrap_err()
                .to_string()
                .contains("could not be restored")
        );
    }

    #[test]
    fn files_and_directories_are_put_back() {
        let dir = tempfile::tempdir().unwrap();
        let (file, tree) = (dir.path().join("file"), dir.path().join("tree"));
        fs::write(&file, "new").unwrap();
        fs::create_dir_all(tree.join("in")).unwrap();
        let text = "old".to_owned();
        Undo::Write {
            path: file.clone(),
            text,
        }
        .run()
        .unwrap();
        Undo::Remove(tree.clone()).run().unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"old");
        assert!(!tree.exists());
    }
}
