//! Sources of samples: a perf_event ring ([`perf`]), or the ring of a CPU timer in shared memory ([`timer`]).

mod perf;
mod timer;

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::access::Access;
use super::chains::Chains;
use super::raw::RawSamples;
use super::timeline::Timeline;
use super::waits::Waits;
use crate::maps::Maps;
use crate::timer::TimerRings;
use perf::PerfSource;
use timer::TimerSource;

/// The source to open.
#[derive(Clone, Copy)]
pub(crate) enum SourceKind<'a> {
    Perf,
    Timer(&'a TimerRings, u32),
}

/// The destination of samples and waits, and the data to complete their stacks.
pub(super) struct Intake<'s, 'a> {
    pub(super) raw: &'s mut RawSamples,
    pub(super) waits: &'s mut Waits,
    pub(super) maps: &'s mut Maps,
    pub(super) chains: &'s mut Chains<'a>,
    pub(super) timeline: &'s Timeline<'a>,
}

impl Intake<'_, '_> {
    /// Whether samples of this time are kept; others are dropped early.
    fn keeps_samples_at(&self, time: u64) -> bool {
        !self.timeline.is_left_out(time)
    }

    /// Whether a wait that begins now is counted, so that its stack is needed.
    fn counts_waits_at(&self, time: u64) -> bool {
        self.timeline.waits_at(time).is_some()
    }

    /// Whether the last sample of the thread on its CPU is of the task at `time`.
    fn has_run_in_task(&self, time: u64) -> bool {
        let last = self.waits.last_run();
        last.is_some_and(|last| self.timeline.is_one_task(last, time))
    }
}

/// An open source of one thread's samples.
pub(super) trait SampleSource {
    /// The descriptor to poll; `None` if nothing signals new samples.
    fn fd(&self) -> Option<BorrowedFd<'_>>;

    /// Maximum time to sleep; `work_pending` if samples wait to be resolved or sent.
    fn patience(&self, work_pending: bool) -> Duration;

    /// CPU time of the thread since the source was opened, as far as known, ns.
    fn cpu_time_ns(&self) -> u64;

    /// Whether the thread is known to have ended, other than by the descriptor.
    fn thread_ended(&self) -> bool;

    /// Moves new samples and switches into the intake; returns the number of samples, including dropped ones.
    fn drain(&mut self, intake: &mut Intake<'_, '_>) -> u64;

    /// Whether waits are recorded, but without stacks.
    fn guesses_waits(&self) -> bool {
        false
    }

    /// Stops taking samples and switches, or goes on. What is in the ring stays there.
    fn set_paused(&mut self, paused: bool);

    /// Samples lost since the last call.
    fn take_lost(&mut self) -> u64;

    /// Releases the source's shared memory.
    fn close(&self);
}

/// Opens a source for a thread of a process, which must be one of its threads; with `waits` also its switches, if
/// possible.
///
/// # Errors
/// The system's; `ESRCH` if the thread has ended.
pub(super) fn open<'a>(
    kind: SourceKind<'a>,
    access: &Access,
    (process, tid): (u32, u32),
    period_ns: u64,
    waits: bool,
) -> io::Result<Box<dyn SampleSource + 'a>> {
    Ok(match kind {
        SourceKind::Perf => Box::new(PerfSource::open(access, (process, tid), period_ns, waits)?),
        SourceKind::Timer(rings, slot) => Box::new(TimerSource::new(rings.slot(slot), period_ns)),
    })
}
