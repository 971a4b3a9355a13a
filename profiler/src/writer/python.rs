//! CPU time of Python processes that work for Spark's tasks.
//!
//! The JVM says which process has begun to work for which task, and when the task ends, how much CPU time the process has
//! used. The sampler of Python workers sends samples for a part of it. The rest becomes samples without lines when both are
//! known, so that no time is counted twice.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::{Pid, getppid};
use serde::Deserialize;
use unfuse_format::{Frame, FrameKind, ProcessRow, SampleRow, StackRow};

use super::tables::{frame, sample_of};
use crate::manager::PYTHON_SIGNAL;
use crate::wire::{PythonJob, TaskAttempt, ToPython, WireFrame, send_packet};

/// How long the rest of a task waits for its samples.
const PATIENCE: Duration = Duration::from_secs(3);
/// Number of jobs that are remembered, and of messages that wait.
const MOST_JOBS: usize = 16_384;
/// Number of frames of Spark's code that are kept.
const MOST_CALLERS: usize = 64;
/// The thread of samples of Python workers; readers know it by this name.
const THREAD: &str = "Python worker";
/// The frame that CPU time without a stack has.
const PROCESS: &str = "Python worker process";

/// The fields of both events.
#[derive(Deserialize)]
struct Place {
    stage: i32,
    attempt: i32,
    task: i64,
    pid: u32,
}

impl Place {
    fn job(&self) -> PythonJob {
        PythonJob {
            task: TaskAttempt {
                stage: self.stage,
                stage_attempt: self.attempt,
                task: self.task,
            },
            pid: self.pid,
        }
    }
}

/// A worker has begun to work for a task.
#[derive(Deserialize)]
pub(super) struct Begin {
    #[serde(flatten)]
    place: Place,
    /// Frames of Spark's code, root first.
    #[serde(default)]
    callers: Vec<Caller>,
}

#[derive(Deserialize)]
struct Caller {
    class: String,
    method: String,
    #[serde(default)]
    file: Option<String>,
    line: i64,
}

/// The task has ended.
#[derive(Deserialize)]
pub(super) struct End {
    #[serde(flatten)]
    place: Place,
    /// ms since the epoch.
    #[serde(default)]
    start: i64,
    #[serde(default)]
    end: i64,
    /// CPU time of the worker meanwhile.
    ns: u64,
}

/// The CPU time of workers, as far as it is not written yet.
#[derive(Debug, Default)]
pub(super) struct PythonTime {
    jobs: HashMap<PythonJob, JobTime>,
    /// CPU time that is not a whole sample yet, ns.
    rest_ns: u64,
    /// CPU time of samples beyond what the JVM measured, ns: a sample may stand for the last part of the task before.
    ahead_ns: u64,
    /// CPU time for which there are samples, ns.
    counted_ns: u64,
    pub(super) sampler: Option<ToSampler>,
}

#[derive(Debug, Default)]
struct JobTime {
    callers: Vec<Frame>,
    /// CPU time of its samples, ns.
    explained_ns: u64,
    /// What the sampler has measured, ns.
    used_ns: u64,
    /// Whether the sampler has sent its last samples.
    over: bool,
    ended: Option<Ended>,
}

#[derive(Debug)]
struct Ended {
    start_ms: i64,
    end_ms: i64,
    ns: u64,
    since: Instant,
}

impl PythonTime {
    /// The worker and the task of an event.
    pub(super) fn begin(&mut self, begin: Begin, is_drawn: impl Fn(TaskAttempt) -> bool) {
        let job = begin.place.job();
        if !is_drawn(job.task) {
            return;
        }
        let callers = begin.callers.into_iter().take(MOST_CALLERS);
        let callers: Vec<Frame> = callers.map(Caller::into_frame).collect();
        if self.sampler.is_some() {
            let innermost_first = callers.iter().rev().map(|frame| WireFrame {
                frame: frame.clone(),
                address: 0,
            });
            self.send(ToPython::Begin(job, innermost_first.collect()));
        }
        if self.jobs.len() >= MOST_JOBS {
            self.jobs.clear();
        }
        self.jobs.entry(job).or_default().callers = callers;
    }

