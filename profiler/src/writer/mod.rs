//! The writer: collects the data of samplers and the JVM, and writes the segments.

mod completeness;
mod cpu_limit;
mod cpu_set;
mod events;
mod frames;
mod generations;
mod host;
mod internal;
mod outside;
mod python;
mod records;
mod segments;
mod spool;
mod switches;
mod symbols;
mod tables;
mod work;

use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use unfuse_codemap::CodeMap;
use unfuse_format::{FormatError, LiveMarker, ProfileDir, Retention};

use crate::clock::{EpochOffset, monotonic_ns};
use crate::config::PythonDetail;
use crate::names::{host, writer_name};
use crate::perf_event::HostSwitches;
use crate::share::TaskShare;
use crate::status::{Failure, StatusWords};
use events::Events;
use generations::Generations;
pub(crate) use python::ToSampler;
use switches::SwitchMeter;
use tables::Tables;
use work::Work;

/// The target of a writer.
pub(crate) enum Place {
    /// A profile directory that it may write to.
    Profile(ProfileDir),
    /// A directory that it can only reach by this handle.
    Spool(OwnedFd),
}

impl Place {
    pub(crate) fn descriptor(&self) -> RawFd {
        match self {
            Self::Profile(dir) => dir.as_fd().as_raw_fd(),
            Self::Spool(handle) => handle.as_raw_fd(),
        }
    }

    /// Opens the profile; the spool becomes the working directory of the process.
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
    /// If the directory is a spool, from which finished files are removed: the tag in its files' names.
    pub(crate) tag: Option<String>,
    pub(crate) jvm: u32,
    pub(crate) samples: OwnedFd,
    pub(crate) events: UnixStream,
    pub(crate) map: &'a CodeMap,
    pub(crate) retention: Retention,
    pub(crate) tasks: TaskShare,
    pub(crate) heartbeat: Option<Duration>,
    /// The CPUs, if they are watched.
    pub(crate) switches: Option<HostSwitches>,
    pub(crate) python: PythonDetail,
    /// The way to the sampler of Python workers, if there is to be one.
    pub(crate) to_python: Option<ToSampler>,
}

impl Writer<'_> {
    fn status(&self) -> StatusWords<'_> {
        StatusWords::new(self.map)
    }

    /// The descriptors that it needs.
    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        let mut descriptors = vec![
            self.samples.as_raw_fd(),
            self.events.as_raw_fd(),
            self.place.descriptor(),
        ];
        descriptors.extend(self.to_python.iter().map(ToSampler::descriptor));
        descriptors
    }

    /// Writes until all senders are gone.
    pub(crate) fn run(mut self) {
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
        tables.with_python = self.python != PythonDetail::Off && self.rate_hz > 0;
        tables.python.sampler = self.to_python.take();
        tables.process.host = host;
        tables.process.pid = self.jvm;
        tables.process.rate_hz = self.rate_hz;
        tables.process.source = self.source.to_owned();
        tables.process.start_ns = clock.epoch_ns(monotonic_ns());
        let switches = self.switches.take();
        let switches = switches.map(|on| SwitchMeter::new(on, self.jvm, self.map));
        let written = Work::new(&self, dir, tables, clock, generations, switches).run(&self);
        match (live, written) {
            (Ok(live), Err(errno)) => live.fail(errno),
            (live, _) => drop(live),
        }
    }
}

/// The threads of a process; `None` if it has more than `most`, or has ended.
fn threads_of(pid: u32, most: usize) -> Option<Vec<u32>> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let numbers = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    let numbers: Vec<u32> = numbers.take(most + 1).collect();
    (numbers.len() <= most).then_some(numbers)
}

/// Parses a stream of events as the writer does; returns their number. For `unfuse-fuzz` only.
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use unfuse_format::ProcessRow;

    use super::*;
    use crate::status::Counter;
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
            switches: None,
            python: PythonDetail::Off,
            to_python: None,
        };
        writer.run();
        let processes = dir.read::<ProcessRow>().unwrap().rows;
        assert_eq!(processes.last().unwrap().lost_events, 3);
        let ended: Vec<_> = processes.iter().map(|row| row.ended).collect();
        assert_eq!(ended, [Some(false), Some(true)]);
    }
}
