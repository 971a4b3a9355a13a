//! What the kernel says of a worker.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use procfs::process::Process;

/// What identifies a process, and where its program is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Born {
    /// When it started, clock ticks after boot: another process with the same number has another time.
    at: u64,
    /// Addresses of code, stack and heap. Only a process that was forked from another has the same ones: the kernel
    /// chooses them at random when a program starts. They are 1 or 0 if this process may not read the other.
    pub(super) layout: [u64; 3],
}

impl Born {
    /// Of a process; `None` if it has ended.
    pub(super) fn of(pid: u32) -> Option<Self> {
        let stat = Process::new(i32::try_from(pid).ok()?).ok()?.stat().ok()?;
        let heap = stat.start_brk.unwrap_or(0);
        Some(Self {
            at: stat.starttime,
            layout: [stat.startcode, stat.startstack, heap],
        })
    }

    /// Whether both are the same process, if their numbers are.
    pub(super) fn is_same(self, other: Self) -> bool {
        self.at == other.at
    }
}

/// The state of a process's main thread, from a file that stays open.
#[derive(Debug)]
pub(super) struct RunState(File);

impl RunState {
    /// Of a process.
    ///
    /// # Errors
    /// The system's, if it has ended.
    pub(super) fn open(pid: u32) -> io::Result<Self> {
        File::open(format!("/proc/{pid}/stat")).map(Self)
    }

    /// Whether the thread runs or could; false if it has ended.
    pub(super) fn runs(&self) -> bool {
        // The number, the name of at most 64 bytes, and the state are at its begin.
        let mut bytes = [0; 128];
        let read = self.0.read_at(&mut bytes, 0).unwrap_or(0);
        state(&bytes[..read]) == Some(b'R')
    }
}

/// The state in `7 (a name) R 1 …`.
fn state(stat: &[u8]) -> Option<u8> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(end + 2).copied()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_process_runs_or_waits() {
        let mut waits = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let waiting = RunState::open(waits.id()).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while waiting.runs() {
            assert!(Instant::now() < until, "it waits");
        }
        let mut computes = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let computing = RunState::open(computes.id()).unwrap();
        assert!(computing.runs());
        for process in [&mut waits, &mut computes] {
            process.kill().unwrap();
            process.wait().unwrap();
        }
        assert!(!waiting.runs() && !computing.runs());
        assert!(RunState::open(waits.id()).is_err() && Born::of(waits.id()).is_none());
    }

    #[test]
    fn names_do_not_hide_the_state() {
        assert_eq!(state(b"7 (a) S (b) R 1 2"), Some(b'R'));
        assert_eq!(state(b"7 (a)"), None);
        assert_eq!(state(b""), None);
    }
}