    /// Notes the end of a task; its rest is ready at once if there is no sampler.
    pub(super) fn end(&mut self, end: &End, is_drawn: impl Fn(TaskAttempt) -> bool) {
        let job = end.place.job();
        if !is_drawn(job.task) {
            return;
        }
        self.jobs.entry(job).or_default().ended = Some(Ended {
            start_ms: end.start,
            end_ms: end.end,
            ns: end.ns,
            since: Instant::now(),
        });
        self.send(ToPython::End(job));
    }

    fn send(&mut self, message: ToPython) {
        if let Some(sampler) = &mut self.sampler
            && !sampler.send(message)
        {
            self.sampler = None;
        }
    }

    /// Sends messages for which there was no space.
    pub(super) fn send_waiting(&mut self) {
        if let Some(sampler) = &mut self.sampler
            && !sampler.send_waiting()
        {
            self.sampler = None;
        }
    }

    /// The socket to the sampler, if messages wait for space in it.
    pub(super) fn blocked(&self) -> Option<BorrowedFd<'_>> {
        let sampler = self.sampler.as_ref()?;
        (!sampler.waiting.is_empty()).then(|| sampler.to.as_fd())
    }

    /// Adds what the sampler knows of a job.
    pub(super) fn explain(&mut self, job: PythonJob, explained_ns: u64, used_ns: u64, over: bool) {
        self.counted_ns = self.counted_ns.saturating_add(explained_ns);
        // An event that was lost must not make entries that stay.
        let Some(time) = self.jobs.get_mut(&job) else {
            return;
        };
        time.explained_ns = time.explained_ns.saturating_add(explained_ns);
        time.used_ns = time.used_ns.max(used_ns);
        time.over |= over;
    }

    /// CPU time for which there are samples so far, ns.
    pub(super) fn counted_ns(&self) -> u64 {
        self.counted_ns
    }

    /// Whether a task has ended whose samples may still come.
    pub(super) fn waits(&self) -> bool {
        let now = Instant::now();
        let waits = |time: &JobTime| time.ended.is_some() && !time.is_due(now);
        self.sampler.is_some() && self.jobs.values().any(waits)
    }

    /// The samples of the rest of tasks that have ended; with `all` also of those whose samples may still come.
    pub(super) fn settle(&mut self, process: &ProcessRow, all: bool) -> Vec<(StackRow, SampleRow)> {
        let at_once = all || self.sampler.is_none();
        let now = Instant::now();
        let has_ended = |time: &JobTime| time.ended.is_some() && (at_once || time.is_due(now));
        let due = self.jobs.extract_if(|_, time| has_ended(time));
        let due: Vec<(PythonJob, JobTime)> = due.collect();
        let rest = |(job, time)| self.rest(process, job, time);
        due.into_iter().filter_map(rest).collect()
    }

    /// The sample of what no other sample stands for.
    fn rest(
        &mut self,
        process: &ProcessRow,
        job: PythonJob,
        time: JobTime,
    ) -> Option<(StackRow, SampleRow)> {
        let ended = time.ended?;
        let period = 1_000_000_000u64.checked_div(u64::from(process.rate_hz))?;
        // Where the process has ended before the task, the JVM could not measure it.
        let used = ended.ns.max(time.used_ns);
        let explained = time.explained_ns.saturating_add(self.ahead_ns);
        self.ahead_ns = explained.saturating_sub(used);
        let ns = used.saturating_sub(explained);
        if ns == 0 {
            return None;
        }
        self.counted_ns = self.counted_ns.saturating_add(ns);
        self.rest_ns = self.rest_ns.saturating_add(ns);
        let count = self.rest_ns / period;
        self.rest_ns %= period;
        let mut frames = time.callers;
        if frames.is_empty() {
            frames.push(frame(
                FrameKind::Java,
                "org.apache.spark.api.python.BasePythonRunner",
                "compute",
            ));
        }
        frames.push(frame(FrameKind::Native, "", PROCESS));
        let stack = StackRow::from_frames(frames);
        let since_epoch = |ms: i64| ms.saturating_mul(1_000_000);
        let sample = SampleRow {
            start_ns: since_epoch(ended.start_ms),
            end_ns: since_epoch(ended.end_ms),
            stack: stack.stack,
            count,
            weight_ns: ns,
            ..sample_in(process, job)
        };
        Some((stack, sample))
    }
}

