//! The processor's counters for a program and all processes that it starts.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use perf_event_open_sys::bindings::{
    PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
    PERF_FORMAT_TOTAL_TIME_ENABLED, PERF_FORMAT_TOTAL_TIME_RUNNING, PERF_TYPE_HARDWARE,
    perf_event_attr,
};

use super::event::open_with;

/// Counters of a process, and of those that it starts from then on.
#[derive(Debug)]
pub struct Counters {
    cycles: OwnedFd,
    instructions: OwnedFd,
    /// Missing on some processors.
    stalled: Option<OwnedFd>,
}

/// Counts outside the kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counts {
    /// Instructions for each cycle.
    pub instructions_per_cycle: f64,
    /// The part of cycles without progress because of waiting, mostly for memory, 0 to 1.
    pub stalled: Option<f64>,
}

impl Counters {
    /// Starts counting for a process that has started no others yet; 0 is the caller.
    ///
    /// # Errors
    /// ENOENT or EOPNOTSUPP if the machine has no PMU (most virtual machines), EACCES if it is not allowed.
    pub fn open(pid: u32) -> io::Result<Self> {
        let hardware = |config| open(pid, PERF_TYPE_HARDWARE, u64::from(config));
        Ok(Self {
            cycles: hardware(PERF_COUNT_HW_CPU_CYCLES)?,
            instructions: hardware(PERF_COUNT_HW_INSTRUCTIONS)?,
            stalled: hardware(PERF_COUNT_HW_STALLED_CYCLES_BACKEND).ok(),
        })
    }

    /// The counts so far; `None` if nothing was counted.
    pub fn read(&self) -> Option<Counts> {
        let cycles = count(&self.cycles)?;
        Some(Counts {
            instructions_per_cycle: count(&self.instructions)? / cycles,
            stalled: self
                .stalled
                .as_ref()
                .and_then(count)
                .map(|stalled| stalled / cycles),
        })
    }
}

fn open(pid: u32, kind: u32, config: u64) -> io::Result<OwnedFd> {
    let mut attributes = perf_event_attr {
        type_: kind,
        size: std::mem::size_of::<perf_event_attr>() as u32,
        config,
        read_format: u64::from(PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING),
        ..Default::default()
    };
    attributes.set_inherit(1);
    attributes.set_exclude_kernel(1);
    attributes.set_exclude_hv(1);
    open_with(&attributes, pid)
}

/// A counter's value, scaled up if it shared the hardware; `None` if it never ran.
fn count(event: &OwnedFd) -> Option<f64> {
    let mut bytes = [0; 24];
    let mut file = File::from(event.try_clone().ok()?);
    file.read_exact(&mut bytes).ok()?;
    let [value, enabled, running] = [0, 8, 16].map(|offset| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[offset..offset + 8]);
        u64::from_ne_bytes(word) as f64
    });
    (running > 0.0 && value > 0.0).then(|| value * enabled / running)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use perf_event_open_sys::bindings::{PERF_COUNT_SW_TASK_CLOCK, PERF_TYPE_SOFTWARE};

    use super::*;

    /// Uses the kernel's clock, which every machine has.
    #[test]
    fn children_of_children_count() {
        let script = "read go; sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; true";
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .stdin(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let clock = u64::from(PERF_COUNT_SW_TASK_CLOCK);
        let event = open(child.id(), PERF_TYPE_SOFTWARE, clock).unwrap();
        drop(child.stdin.take());
        child.wait().unwrap();
        let counted_ns = count(&event).unwrap();
        assert!(counted_ns > 2e7, "{counted_ns} ns of a loop of 200,000");
    }

    #[test]
    fn a_machine_counts_or_says_why_not() {
        match Counters::open(0) {
            Ok(counters) => {
                let counted = counters.read().unwrap();
                assert!(counted.instructions_per_cycle > 0.0, "{counted:?}");
            }
            Err(error) => assert!(error.raw_os_error().is_some(), "{error}"),
        }
    }
}
