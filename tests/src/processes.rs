//! The profiler's processes for one JVM.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::PATIENCE;

const MARK: &str = "UNFUSE_TEST_MARK";

/// Marks a command by an environment variable. The processes that profile its JVMs have the mark,
/// too, because they are forked from the JVM and keep its environment.
#[derive(Debug)]
pub struct Mark(String);

impl Mark {
    /// Marks a command. `unique` is a path or name that no other test uses.
    pub fn on(command: &mut Command, unique: &Path) -> Self {
        let value = unique.display().to_string();
        command.env(MARK, &value);
        Self(format!("{MARK}={value}"))
    }

    /// Pids of the running processes with this mark whose name begins with `name`: `unfuse-manager`,
    /// `unfuse-writer`, `unfuse-s-TID`, `java`.
    pub fn running(&self, name: &str) -> Vec<i32> {
        let processes = fs::read_dir("/proc").expect("/proc").flatten();
        processes
            .filter_map(|entry| {
                let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
                let comm = fs::read_to_string(entry.path().join("comm")).ok()?;
                // The profiler's title is one word here, and not truncated as in `comm`.
                let title = fs::read(entry.path().join("cmdline")).ok()?;
                // The environment of a zombie is empty.
                let environment = fs::read(entry.path().join("environ")).ok()?;
                let marked = environment
                    .split(|b| *b == 0)
                    .any(|variable| variable == self.0.as_bytes());
                let named = comm.starts_with(name) || title.starts_with(name.as_bytes());
                (marked && named).then_some(pid)
            })
            .collect()
    }

    /// Waits for a process with this mark and name.
    ///
    /// # Panics
    /// If there is none after a long time.
    pub fn wait_for(&self, name: &str) -> i32 {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(pid) = self.running(name).first() {
                return *pid;
            }
            assert!(Instant::now() < until, "no {name} came up");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until this number of the marked JVM's threads with `wanted` names have a sampler each.
    ///
    /// # Panics
    /// If this does not happen after a long time.
    pub fn wait_for_samplers(&self, count: usize, wanted: impl Fn(&str) -> bool) {
        let java = self.wait_for("java");
        let until = Instant::now() + PATIENCE;
        loop {
            let samplers = self.running("unfuse-s-").into_iter();
            let titles: HashSet<Vec<u8>> = samplers
                .filter_map(|pid| fs::read(format!("/proc/{pid}/cmdline")).ok())
                .filter_map(|title| Some(title.split(|b| *b == 0).next()?.to_owned()))
                .collect();
            let threads = threads(java, &wanted);
            let sampled = |tid: &&i32| titles.contains(format!("unfuse-s-{tid}").as_bytes());
            let sampled = threads.iter().filter(sampled).count();
            if sampled == count {
                return;
            }
            assert!(
                Instant::now() < until,
                "{sampled} of {} threads have a sampler",
                threads.len()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until no process with this mark is left.
    ///
    /// # Panics
    /// If a process stays.
    pub fn wait_for_end(&self) {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = self.running("");
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < until, "still running: {left:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Starts a process.
///
/// # Panics
/// If it cannot be started.
pub(crate) fn start(command: &mut Command) -> Child {
    command
        .spawn()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

/// Sends a signal to a process.
///
/// # Panics
/// If there is no such process.
pub fn signal(pid: i32, signal: &str) {
    crate::run(Command::new("kill").args([&format!("-{signal}"), &pid.to_string()]));
}

/// The thread of a process with this name in the kernel (15 bytes at most).
pub fn thread(pid: i32, name: &str) -> Option<i32> {
    threads(pid, |comm| comm == name).first().copied()
}

/// CPU time that a thread of a process has used; none after its end.
pub fn cpu_time(pid: i32, thread: i32) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).ok()?;
    let on_cpu = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(on_cpu))
}

/// The threads of a process whose names in the kernel (15 bytes at most) are `wanted`.
pub fn threads(pid: i32, wanted: impl Fn(&str) -> bool) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let named = tasks.into_iter().flatten().flatten().filter_map(|task| {
        let comm = fs::read_to_string(task.path().join("comm")).ok()?;
        wanted(comm.trim_end()).then(|| task.file_name().to_str()?.parse().ok())?
    });
    named.collect()
}
