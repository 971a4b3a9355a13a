//! A process for each thread: reads its samples, waits until the code map can have their code, resolves them, adds them
//! up, and sends the sums to the writer.

mod access;
mod chains;
mod interpreted;
mod leaf;
mod native;
mod outbox;
mod pacer;
mod raw;
mod repair;
mod resolver;
mod run_delay;
mod source;
mod stack;
mod timeline;
mod unwind;
mod waits;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use unfuse_codemap::CodeMap;

use crate::clock::monotonic_ns;
use crate::identity::raise_capabilities;
use crate::interpreter::{Layout, Methods};
use crate::metrics::OwnCpu;
use crate::pause::RecordingState;
use crate::process;
use crate::share::TaskShare;
use crate::status::{Counter, Failure, StatusWords};
use chains::Chains;
use interpreted::TaggedFrames;
use outbox::Outbox;
use raw::{RawSample, RawSamples};
use resolver::{Leaf, Resolver};
use source::{Intake, SampleSource};
use timeline::{Task, Timeline};
use waits::{WaitGroup, Waits};

pub(crate) use access::Access;
pub(crate) use pacer::uniform;
pub(crate) use source::SourceKind;

/// How long samples wait for late JVMTI events before they are resolved, ns.
const GRACE_NS: u64 = 1_000_000_000;
/// Interval at which sums are sent.
const SEND_EVERY: Duration = Duration::from_secs(2);

/// The signal with which the manager ends a sampler early.
pub(crate) const END_SIGNAL: Signal = Signal::SIGUSR1;

/// The signal with which the manager makes a sampler send its data.
pub(crate) const SEND_SIGNAL: Signal = Signal::SIGUSR2;

/// The arguments of a sampler.
pub(crate) struct Assignment<'a> {
    pub(crate) tid: u32,
    pub(crate) thread: String,
    pub(crate) period_ns: u64,
    pub(crate) jvm: u32,
    pub(crate) access: &'a Access,
    pub(crate) jvm_ends: &'a OwnedFd,
    pub(crate) to_writer: &'a OwnedFd,
    pub(crate) map: &'a CodeMap,
    pub(crate) source: SourceKind<'a>,
    pub(crate) layout: Layout,
    pub(crate) tasks: TaskShare,
    pub(crate) waits: bool,
    pub(crate) instructions: bool,
}

/// Samples until the thread, the JVM or the manager ends it.
pub(crate) fn run(assignment: Assignment<'_>) {
    process::set_title(&format!("unfuse-s-{}", assignment.tid));
    raise_capabilities();
    let status = StatusWords::new(assignment.map);
    match Sampler::new(assignment) {
        Ok(mut sampler) => while sampler.step() == Next::Continue {},
        // The CPU time of the thread is unknown.
        Err(e) if matches!(e.raw_os_error(), Some(libc::ESRCH | libc::ENOENT)) => {
            status.add(Counter::BriefThreads, 1);
        }
        Err(e) => status.fail(Failure::Sampler, e.raw_os_error().unwrap_or(libc::EPERM)),
    }
}

/// Whether a sampler continues.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Continue,
    End,
}

/// The sampler of one thread. Samples go from the source to `raw` and `waits`, and from there through the resolver to
/// the outbox.
struct Sampler<'a> {
    status: StatusWords<'a>,
    jvm_ends: &'a OwnedFd,
    signals: SignalFd,
    tasks: TaskShare,
    /// Whether the JVM was attached to.
    attached: bool,
    source: Box<dyn SampleSource + 'a>,
    timeline: Timeline<'a>,
    chains: Chains<'a>,
    raw: RawSamples,
    waits: Waits,
    resolver: Resolver<'a>,
    outbox: Outbox<'a>,
    sent: Instant,
    /// Whether the source takes no samples for now.
    paused: bool,
    /// Samples of the thread so far.
    taken: u64,
    own_cpu: OwnCpu,
}

