//! One process for one thread: reads its samples, waits until the code map can know them, resolves,
//! adds up, and sends the sums to the writer.

mod access;
mod chains;
mod interpreted;
mod leaf;
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
use crate::launch::{
    STATUS_ATTACHED, STATUS_CODE_HIGH, STATUS_CODE_LOW, STATUS_GENERATION, STATUS_SAMPLER_ERRNO,
    STATUS_SAMPLERS_FAILED, STATUS_SEED, STATUS_SENT,
};
use crate::process;
use crate::share::TaskShare;
use chains::Chains;
use interpreted::{Interpreted, Words};
use outbox::Outbox;
use raw::RawSamples;
use resolver::{Leaf, Resolver};
use source::Source;
use timeline::{Task, Timeline};
use unwind::Unwinder;
use waits::{Settled, Waits};

pub(crate) use access::Access;
pub(crate) use source::SourceKind;

/// How long samples wait for late JVMTI events before they are resolved.
const GRACE_NS: u64 = 1_000_000_000;
/// How often sums are sent.
const SEND_EVERY: Duration = Duration::from_secs(2);

/// The signal by which the manager ends a sampler early.
pub(crate) const END_SIGNAL: Signal = Signal::SIGUSR1;

/// The signal by which the manager has a sampler send what it has.
pub(crate) const SEND_SIGNAL: Signal = Signal::SIGUSR2;

/// What a sampler is started with.
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
}

/// Samples until the thread, the JVM or the manager says it is over.
pub(crate) fn run(assignment: Assignment<'_>) {
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
    } = assignment;
    process::set_title(&format!("unfuse-s-{tid}"));
    raise_capabilities();
    let mut waits = Waits::new(monotonic_ns());
    let mut source = match Source::open(source, access, (jvm, tid), period_ns, with_waits) {
        Ok(source) => source,
        Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {
            // Gone already; its CPU time nobody knows.
            map.status().add(crate::launch::STATUS_BRIEF_THREADS, 1);
            return;
        }
        Err(e) => return report(map, &e),
    };
    // What follows parses what the JVM has made.
    if let Err(e) = access.keep_inspection() {
        return report(map, &e);
    }
    let Ok(mut maps) = access.maps(jvm) else {
        return;
    };
    maps.set_code_cache(
        map.status().get(STATUS_CODE_LOW),
        map.status().get(STATUS_CODE_HIGH),
    );
    // Without it (ptrace is restricted) interpreted frames keep their general name.
    let memory = access.memory(jvm).ok();
    let methods = memory
        .as_ref()
        .and_then(|memory| Methods::new(memory.try_clone().ok()?, layout).ok());
    if let Err(e) = access.give_up_capabilities() {
        return report(map, &e);
    }
    let signals = SigSet::from_iter([END_SIGNAL, SEND_SIGNAL]);
    let _ = signals.thread_block();
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let Ok(told) = SignalFd::with_flags(&signals, flags) else {
        return;
    };

    let attached = map.status().get(STATUS_ATTACHED) != 0;
    let mut raw = RawSamples::default();
    let mut timeline = Timeline::new(map, tid, tasks, map.status().get(STATUS_SEED));
    let for_code = memory.as_ref().and_then(|memory| memory.try_clone().ok());
    let mut chains = if attached {
        Chains::Sizes(Unwinder::new(map, memory, methods))
    } else {
        Chains::Pointers(Interpreted::new(map, memory, methods))
    };
    let mut resolver = Resolver::new(map, maps, for_code);
    let generation = || map.status().get(STATUS_GENERATION);
    let mut outbox = Outbox::new(tid, thread, to_writer, generation());
    let mut sent = Instant::now();
    let mut taken = 0;
    loop {
        let patience = source.patience(!raw.is_empty() || !outbox.is_empty() || !waits.is_empty());
        let Woken { over, send } = wait(&source, jvm_ends, &told, patience);
        // A task's start is marked before its samples are taken.
        timeline.update();
        let wanted = |time| !timeline.is_left_out(time);
        let counts = |time| timeline.waits_at(time).is_some();
        taken += source.drain(
            &mut raw,
            &mut waits,
            resolver.maps(),
            &mut chains,
            wanted,
            counts,
        );
        if over && attached && has_ended(jvm_ends) {
            // The JVM goes on, and may still have to tell of code that was sampled.
            std::thread::sleep(Duration::from_nanos(GRACE_NS));
        }
        let ready_before = if over || send {
            u64::MAX
        } else {
            monotonic_ns().saturating_sub(GRACE_NS)
        };
        if raw.has_before(ready_before) {
            timeline.update();
            enter(generation(), &mut outbox, &mut resolver);
            raw.take_before(ready_before, |sample, chain| {
                let task = match timeline.task_at(sample.time) {
                    Some(task) if !task.drawn => return,
                    task => task,
                };
                let weight_ns = match task {
                    Some(_) => tasks.scale(sample.weight_ns),
                    None => sample.weight_ns,
                };
                let leaf = if sample.in_kernel {
                    Leaf::Kernel
                } else {
                    Leaf::Frame
                };
                let words = chains.words();
                let named = resolver.resolve(sample.time, leaf, chain, words, &mut outbox);
                outbox.count(task.map(|task| task.key), named.stack, sample, weight_ns);
                if attached {
                    let is_complete = named.is_described && !sample.broken;
                    outbox.tally_window(sample.time, sample.count, is_complete);
                }
            });
        }
        if over && taken == 0 && !has_ended(jvm_ends) {
            map.status().add(crate::launch::STATUS_BRIEF_THREADS, 1);
            map.status()
                .add(crate::launch::STATUS_BRIEF_NS, source.cpu_time_ns());
        }
        if over || send || sent.elapsed() >= SEND_EVERY || outbox.is_large() || waits.are_many() {
            if over {
                waits.finish(monotonic_ns());
            }
            if !waits.is_empty() {
                timeline.update();
                enter(generation(), &mut outbox, &mut resolver);
                let task = |time| timeline.waits_at(time);
                waits.settle(ready_before, task, |settled| {
                    let words = chains.words();
                    count_waits(&settled, tasks, &mut resolver, words, &mut outbox);
                });
            }
            outbox.tally(source.take_lost(), timeline.take_lost());
            timeline.forget_before(monotonic_ns().saturating_sub(30 * GRACE_NS));
            if !outbox.send() || over {
                source.close();
                return;
            }
            sent = Instant::now();
            if send {
                map.status().add(STATUS_SENT, 1);
            }
        }
    }
}

