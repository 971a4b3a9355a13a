//! The manager: small and idle, it forks the writer once and a sampler for each thread it is told of.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use unfuse_codemap::CodeMap;

use crate::config::Config;
use crate::identity::{Identity, raise_capabilities, retain_capabilities};
use crate::interpreter::Layout;
use crate::launch::{
    STATUS_BRIEF_NS, STATUS_BRIEF_THREADS, STATUS_IDENTITY_ERRNO, STATUS_SAMPLER_ERRNO,
    STATUS_SAMPLERS_DIED, STATUS_SAMPLERS_FAILED, STATUS_SEND_ASKED, STATUS_SENT,
};
use crate::process;
use crate::sampler::{self, Access, Assignment, END_SIGNAL, SEND_SIGNAL, SourceKind};
use crate::timer::TimerRings;
use crate::waiting::{Request, Waiting};
use crate::wire::{Incoming, Messages, ToManager};
use crate::writer::Writer;

pub(crate) struct Manager<'a> {
    pub(crate) config: &'a Config,
    /// What samplers may not open themselves.
    pub(crate) access: Access,
    /// The identity that this process has taken on, if it was forked from another user's.
    pub(crate) owner: Option<Identity>,
    pub(crate) jvm: u32,
    pub(crate) jvm_ends: &'a OwnedFd,
    pub(crate) from_jvm: &'a UnixStream,
    pub(crate) to_writer: &'a OwnedFd,
    pub(crate) map: &'a CodeMap,
    pub(crate) timers: Option<&'a TimerRings>,
    pub(crate) layout: Layout,
}

struct Sampler {
    process: Pid,
    task: bool,
    slot: Option<u32>,
}

/// Whom the manager looks after.
struct Crew {
    samplers: HashMap<u32, Sampler>,
    waiting: Waiting,
}

