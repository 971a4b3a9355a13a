//! The writer's loop: receives the data of samplers and the JVM, reads the host's counters, and flushes.

use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use unfuse_format::{
    Frame, FrameKind, GARBAGE_COLLECTION, JIT_COMPILATION, ProfileDir, SampleKind, SampleRow,
    StackId, StackRow,
};

use super::Writer;
use super::completeness::Completeness;
use super::events::Events;
use super::frames::Frames;
use super::generations::Generations;
use super::host::HostMeter;
use super::internal::InternalThreads;
use super::outside::OutsideMeter;
use super::switches::SwitchMeter;
use super::tables::{Tables, frame, sample_of};
use crate::clock::{EpochOffset, monotonic_ns};
use crate::metrics::OwnCpu;
use crate::pause::RecordingState;
use crate::recent::RecentSet;
use crate::status::{Counter, Failure, Progress};
use crate::wire::{
    Incoming, SentPiece, Tally, ToWriter, WireSamples, WireStack, WireStacks, receive,
};

/// How long rows wait in memory.
const FLUSH_EVERY: Duration = Duration::from_secs(5);
/// How long the JVM's order to flush waits for records that are being read. The JVM itself waits for 2 s.
const RECORDS_PATIENCE: Duration = Duration::from_millis(1500);
/// How long that order waits for samples of Python workers.
const PYTHON_PATIENCE: Duration = Duration::from_millis(300);
/// Between looks at the JVM's own threads; what they do in the JVM's last moments is not seen.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Number of stacks remembered as written: several samplers send the same ones. A forgotten one is written twice, which
/// readers tolerate.
const REMEMBERED: usize = 32_768;

/// A running writer.
pub(super) struct Work {
    dir: ProfileDir,
    tables: Tables,
    clock: EpochOffset,
    frames: Frames,
    /// Stacks written by this process.
    stacks: RecentSet<StackId>,
    events: Events,
    internal: InternalThreads,
    generations: Generations,
    host: HostMeter,
    outside: OutsideMeter,
    switches: Option<SwitchMeter>,
    completeness: Completeness,
    /// CPU time that the samples stand for, ns.
    sampled_ns: u64,
    own_cpu: OwnCpu,
    /// When the JVM's own threads were read, ns since the epoch.
    looked_ns: i64,
    /// The number of the flush that the JVM requested.
    ordered: u64,
    /// Whether the JVM has announced its end.
    ending: bool,
}

impl Work {
    pub(super) fn new(
        writer: &Writer<'_>,
        dir: ProfileDir,
        tables: Tables,
        clock: EpochOffset,
        generations: Generations,
        switches: Option<SwitchMeter>,
    ) -> Self {
        let outside = OutsideMeter::new(writer.jvm, writer.heartbeat.is_some());
        Self {
            dir,
            tables,
            clock,
            frames: Frames::default(),
            stacks: RecentSet::new(REMEMBERED),
            events: Events::default(),
            internal: InternalThreads::default(),
            generations,
            host: HostMeter::new(writer.jvm, &outside.descendants()),
            outside,
            switches,
            completeness: Completeness::default(),
            sampled_ns: 0,
            own_cpu: OwnCpu::default(),
            looked_ns: clock.epoch_ns(monotonic_ns()),
            ordered: 0,
            ending: false,
        }
    }

    /// Writes until all senders are gone; returns the error of the last flush.
    pub(super) fn run(mut self, writer: &Writer<'_>) -> Result<(), i32> {
        // At once, so that even a profile that cannot grow identifies its JVM.
        self.look_at_internal_threads(writer, true);
        let _ = self.flush(writer, false);
        self.serve(writer);
        self.tables.settle_python(true);
        self.flush(writer, true)
    }

