//! Opens, reads and controls one event.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use caps::{CapSet, Capability};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use perf_event_open_sys as sys;
use sys::bindings::{
    PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_TASK_CLOCK, PERF_SAMPLE_CALLCHAIN,
    PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP, PERF_SAMPLE_READ, PERF_SAMPLE_REGS_USER,
    PERF_SAMPLE_STACK_USER, PERF_SAMPLE_TID, PERF_SAMPLE_TIME, PERF_TYPE_SOFTWARE, perf_event_attr,
};

use super::record::{Record, switch_target};
use super::ring::Ring;
use crate::arch;
use crate::clock::namespace_offset_ns;

/// Size of the copy of the user stack in each sample, bytes, with which native code is unwound. LZ4, with which Spark
/// compresses what it spills and shuffles, has 16 KiB in one frame, and Java's callers are behind it.
const STACK_BYTES: u32 = 24 << 10;

/// The same when a thread leaves its CPU: there are only a few native frames between Java and the kernel, and waits
/// come in bursts.
const WAIT_STACK_BYTES: u32 = 8 << 10;

/// Bytes of data in the ring for at most 200 Hz, where locked memory has no limit. Half of them wake the sampler: a sampler may be
/// late by a tenth of a second, and a wake-up costs as much as several samples.
const RING_BYTES: u64 = 1 << 20;

/// The same where all programs of a user share a limit of locked memory.
const LIMITED_RING_BYTES: u64 = RING_BYTES / 2;

/// Maximum of the same at higher rates.
const MOST_RING_BYTES: u64 = 2 * RING_BYTES;

/// Minimum of the same, where memory is scarce.
const LEAST_RING_BYTES: usize = 64 << 10;

/// A task-clock event on one thread. Closing it ends the sampling.
#[derive(Debug)]
pub struct PerfEvent {
    fd: OwnedFd,
    ring: Ring,
    period_ns: u64,
    clock_offset: i64,
    switches: Option<Switches>,
}

/// The event that samples the thread when it leaves its CPU. Its samples go to the other event's ring.
#[derive(Debug)]
struct Switches {
    fd: OwnedFd,
    id: u64,
    period: u64,
}

