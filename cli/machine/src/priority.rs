//! Running threads of another process only while a CPU has nothing else to do (SCHED_IDLE), and as usual again.

use std::fs;
use std::io;
use std::time::Duration;

use nix::libc;

/// The nesting of child processes that counts.
const GENERATIONS: usize = 8;

/// A process, not to be confused with a later one of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, in the kernel's ticks since boot.
    started: u64,
}

impl Process {
    /// The process that has this number now.
    pub fn find(pid: u32) -> Option<Self> {
        let started = started(pid)?;
        Some(Self { pid, started })
    }

    /// Whether it still runs.
    pub fn is_there(self) -> bool {
        started(self.pid) == Some(self.started)
    }

    /// Its threads.
    pub fn threads(self) -> Vec<u32> {
        match self.is_there() {
            true => numbers_in(&format!("/proc/{}/task", self.pid)),
            false => Vec::new(),
        }
    }

    /// CPU time of one of its threads; `None` if that has ended, or if the kernel does not count.
    pub fn thread_time(self, tid: u32) -> Option<Duration> {
        let text = fs::read_to_string(format!("/proc/{}/task/{tid}/schedstat", self.pid)).ok()?;
        let ns = text.split_whitespace().next()?.parse().ok()?;
        Some(Duration::from_nanos(ns))
    }

    /// Makes one of its threads wait for idle CPUs; `false` if the thread has ended or has a policy of its own.
    ///
    /// # Errors
    /// The system's.
    pub fn hold_back(self, tid: u32) -> io::Result<bool> {
        let is_own = fs::exists(format!("/proc/{}/task/{tid}", self.pid))?;
        if !is_own || policy(tid) != Some(libc::SCHED_OTHER) {
            return Ok(false);
        }
        set_policy(tid, libc::SCHED_IDLE).map(|()| true)
    }

    /// Lets one of its threads run as usual.
    ///
    /// # Errors
    /// The system's.
    pub fn release(self, tid: u32) -> io::Result<()> {
        if !is_held_back(tid) {
            return Ok(());
        }
        set_policy(tid, libc::SCHED_OTHER)
    }

    /// Its threads, and those of processes below it, that wait for idle CPUs.
    pub fn held_back(self) -> Vec<u32> {
        let mut held = Vec::new();
        let mut processes = vec![self.pid];
        for _ in 0..GENERATIONS {
            let threads: Vec<(u32, u32)> = processes
                .iter()
                .flat_map(|pid| {
                    let threads = numbers_in(&format!("/proc/{pid}/task"));
                    threads.into_iter().map(|tid| (*pid, tid))
                })
                .collect();
            let waiting = threads.iter().map(|(_, tid)| *tid);
            held.extend(waiting.filter(|tid| is_held_back(*tid)));
            processes = threads
                .iter()
                .flat_map(|(pid, tid)| children(*pid, *tid))
                .collect();
            if processes.is_empty() {
                break;
            }
        }
        held
    }

    /// Lets all of its threads run as usual, and those of processes below it: a thread that another one starts inherits its policy.
    ///
    /// # Errors
    /// The system's, of the last thread that could not be changed.
    pub fn release_all(self) -> io::Result<()> {
        if !self.is_there() {
            return Ok(());
        }
        let mut result = Ok(());
        for tid in self.held_back() {
            match set_policy(tid, libc::SCHED_OTHER) {
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
                Err(e) => result = Err(e),
                Ok(()) => {}
            }
        }
        result
    }
}

/// Whether this process may undo what [`Process::hold_back`] does. Tries it on a thread of its own.
pub fn may_release() -> bool {
    let tried = std::thread::spawn(|| {
        is_held_back(0)
            || (set_policy(0, libc::SCHED_IDLE).is_ok() && set_policy(0, libc::SCHED_OTHER).is_ok())
    });
    tried.join().unwrap_or(false)
}

fn started(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after_name = text.rsplit(')').next()?;
    after_name.split_whitespace().nth(19)?.parse().ok()
}

fn numbers_in(dir: &str) -> Vec<u32> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

fn children(pid: u32, tid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
    let numbers = text.split_whitespace();
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// Whether a thread waits for idle CPUs; 0 is the calling thread.
pub(crate) fn is_held_back(tid: u32) -> bool {
    policy(tid) == Some(libc::SCHED_IDLE)
}

/// The scheduling policy of a thread, without flags.
fn policy(tid: u32) -> Option<i32> {
    // SAFETY: takes a number.
    let policy = unsafe { libc::sched_getscheduler(tid.cast_signed()) };
    (policy >= 0).then_some(policy & !libc::SCHED_RESET_ON_FORK)
}

/// Sets the policy of a thread. Its nice value stays.
fn set_policy(tid: u32, policy: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters outlive the call.
    let failed =
        unsafe { libc::sched_setscheduler(tid.cast_signed(), policy, &raw const parameters) };
    match failed {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_with_its_child_is_held_back_and_released() {
        if !may_release() || is_held_back(0) {
            println!("this user may not do it, which is what `may_release` says");
            return;
        }
        let mut shell = Command::new("sh")
            .args(["-c", "read go; sleep 60 & echo $!; wait"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let process = Process::find(shell.id()).unwrap();
        assert!(process.is_there() && process.held_back().is_empty());
        assert!(process.hold_back(process.pid).unwrap());
        assert!(!process.hold_back(process.pid).unwrap(), "it is already");
        assert!(
            !process.hold_back(std::process::id()).unwrap(),
            "not its thread"
        );
        assert_eq!(process.held_back(), [process.pid]);
        // Its child inherits the policy.
        std::io::Write::write_all(&mut shell.stdin.take().unwrap(), b"go\n").unwrap();
        let mut line = String::new();
        let output = shell.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
        assert_eq!(process.held_back().len(), 2);
        process.release_all().unwrap();
        assert!(process.held_back().is_empty());
        let child = Process::find(line.trim().parse().unwrap()).unwrap();
        nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(child.pid.cast_signed()),
            nix::sys::signal::Signal::SIGKILL,
        )
        .unwrap();
        shell.wait().unwrap();
        assert!(!process.is_there() && process.threads().is_empty());
    }
}
