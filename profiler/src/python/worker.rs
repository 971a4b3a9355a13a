//! One worker process: its CPU clock, its job, and the samples that were taken in it.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use unfuse_format::StackId;

use super::interpreter::{Call, Interpreter};
use super::state::{Born, RunState};
use crate::clock::process_cpu_ns;
use crate::wire::{PythonJob, WirePiece, WireSamples};

/// How often a worker is tried to be opened. It may still be starting.
const TRIES: u32 = 5;
/// Time between two tries.
const AGAIN: Duration = Duration::from_millis(200);

/// A worker process.
pub(super) struct Worker {
    pid: u32,
    born: Born,
    state: RunState,
    access: Access,
    /// CPU time up to the last sample, or up to the begin of the job, ns.
    counted_ns: u64,
    pub(super) job: Option<Job>,
    /// When it got its last job.
    pub(super) used: Instant,
}

/// Whether its interpreter can be read.
enum Access {
    /// Not tried often enough yet.
    Untried(u32, Instant),
    Open(Box<Interpreter>),
    Refused,
}

/// What a worker does for a task.
pub(super) struct Job {
    pub(super) job: PythonJob,
    /// Frames of Spark's code, innermost first.
    pub(super) callers: WirePiece,
    /// The worker's CPU time when it got the job.
    begun_ns: u64,
    /// CPU time that is not a whole sample yet, ns.
    rest_ns: u64,
    /// Sums that are not sent yet.
    pub(super) rows: HashMap<StackId, WireSamples>,
}

/// A stack, and the CPU time for which it stands.
pub(super) struct Sample {
    /// Outermost first.
    pub(super) stack: Vec<Call>,
    pub(super) ns: u64,
}

/// What a look at a worker found.
pub(super) enum Found {
    /// It has used little CPU time since the last sample; so much more makes the next one, ns.
    Nothing(u64),
    /// It has used CPU time, and there is no stack.
    Unknown,
    Sampled(Sample),
}

impl Worker {
    /// A process without a job; `None` if it has ended.
    pub(super) fn new(pid: u32) -> Option<Self> {
        let now = Instant::now();
        Some(Self {
            pid,
            born: Born::of(pid)?,
            state: RunState::open(pid).ok()?,
            access: Access::Untried(0, now),
            counted_ns: process_cpu_ns(pid)?,
            job: None,
            used: now,
        })
    }

    /// Whether the process is still the one that it was.
    pub(super) fn is_alive(&self) -> bool {
        Born::of(self.pid).is_some_and(|born| born.is_same(self.born))
    }

    /// Gives it a job. CPU time that no sample stands for yet, at most a period, goes on to a job of the same stage, so
    /// that many short tasks are sampled as one long one is.
    pub(super) fn begin(&mut self, job: PythonJob, callers: WirePiece, period_ns: u64) {
        if let Some(same) = self.job.as_mut().filter(|before| before.job == job) {
            // Another part of the task has got the worker.
            same.callers = callers;
            return;
        }
        let now = process_cpu_ns(self.pid).unwrap_or(self.counted_ns);
        let before = self.job.as_ref();
        let stage = |job: PythonJob| (job.task.stage, job.task.stage_attempt);
        let goes_on = before.is_some_and(|before| stage(before.job) == stage(job));
        let rest_ns = before.map_or(0, |before| before.rest_ns);
        self.counted_ns = match goes_on {
            true => self.counted_ns.max(now.saturating_sub(period_ns)),
            false => now,
        };
        self.used = Instant::now();
        self.job = Some(Job {
            job,
            callers,
            begun_ns: now,
            rest_ns,
            rows: HashMap::new(),
        });
    }

    /// CPU time since the begin of the job, ns.
    pub(super) fn used_ns(&self) -> u64 {
        let begun = self.job.as_ref().map(|job| job.begun_ns);
        let now = process_cpu_ns(self.pid).unwrap_or(self.counted_ns);
        begun.map_or(0, |begun| now.saturating_sub(begun))
    }

