//! The context switches of all CPUs of the host.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_DUMMY, PERF_SAMPLE_TID, PERF_SAMPLE_TIME, PERF_TYPE_SOFTWARE, perf_event_attr,
};

use super::event::{open_on_cpu, set_enabled};
use super::record::{Handover, Record};
use super::ring::Ring;
use crate::clock::namespace_offset_ns;

/// Bytes of data in a CPU's ring: a record has 32.
const MOST_BYTES: usize = 256 << 10;
const LEAST_BYTES: usize = 32 << 10;
/// Bytes of data in all rings.
const ALL_BYTES: usize = 16 << 20;

/// Events that record who gets each CPU. Closing them ends the recording.
#[derive(Debug)]
pub(crate) struct HostSwitches {
    cpus: Vec<(OwnedFd, Ring)>,
    clock_offset: i64,
}

/// What a CPU's ring says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CpuRecord {
    /// The CPU goes to another thread.
    Handover(Handover),
    /// Some records are missing before the next one.
    Lost,
}

impl HostSwitches {
    /// Opens an event on each CPU that is online.
    ///
    /// # Errors
    /// The system's: EACCES without CAP_PERFMON, unless `kernel.perf_event_paranoid` is 0 or less.
    pub(crate) fn open() -> io::Result<Self> {
        let online = fs::read_to_string("/sys/devices/system/cpu/online")?;
        let cpus = cpu_list(&online).ok_or(io::ErrorKind::InvalidData)?;
        let bytes = ALL_BYTES / cpus.len().max(1).next_power_of_two();
        let bytes = bytes.clamp(LEAST_BYTES, MOST_BYTES);
        let mut attributes = perf_event_attr {
            type_: PERF_TYPE_SOFTWARE,
            size: std::mem::size_of::<perf_event_attr>() as u32,
            config: u64::from(PERF_COUNT_SW_DUMMY),
            sample_type: u64::from(PERF_SAMPLE_TID | PERF_SAMPLE_TIME),
            clockid: libc::CLOCK_MONOTONIC,
            ..Default::default()
        };
        attributes.set_use_clockid(1);
        attributes.set_sample_id_all(1);
        attributes.set_context_switch(1);
        attributes.set_watermark(1);
        let open = |cpu: u32| {
            let event = open_on_cpu(&attributes, cpu)?;
            let ring = Ring::map(event.as_fd(), bytes)?;
            Ok((event, ring))
        };
        let cpus: io::Result<Vec<_>> = cpus.into_iter().map(open).collect();
        Ok(Self {
            cpus: cpus?,
            clock_offset: namespace_offset_ns(),
        })
    }

    /// The number of CPUs.
    pub(crate) fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Passes on every record of each CPU (its number among them, from 0), oldest first.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(usize, CpuRecord)) {
        let offset = self.clock_offset;
        for (cpu, (_, ring)) in self.cpus.iter_mut().enumerate() {
            ring.drain(|record, _| match record {
                Record::Handover(mut handover) => {
                    handover.time = handover.time.wrapping_add_signed(offset);
                    each(cpu, CpuRecord::Handover(handover));
                }
                Record::Lost(_) => each(cpu, CpuRecord::Lost),
                _ => {}
            });
        }
    }

    /// Stops recording, or goes on.
    pub(crate) fn set_paused(&self, paused: bool) {
        for (event, _) in &self.cpus {
            set_enabled(event.as_fd(), !paused);
        }
    }

    /// Poll readable when a ring is half full.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.cpus.iter().map(|(event, _)| event.as_fd())
    }
}

/// Numbers such as `0-3,8`.
fn cpu_list(text: &str) -> Option<Vec<u32>> {
    /// More CPUs than Linux supports.
    const MOST_CPUS: usize = 8192;
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        cpus.extend((first..=last).take(MOST_CPUS));
        if cpus.len() > MOST_CPUS {
            return None;
        }
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(cpu_list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(cpu_list("0\n"), Some(vec![0]));
        assert_eq!(cpu_list("0-4294967295"), Some((0..8192).collect()));
        for bad in ["", "0-", "x", "1,,2", "0-8000,1-8000"] {
            assert_eq!(cpu_list(bad), None, "{bad}");
        }
    }

    /// The kernel of this machine: a thread that sleeps is seen to come back, or it is not allowed.
    #[test]
    fn a_thread_that_sleeps_gets_a_cpu_again() {
        let mut switches = match HostSwitches::open() {
            Ok(switches) => switches,
            Err(error) => {
                let errno = error.raw_os_error();
                let is_denied = matches!(errno, Some(libc::EACCES | libc::EPERM));
                assert!(is_denied, "{error}");
                return;
            }
        };
        let own = nix::unistd::gettid().as_raw() as u32;
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(2));
        }
        let mut came = 0;
        switches.drain(|_, record| {
            if let CpuRecord::Handover(handover) = record {
                came += u32::from(handover.to.tid == own);
            }
        });
        assert!(came >= 15, "came {came} times");
    }
}