impl JobTime {
    fn is_due(&self, now: Instant) -> bool {
        let late = |ended: &Ended| now.saturating_duration_since(ended.since) >= PATIENCE;
        self.over || self.ended.as_ref().is_some_and(late)
    }
}

impl Caller {
    fn into_frame(self) -> Frame {
        Frame {
            file: self.file.unwrap_or_default(),
            line: u32::try_from(self.line).unwrap_or(0),
            ..frame(FrameKind::Java, &self.class, &self.method)
        }
    }
}

/// A sample of a worker; the caller sets the rest.
pub(super) fn sample_in(process: &ProcessRow, job: PythonJob) -> SampleRow {
    SampleRow {
        tid: job.pid,
        thread: THREAD.to_owned(),
        stage: Some(job.task.stage),
        stage_attempt: Some(job.task.stage_attempt),
        task: Some(job.task.task),
        ..sample_of(process)
    }
}

/// The writer's way to the sampler of Python workers, which the manager starts when it is asked to.
#[derive(Debug)]
pub(crate) struct ToSampler {
    to: OwnedFd,
    /// The manager, until it was asked.
    manager: Option<u32>,
    /// Messages for which there was no space.
    waiting: VecDeque<ToPython>,
}

impl ToSampler {
    /// By this socket; the manager is the calling process.
    pub(crate) fn new(to: OwnedFd, manager: u32) -> Self {
        Self {
            to,
            manager: Some(manager),
            waiting: VecDeque::new(),
        }
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.to.as_raw_fd()
    }

    /// Sends a message, or keeps it until there is space. False if the sampler is gone.
    fn send(&mut self, message: ToPython) -> bool {
        if let Some(manager) = self.manager.take() {
            let manager = Pid::from_raw(manager.cast_signed());
            // If the manager is gone, another process may have its number.
            if getppid() == manager {
                let _ = kill(manager, PYTHON_SIGNAL);
            }
        }
        if self.waiting.len() < MOST_JOBS {
            self.waiting.push_back(message);
        }
        self.send_waiting()
    }

