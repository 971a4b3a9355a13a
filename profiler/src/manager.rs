//! The manager: small and idle, it forks the writer once, and a sampler for each announced thread.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use unfuse_codemap::CodeMap;

use crate::clock::monotonic_ns;
use crate::config::Config;
use crate::identity::{Identity, raise_capabilities, retain_capabilities};
use crate::interpreter::Layout;
use crate::metrics::OwnCpu;
use crate::pause::{FOLLOW, PauseListener, RecordingState};
use crate::perf_event::HostSwitches;
use crate::process;
use crate::python;
use crate::running::RunningTasks;
use crate::sampler::{self, Access, Assignment, END_SIGNAL, SEND_SIGNAL, SourceKind};
use crate::samplers::{MOST_SAMPLERS, Samplers};
use crate::status::{Counter, Failure, StatusWords};
use crate::timer::TimerRings;
use crate::waiting::{Request, WaitingList};
use crate::wire::{Incoming, Messages, ToManager};
use crate::writer::Writer;

pub(crate) struct Manager<'a> {
    pub(crate) config: &'a Config,
    /// Files that samplers cannot open themselves.
    pub(crate) access: Access,
    /// The identity that this process has taken on, if another user's process forked it.
    pub(crate) owner: Option<Identity>,
    pub(crate) jvm: u32,
    pub(crate) jvm_ends: &'a OwnedFd,
    pub(crate) from_jvm: &'a UnixStream,
    pub(crate) to_writer: &'a OwnedFd,
    pub(crate) map: &'a CodeMap,
    pub(crate) timers: Option<&'a TimerRings>,
    pub(crate) layout: Layout,
    /// The sampler of Python workers; none if it is not wanted.
    pub(crate) python: RefCell<Option<PythonSampler>>,
}

/// The sampler of Python workers, which is started for the first of them.
pub(crate) enum PythonSampler {
    /// With its end of the socket from the writer.
    Waiting(OwnedFd),
    Running(Pid),
}

/// The signal with which the writer asks for the sampler of Python workers.
pub(crate) const PYTHON_SIGNAL: Signal = Signal::SIGUSR1;

/// Maximum number of messages and waiting threads between two checks for the end.
const ROUND: usize = 1024;

/// Threads with a sampler, and threads that wait for one.
struct SampledThreads {
    samplers: Samplers,
    waiting: WaitingList,
    follow: Follow,
}

/// Samplers that were asked to follow the recording state.
#[derive(Clone, Copy)]
struct Follow {
    asked: Instant,
    /// How often samplers have sent what they have when the last of these has.
    sends: u64,
}

impl SampledThreads {
    fn is_full(&self) -> bool {
        self.samplers.len() + self.waiting.len() >= MOST_SAMPLERS
    }
}

/// The result of reading messages.
enum Progress {
    All,
    /// There may be more messages.
    Part,
    /// The JVM closed its end, or sent an invalid message.
    Closed,
}

