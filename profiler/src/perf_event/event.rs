//! Opening, reading and steering one event.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use perf_event_open_sys as sys;
use sys::bindings::{
    PERF_COUNT_SW_TASK_CLOCK, PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_IP, PERF_SAMPLE_READ,
    PERF_SAMPLE_REGS_USER, PERF_SAMPLE_STACK_USER, PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
    PERF_TYPE_SOFTWARE, perf_event_attr,
};

use super::record::Record;
use super::ring::Ring;
use crate::clock::namespace_offset_ns;

/// Bytes of the user stack that come with each sample, to repair callchains that native code broke.
const STACK_BYTES: u32 = 16 << 10;

/// rbx, rbp, rsp and r13 (bits of `PERF_REG_X86_BX`, `…_BP`, `…_SP`, `…_R13`).
const REGISTERS: u64 = 1 << 1 | 1 << 6 | 1 << 7 | 1 << 21;

/// A task-clock event on one thread. Closing it ends the sampling.
#[derive(Debug)]
pub struct PerfEvent {
    fd: OwnedFd,
    ring: Ring,
    period_ns: u64,
    clock_offset: i64,
}

impl PerfEvent {
    /// Opens an event on thread `tid` that samples every `period_ns` of its CPU time. It starts at once.
    ///
    /// Samples that hit the kernel count too where the kernel allows it (their callchain is still the
    /// user's); where it does not, their time shows in the weight of the next sample.
    ///
    /// # Errors
    /// The system's error for perf_event_open or mmap: EACCES/EPERM where it is not allowed,
    /// ESRCH where the thread is gone.
    pub fn open(tid: u32, period_ns: u64) -> io::Result<Self> {
        let fd = open_any(tid, period_ns)?;
        // Locked memory is scarce for users who are not root: take what there is.
        let mut refused = None;
        for pages in [128, 64, 32, 16] {
            match Ring::map(fd.as_fd(), pages) {
                Ok(ring) => {
                    return Ok(Self {
                        fd,
                        ring,
                        period_ns,
                        clock_offset: namespace_offset_ns(),
                    });
                }
                Err(e) => refused = Some(e),
            }
        }
        Err(refused.unwrap_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM)))
    }

    /// Hands every record in the ring to `each`, oldest first.
    pub fn drain(&mut self, mut each: impl FnMut(Record<'_>)) {
        let offset = self.clock_offset;
        self.ring.drain(|mut record| {
            if let Record::Sample(sample) = &mut record {
                sample.time = sample.time.wrapping_add_signed(offset);
            }
            each(record);
        });
    }

    /// CPU time of the thread since the event was opened, ns.
    pub fn cpu_time_ns(&self) -> io::Result<u64> {
        let mut value = [0u8; 8];
        nix::unistd::read(&self.fd, &mut value)?;
        Ok(u64::from_ne_bytes(value))
    }

    /// The period in force, ns.
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// Sets the period. The kernel starts the current one afresh.
    pub fn set_period_ns(&mut self, period_ns: u64) {
        let value = period_ns;
        // SAFETY: the descriptor is an event of ours; the kernel reads a u64 from the address given.
        if unsafe { sys::ioctls::PERIOD(self.fd.as_raw_fd(), &raw const value as u64) } == 0 {
            self.period_ns = period_ns;
        }
    }
}

impl AsFd for PerfEvent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Whether this process may sample: opens an event on the calling thread and closes it.
pub fn probe() -> io::Result<()> {
    PerfEvent::open(nix::unistd::gettid().as_raw() as u32, 1_000_000_000).map(drop)
}

fn open_any(tid: u32, period_ns: u64) -> io::Result<OwnedFd> {
    match open_with(&attributes(period_ns, false), tid) {
        Err(e) if matches!(e.raw_os_error(), Some(libc::EACCES | libc::EPERM)) => {
            open_with(&attributes(period_ns, true), tid)
        }
        other => other,
    }
}

fn open_with(attributes: &perf_event_attr, tid: u32) -> io::Result<OwnedFd> {
    let mut attributes = *attributes;
    let flags = u64::from(sys::bindings::PERF_FLAG_FD_CLOEXEC);
    // SAFETY: `attributes` is a complete perf_event_attr whose `size` field is set.
    let fd =
        unsafe { sys::perf_event_open(&mut attributes, tid as libc::pid_t, -1, -1, flags as _) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn attributes(period_ns: u64, user_only: bool) -> perf_event_attr {
    let mut attr = perf_event_attr {
        type_: PERF_TYPE_SOFTWARE,
        size: std::mem::size_of::<perf_event_attr>() as u32,
        config: u64::from(PERF_COUNT_SW_TASK_CLOCK),
        sample_type: u64::from(
            PERF_SAMPLE_IP
                | PERF_SAMPLE_TID
                | PERF_SAMPLE_TIME
                | PERF_SAMPLE_READ
                | PERF_SAMPLE_CALLCHAIN
                | PERF_SAMPLE_REGS_USER
                | PERF_SAMPLE_STACK_USER,
        ),
        sample_regs_user: REGISTERS,
        sample_stack_user: STACK_BYTES,
        clockid: libc::CLOCK_MONOTONIC,
        ..Default::default()
    };
    // A software clock has a fixed period in either mode; the jitter is the sampler's, see its pacer.
    attr.__bindgen_anon_1.sample_period = period_ns;
    attr.set_use_clockid(1);
    attr.set_exclude_kernel(u64::from(user_only));
    attr.set_exclude_callchain_kernel(1);
    attr.set_exclude_hv(1);
    // A watermark of zero is half the ring.
    attr.set_watermark(1);
    attr
}