impl PerfEvent {
    /// Opens an event on thread `tid` that samples every `period_ns` of its CPU time. It starts at once.
    ///
    /// Includes samples in the kernel if the kernel allows it (with the user's callchain); otherwise their time is in
    /// the weight of the next sample.
    ///
    /// With `waits` the ring also records every context switch, and samples the thread at each switch if that is
    /// allowed: switches happen in the kernel.
    ///
    /// # Errors
    /// The system's error for perf_event_open or mmap: EACCES/EPERM if it is not allowed, ESRCH if the thread is gone.
    pub fn open(tid: u32, period_ns: u64, waits: bool) -> io::Result<Self> {
        // Locked memory is scarce for users other than root: take what is available.
        let mut refused = None;
        let usual = usual_ring_bytes();
        let wanted = usual * 5_000_000 / period_ns.max(1);
        let wanted = wanted.clamp(usual, MOST_RING_BYTES);
        for bytes in sizes(wanted.next_power_of_two() as usize) {
            // Not more than in a usual ring: samples that are read late cannot be named any more.
            let wake = (bytes as u64).min(usual) / 2;
            let fd = open_any(tid, period_ns, waits, wake as u32)?;
            match Ring::map(fd.as_fd(), bytes) {
                Ok(ring) => {
                    let switches = waits.then(|| Switches::open(tid, fd.as_fd()).ok());
                    return Ok(Self {
                        fd,
                        ring,
                        period_ns,
                        clock_offset: namespace_offset_ns(),
                        switches: switches.flatten(),
                    });
                }
                Err(e) => refused = Some(e),
            }
        }
        Err(refused.unwrap_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM)))
    }

    /// Passes every record in the ring to `each`, oldest first.
    pub fn drain(&mut self, mut each: impl FnMut(Record<'_>)) {
        let offset = self.clock_offset;
        let leaving = self.switches.as_ref().map(|switches| switches.id);
        self.ring.drain(|record, next| match record {
            Record::Sample(mut sample) => {
                sample.time = sample.time.wrapping_add_signed(offset);
                each(if leaving == Some(sample.id) {
                    Record::Leaving(sample, next.and_then(switch_target))
                } else {
                    Record::Sample(sample)
                });
            }
            Record::Switch(mut switch) => {
                switch.time = switch.time.wrapping_add_signed(offset);
                each(Record::Switch(switch));
            }
            other => each(other),
        });
    }

    /// Whether the thread is sampled when it leaves its CPU.
    pub fn samples_switches(&self) -> bool {
        self.switches.is_some()
    }

    /// From now on samples the thread at one in `period` of its switches.
    pub fn set_switch_period(&mut self, period: u64) {
        if let Some(switches) = &mut self.switches
            && switches.period != period
            && set_period(switches.fd.as_fd(), period)
        {
            switches.period = period;
        }
    }

    /// Stops sampling and recording switches, or goes on.
    pub fn set_paused(&self, paused: bool) {
        let switches = self.switches.as_ref().map(|switches| switches.fd.as_fd());
        for event in [Some(self.fd.as_fd()), switches].into_iter().flatten() {
            set_enabled(event, !paused);
        }
    }

    /// Whether the thread has ended. Its number may be given to another from then on, not before.
    pub(crate) fn thread_has_ended(&self) -> bool {
        let mut fds = [PollFd::new(self.fd.as_fd(), PollFlags::empty())];
        let hung_up = PollFlags::POLLHUP | PollFlags::POLLERR;
        poll(&mut fds, PollTimeout::ZERO).is_err()
            || fds[0].revents().is_none_or(|r| r.intersects(hung_up))
    }

    /// CPU time of the thread since the event was opened, ns.
    pub fn cpu_time_ns(&self) -> io::Result<u64> {
        let mut value = [0u8; 8];
        nix::unistd::read(&self.fd, &mut value)?;
        Ok(u64::from_ne_bytes(value))
    }

    /// The current period, ns.
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// Sets the period. The kernel restarts the current one.
    pub fn set_period_ns(&mut self, period_ns: u64) {
        if set_period(self.fd.as_fd(), period_ns) {
            self.period_ns = period_ns;
        }
    }
}

impl Switches {
    fn open(tid: u32, ring: BorrowedFd<'_>) -> io::Result<Self> {
        let mut attributes = attributes(1, false);
        attributes.config = u64::from(PERF_COUNT_SW_CONTEXT_SWITCHES);
        attributes.sample_stack_user = WAIT_STACK_BYTES;
        let fd = open_with(&attributes, tid)?;
        let mut id = 0u64;
        // SAFETY: both descriptors are events of ours.
        let shared = unsafe { sys::ioctls::SET_OUTPUT(fd.as_raw_fd(), ring.as_raw_fd()) };
        // SAFETY: the descriptor is an event of ours; the kernel writes a u64 to the address given.
        if shared < 0 || unsafe { sys::ioctls::ID(fd.as_raw_fd(), &raw mut id) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { fd, id, period: 1 })
    }
}

/// Sets an event's period; returns whether the kernel accepted it.
fn set_period(event: BorrowedFd<'_>, period: u64) -> bool {
    // SAFETY: the descriptor is an event of ours; the kernel reads a u64 from the address given.
    unsafe { sys::ioctls::PERIOD(event.as_raw_fd(), &raw const period as u64) == 0 }
}

/// Has an event count, or not. The system call does not fail on an event of ours.
pub(super) fn set_enabled(event: BorrowedFd<'_>, enabled: bool) {
    let event = event.as_raw_fd();
    // SAFETY: the descriptor is an event of ours; both calls take an integer only.
    unsafe {
        if enabled {
            sys::ioctls::ENABLE(event, 0);
        } else {
            sys::ioctls::DISABLE(event, 0);
        }
    }
}

