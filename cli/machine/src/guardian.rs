//! Restores settings of the machine however this process ends.
//!
//! A guardian is a separate process that reads undo steps from a pipe. The pipe closes when this process is done, or
//! when it is killed. The guardian then undoes all steps, the last one first. It does so as well if this process is stopped, and was to
//! give a sign of life by then ([`Guardian::expect_again_within`]).

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::unistd::{Pid, setsid};
use serde::{Deserialize, Serialize};

use crate::priority::Process;

/// The line that the guardian prints when it is ready.
const READY: &str = "ready";

/// How long processes may take to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(5);

/// One undo step. The caller sends it before the change, so undoing a change that was never made does nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undo {
    /// Write this text to a file.
    Write {
        /// The file.
        path: PathBuf,
        /// The text before the change.
        text: String,
    },
    /// End the processes of a control group, and remove the group.
    ControlGroup(PathBuf),
    /// Remove a file, or a directory with its contents.
    Remove(PathBuf),
    /// Let the threads of a process that wait for idle CPUs run as usual.
    Priority(Process),
}

/// A line to the guardian.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Message {
    Undo(Undo),
    /// Undo everything if the next line takes longer, ms.
    Lease(u64),
}

/// The side of the pipe that makes the changes.
#[derive(Debug)]
pub struct Guardian {
    process: Child,
    pipe: ChildStdin,
}

impl Guardian {
    /// Starts a guardian. `command` must call [`guard`].
    ///
    /// # Errors
    /// If the guardian does not start.
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

    /// Sends an undo step to the guardian. Call it before the change:
    /// if this process is killed in between, nothing is left behind.
    ///
    /// # Errors
    /// If the guardian has ended. The change must not be made then.
    pub fn will(&mut self, undo: &Undo) -> Result<()> {
        self.send(&Message::Undo(undo.clone()))
    }

    /// Has the guardian undo everything and end if this process sends nothing for this time. To be called again before it is over.
    ///
    /// # Errors
    /// If the guardian has ended.
    pub fn expect_again_within(&mut self, lease: Duration) -> Result<()> {
        self.send(&Message::Lease(lease.as_millis() as u64))
    }

    fn send(&mut self, message: &Message) -> Result<()> {
        let mut line = serde_json::to_string(message)?;
        line.push('\n');
        self.pipe
            .write_all(line.as_bytes())
            .context("the guardian that restores settings is gone")
    }

    /// Has the guardian undo everything, and waits for it.
    ///
    /// # Errors
    /// If a step failed; the guardian has printed which.
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

/// The guardian's work: reads undo steps until the pipe closes, then runs them. It ignores the signals that are
/// meant for the program it guards.
///
/// # Errors
/// If steps failed; the error lists them all.
pub fn guard() -> Result<()> {
    // In its own session the guardian has no terminal, and Ctrl-C does not reach it.
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
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        let lines = std::io::stdin().lock().lines().map_while(Result::ok);
        lines
            .map(|line| sender.send(line))
            .take_while(Result::is_ok)
            .for_each(drop);
    });
    let mut failures = Vec::new();
    for undo in steps(&lines).iter().rev() {
        if let Err(error) = undo.run() {
            failures.push(format!("{error:#}"));
        }
    }
    if !failures.is_empty() {
        bail!("{}", failures.join("\nunfuse: "));
    }
    Ok(())
}

/// The steps that are to be undone, when the pipe closes or a lease ends.
fn steps(lines: &mpsc::Receiver<String>) -> Vec<Undo> {
    let mut steps = Vec::new();
    let mut lease = None;
    loop {
        let line = match lease {
            Some(lease) => lines.recv_timeout(lease),
            None => lines.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let Ok(line) = line else { return steps };
        // The last line may be incomplete. Its change was not made then.
        match serde_json::from_str(&line) {
            Ok(Message::Undo(undo)) => steps.push(undo),
            Ok(Message::Lease(ms)) => lease = Some(Duration::from_millis(ms)),
            Err(_) => {}
        }
    }
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
            Self::Priority(process) => process.release_all().with_context(|| {
                format!(
                    "threads of process {0} still run at idle priority; as root: chrt --all-tasks --other --pid 0 {0}",
                    process.pid
                )
            }),
        }
    }
}

/// A missing file or group was never created.
fn removed(result: std::io::Result<()>) -> std::io::Result<()> {
    match result {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Ends the processes of a control group: sends SIGTERM, and SIGKILL after a while. Returns how many there were.
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
    fn a_lease_ends_without_a_sign_of_life() {
        let (sender, lines) = mpsc::channel();
        let undo = Undo::Remove(PathBuf::from("/nowhere"));
        for message in [Message::Undo(undo.clone()), Message::Lease(1)] {
            sender
                .send(serde_json::to_string(&message).unwrap())
                .unwrap();
        }
        // The other end stays open.
        assert_eq!(steps(&lines), [undo]);
        drop(sender);
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
