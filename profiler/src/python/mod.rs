//! The sampler of Python workers: one process beside the JVM, which reads the stacks of the workers of running tasks.
//!
//! The writer says which worker works for which task. The clock is the CPU time of the worker's process: a stack is
//! read once in each period of it, and stands for the time since the last one. Workers are neither stopped nor traced.
//! What no stack explains (before the interpreter is open, the last part of a task) stays a sample without lines, which
//! the writer makes.

mod budget;
mod code;
mod exports;
mod interpreter;
mod layout;
mod line_table;
mod lines;
mod runtime;
mod snapshot;
mod state;
mod worker;

use std::collections::{BTreeSet, HashMap};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use caps::{CapSet, Capability};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use unfuse_codemap::CodeMap;
use unfuse_format::{Frame, FrameKind, StackId, StackRow};

use crate::clock::{monotonic_ns, own_cpu_ns};
use crate::identity::{Identity, raise_capabilities, retain_capabilities};
use crate::metrics::OwnCpu;
use crate::pause::RecordingState;
use crate::process;
use crate::recent::RecentSet;
use crate::sampler::uniform;
use crate::status::{Failure, StatusWords};
use crate::wire::{
    Incoming, PythonJob, SentPiece, ToPython, ToWriter, WireFrame, WirePiece, WirePython,
    WireStack, WireStacks, receive, send_blocking,
};
use budget::Budget;
use interpreter::Call;
use lines::FileTexts;
use worker::{Found, Job, Sample, Worker};

/// Interval at which sums are sent.
const SEND_EVERY: Duration = Duration::from_secs(2);
/// Number of processes that are remembered, those without a job included.
const MOST_WORKERS: usize = 512;
/// How much longer the pause between two looks becomes while workers use little CPU time.
const IDLE: u32 = 4;
/// Number of stacks remembered as sent; a forgotten one is sent again.
const REMEMBERED: usize = 8_192;
/// Number of stacks whose ids are remembered.
const MOST_KNOWN: usize = 4_096;
/// Size of the stacks in one message, bytes; with the last of them it is below the packet limit.
const STACK_BYTES: usize = 64 << 10;
/// Rows in one message; keeps it below the packet limit.
const ROWS_A_MESSAGE: usize = 1_000;
/// How much the pause between two looks changes at random, as a part of it.
const JITTER: f64 = 0.25;
/// CPU time that makes a sample, as a part of the period: a worker that computes all the time has one at each look.
const LEAST: f64 = 0.95 * (1.0 - JITTER);
/// Interval of looks while paused.
const PAUSED: Duration = Duration::from_millis(200);

/// The arguments of the sampler.
pub(crate) struct Assignment<'a> {
    pub(crate) jvm_ends: &'a OwnedFd,
    pub(crate) orders: OwnedFd,
    pub(crate) to_writer: &'a OwnedFd,
    pub(crate) map: &'a CodeMap,
    pub(crate) period_ns: u64,
}

/// Samples until the JVM or the writer ends.
pub(crate) fn run(assignment: Assignment<'_>) {
    process::close_all_but(&[
        assignment.jvm_ends.as_raw_fd(),
        assignment.orders.as_raw_fd(),
        assignment.to_writer.as_raw_fd(),
    ]);
    process::set_title("unfuse-python");
    let status = StatusWords::new(assignment.map);
    if let Err(e) = keep_inspection() {
        return status.fail(Failure::Python, e.raw_os_error().unwrap_or(libc::EPERM));
    }
    let pause_ns = assignment.period_ns;
    let budget = Budget::new(assignment.period_ns, own_cpu_ns());
    let mut sampler = Sampler {
        status,
        assignment,
        workers: HashMap::new(),
        busy: BTreeSet::new(),
        stacks: Stacks::default(),
        texts: FileTexts::default(),
        sent: Instant::now(),
        own_cpu: OwnCpu::default(),
        budget,
        generation: status.generation(),
        idle: 1,
        pause_ns,
        random: monotonic_ns() | 1,
        buffer: Vec::new(),
        closed: false,
    };
    while sampler.step() {}
}

/// Drops the capabilities that reading a worker does not need. The kernel lets a process read another one of its user
/// that has no more capabilities; with CAP_SYS_PTRACE it lets it read any.
fn keep_inspection() -> std::io::Result<()> {
    const TRACE: Capability = Capability::CAP_SYS_PTRACE;
    let held = caps::read(None, CapSet::Permitted).unwrap_or_default();
    // Without it, workers of root in a container have as many capabilities as the JVM.
    if held.contains(&TRACE) || !Identity::current().uid().is_root() {
        retain_capabilities(&[TRACE])?;
    }
    raise_capabilities();
    Ok(())
}

struct Sampler<'a> {
    status: StatusWords<'a>,
    assignment: Assignment<'a>,
    /// By process id.
    workers: HashMap<u32, Worker>,
    /// Workers with a job.
    busy: BTreeSet<u32>,
    stacks: Stacks,
    texts: FileTexts,
    sent: Instant,
    own_cpu: OwnCpu,
    budget: Budget,
    generation: u64,
    /// Length of the next pause: so many times this.
    idle: u32,
    pause_ns: u64,
    random: u64,
    buffer: Vec<u8>,
    /// Whether the writer has ended.
    closed: bool,
}