    /// Takes a sample if the worker has used `least` ns of CPU time since the last one and runs now.
    pub(super) fn look(&mut self, least: u64) -> Found {
        let Some(before) = process_cpu_ns(self.pid) else {
            return Found::Nothing(least);
        };
        let ns = before.saturating_sub(self.counted_ns);
        if ns < least {
            return Found::Nothing(least - ns);
        }
        let Access::Open(interpreter) = &mut self.access else {
            return Found::Unknown;
        };
        let stack = interpreter.stack();
        // A stack of a process that waits would get the time of what it did before.
        let has_run = process_cpu_ns(self.pid).is_some_and(|after| after > before);
        let runs = || has_run || self.state.runs();
        match stack.filter(|_| runs()) {
            Some(stack) => {
                self.counted_ns = before;
                Found::Sampled(Sample { stack, ns })
            }
            None => Found::Unknown,
        }
    }

    /// Ignores the CPU time up to now.
    pub(super) fn skip(&mut self) {
        self.counted_ns = process_cpu_ns(self.pid).unwrap_or(self.counted_ns);
    }

    /// Opens its interpreter, if that is due: by another that was forked from the same process, or by itself. Returns the
    /// error if it is the last one.
    pub(super) fn open(&mut self, others: &HashMap<u32, Self>) -> Option<io::Error> {
        let Access::Untried(tries, due) = self.access else {
            return None;
        };
        if Instant::now() < due {
            return None;
        }
        let sibling = others.values().find_map(|other| match &other.access {
            Access::Open(open) => open.of_sibling(self.pid, self.born),
            _ => None,
        });
        let opened = match sibling {
            Some(sibling) => Ok(sibling),
            None => Interpreter::open(self.pid, self.born),
        };
        match opened {
            Ok(interpreter) => {
                self.access = Access::Open(Box::new(interpreter));
                None
            }
            // Where reading is not allowed, it will not be.
            Err(e) if e.raw_os_error() == Some(libc::EPERM) || tries + 1 >= TRIES => {
                self.access = Access::Refused;
                process_cpu_ns(self.pid).map(|_| e)
            }
            Err(_) => {
                self.access = Access::Untried(tries + 1, Instant::now() + AGAIN);
                None
            }
        }
    }
}