impl<'a> Sampler<'a> {
    /// Opens everything that needs capabilities, and drops these.
    ///
    /// # Errors
    /// `ESRCH` if the thread has ended, and the system's others.
    fn new(assignment: Assignment<'a>) -> io::Result<Self> {
        let Assignment {
            tid,
            thread,
            period_ns,
            jvm,
            access,
            jvm_ends,
            to_writer,
            map,
            source,
            layout,
            tasks,
            waits: with_waits,
            instructions,
        } = assignment;
        let status = StatusWords::new(map);
        // From now on, because the thread may be waiting.
        let watched = monotonic_ns();
        let has_pointers = matches!(source, SourceKind::Timer(..));
        let source = source::open(source, access, (jvm, tid), period_ns, with_waits)?;
        let waits = Waits::new(watched, period_ns, source.guesses_waits());
        // The following code parses the JVM's data.
        access.keep_inspection()?;
        let mut maps = access.maps(jvm)?;
        maps.set_code_cache(status.code_cache());
        // Without it (ptrace is restricted), interpreted frames have no method names.
        let memory = access.memory(jvm).ok();
        let methods = memory
            .as_ref()
            .and_then(|memory| Methods::new(memory.try_clone().ok()?, layout).ok());
        access.give_up_capabilities()?;
        let signals = SigSet::from_iter([END_SIGNAL, SEND_SIGNAL]);
        let _ = signals.thread_block();
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let signals = SignalFd::with_flags(&signals, flags)?;
        let attached = status.is_attached();
        let for_code = memory.as_ref().and_then(|memory| memory.try_clone().ok());
        let chains = Chains::new(map, memory, methods, has_pointers || !attached);
        Ok(Self {
            status,
            jvm_ends,
            signals,
            tasks,
            attached,
            source,
            timeline: Timeline::new(map, tid, tasks, status.seed()),
            chains,
            raw: RawSamples::default(),
            waits,
            resolver: Resolver::new(map, maps, for_code, instructions),
            outbox: Outbox::new(tid, thread, to_writer, status.generation()),
            sent: Instant::now(),
            paused: false,
            taken: 0,
            own_cpu: OwnCpu::default(),
        })
    }

    /// Pauses or resumes the source, as the recording state says.
    fn follow_state(&mut self) {
        let paused = self.status.recording() != RecordingState::On;
        if paused != self.paused {
            self.source.set_paused(paused);
            // What goes on now is seen in part only.
            self.waits.lose();
            self.paused = paused;
        }
    }

    /// Waits for samples and moves what there is one stage on.
    fn step(&mut self) -> Next {
        let wakeup = self.wait();
        self.take_samples();
        self.follow_state();
        if wakeup.over && self.attached && has_ended(self.jvm_ends) {
            // The recording has ended, but not the JVM: it may still have to describe sampled code.
            std::thread::sleep(Duration::from_nanos(GRACE_NS));
        }
        let ready_before = if wakeup.over || wakeup.send {
            u64::MAX
        } else {
            monotonic_ns().saturating_sub(GRACE_NS)
        };
        self.resolve_samples(ready_before);
        if wakeup.over && self.taken == 0 && !has_ended(self.jvm_ends) {
            self.status.add_brief_thread(self.source.cpu_time_ns());
        }
        let is_due =
            self.sent.elapsed() >= SEND_EVERY || self.outbox.is_large() || self.waits.are_many();
        if wakeup.over || wakeup.send || is_due {
            return self.send(&wakeup, ready_before);
        }
        Next::Continue
    }

