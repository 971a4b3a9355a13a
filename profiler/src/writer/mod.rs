//! The writer: gathers what samplers and the JVM send, and writes the segments.

mod completeness;
mod cpu_limit;
mod events;
mod generations;
mod host;
mod internal;
mod python;
mod records;
mod segments;
mod spool;
mod symbols;
mod tables;

use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use unfuse_codemap::CodeMap;
use unfuse_format::{
    FormatError, Frame, FrameKind, LiveMarker, ProfileDir, Retention, SampleKind, SampleRow,
    StackRow,
};

use crate::clock::EpochOffset;
use crate::names::{host, writer_name};
use crate::recent::Recent;
use crate::share::TaskShare;
use crate::status::{Counter, Failure, StatusWords};
use crate::wire::{Incoming, Tally, ToWriter, WireFrame, WireStack, WireStacks, receive};
use completeness::Completeness;
pub(crate) use completeness::WINDOW_NS;
use events::Events;
use generations::Generations;
use host::HostMeter;
use internal::InternalThreads;
use symbols::Symbols;
use tables::{Tables, frame, sample_of};

/// How long rows wait in memory.
const FLUSH_EVERY: Duration = Duration::from_secs(5);
/// Between looks at the JVM's own threads; what they do in the JVM's last moments is not seen.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Stacks remembered as written: several samplers send the same. A forgotten one is written twice, which
/// readers do not mind.
const REMEMBERED: usize = 32_768;

/// Where a writer writes.
pub(crate) enum Place {
    /// A profile directory that it may write to.
    Profile(ProfileDir),
    /// A directory that it reaches by this handle only.
    Spool(OwnedFd),
}

impl Place {
    pub(crate) fn descriptor(&self) -> RawFd {
        match self {
            Self::Profile(dir) => dir.as_fd().as_raw_fd(),
            Self::Spool(handle) => handle.as_raw_fd(),
        }
    }

    /// The profile to write; the working directory of the process is the spool from then on.
    fn open(&self) -> Result<ProfileDir, FormatError> {
        match self {
            Self::Profile(dir) => Ok(dir.clone()),
            Self::Spool(handle) => {
                let here = Path::new(".");
                nix::unistd::fchdir(handle).map_err(|e| FormatError::Unwritable {
                    path: here.to_owned(),
                    source: e.into(),
                })?;
                ProfileDir::create(here)
            }
        }
    }
}

pub(crate) struct Writer<'a> {
    pub(crate) place: Place,
    pub(crate) rate_hz: u32,
    pub(crate) source: &'static str,
    /// Where the directory is a spool, from which somebody takes finished files away: what tells its files from
    /// those of others.
    pub(crate) tag: Option<String>,
    pub(crate) jvm: u32,
    pub(crate) samples: OwnedFd,
    pub(crate) events: UnixStream,
    pub(crate) map: &'a CodeMap,
    pub(crate) retention: Retention,
    pub(crate) tasks: TaskShare,
    pub(crate) heartbeat: Option<Duration>,
}

impl Writer<'_> {
    fn status(&self) -> StatusWords<'_> {
        StatusWords::new(self.map)
    }

    /// The descriptors it needs.
    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        vec![
            self.samples.as_raw_fd(),
            self.events.as_raw_fd(),
            self.place.descriptor(),
        ]
    }

    /// Writes until everyone who could send is gone.
    pub(crate) fn run(self) {
        let dir = match self.place.open() {
            Ok(dir) => dir,
            Err(e) => {
                let errno = tables::errno(&e);
                return self.status().fail(Failure::Writer, errno);
            }
        };
        let host = host();
        let mut name = writer_name(&host, self.jvm);
        if let Some(tag) = &self.tag {
            name = format!("{name}-{tag}");
        }
        let live = LiveMarker::hold(&dir, &name);
        let clock = EpochOffset::measure();
        let generations = Generations::new(self.retention, dir.clone(), &name);
        let mut tables = Tables::new(dir.clone(), &name, clock);
        if let Some(name) = generations.name() {
            tables.begin_generation(&name);
        }
        tables.draw = (self.tasks, self.status().seed());
        tables.process.task_fraction = self.tasks.is_partial().then(|| self.tasks.fraction());
        if self.tag.is_some() {
            tables.bound_spool();
        }
        tables.process.host = host;
        tables.process.pid = self.jvm;
        tables.process.rate_hz = self.rate_hz;
        tables.process.source = self.source.to_owned();
        tables.process.start_ns = clock.epoch_ns(crate::clock::monotonic_ns());
        let mut work = Work {
            dir,
            tables,
            clock,
            symbols: Symbols::default(),
            stacks: Recent::new(REMEMBERED),
            events: Events::default(),
            internal: InternalThreads::default(),
            generations,
            host: HostMeter::new(self.jvm),
            completeness: Completeness::default(),
            looked_ns: clock.epoch_ns(crate::clock::monotonic_ns()),
            ordered: 0,
            ending: false,
        };
        // At once, so that even a profile that cannot grow says which JVM it is of.
        work.look_at_internal_threads(&self, true);
        let _ = work.flush(&self, false);
        work.serve(&self);
        let written = work.flush(&self, true);
        match (live, written) {
            (Ok(live), Err(errno)) => live.fail(errno),
            (live, _) => drop(live),
        }
    }
}