    fn serve(&mut self, writer: &Writer<'_>) {
        let _ = writer.events.set_nonblocking(true);
        let (mut samplers_gone, mut jvm_gone) = (false, false);
        let mut buffer = Vec::new();
        let (mut flushed, mut failing) = (Instant::now(), false);
        let mut looked = flushed;
        let mut beat = flushed;
        while !(samplers_gone && jvm_gone) {
            let mut fds = Vec::new();
            if !samplers_gone {
                fds.push(PollFd::new(writer.samples.as_fd(), PollFlags::POLLIN));
            }
            if !jvm_gone {
                fds.push(PollFd::new(writer.events.as_fd(), PollFlags::POLLIN));
            }
            let watched = self.switches.iter().flat_map(SwitchMeter::descriptors);
            fds.extend(watched.map(|cpu| PollFd::new(cpu, PollFlags::POLLIN)));
            let blocked = self.tables.python.blocked();
            fds.extend(blocked.map(|to| PollFd::new(to, PollFlags::POLLOUT)));
            let _ = poll(
                &mut fds,
                PollTimeout::try_from(writer.heartbeat.unwrap_or(LOOK_EVERY).min(LOOK_EVERY))
                    .unwrap_or(PollTimeout::MAX),
            );
            drop(fds);
            let before = self.ordered;
            jvm_gone |= self.read_events(&writer.events);
            let ordered = self.ordered > before;
            // Samples that were sent before the request have arrived by now.
            let most = if ordered { usize::MAX } else { 256 };
            samplers_gone |= self.read_samples(&writer.samples, most, &mut buffer);
            self.tables.settle_python(false);
            if ordered {
                samplers_gone |= self.await_python(&writer.samples, &mut buffer);
            }
            // What cannot be written stays large; trying again at once would only burn CPU.
            let paused = writer.status().recording() != RecordingState::On;
            if let Some(switches) = &mut self.switches {
                match paused {
                    true => switches.pause(),
                    false => {
                        switches.read(writer.map);
                    }
                }
            }
            if ordered || looked.elapsed() >= LOOK_EVERY {
                self.publish_progress(writer);
                self.look_at_internal_threads(writer, paused);
                looked = Instant::now();
            }
            if !paused
                && writer
                    .heartbeat
                    .is_some_and(|every| ordered || beat.elapsed() >= every)
            {
                self.publish_progress(writer);
                // Both at the same time.
                self.look_at_internal_threads(writer, false);
                self.look_at_host();
                self.look_at_cpus(writer);
                beat = Instant::now();
                looked = beat;
            }
            if ordered
                || flushed.elapsed() >= self.generations.flush_every(FLUSH_EVERY)
                || (self.tables.is_large() && !failing)
            {
                // Before the last row on the process, which tells readers that all is there.
                let complete = !ordered || self.tables.records.flush(RECORDS_PATIENCE);
                failing = self.flush(writer, false).is_err();
                flushed = Instant::now();
                if ordered && complete {
                    writer.status().set_flushed(self.ordered);
                }
            }
        }
    }

    /// Publishes the numbers that the JVM shows as metrics.
    fn publish_progress(&mut self, writer: &Writer<'_>) {
        writer.status().set_progress(Progress {
            samples: self.tables.process.samples,
            lost_samples: self.tables.process.lost_samples,
            sampled_ns: self.sampled_ns,
            python_ns: self.tables.python.counted_ns(),
            written_bytes: self.tables.segments.written_in_all(),
        });
        self.own_cpu.add_to(writer.status());
    }

    /// Reads messages of samplers, at most `most`; true if all samplers are gone.
    fn read_samples(&mut self, from: &OwnedFd, most: usize, buffer: &mut Vec<u8>) -> bool {
        for _ in 0..most {
            match receive(from, buffer) {
                Incoming::Message(message) => self.take(message),
                Incoming::Empty => return false,
                Incoming::Closed => return true,
            }
        }
        false
    }