    /// Waits until there are samples, something has ended, or waiting data is due.
    fn wait(&self) -> Wakeup {
        let work_pending =
            !self.raw.is_empty() || !self.outbox.is_empty() || !self.waits.is_empty();
        // A paused thread still makes marks, which have to be read before they are overwritten.
        let patience = self.source.patience(work_pending || self.paused);
        let mut fds = vec![
            PollFd::new(self.jvm_ends.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
        ];
        if let Some(fd) = self.source.fd() {
            fds.push(PollFd::new(fd, PollFlags::POLLIN));
        }
        let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
        if poll(&mut fds, timeout).is_err() {
            return Wakeup::default();
        }
        let mut wakeup = Wakeup::default();
        let has = |fd: &PollFd<'_>, flags| fd.revents().is_some_and(|r| r.intersects(flags));
        if has(&fds[1], PollFlags::POLLIN) {
            while let Ok(Some(signal)) = self.signals.read_signal() {
                if signal.ssi_signo == SEND_SIGNAL as u32 {
                    wakeup.send = true;
                } else {
                    wakeup.over = true;
                }
            }
        }
        let hung_up = PollFlags::POLLHUP | PollFlags::POLLERR;
        wakeup.over |= has(&fds[0], PollFlags::POLLIN)
            || fds.get(2).is_some_and(|fd| has(fd, hung_up))
            || self.source.thread_ended();
        wakeup
    }

    /// Takes the samples of the source.
    fn take_samples(&mut self) {
        // The start of a task is marked before its samples are taken.
        self.timeline.update();
        self.taken += self.source.drain(&mut Intake {
            raw: &mut self.raw,
            waits: &mut self.waits,
            maps: self.resolver.maps(),
            chains: &mut self.chains,
            timeline: &self.timeline,
        });
    }

    /// Resolves the samples from before a time, and adds them to the outbox.
    fn resolve_samples(&mut self, ready_before: u64) {
        if !self.raw.has_before(ready_before) {
            return;
        }
        self.timeline.update();
        self.enter_generation();
        let Self {
            raw,
            timeline,
            tasks,
            chains,
            resolver,
            outbox,
            attached,
            ..
        } = self;
        raw.take_before(ready_before, |sample, chain| {
            let task = match timeline.task_at(sample.time) {
                Some(task) if !task.drawn => return,
                task => task,
            };
            let weight_ns = match task {
                Some(_) => tasks.scale(sample.weight_ns),
                None => sample.weight_ns,
            };
            let tagged = chains.tagged();
            let named = resolver.resolve(sample.time, leaf_of(sample), chain, tagged, outbox);
            outbox.count(task.map(|task| task.key), named.stack, sample, weight_ns);
            if *attached {
                let is_complete = named.is_described && !sample.broken;
                outbox.tally_window(sample.time, sample.count, is_complete);
            }
        });
    }

    /// Counts the waits from before a time, and sends the outbox to the writer.
    fn send(&mut self, wakeup: &Wakeup, ready_before: u64) -> Next {
        if wakeup.over {
            self.waits.finish(monotonic_ns());
        }
        if !self.waits.is_empty() {
            self.settle_waits(ready_before);
        }
        let lost_samples = self.source.take_lost();
        self.outbox.tally(lost_samples, self.timeline.take_lost());
        self.timeline
            .forget_before(monotonic_ns().saturating_sub(30 * GRACE_NS));
        let sent = self.outbox.send();
        self.own_cpu.add_to(self.status);
        if !sent || wakeup.over {
            self.source.close();
            return Next::End;
        }
        self.sent = Instant::now();
        if wakeup.send {
            self.status.add_send_done();
        }
        Next::Continue
    }

    fn settle_waits(&mut self, ready_before: u64) {
        self.timeline.update();
        self.enter_generation();
        let Self {
            waits,
            timeline,
            tasks,
            chains,
            resolver,
            outbox,
            ..
        } = self;
        let task = |time| timeline.waits_at(time);
        waits.settle(ready_before, task, |settled| {
            count_waits(&settled, *tasks, resolver, chains.tagged(), outbox);
        });
    }

    /// Enters the writer's generation; in a new one, stacks must be sent again.
    fn enter_generation(&mut self) {
        if self.outbox.enter(self.status.generation()) {
            self.resolver.forget();
        }
    }
}

/// What the leaf of a sample's chain does.
fn leaf_of(sample: &RawSample) -> Leaf {
    if sample.in_kernel {
        Leaf::Kernel
    } else {
        Leaf::Frame
    }
}

/// Counts waits with one stack: the waits for something, and those for a CPU.
fn count_waits(
    settled: &WaitGroup<'_, Option<Task>>,
    tasks: TaskShare,
    resolver: &mut Resolver<'_>,
    tagged: &TaggedFrames,
    outbox: &mut Outbox<'_>,
) {
    let WaitGroup {
        task,
        stack,
        guessed,
        start,
        end,
        sum,
    } = settled;
    outbox.tally_waits(settled);
    let chain = stack.map_or(&[][..], |stack| &stack.chain);
    let taken = stack.map_or(*start, |stack| stack.time);
    let leaf = if *guessed || stack.is_none() {
        Leaf::Guess
    } else {
        Leaf::Wait
    };
    for (leaf, count, ns) in [
        (leaf, sum.waits, sum.waited_ns),
        (Leaf::Queue, sum.queues, sum.queued_ns),
    ] {
        if count > 0 {
            let stack = resolver.resolve(taken, leaf, chain, tagged, outbox).stack;
            let ns = task.map_or(ns, |_| tasks.scale(ns));
            let task = task.map(|task| task.key);
            outbox.count_waits(task, stack, (*start, *end), count, ns);
        }
    }
}

/// Whether the process behind a pidfd has ended.
fn has_ended(process: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

/// Why a sampler wakes up.
#[derive(Debug, Default)]
struct Wakeup {
    /// Sampling is over.
    over: bool,
    /// The manager asks for all that was sampled so far.
    send: bool,
}