/// Counts a sampler that cannot start.
fn report(map: &CodeMap, e: &io::Error) {
    let errno = e.raw_os_error().unwrap_or(libc::EPERM);
    map.status().set(STATUS_SAMPLER_ERRNO, errno as u64);
    map.status().add(STATUS_SAMPLERS_FAILED, 1);
}

/// Takes notice of the writer's generation; in a new one, what was sent before has to be sent again.
fn enter(generation: u64, outbox: &mut Outbox<'_>, resolver: &mut Resolver<'_>) {
    if outbox.enter(generation) {
        resolver.forget();
    }
}

/// Counts waits with one stack: what they waited for, and for a CPU.
fn count_waits(
    settled: &Settled<'_, Option<Task>>,
    tasks: TaskShare,
    resolver: &mut Resolver<'_>,
    words: &Words,
    outbox: &mut Outbox<'_>,
) {
    let Settled {
        task,
        stack,
        start,
        end,
        sum,
    } = settled;
    let guessed = stack.is_some_and(|stack| stack.guessed);
    outbox.tally_waits(sum, *stack);
    let chain = stack.map_or(&[][..], |stack| &stack.chain);
    let leaf = if guessed || stack.is_none() {
        Leaf::Guess
    } else {
        Leaf::Wait
    };
    for (leaf, count, ns) in [
        (leaf, sum.waits, sum.waited_ns),
        (Leaf::Queue, sum.queues, sum.queued_ns),
    ] {
        if count > 0 {
            let stack = resolver.resolve(*start, leaf, chain, words, outbox).stack;
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

/// Why a sampler goes to work.
#[derive(Debug, Default)]
struct Woken {
    /// Sampling is over.
    over: bool,
    /// What there is shall be sent at once.
    send: bool,
}

/// Waits for samples, at most `patience`.
fn wait(source: &Source<'_>, jvm: &OwnedFd, signals: &SignalFd, patience: Duration) -> Woken {
    let mut fds = vec![
        PollFd::new(jvm.as_fd(), PollFlags::POLLIN),
        PollFd::new(signals.as_fd(), PollFlags::POLLIN),
    ];
    if let Some(fd) = source.fd() {
        fds.push(PollFd::new(fd, PollFlags::POLLIN));
    }
    let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
    if poll(&mut fds, timeout).is_err() {
        return Woken::default();
    }
    let mut woken = Woken::default();
    while let Ok(Some(signal)) = signals.read_signal() {
        if signal.ssi_signo == SEND_SIGNAL as u32 {
            woken.send = true;
        } else {
            woken.over = true;
        }
    }
    let told = |fd: &PollFd<'_>, flags| fd.revents().is_some_and(|r| r.intersects(flags));
    let hung_up = PollFlags::POLLHUP | PollFlags::POLLERR;
    woken.over |= told(&fds[0], PollFlags::POLLIN)
        || fds.get(2).is_some_and(|fd| told(fd, hung_up))
        || source.thread_ended();
    woken
}