impl Job {
    /// Adds a sample with this stack.
    pub(super) fn add(&mut self, stack: StackId, (time, ns): (u64, u64), period_ns: u64) {
        self.rest_ns += ns;
        let count = self.rest_ns / period_ns;
        self.rest_ns %= period_ns;
        let row = self.rows.entry(stack).or_insert(WireSamples {
            task: Some(self.job.task),
            stack,
            waiting: false,
            first: time.saturating_sub(ns),
            last: time,
            count: 0,
            weight_ns: 0,
        });
        row.last = time;
        row.count += count;
        row.weight_ns = row.weight_ns.saturating_add(ns);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::wire::TaskAttempt;

    const PERIOD: u64 = 2_000_000;

    /// Two processes, the second forked from the first, which compute at line 5 and report their numbers.
    const PROGRAM: &str = "
import os, sys
def compute(value):
    while True:
        value = (value * 31 + 7) % 1000003
child = os.fork()
if child:
    print(os.getpid(), child, flush=True)
compute(1)
";

    struct Two(Child, [u32; 2]);

    impl Two {
        fn start() -> Self {
            let mut parent = Command::new("python3")
                .args(["-c", PROGRAM])
                .stdout(Stdio::piped())
                .spawn()
                .expect("python3 runs");
            let mut line = String::new();
            let output = parent.stdout.take().expect("a pipe");
            std::io::BufRead::read_line(&mut io::BufReader::new(output), &mut line).unwrap();
            let mut numbers = line.split_whitespace().map(|word| word.parse().unwrap());
            let both = [numbers.next().unwrap(), numbers.next().unwrap()];
            Self(parent, both)
        }
    }

    impl Drop for Two {
        fn drop(&mut self) {
            for pid in self.1 {
                let pid = nix::unistd::Pid::from_raw(pid.cast_signed());
                let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
            }
            let _ = self.0.wait();
        }
    }

    fn job(pid: u32, stage: i32) -> PythonJob {
        PythonJob {
            task: TaskAttempt {
                stage,
                stage_attempt: 0,
                task: 1,
            },
            pid,
        }
    }

    fn sample(worker: &mut Worker, others: &HashMap<u32, Worker>) -> Sample {
        let until = Instant::now() + Duration::from_secs(120);
        loop {
            match worker.look(PERIOD) {
                Found::Sampled(sample) => return sample,
                Found::Unknown => {
                    assert!(worker.open(others).is_none(), "it can be read");
                }
                Found::Nothing(_) => {}
            }
            assert!(Instant::now() < until);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn lines_of_a_process_and_of_its_sibling_are_sampled_by_their_cpu_time() {
        let two = Two::start();
        let mut workers = HashMap::new();
        for pid in two.1 {
            let mut worker = Worker::new(pid).unwrap();
            worker.begin(job(pid, 1), WirePiece::from([]), PERIOD);
            let before = process_cpu_ns(pid).unwrap();
            let mut ns = 0;
            for _ in 0..20 {
                let sample = sample(&mut worker, &workers);
                let innermost = sample.stack.last().unwrap();
                assert_eq!(innermost.function.name, "compute");
                assert!([4, 5].contains(&innermost.line), "{innermost:?}");
                ns += sample.ns;
            }
            let used = worker.used_ns();
            assert!(ns <= used, "{ns} of {used}");
            assert!(process_cpu_ns(pid).unwrap() > before);
            assert!(worker.is_alive());
            workers.insert(pid, worker);
        }
        let [first, second] = two.1.map(|pid| Born::of(pid).unwrap());
        let Access::Open(open) = &workers[&two.1[0]].access else {
            panic!("it is open")
        };
        assert!(open.of_sibling(two.1[1], second).is_some());
        let other = Born::of(std::process::id()).unwrap();
        assert!(open.of_sibling(std::process::id(), other).is_none());
        assert!(first.is_same(Born::of(two.1[0]).unwrap()));
        let parent = two.1[0];
        drop(two);
        assert!(!workers[&parent].is_alive());
    }

    #[test]
    fn what_is_no_interpreter_is_refused_after_some_tries() {
        let mut sleeper = Command::new("sh")
            .args(["-c", "echo; while :; do :; done"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // A process that has just started a program may not have its addresses yet.
        let mut output = io::BufReader::new(sleeper.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut output, &mut String::new()).unwrap();
        let mut worker = Worker::new(sleeper.id()).unwrap();
        worker.begin(job(sleeper.id(), 1), WirePiece::from([]), PERIOD);
        let mut refused = None;
        for _ in 0..TRIES {
            if let Access::Untried(_, due) = &mut worker.access {
                *due = Instant::now();
            }
            refused = worker.open(&HashMap::new());
        }
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert_eq!(refused.and_then(|e| e.raw_os_error()), Some(libc::ENOEXEC));
        assert!(matches!(worker.access, Access::Refused));
        assert!(Worker::new(sleeper.id()).is_none());
    }

    #[test]
    fn short_tasks_of_a_stage_share_a_period() {
        let own = std::process::id();
        let mut worker = Worker::new(own).unwrap();
        worker.begin(job(own, 1), WirePiece::from([]), PERIOD);
        let counted = worker.counted_ns;
        while process_cpu_ns(own).unwrap() < counted + 3 * PERIOD {}
        let next = PythonJob {
            task: TaskAttempt {
                task: 2,
                ..job(own, 1).task
            },
            pid: own,
        };
        worker.begin(next, WirePiece::from([]), PERIOD);
        let left = process_cpu_ns(own).unwrap() - worker.counted_ns;
        assert!(left >= PERIOD && worker.counted_ns > counted, "{left}");
        worker.begin(job(own, 2), WirePiece::from([]), PERIOD);
        assert_eq!(worker.counted_ns, worker.job.as_ref().unwrap().begun_ns);
    }
}