impl Sampler<'_> {
    /// Waits, then looks at all workers with a job. False at the end.
    fn step(&mut self) -> bool {
        let over = self.wait();
        self.take_orders();
        if over || self.closed {
            self.send_all();
            return false;
        }
        if self.status.recording() != RecordingState::On {
            for pid in &self.busy {
                self.workers.get_mut(pid).into_iter().for_each(Worker::skip);
            }
        } else {
            self.look();
        }
        if self.sent.elapsed() >= SEND_EVERY {
            self.send_all();
        }
        true
    }

    /// Waits for the next look, or for an order if no worker has a job. Returns whether the JVM has ended.
    fn wait(&mut self) -> bool {
        let pause = Duration::from_nanos(self.next_pause_ns());
        let mut fds = [
            PollFd::new(self.assignment.jvm_ends.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.assignment.orders.as_fd(), PollFlags::POLLIN),
        ];
        let patience = match self.busy.is_empty() {
            true => None,
            false if self.status.recording() != RecordingState::On => Some(PAUSED),
            false => Some(pause),
        };
        // poll counts milliseconds, and a look is due after fractions of one.
        if let Some(pause) = patience {
            let ready = poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0);
            if !ready {
                std::thread::sleep(pause);
                let _ = poll(&mut fds, PollTimeout::ZERO);
            }
        } else {
            let _ = poll(&mut fds, PollTimeout::NONE);
        }
        fds[0].revents().is_some_and(|ready| !ready.is_empty())
    }

    /// Time until the next look, changed at random, so that no loop of a worker keeps in step with it.
    fn next_pause_ns(&mut self) -> u64 {
        let change = 1.0 + JITTER * (2.0 * uniform(&mut self.random) - 1.0);
        u64::from(self.idle) * (self.pause_ns as f64 * change) as u64
    }

    fn take_orders(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        loop {
            match receive::<ToPython<SentPiece<'_>>>(&self.assignment.orders, &mut buffer) {
                Incoming::Message(ToPython::Begin(job, callers)) => {
                    let callers = callers.into_iter().map_while(|sent| sent.into_frame());
                    self.begin(job, callers.collect());
                }
                Incoming::Message(ToPython::End(job)) => self.end(job),
                Incoming::Empty => break,
                Incoming::Closed => {
                    self.closed = true;
                    break;
                }
            }
        }
        self.buffer = buffer;
    }

    fn begin(&mut self, job: PythonJob, callers: WirePiece) {
        let is_other = |worker: &Worker| !worker.is_alive();
        if self.workers.get(&job.pid).is_some_and(is_other) {
            self.workers.remove(&job.pid);
        }
        if !self.workers.contains_key(&job.pid) {
            self.make_room();
            let Some(worker) = Worker::new(job.pid) else {
                return;
            };
            self.workers.insert(job.pid, worker);
        }
        // The end of the job before may have been lost.
        self.send(job.pid, false);
        if let Some(worker) = self.workers.get_mut(&job.pid) {
            worker.begin(job, callers, self.assignment.period_ns);
            self.busy.insert(job.pid);
        }
        (self.idle, self.pause_ns) = (1, self.budget.period_ns());
    }

    /// Forgets the worker without a job that was used least recently, if there are many.
    fn make_room(&mut self) {
        if self.workers.len() < MOST_WORKERS {
            return;
        }
        let free = self
            .workers
            .iter()
            .filter(|(pid, _)| !self.busy.contains(pid));
        let oldest = free.min_by_key(|(_, worker)| worker.used);
        if let Some(pid) = oldest.map(|(pid, _)| *pid) {
            self.workers.remove(&pid);
        }
    }

    fn end(&mut self, job: PythonJob) {
        let current = self.workers.get(&job.pid).and_then(|w| w.job.as_ref());
        if current.is_some_and(|current| current.job == job) {
            self.send(job.pid, true);
            self.busy.remove(&job.pid);
        } else {
            let nothing = WirePython {
                job,
                generation: self.generation,
                rows: Vec::new(),
                used_ns: 0,
                over: true,
            };
            self.post(&ToWriter::Python(nothing));
        }
    }

    fn look(&mut self) {
        let period_ns = self.budget.period_ns();
        let mut is_active = false;
        let mut soonest = period_ns;
        for pid in self.busy.clone() {
            let Some(mut worker) = self.workers.remove(&pid) else {
                continue;
            };
            match worker.look((period_ns as f64 * LEAST) as u64) {
                // A thread cannot use CPU time faster than it passes.
                Found::Nothing(left) => soonest = soonest.min(left),
                Found::Unknown => {
                    is_active = true;
                    if let Some(e) = worker.open(&self.workers) {
                        let errno = e.raw_os_error().unwrap_or(libc::ENOEXEC);
                        self.status.fail(Failure::Python, errno);
                    }
                }
                Found::Sampled(Sample { stack, ns }) => {
                    is_active = true;
                    self.budget.add(ns);
                    self.enter_generation();
                    if let Some(job) = &mut worker.job {
                        let id = self.stacks.id(pid, stack, job, &mut self.texts);
                        job.add(id, (monotonic_ns(), ns), self.assignment.period_ns);
                    }
                    if self.stacks.bytes >= STACK_BYTES {
                        self.send_stacks();
                    }
                }
            }
            self.workers.insert(pid, worker);
        }
        (self.idle, self.pause_ns) = match is_active {
            true => (1, period_ns),
            false => ((self.idle + 1).min(IDLE), soonest.max(period_ns / 8)),
        };
    }

    /// Enters the writer's generation; in a new one, stacks must be sent again.
    fn enter_generation(&mut self) {
        let generation = self.status.generation();
        if generation != self.generation {
            self.send_all();
            self.generation = generation;
            self.stacks.sent.clear();
            self.stacks.known.clear();
        }
    }

    fn send_all(&mut self) {
        for pid in self.busy.clone() {
            self.send(pid, false);
        }
        self.own_cpu.add_to(self.status);
        self.budget.judge(own_cpu_ns());
        self.sent = Instant::now();
    }

    fn send_stacks(&mut self) {
        self.stacks.bytes = 0;
        let unsent = std::mem::take(&mut self.stacks.unsent);
        if !unsent.stacks.is_empty() {
            self.post(&ToWriter::Stacks(unsent));
        }
    }

    /// Sends what was sampled in a worker.
    fn send(&mut self, pid: u32, over: bool) {
        self.send_stacks();
        let Some(worker) = self.workers.get_mut(&pid) else {
            return;
        };
        let used_ns = worker.used_ns();
        let Some(job) = &mut worker.job else { return };
        let mut rows: Vec<_> = job.rows.drain().map(|(_, row)| row).collect();
        let job = job.job;
        while rows.len() > ROWS_A_MESSAGE {
            let rows = rows.split_off(rows.len() - ROWS_A_MESSAGE);
            self.post(&ToWriter::Python(WirePython {
                job,
                generation: self.generation,
                rows,
                used_ns,
                over: false,
            }));
        }
        if over || !rows.is_empty() {
            self.post(&ToWriter::Python(WirePython {
                job,
                generation: self.generation,
                rows,
                used_ns,
                over,
            }));
        }
    }

    fn post(&mut self, message: &ToWriter) {
        self.closed |= send_blocking(self.assignment.to_writer, message).is_err();
    }
}