impl Manager<'_> {
    /// Forks the writer, then serves until the JVM ends. Samplers end by themselves then, and the
    /// writer when the last of them has.
    pub(crate) fn start(&self, writer: Writer<'_>) {
        let kept_by_writer = writer.descriptors();
        let forked = process::spawn(|| {
            process::detach(&kept_by_writer);
            process::set_title("unfuse-writer");
            if let Some(owner) = self.owner {
                if let Err(e) = retain_capabilities(owner.inspection_capabilities()) {
                    let errno = e.raw_os_error().unwrap_or(libc::EPERM) as u64;
                    return self.map.status().set(STATUS_IDENTITY_ERRNO, errno);
                }
                raise_capabilities();
            }
            writer.run();
        });
        // This process's copies of the writer's descriptors went with the closure.
        if let Ok(writer) = forked {
            self.serve(writer);
        }
    }

    fn serve(&self, writer: Pid) {
        let children = SigSet::from_iter([Signal::SIGCHLD]);
        let _ = children.thread_block();
        // For the samplers, which must not die of it before they look for it.
        let _ = SigSet::from_iter([SEND_SIGNAL]).thread_block();
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let Ok(child_ended) = SignalFd::with_flags(&children, flags) else {
            return;
        };
        let mut crew = Crew {
            samplers: HashMap::new(),
            waiting: Waiting::new(Instant::now()),
        };
        let mut messages = Messages::default();
        loop {
            let mut fds = [
                PollFd::new(self.jvm_ends.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.from_jvm.as_fd(), PollFlags::POLLIN),
                PollFd::new(child_ended.as_fd(), PollFlags::POLLIN),
            ];
            let patience = crew.waiting.patience(Instant::now());
            let timeout = patience.map_or(PollTimeout::NONE, |patience| {
                // Rounded up, not to wake too early.
                PollTimeout::try_from(patience.as_millis() as i32 + 1).unwrap_or(PollTimeout::MAX)
            });
            let ended =
                poll(&mut fds, timeout).is_ok() && fds[0].revents().is_some_and(|r| !r.is_empty());
            while let Ok(Some(_)) = child_ended.read_signal() {}
            self.reap(writer, &mut crew);
            loop {
                match messages.receive(self.from_jvm) {
                    Incoming::Message(message) => self.obey(message, &mut crew),
                    Incoming::Empty => break,
                    Incoming::Closed => return,
                }
            }
            if ended {
                return;
            }
            let now = Instant::now();
            while let Some(request) = crew.waiting.next_due(now) {
                self.sample(request, &mut crew);
            }
        }
    }

    fn obey(&self, message: ToManager, crew: &mut Crew) {
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
                if let Some(known) = crew.samplers.get_mut(&tid) {
                    known.task |= task;
                } else if let Some(request) = crew.waiting.admit(request, Instant::now()) {
                    self.sample(request, crew);
                }
            }
            ToManager::Ended { tid, cpu_ns } => {
                crew.samplers.remove(&tid);
                if let Some(request) = crew.waiting.take(tid) {
                    self.free(request.slot);
                    self.map.status().add(STATUS_BRIEF_THREADS, 1);
                    self.map.status().add(STATUS_BRIEF_NS, cpu_ns);
                }
            }
            ToManager::Collect => {
                for sampler in crew.samplers.values() {
                    let _ = kill(sampler.process, SEND_SIGNAL);
                }
                // At least one: the JVM waits for the number to grow.
                let asked = crew.samplers.len() as u64;
                self.map.status().add(STATUS_SENT, u64::from(asked == 0));
                self.map.status().add(STATUS_SEND_ASKED, asked.max(1));
            }
            ToManager::TasksOnly => {
                for request in crew.waiting.clear() {
                    self.free(request.slot);
                }
                crew.samplers.retain(|_, sampler| {
                    if !sampler.task {
                        let _ = kill(sampler.process, END_SIGNAL);
                    }
                    sampler.task
                });
            }
        }
    }

    /// Forgets samplers that have ended, and counts those that did not end by themselves.
    fn reap(&self, writer: Pid, crew: &mut Crew) {
        loop {
            let (process, well) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(process, code)) => (process, code == 0),
                Ok(WaitStatus::Signaled(process, ..)) => (process, false),
                Ok(WaitStatus::StillAlive) | Err(_) => return,
                Ok(_) => continue,
            };
            let mut slot = None;
            crew.samplers.retain(|_, sampler| {
                if sampler.process == process {
                    slot = sampler.slot;
                }
                sampler.process != process
            });
            // The JVM sees by itself that the writer has gone.
            if !well && process != writer {
                self.free(slot);
                self.map.status().add(STATUS_SAMPLERS_DIED, 1);
            }
        }
    }

    /// Gives up a timer's ring for a sampler that does not.
    fn free(&self, slot: Option<u32>) {
        if let (Some(rings), Some(slot)) = (self.timers, slot) {
            rings.slot(slot).free();
        }
    }

    fn sample(&self, request: Request, crew: &mut Crew) {
        if self.config.rate_hz == 0 {
            return;
        }
        let Request {
            tid,
            name,
            task,
            slot,
        } = request;
        let source = match (self.timers, slot) {
            (Some(rings), Some(slot)) => SourceKind::Timer(rings, slot),
            (Some(_), None) => return,
            (None, _) => SourceKind::Perf,
        };
        let spawned = process::spawn(|| {
            // The JVM's socket among them: it must hang up when the manager is gone.
            let mut keep = vec![self.jvm_ends.as_raw_fd(), self.to_writer.as_raw_fd()];
            keep.extend(self.access.descriptors());
            process::close_all_but(&keep);
            sampler::run(Assignment {
                tid,
                thread: name,
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
            });
        });
        match spawned {
            Ok(process) => {
                let sampler = Sampler {
                    process,
                    task,
                    slot,
                };
                crew.samplers.insert(tid, sampler);
            }
            Err(e) => {
                self.free(slot);
                let status = self.map.status();
                status.set(
                    STATUS_SAMPLER_ERRNO,
                    e.raw_os_error().unwrap_or(libc::EAGAIN) as u64,
                );
                status.add(STATUS_SAMPLERS_FAILED, 1);
            }
        }
    }
}
