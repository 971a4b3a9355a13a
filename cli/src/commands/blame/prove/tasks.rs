//! The tasks of two queries in the JVMs of this host: their CPU time, and holding back those of one.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use unfuse_contention::ProofSlice;
use unfuse_machine::priority::Process;
use unfuse_profiler::{PauseError, RunningTask, running_tasks};

/// How long a profiler may give no answer, as on a host whose CPUs are all busy.
const PATIENCE: Duration = Duration::from_secs(2);

/// A thread that has run a task.
#[derive(Debug)]
struct TaskThread {
    /// The SQL execution of the task that it ran at the last look.
    execution: i64,
    /// Its CPU time then.
    used: Duration,
    /// Whether it waits for idle CPUs.
    is_held: bool,
}

/// The two queries of an experiment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    pub(super) victim: i64,
    pub(super) culprit: i64,
}

/// The queries of which tasks were seen.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) victim: bool,
    pub(super) culprit: bool,
}

impl Seen {
    /// Those of either.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            victim: self.victim || other.victim,
            culprit: self.culprit || other.culprit,
        }
    }

    /// Whether tasks of both queries were seen.
    pub(super) fn has_both(self) -> bool {
        self.victim && self.culprit
    }
}

/// The tasks of JVMs.
#[derive(Debug)]
pub(super) struct Tasks {
    /// With the time of the last answer of each.
    jvms: Vec<(Process, Instant)>,
    queries: Pair,
    threads: HashMap<(u32, u32), TaskThread>,
    /// CPU time since it was last taken.
    used: ProofSlice,
    /// Which tasks were seen since then.
    seen: Seen,
}

impl Tasks {
    pub(super) fn new(jvms: Vec<Process>, queries: Pair) -> Self {
        let now = Instant::now();
        Self {
            jvms: jvms.into_iter().map(|jvm| (jvm, now)).collect(),
            queries,
            threads: HashMap::new(),
            used: ProofSlice::default(),
            seen: Seen::default(),
        }
    }

    /// Looks at all threads: adds the CPU time since the last look to the query whose task a thread ran then, and with `hold` makes
    /// those that run a task of the culprit now wait for idle CPUs. Threads that have gone on to something else run as usual.
    ///
    /// # Errors
    /// If the profiler of a JVM has given no answer for a while, or a thread cannot be changed. JVMs that have ended are forgotten.
    pub(super) fn look(&mut self, hold: bool) -> Result<()> {
        for (jvm, answered) in std::mem::take(&mut self.jvms) {
            match running_tasks(jvm.pid) {
                Ok(tasks) => {
                    self.jvms.push((jvm, Instant::now()));
                    self.look_at(jvm, &tasks, hold)?;
                }
                Err(PauseError::NoProcess(_) | PauseError::NotProfiled(_)) => {}
                // A JVM that ends closes the connection.
                Err(_) if !jvm.is_there() => {}
                Err(_) if answered.elapsed() < PATIENCE => self.jvms.push((jvm, answered)),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn look_at(&mut self, jvm: Process, running: &[RunningTask], hold: bool) -> Result<()> {
        let mut executions: HashMap<u32, i64> = running
            .iter()
            .map(|task| (task.tid, task.execution))
            .collect();
        let known = self.threads.keys().filter(|(pid, _)| *pid == jvm.pid);
        for (_, tid) in known {
            // No task runs there any more.
            executions.entry(*tid).or_insert(-1);
        }
        for (tid, execution) in executions {
            let key = (jvm.pid, tid);
            let Some(used) = jvm.thread_time(tid) else {
                self.threads.remove(&key);
                continue;
            };
            let thread = self.threads.entry(key).or_insert(TaskThread {
                execution,
                used,
                is_held: false,
            });
            let seconds = used.saturating_sub(thread.used).as_secs_f64();
            if thread.execution == self.queries.victim {
                self.used.victim_cpu_s += seconds;
                self.seen.victim = true;
            } else if thread.execution == self.queries.culprit {
                self.used.culprit_cpu_s += seconds;
                self.seen.culprit = true;
            }
            (thread.execution, thread.used) = (execution, used);
            let is_to_be_held = hold && execution == self.queries.culprit;
            if is_to_be_held && !thread.is_held {
                thread.is_held = jvm.hold_back(tid).with_context(|| refusal(jvm))?;
            } else if !is_to_be_held && thread.is_held {
                jvm.release(tid).with_context(|| refusal(jvm))?;
                thread.is_held = false;
            }
        }
        Ok(())
    }

    /// Lets all threads of the JVMs run as usual, also those that held threads have started.
    pub(super) fn release(&mut self) -> Result<()> {
        for thread in self.threads.values_mut() {
            thread.is_held = false;
        }
        for (jvm, _) in &self.jvms {
            jvm.release_all().with_context(|| refusal(*jvm))?;
        }
        Ok(())
    }

    /// What the queries used since this was last asked, and which tasks were seen.
    pub(super) fn take(&mut self) -> (ProofSlice, Seen) {
        (
            std::mem::take(&mut self.used),
            std::mem::take(&mut self.seen),
        )
    }

    /// Whether all JVMs have ended.
    pub(super) fn have_ended(&self) -> bool {
        self.jvms.is_empty()
    }
}

fn refusal(jvm: Process) -> String {
    format!(
        "cannot change the priority of a thread of process {}",
        jvm.pid
    )
}