/// The ids of stacks, and those that are not sent yet.
struct Stacks {
    known: ahash::HashMap<(Vec<Call>, WirePiece), StackId>,
    sent: RecentSet<StackId>,
    unsent: WireStacks,
    /// Size of `unsent`, bytes.
    bytes: usize,
}

impl Default for Stacks {
    fn default() -> Self {
        Self {
            known: ahash::HashMap::default(),
            sent: RecentSet::new(REMEMBERED),
            unsent: WireStacks::default(),
            bytes: 0,
        }
    }
}

impl Stacks {
    fn id(&mut self, pid: u32, calls: Vec<Call>, job: &Job, texts: &mut FileTexts) -> StackId {
        let key = (calls, WirePiece::clone(&job.callers));
        if let Some(id) = self.known.get(&key) {
            return *id;
        }
        let calls = key.0.get(first_of_worker(&key.0)..).unwrap_or_default();
        let frames = job.callers.iter().rev().map(|wire| wire.frame.clone());
        let frames = frames.chain(calls.iter().map(|call| frame(pid, call, texts)));
        let row = StackRow::from_frames(frames.collect());
        if self.sent.insert(row.stack) {
            let texts = |frame: &Frame| {
                let texts = [&frame.class, &frame.method, &frame.signature, &frame.file];
                24 + texts.iter().map(|text| text.len()).sum::<usize>()
            };
            self.bytes += row.frames.iter().map(|frame| texts(frame)).sum::<usize>();
            let frames = row.frames.iter().rev().map(|frame| WireFrame {
                frame: (**frame).clone(),
                address: 0,
            });
            self.unsent.stacks.push(WireStack {
                id: row.stack,
                pieces: vec![self.unsent.pieces.len() as u32],
            });
            self.unsent.pieces.push(frames.collect());
        }
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.known.insert(key, row.stack);
        row.stack
    }
}

/// Where the worker's own code begins: those before start the interpreter and fork workers.
fn first_of_worker(calls: &[Call]) -> usize {
    let is_main = |call: &Call| call.function.file.ends_with("pyspark/worker.py");
    calls.iter().position(is_main).unwrap_or(0)
}

fn frame(pid: u32, call: &Call, texts: &mut FileTexts) -> Frame {
    Frame {
        kind: FrameKind::Python,
        method: call.function.name.clone(),
        signature: texts.line(pid, &call.function.file, call.line).to_owned(),
        file: call.function.file.clone(),
        line: call.line,
        bci: -1,
        ..Frame::default()
    }
}