impl Manager<'_> {
    fn status(&self) -> StatusWords<'_> {
        StatusWords::new(self.map)
    }

    /// Forks the writer, then serves until the JVM ends. Then samplers end by themselves, and the writer after the last
    /// of them.
    pub(crate) fn start(&self, mut writer: Writer<'_>) {
        // The writer sends it when there is a Python worker.
        let _ = SigSet::from_iter([PYTHON_SIGNAL]).thread_block();
        let kept_by_writer = writer.descriptors();
        let forked = process::spawn(|| {
            process::detach(&kept_by_writer);
            process::set_title("unfuse-writer");
            writer.switches = self.switches();
            if let Some(owner) = self.owner {
                if let Err(e) = retain_capabilities(owner.inspection_capabilities()) {
                    let errno = e.raw_os_error().unwrap_or(libc::EPERM);
                    return self.status().fail(Failure::Identity, errno);
                }
                raise_capabilities();
            }
            writer.run();
        });
        // The closure has closed this process's copies of the writer's descriptors.
        if let Ok(writer) = forked {
            self.serve(writer);
        }
    }

    /// Watches the CPUs, if that was asked for. Never for a JVM whose user this process is not: the user could read which processes
    /// of others run.
    fn switches(&self) -> Option<HostSwitches> {
        if !self.config.switches || self.owner.is_some() {
            return None;
        }
        let opened = match self.config.heartbeat {
            Some(_) => HostSwitches::open(),
            None => Err(io::Error::from_raw_os_error(libc::EINVAL)),
        };
        let failed = |e: io::Error| {
            let errno = e.raw_os_error().unwrap_or(libc::EIO);
            self.status().fail(Failure::Switches, errno);
        };
        opened.map_err(failed).ok()
    }

    fn serve(&self, writer: Pid) {
        let children = SigSet::from_iter([Signal::SIGCHLD, PYTHON_SIGNAL]);
        let _ = children.thread_block();
        // For the samplers: the signal must not kill them before they handle it.
        let _ = SigSet::from_iter([SEND_SIGNAL]).thread_block();
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let Ok(child_ended) = SignalFd::with_flags(&children, flags) else {
            return;
        };
        process::reserve_heap();
        let mut threads = SampledThreads {
            samplers: Samplers::default(),
            waiting: WaitingList::new(Instant::now()),
            follow: Follow {
                asked: Instant::now(),
                sends: 0,
            },
        };
        // Where the name is taken, the profiler cannot be paused.
        let pauses = PauseListener::bind(self.jvm).ok();
        let mut running = RunningTasks::new(self.map);
        let mut messages = Messages::default();
        let mut received = Progress::All;
        let mut own_cpu = OwnCpu::default();
        loop {
            own_cpu.add_to(self.status());
            let mut fds = vec![
                PollFd::new(self.jvm_ends.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.from_jvm.as_fd(), PollFlags::POLLIN),
                PollFd::new(child_ended.as_fd(), PollFlags::POLLIN),
            ];
            fds.extend(
                pauses
                    .iter()
                    .map(|pauses| PollFd::new(pauses.as_fd(), PollFlags::POLLIN)),
            );
            let patience = match received {
                Progress::Part => Some(Duration::ZERO),
                _ => threads.waiting.patience(Instant::now()),
            };
            let timeout = patience.map_or(PollTimeout::NONE, |patience| {
                // Rounded up, to avoid waking too early.
                PollTimeout::try_from(patience.as_millis() as i32 + 1).unwrap_or(PollTimeout::MAX)
            });
            let ended =
                poll(&mut fds, timeout).is_ok() && fds[0].revents().is_some_and(|r| !r.is_empty());
            while let Ok(Some(signal)) = child_ended.read_signal() {
                if signal.ssi_signo == PYTHON_SIGNAL as u32 {
                    self.sample_python();
                }
            }
            // Before reaping: a thread announces its end before its sampler can see it.
            received = self.listen(&mut messages, &mut threads);
            self.reap(writer, &mut threads);
            if ended || matches!(received, Progress::Closed) {
                return;
            }
            if let Some(pauses) = &pauses {
                self.listen_for_pauses(pauses, &mut threads, &mut running);
            }
            let now = Instant::now();
            for _ in 0..ROUND {
                let Some(request) = threads.waiting.next_due(now) else {
                    break;
                };
                self.sample(request, &mut threads);
            }
        }
    }

    /// Processes the JVM's messages, but only a limited number.
    fn listen(&self, messages: &mut Messages, threads: &mut SampledThreads) -> Progress {
        for _ in 0..ROUND {
            match messages.receive(self.from_jvm) {
                Incoming::Message(message) => self.obey(message, threads),
                Incoming::Empty => return Progress::All,
                Incoming::Closed => return Progress::Closed,
            }
        }
        Progress::Part
    }

    /// Serves one who pauses or resumes the profiler, or asks for the tasks that run.
    fn listen_for_pauses(
        &self,
        pauses: &PauseListener,
        threads: &mut SampledThreads,
        running: &mut RunningTasks<'_>,
    ) {
        let status = self.status();
        let follow = Cell::new(threads.follow);
        pauses.serve(
            |state| {
                status.set_recording(state, monotonic_ns());
                let before = status.sends_done();
                follow.set(Follow {
                    asked: Instant::now(),
                    sends: before + self.collect(threads),
                });
            },
            || {
                let Follow { asked, sends } = follow.get();
                let settled = status.sends_done() >= sends || asked.elapsed() >= FOLLOW;
                (status.recording(), settled)
            },
            || match status.recording() {
                // There are no marks then.
                RecordingState::Off => Vec::new(),
                _ => running.look(),
            },
        );
        threads.follow = follow.get();
    }

    /// Asks samplers to send what they have; returns how many. They look at the recording state then.
    fn collect(&self, threads: &SampledThreads) -> u64 {
        let mut asked = 0;
        for process in threads.samplers.at_work() {
            let _ = kill(process, SEND_SIGNAL);
            asked += 1;
        }
        self.status().ask_to_send(asked);
        asked
    }

    fn obey(&self, message: ToManager, threads: &mut SampledThreads) {
        match message {
            ToManager::Profile {
                tid,
                name,
                task,
                slot,
            } => {
                let request = Request {
                    tid,
                    name,
                    task,
                    slot,
                };
                if threads.samplers.has(tid) {
                    self.sample(request, threads);
                } else if threads.is_full() {
                    self.refuse(&request, libc::EAGAIN);
                } else if let Some(request) = threads.waiting.admit(request, Instant::now()) {
                    self.sample(request, threads);
                }
            }
            ToManager::Ended { tid, cpu_ns } => {
                let waited = threads.samplers.thread_ended(tid);
                if let Some(request) = waited.or_else(|| threads.waiting.take(tid)) {
                    self.free(request.slot);
                    self.status().add_brief_thread(cpu_ns);
                }
            }
            ToManager::Collect => {
                self.collect(threads);
            }
            ToManager::TasksOnly => {
                let (ends, dropped) = threads.samplers.tasks_only();
                for request in threads.waiting.clear().chain(dropped) {
                    self.free(request.slot);
                }
                for process in ends {
                    let _ = kill(process, END_SIGNAL);
                }
            }
        }
    }

    /// Forgets samplers that have ended, and counts those that crashed or were killed. Threads that waited for their
    /// end are due.
    fn reap(&self, writer: Pid, threads: &mut SampledThreads) {
        loop {
            let (process, well) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(process, code)) => (process, code == 0),
                Ok(WaitStatus::Signaled(process, ..)) => (process, false),
                Ok(WaitStatus::StillAlive) | Err(_) => return,
                Ok(_) => continue,
            };
            let is_python = matches!(&*self.python.borrow(), Some(PythonSampler::Running(python)) if *python == process);
            if is_python {
                if !well {
                    self.status().fail(Failure::Python, libc::ECHILD);
                }
                continue;
            }
            let sampler = threads.samplers.reaped(process);
            let slot = sampler.as_ref().and_then(|sampler| sampler.slot);
            if let Some(next) = sampler.and_then(|sampler| sampler.next) {
                threads.waiting.put_first(next, Instant::now());
            }
            // The JVM notices the end of the writer itself.
            if !well && process != writer {
                self.free(slot);
                self.status().add(Counter::SamplersDied, 1);
            }
        }
    }

    /// Starts the sampler of Python workers, once.
    fn sample_python(&self) {
        let orders = match self.python.take() {
            Some(PythonSampler::Waiting(orders)) => orders,
            other => return drop(self.python.replace(other)),
        };
        let forked = process::spawn(|| {
            python::run(python::Assignment {
                jvm_ends: self.jvm_ends,
                orders,
                to_writer: self.to_writer,
                map: self.map,
                period_ns: 1_000_000_000 / u64::from(self.config.rate_hz),
            });
        });
        match forked {
            Ok(process) => drop(self.python.replace(Some(PythonSampler::Running(process)))),
            Err(e) => {
                let errno = e.raw_os_error().unwrap_or(libc::EAGAIN);
                self.status().fail(Failure::Python, errno);
            }
        }
    }

    /// Frees a timer's ring on behalf of a sampler that cannot.
    fn free(&self, slot: Option<u32>) {
        if let (Some(rings), Some(slot)) = (self.timers, slot) {
            rings.slot(slot).free();
        }
    }

    /// Counts a thread without a sampler.
    fn refuse(&self, request: &Request, errno: i32) {
        self.free(request.slot);
        self.status().fail(Failure::Sampler, errno);
    }

    /// Starts a sampler, unless one with its thread number runs.
    fn sample(&self, request: Request, threads: &mut SampledThreads) {
        if self.config.rate_hz == 0 {
            return;
        }
        if threads.samplers.has(request.tid) {
            if let Some(before) = threads.samplers.keep(request) {
                self.free(before.slot);
            }
            return;
        }
        match self.fork(&request) {
            Some(Ok(process)) => {
                let thread = (request.tid, request.task);
                threads.samplers.insert(process, thread, request.slot);
            }
            Some(Err(e)) => self.refuse(&request, e.raw_os_error().unwrap_or(libc::EAGAIN)),
            None => {}
        }
    }

    /// Forks a sampler; `None` for a thread without a timer if timers are used.
    fn fork(&self, request: &Request) -> Option<io::Result<Pid>> {
        let Request {
            tid, name, slot, ..
        } = request;
        let source = match (self.timers, slot) {
            (Some(rings), Some(slot)) => SourceKind::Timer(rings, *slot),
            (Some(_), None) => return None,
            (None, _) => SourceKind::Perf,
        };
        Some(process::spawn(|| {
            // This includes the JVM's socket: it must be closed when the manager is gone.
            let mut keep = vec![self.jvm_ends.as_raw_fd(), self.to_writer.as_raw_fd()];
            keep.extend(self.access.descriptors());
            process::close_all_but(&keep);
            sampler::run(Assignment {
                tid: *tid,
                thread: name.clone(),
                period_ns: 1_000_000_000 / u64::from(self.config.rate_hz),
                jvm: self.jvm,
                access: &self.access,
                jvm_ends: self.jvm_ends,
                to_writer: self.to_writer,
                map: self.map,
                source,
                layout: self.layout,
                tasks: self.config.tasks,
                waits: self.config.waits,
                instructions: self.config.instructions,
            });
        }))
    }
}