    /// Reads messages until the samples of Python workers whose tasks have ended are there, for a limited time; true if all
    /// samplers are gone.
    fn await_python(&mut self, from: &OwnedFd, buffer: &mut Vec<u8>) -> bool {
        let until = Instant::now() + PYTHON_PATIENCE;
        let mut gone = false;
        while self.tables.python.waits() && !gone && Instant::now() < until {
            let mut fds = [PollFd::new(from.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut fds, 10u8);
            gone = self.read_samples(from, usize::MAX, buffer);
        }
        gone
    }

    /// Reads events of the JVM; true if it is gone.
    fn read_events(&mut self, mut from: &UnixStream) -> bool {
        let mut chunk = [0u8; 64 << 10];
        loop {
            match from.read(&mut chunk) {
                Ok(0) => return true,
                Ok(bytes) => {
                    for event in self.events.feed(&chunk[..bytes]) {
                        if event.kind == "flush" {
                            let order = event.fields();
                            self.ordered = order["number"].as_u64().unwrap_or(self.ordered);
                            self.ending |= order["last"] == true;
                        } else {
                            self.tables.record(&event);
                        }
                    }
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return false,
                Err(_) => return true,
            }
        }
    }

    fn take(&mut self, message: ToWriter<SentPiece<'_>>) {
        match message {
            ToWriter::Stacks(stacks) => self.take_stacks(stacks),
            ToWriter::Samples {
                generation,
                tid,
                thread,
                stacks,
                rows,
                tally,
            } => {
                self.take_stacks(stacks);
                self.take_tally(tally);
                // Their stacks may be deleted before them; the sampler must have slept for minutes.
                if generation.saturating_add(1) < self.generations.number() {
                    let samples = rows.iter().filter(|row| !row.waiting);
                    self.tables.process.lost_samples += samples.map(|row| row.count).sum::<u64>();
                } else {
                    self.take_samples(tid, &thread, rows);
                }
            }
            ToWriter::Python(sent) => {
                let has_stacks = sent.generation.saturating_add(1) >= self.generations.number();
                self.tables.python_samples(sent, has_stacks);
            }
        }
    }

    /// Writes the stacks that are not written yet; none of a message with an unknown kind of frame.
    fn take_stacks(&mut self, WireStacks { pieces, stacks }: WireStacks<SentPiece<'_>>) {
        let mut frames = |piece: &SentPiece<'_>| -> Option<Vec<Arc<Frame>>> {
            let outermost_first = piece.iter().rev();
            outermost_first
                .map(|sent| self.frames.frame(sent))
                .collect()
        };
        let pieces: Option<Vec<Vec<Arc<Frame>>>> = pieces.iter().map(&mut frames).collect();
        let Some(pieces) = pieces else { return };
        for WireStack { id, pieces: places } in stacks {
            if self.stacks.insert(id) {
                let pieces = places.iter().rev().map(|index| pieces.get(*index as usize));
                let frames = pieces.flatten().flatten().cloned().collect();
                self.tables
                    .segments
                    .stacks
                    .push(StackRow { stack: id, frames });
            }
        }
    }

    fn take_samples(&mut self, tid: u32, thread: &str, rows: Vec<WireSamples>) {
        for row in rows {
            if !row.waiting {
                self.sampled_ns = self.sampled_ns.saturating_add(row.weight_ns);
            }
            self.tables.segments.samples.push(SampleRow {
                tid,
                thread: thread.to_owned(),
                stage: row.task.map(|task| task.stage),
                stage_attempt: row.task.map(|task| task.stage_attempt),
                task: row.task.map(|task| task.task),
                start_ns: self.clock.epoch_ns(row.first),
                end_ns: self.clock.epoch_ns(row.last),
                stack: row.stack,
                count: row.count,
                weight_ns: row.weight_ns,
                kind: if row.waiting {
                    SampleKind::OffCpu
                } else {
                    SampleKind::Cpu
                },
                ..sample_of(&self.tables.process)
            });
        }
    }

    fn take_tally(&mut self, tally: Tally) {
        let Tally {
            windows,
            samples,
            lost_samples,
            lost_marks,
            broken_chains,
            waiting_ns,
            guessed_ns,
            stackless_ns,
        } = tally;
        for (window, (all, incomplete)) in windows {
            self.completeness.add(window, all, incomplete);
        }
        let process = &mut self.tables.process;
        process.samples += samples;
        process.lost_samples += lost_samples;
        process.lost_marks += lost_marks;
        process.broken_chains += broken_chains;
        process.waiting_ns += waiting_ns;
        process.guessed_ns += guessed_ns;
        process.stackless_ns += stackless_ns;
    }

    /// Adds the CPU time of the JVM's own threads since the last look, or with `drop` forgets it: what they used before the
    /// first look or in a pause is not part of the profile.
    fn look_at_internal_threads(&mut self, writer: &Writer<'_>, drop: bool) {
        if writer.rate_hz == 0 {
            return;
        }
        let tasks = PathBuf::from(format!("/proc/{}/task", writer.jvm));
        let used = self
            .internal
            .look(&tasks, 1_000_000_000 / u64::from(writer.rate_hz));
        let since = self.looked_ns;
        self.looked_ns = self.clock.epoch_ns(monotonic_ns());
        if drop {
            return;
        }
        // Without compilation the time is 0, and not unknown.
        self.host.add_jit(0);
        for used in used {
            match used.work {
                GARBAGE_COLLECTION => self.host.add_gc(used.ns),
                JIT_COMPILATION => self.host.add_jit(used.ns),
                _ => {}
            }
            let row = StackRow::from_frames(vec![frame(FrameKind::Native, "", used.work)]);
            let stack = row.stack;
            if self.stacks.insert(stack) {
                self.tables.segments.stacks.push(row);
            }
            let process = &mut self.tables.process;
            process.samples += used.samples;
            self.sampled_ns += used.ns;
            self.tables.segments.samples.push(SampleRow {
                tid: used.tid,
                thread: used.thread,
                start_ns: since,
                end_ns: self.looked_ns,
                stack,
                count: used.samples,
                weight_ns: used.ns,
                ..sample_of(process)
            });
        }
    }

    fn look_at_host(&mut self) {
        let outside = self.outside.look(self.clock, self.host.cpu_set());
        if let Some(row) = self.host.look(self.clock, &self.outside.descendants()) {
            self.tables.host(row);
            self.tables.outside(outside);
        }
    }

    /// Adds who had the CPUs while tasks waited. After the look at processes, which says who they are.
    fn look_at_cpus(&mut self, writer: &Writer<'_>) {
        if let Some(switches) = &mut self.switches {
            let rows = switches.rows(writer.map, self.clock, &self.internal, &mut self.outside);
            self.tables.cpu_waits(rows);
        }
    }

    fn flush(&mut self, writer: &Writer<'_>, last: bool) -> Result<(), i32> {
        let process = &mut self.tables.process;
        process.end_ns = self.clock.epoch_ns(monotonic_ns());
        if writer.status().is_attached() {
            let from = self.completeness.from();
            process.complete_from_ns =
                Some(from.map_or(process.start_ns, |ns| self.clock.epoch_ns(ns)));
            process.incomplete_samples = self.completeness.incomplete();
        }
        process.lost_ranges = writer.map.stats().dropped_full;
        process.lost_events = writer.status().count(Counter::LostEvents)
            + self.tables.misread_events
            + self.tables.records.lost();
        process.brief_threads = writer.status().count(Counter::BriefThreads);
        process.brief_ns = writer.status().count(Counter::BriefNs);
        process.paused_ns = writer.status().paused_ns(monotonic_ns());
        process.ended = Some(last || self.ending);
        let written = self.tables.flush(last);
        if written.is_ok() {
            self.keep_limits(writer, last);
        }
        if let Err(errno) = written {
            writer.status().fail(Failure::Writer, errno);
        }
        written
    }

    /// Begins a new generation if it is due, and deletes data beyond the limits.
    fn keep_limits(&mut self, writer: &Writer<'_>, last: bool) {
        if !last && self.generations.advance(self.tables.segments.written()) {
            if let Some(name) = self.generations.name() {
                self.tables.begin_generation(&name);
            }
            self.stacks.clear();
            let number = self.generations.number();
            writer.status().set_generation(number);
        }
        writer.retention.enforce(&self.dir);
    }
}
