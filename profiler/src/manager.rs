//! The manager: small and idle, it forks the writer once and a sampler for each thread it is told of.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::kill;
use nix::unistd::Pid;
use unfuse_codemap::CodeMap;

use crate::config::Config;
use crate::interpreter::Layout;
use crate::process;
use crate::sampler::{self, Assignment, END_SIGNAL, SourceKind};
use crate::timer::TimerRings;
use crate::wire::{Incoming, ToManager, receive};
use crate::writer::Writer;

pub(crate) struct Manager<'a> {
    pub(crate) config: &'a Config,
    pub(crate) jvm: u32,
    pub(crate) jvm_ends: &'a OwnedFd,
    pub(crate) from_jvm: &'a OwnedFd,
    pub(crate) to_writer: &'a OwnedFd,
    pub(crate) map: &'a CodeMap,
    pub(crate) timers: Option<&'a TimerRings>,
    pub(crate) layout: Layout,
}

struct Sampler {
    process: Pid,
    task: bool,
}

impl Manager<'_> {
    /// Forks the writer, then serves until the JVM ends. Samplers end by themselves then, and the
    /// writer when the last of them has.
    pub(crate) fn start(&self, writer: Writer<'_>) {
        let kept_by_writer = writer.descriptors();
        let forked = process::spawn(|| {
            process::detach(&kept_by_writer);
            process::set_title("unfuse-writer");
            writer.run();
        });
        if forked.is_ok() {
            // This process's copies of the writer's descriptors went with the closure.
            self.serve();
        }
    }

    fn serve(&self) {
        let mut samplers: HashMap<u32, Sampler> = HashMap::new();
        let mut buffer = Vec::new();
        loop {
            let mut fds = [
                PollFd::new(self.jvm_ends.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.from_jvm.as_fd(), PollFlags::POLLIN),
            ];
            let ended = poll(&mut fds, PollTimeout::NONE).is_ok()
                && fds[0].revents().is_some_and(|r| !r.is_empty());
            loop {
                match receive(self.from_jvm, &mut buffer) {
                    Incoming::Message(message) => self.obey(message, &mut samplers),
                    Incoming::Empty => break,
                    Incoming::Closed => return,
                }
            }
            if ended {
                return;
            }
        }
    }

    fn obey(&self, message: ToManager, samplers: &mut HashMap<u32, Sampler>) {
        match message {
            ToManager::Profile {
                tid,
                name,
                task,
                slot,
            } => {
                if let Some(known) = samplers.get_mut(&tid) {
                    known.task |= task;
                } else if let Some(process) = self.sample(tid, name, slot) {
                    samplers.insert(tid, Sampler { process, task });
                }
            }
            ToManager::Ended { tid } => {
                samplers.remove(&tid);
            }
            ToManager::TasksOnly => samplers.retain(|_, sampler| {
                if !sampler.task {
                    let _ = kill(sampler.process, END_SIGNAL);
                }
                sampler.task
            }),
        }
    }

    fn sample(&self, tid: u32, thread: String, slot: Option<u32>) -> Option<Pid> {
        if self.config.rate_hz == 0 {
            return None;
        }
        let source = match (self.timers, slot) {
            (Some(rings), Some(slot)) => SourceKind::Timer(rings, slot),
            (Some(_), None) => return None,
            (None, _) => SourceKind::Perf,
        };
        process::spawn(|| {
            sampler::run(Assignment {
                tid,
                thread,
                period_ns: 1_000_000_000 / u64::from(self.config.rate_hz),
                jvm: self.jvm,
                jvm_ends: self.jvm_ends,
                to_writer: self.to_writer,
                map: self.map,
                source,
                layout: self.layout,
            });
        })
        .ok()
    }
}