impl AsFd for PerfEvent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Checks that this process may sample: opens an event on the calling thread and closes it.
pub fn probe() -> io::Result<()> {
    PerfEvent::open(nix::unistd::gettid().as_raw() as u32, 1_000_000_000, false).map(drop)
}

/// Whether threads can be sampled when they begin to wait, which happens in the kernel.
pub fn probe_switches() -> bool {
    let thread = nix::unistd::gettid().as_raw() as u32;
    PerfEvent::open(thread, 1_000_000_000, true).is_ok_and(|event| event.samples_switches())
}

/// Bytes of data in a ring for at most 200 Hz.
fn usual_ring_bytes() -> u64 {
    match caps::has_cap(None, CapSet::Effective, Capability::CAP_IPC_LOCK) {
        Ok(true) => RING_BYTES,
        _ => LIMITED_RING_BYTES,
    }
}

/// Sizes of a ring to try, bytes of data.
fn sizes(most: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(most), |bytes| Some(bytes / 2))
        .take_while(|bytes| *bytes >= LEAST_RING_BYTES)
}

/// Opens an event that wakes its reader at so many bytes, and samples the kernel too if that is allowed.
fn open_any(tid: u32, period_ns: u64, waits: bool, wake_bytes: u32) -> io::Result<OwnedFd> {
    let open = |user_only| {
        let mut attributes = attributes(period_ns, user_only);
        attributes.__bindgen_anon_2.wakeup_watermark = wake_bytes;
        attributes.set_context_switch(u64::from(waits));
        open_with(&attributes, tid)
    };
    match open(false) {
        Err(e) if matches!(e.raw_os_error(), Some(libc::EACCES | libc::EPERM)) => open(true),
        other => other,
    }
}

/// Opens an event on a thread, on whichever CPU it runs.
pub(super) fn open_with(attributes: &perf_event_attr, tid: u32) -> io::Result<OwnedFd> {
    open_on(attributes, tid.cast_signed(), -1)
}

/// Opens an event on a CPU, whichever thread runs there.
pub(super) fn open_on_cpu(attributes: &perf_event_attr, cpu: u32) -> io::Result<OwnedFd> {
    open_on(attributes, -1, cpu.cast_signed())
}

fn open_on(
    attributes: &perf_event_attr,
    thread: libc::pid_t,
    cpu: libc::c_int,
) -> io::Result<OwnedFd> {
    let mut attributes = *attributes;
    let flags = u64::from(sys::bindings::PERF_FLAG_FD_CLOEXEC);
    // SAFETY: `attributes` is a complete perf_event_attr whose `size` field is set.
    let fd = unsafe { sys::perf_event_open(&mut attributes, thread, cpu, -1, flags as _) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn attributes(period: u64, user_only: bool) -> perf_event_attr {
    let mut attr = perf_event_attr {
        type_: PERF_TYPE_SOFTWARE,
        size: std::mem::size_of::<perf_event_attr>() as u32,
        config: u64::from(PERF_COUNT_SW_TASK_CLOCK),
        sample_type: u64::from(
            PERF_SAMPLE_IDENTIFIER
                | PERF_SAMPLE_IP
                | PERF_SAMPLE_TID
                | PERF_SAMPLE_TIME
                | PERF_SAMPLE_READ
                | PERF_SAMPLE_CALLCHAIN
                | PERF_SAMPLE_REGS_USER
                | PERF_SAMPLE_STACK_USER,
        ),
        sample_regs_user: arch::SAMPLED_MASK,
        sample_stack_user: STACK_BYTES,
        clockid: libc::CLOCK_MONOTONIC,
        ..Default::default()
    };
    // A software clock has a fixed period in either mode; the sampler's pacer adds the jitter.
    attr.__bindgen_anon_1.sample_period = period;
    attr.set_use_clockid(1);
    // Records other than samples also have a time.
    attr.set_sample_id_all(1);
    attr.set_exclude_kernel(u64::from(user_only));
    attr.set_exclude_callchain_kernel(1);
    attr.set_exclude_hv(1);
    attr.set_watermark(1);
    attr
}