/// Takes a stream of events as the writer does; returns how many there were. For `unfuse-fuzz` only.
#[doc(hidden)]
pub fn take_events(dir: &ProfileDir, stream: &[u8]) -> usize {
    let mut tables = Tables::new(dir.clone(), "fuzz", EpochOffset::measure());
    let events = Events::default().feed(stream);
    let count = events.len();
    for event in &events {
        tables.record(event);
    }
    count
}

#[doc(hidden)]
pub use records::take_records;

struct Work {
    dir: ProfileDir,
    tables: Tables,
    clock: EpochOffset,
    symbols: Symbols,
    /// Stacks written by this process.
    stacks: Recent<i64>,
    events: Events,
    internal: InternalThreads,
    generations: Generations,
    host: HostMeter,
    completeness: Completeness,
    /// When the JVM's own threads were looked at, ns since the epoch.
    looked_ns: i64,
    /// The number of the flush that the JVM asked for.
    ordered: u64,
    /// The JVM said that it ends now.
    ending: bool,
}

impl Work {
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
            let _ = poll(
                &mut fds,
                PollTimeout::try_from(writer.heartbeat.unwrap_or(LOOK_EVERY).min(LOOK_EVERY))
                    .unwrap_or(PollTimeout::MAX),
            );
            let before = self.ordered;
            jvm_gone |= self.read_events(&writer.events);
            let ordered = self.ordered > before;
            // Samples that were sent before the order are here by now.
            let most = if ordered { usize::MAX } else { 256 };
            for _ in 0..most {
                match receive(&writer.samples, &mut buffer) {
                    Incoming::Message(message) => self.take(message),
                    Incoming::Empty => break,
                    Incoming::Closed => {
                        samplers_gone = true;
                        break;
                    }
                }
            }
            // What cannot be written stays large; trying again at once would only burn CPU.
            if ordered || looked.elapsed() >= LOOK_EVERY {
                self.look_at_internal_threads(writer, false);
                looked = Instant::now();
            }
            if writer
                .heartbeat
                .is_some_and(|every| ordered || beat.elapsed() >= every)
            {
                // Both of the same time.
                self.look_at_internal_threads(writer, false);
                self.look_at_host();
                beat = Instant::now();
                looked = beat;
            }
            if ordered
                || flushed.elapsed() >= self.generations.flush_every(FLUSH_EVERY)
                || (self.tables.is_large() && !failing)
            {
                failing = self.flush(writer, false).is_err();
                flushed = Instant::now();
                if ordered {
                    writer.status().set_flushed(self.ordered);
                }
            }
        }
    }

    /// Reads what the JVM sent; true when it is gone.
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

    fn take(&mut self, message: ToWriter) {
        match message {
            ToWriter::Stacks(WireStacks { pieces, stacks }) => {
                let mut name =
                    |wire: &mut WireFrame| Arc::new(self.symbols.name(std::mem::take(wire)));
                let pieces: Vec<Vec<Arc<Frame>>> = pieces
                    .into_iter()
                    .map(|mut piece| {
                        // Nobody else has what was just received.
                        let frames = Rc::get_mut(&mut piece).unwrap_or_default();
                        frames.iter_mut().rev().map(&mut name).collect()
                    })
                    .collect();
                for WireStack { id, pieces: places } in stacks {
                    if self.stacks.insert(id) {
                        let pieces = places.iter().rev().map(|at| pieces.get(*at as usize));
                        let frames = pieces.flatten().flatten().cloned().collect();
                        self.tables
                            .segments
                            .stacks
                            .push(StackRow { stack: id, frames });
                    }
                }
            }
            // Their stacks may be deleted before them; a sampler must have slept for minutes.
            ToWriter::Samples {
                generation, rows, ..
            } if generation.saturating_add(1) < self.generations.number() => {
                let samples = rows.iter().filter(|row| !row.waiting);
                self.tables.process.lost_samples += samples.map(|row| row.count).sum::<u64>();
            }
            ToWriter::Samples {
                tid, thread, rows, ..
            } => {
                for row in rows {
                    self.tables.segments.samples.push(SampleRow {
                        tid,
                        thread: thread.clone(),
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
            ToWriter::Tally(Tally {
                windows,
                samples,
                lost_samples,
                lost_marks,
                broken_chains,
                waiting_ns,
                guessed_ns,
                stackless_ns,
            }) => {
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
        }
    }

    /// Adds the CPU time of the JVM's own threads since the last look. What they used before the first one
    /// was before this profile.
    fn look_at_internal_threads(&mut self, writer: &Writer<'_>, first: bool) {
        if writer.rate_hz == 0 {
            return;
        }
        let tasks = PathBuf::from(format!("/proc/{}/task", writer.jvm));
        let used = self
            .internal
            .look(&tasks, 1_000_000_000 / u64::from(writer.rate_hz));
        let since = self.looked_ns;
        self.looked_ns = self.clock.epoch_ns(crate::clock::monotonic_ns());
        if first {
            return;
        }
        for used in used {
            if used.work == internal::GC {
                self.host.add_gc(used.ns);
            }
            let row = StackRow::from_frames(vec![frame(FrameKind::Native, "", used.work)]);
            let stack = row.stack;
            if self.stacks.insert(stack) {
                self.tables.segments.stacks.push(row);
            }
            let process = &mut self.tables.process;
            process.samples += used.samples;
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
        if let Some(row) = self.host.look(self.clock) {
            self.tables.host(row);
        }
    }

    fn flush(&mut self, writer: &Writer<'_>, last: bool) -> Result<(), i32> {
        let process = &mut self.tables.process;
        process.end_ns = self.clock.epoch_ns(crate::clock::monotonic_ns());
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

    /// Begins a new generation where it is time, and deletes what is beyond the limits.
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use unfuse_format::ProcessRow;

    use super::*;
    use crate::wire::packet_pair;

    #[test]
    fn events_that_make_no_row_are_counted_beside_those_the_jvm_lost() {
        let home = tempfile::tempdir().unwrap();
        let dir = ProfileDir::create(&home.path().join("profile")).unwrap();
        let map = CodeMap::create(0).unwrap();
        StatusWords::new(&map).add(Counter::LostEvents, 2);
        let (samples, to_writer) = packet_pair().unwrap();
        let (events, mut jvm) = UnixStream::pair().unwrap();
        let event = br#"{"type":"task","task":"no number"}"#;
        jvm.write_all(&(event.len() as u32).to_ne_bytes()).unwrap();
        jvm.write_all(event).unwrap();
        drop((to_writer, jvm));
        let writer = Writer {
            place: Place::Profile(dir.clone()),
            rate_hz: 200,
            source: "perf",
            tag: None,
            jvm: 1,
            samples,
            events,
            map: &map,
            retention: Retention::default(),
            tasks: TaskShare::default(),
            heartbeat: None,
        };
        writer.run();
        let processes = dir.read::<ProcessRow>().unwrap().rows;
        assert_eq!(processes.last().unwrap().lost_events, 3);
        let ended: Vec<_> = processes.iter().map(|row| row.ended).collect();
        assert_eq!(ended, [Some(false), Some(true)]);
    }
}