    fn send_waiting(&mut self) -> bool {
        while let Some(message) = self.waiting.front() {
            match send_packet(&self.to, message) {
                Ok(()) => drop(self.waiting.pop_front()),
                Err(e) if e.raw_os_error() == Some(Errno::EAGAIN as i32) => return true,
                Err(_) => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::wire::{Incoming, SentPiece, packet_pair, receive};

    const MS: u64 = 1_000_000;

    fn process() -> ProcessRow {
        ProcessRow {
            rate_hz: 100,
            ..ProcessRow::default()
        }
    }

    fn event(task: i64, more: &Value) -> Value {
        let mut event = json!({"stage": 3, "attempt": 0, "task": task, "pid": 7});
        let more = more.as_object().unwrap().clone();
        event.as_object_mut().unwrap().extend(more);
        event
    }

    fn begin(task: i64) -> Begin {
        let callers = json!([{"class": "a.Exec", "method": "run", "file": "A.scala", "line": 5}]);
        serde_json::from_value(event(task, &json!({"callers": callers}))).unwrap()
    }

    fn end(task: i64, ns: u64) -> End {
        serde_json::from_value(event(task, &json!({"start": 1, "end": 2, "ns": ns}))).unwrap()
    }

    fn job(task: i64) -> PythonJob {
        begin(task).place.job()
    }

    fn weights(time: &mut PythonTime, all: bool) -> Vec<u64> {
        let rows = time.settle(&process(), all);
        rows.iter().map(|(_, sample)| sample.weight_ns).collect()
    }

    #[test]
    fn parts_of_samples_add_up() {
        let mut time = PythonTime::default();
        let counts: Vec<u64> = (0..5)
            .map(|task| {
                time.begin(begin(task), |_| true);
                time.end(&end(task, 14 * MS), |_| true);
                let rows = time.settle(&process(), false);
                let [(stack, sample)] = rows.as_slice() else {
                    panic!("{rows:?}")
                };
                assert_eq!((sample.weight_ns, sample.end_ns), (14 * MS, 2_000_000));
                assert_eq!(sample.thread, "Python worker");
                let methods: Vec<&str> = stack.frames.iter().map(|f| f.method.as_str()).collect();
                assert_eq!(methods, ["run", PROCESS]);
                sample.count
            })
            .collect();
        assert_eq!(counts, [1, 1, 2, 1, 2]);
        assert!(serde_json::from_value::<End>(json!({"ns": 5})).is_err());
    }

    #[test]
    fn a_task_that_is_not_drawn_has_nothing() {
        let mut time = PythonTime::default();
        time.begin(begin(1), |_| false);
        time.end(&end(1, MS), |_| false);
        assert!(weights(&mut time, true).is_empty());
    }

    fn with_sampler() -> (PythonTime, OwnedFd) {
        let (to, from) = packet_pair().unwrap();
        let mut sampler = ToSampler::new(to, 0);
        // No process is to get a signal.
        sampler.manager = None;
        let time = PythonTime {
            sampler: Some(sampler),
            ..PythonTime::default()
        };
        (time, from)
    }

    #[test]
    fn no_time_is_counted_twice_and_none_is_lost() {
        let (mut time, _from) = with_sampler();
        for task in 1..=4 {
            time.begin(begin(task), |_| true);
        }
        // Most of it has samples; they come before and after the end.
        time.explain(job(1), 30 * MS, 40 * MS, false);
        time.end(&end(1, 100 * MS), |_| true);
        assert!(time.waits() && weights(&mut time, false).is_empty());
        time.explain(job(1), 60 * MS, 99 * MS, true);
        assert!(!time.waits());
        assert_eq!(weights(&mut time, false), [10 * MS]);
        // More than was measured: the next rest is less.
        time.explain(job(2), 25 * MS, 20 * MS, false);
        time.end(&end(2, 20 * MS), |_| true);
        time.explain(job(2), 0, 20 * MS, true);
        assert!(weights(&mut time, false).is_empty());
        time.end(&end(3, 20 * MS), |_| true);
        assert!(weights(&mut time, false).is_empty(), "its samples may come");
        assert_eq!(weights(&mut time, true), [15 * MS]);
        // The worker ended before its task, so only the sampler knows its time.
        time.explain(job(4), 50 * MS, 60 * MS, false);
        time.end(&end(4, 0), |_| true);
        time.explain(job(4), 0, 0, true);
        assert_eq!(weights(&mut time, false), [10 * MS]);
        assert!(time.jobs.is_empty());
        assert_eq!(time.counted_ns(), 200 * MS);
        time.explain(job(9), 5 * MS, 5 * MS, true);
        assert!(time.jobs.is_empty(), "of no known task");
    }

    #[test]
    fn messages_wait_for_space_and_keep_their_order() {
        const JOBS: i64 = 3_000;
        let (mut time, from) = with_sampler();
        for task in 0..JOBS {
            time.begin(begin(task), |_| true);
        }
        assert!(time.blocked().is_some());
        let mut buffer = Vec::new();
        let mut next = 0;
        while next < JOBS {
            match receive::<ToPython<SentPiece<'_>>>(&from, &mut buffer) {
                Incoming::Message(ToPython::Begin(job, callers)) => {
                    assert_eq!((job.task.task, callers.len()), (next, 1));
                    next += 1;
                }
                Incoming::Message(ToPython::End(_)) => panic!("no task has ended"),
                Incoming::Empty => time.send_waiting(),
                Incoming::Closed => panic!("the writer is there"),
            }
        }
        assert!(time.blocked().is_none());
        drop(from);
        time.end(&end(1, MS), |_| true);
        assert!(time.sampler.is_none() && !weights(&mut time, false).is_empty());
    }
}
