//! Where samples come from: a perf_event ring, or the timer's ring in shared memory.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use super::access::Access;
use super::chains::Chains;
use super::pacer::{Pacer, WaitPacer};
use super::raw::RawSamples;
use super::repair::Chain;
use super::run_delay::RunDelay;
use super::waits::Waits;
use crate::clock::monotonic_ns;
use crate::maps::Maps;
use crate::perf_event::{PerfEvent, Record, Where};
use crate::timer::{Slot, TimerRings};

/// Which source to open.
#[derive(Clone, Copy)]
pub(crate) enum SourceKind<'a> {
    Perf,
    Timer(&'a TimerRings, u32),
}

/// An open source.
pub(super) enum Source<'a> {
    Perf {
        event: PerfEvent,
        pacer: Pacer,
        last_cpu_time: u64,
        lost: u64,
        delay: Option<RunDelay>,
        wait_pacer: WaitPacer,
        /// Whether the stacks of waits can only be guessed.
        guesses: bool,
    },
    Timer {
        slot: Slot<'a>,
        period_ns: u64,
        last_cpu_time: u64,
        owed_ns: u64,
        ended: bool,
    },
}

impl<'a> Source<'a> {
    /// Opens a thread of a process, which must have it; with `waits` its switches are told too, where that can be.
    pub(super) fn open(
        kind: SourceKind<'a>,
        access: &Access,
        (process, tid): (u32, u32),
        period_ns: u64,
        waits: bool,
    ) -> io::Result<Self> {
        Ok(match kind {
            SourceKind::Perf => {
                let event = open_event(access, (process, tid), period_ns, waits)?;
                // Not more of them than CPU samples of a busy thread.
                let most = 1_000_000_000 / period_ns.max(1);
                Self::Perf {
                    pacer: Pacer::new(period_ns, u64::from(tid)),
                    last_cpu_time: 0,
                    lost: 0,
                    delay: RunDelay::open(process, tid).filter(|_| waits),
                    wait_pacer: WaitPacer::new(most, u64::from(tid), monotonic_ns()),
                    guesses: waits && !event.samples_switches(),
                    event,
                }
            }
            SourceKind::Timer(rings, slot) => Self::Timer {
                slot: rings.slot(slot),
                period_ns,
                owed_ns: 0,
                last_cpu_time: rings.slot(slot).cpu_time_at_start(),
                ended: false,
            },
        })
    }

    /// What to poll, where there is something.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Perf { event, .. } => Some(event.as_fd()),
            Self::Timer { .. } => None,
        }
    }

    /// How long to sleep: the perf ring wakes us, the timer's ring does not.
    pub(super) fn patience(&self, work_pending: bool) -> Duration {
        match (self, work_pending) {
            (Self::Perf { .. }, false) => Duration::from_secs(10),
            // A wake-up costs more than the few samples that a mostly idle thread has.
            (Self::Perf { .. }, true) => Duration::from_secs(2),
            (Self::Timer { .. }, _) => Duration::from_millis(200),
        }
    }

    /// CPU time of the thread since the source was opened, as far as it is known, ns.
    pub(super) fn cpu_time_ns(&self) -> u64 {
        match self {
            Self::Perf { event, .. } => event.cpu_time_ns().unwrap_or(0),
            Self::Timer { .. } => 0,
        }
    }

    /// Whether the thread is known to have ended (perf says so through its descriptor).
    pub(super) fn thread_ended(&self) -> bool {
        matches!(self, Self::Timer { ended: true, .. })
    }

    /// Moves the samples of wanted times into `raw` and switches into `waits`, with their stacks at times where they
    /// count; returns how many samples there were of all times. Others are dropped before anything is done for them.
    pub(super) fn drain(
        &mut self,
        raw: &mut RawSamples,
        waits: &mut Waits,
        maps: &mut Maps,
        chains: &mut Chains<'_>,
        wanted: impl Fn(u64) -> bool,
        counts: impl Fn(u64) -> bool,
    ) -> u64 {
        let mut all = 0;
        match self {
            Self::Perf {
                event,
                pacer,
                last_cpu_time,
                lost,
                delay,
                wait_pacer,
                guesses,
            } => {
                let mut left = 0;
                let now = monotonic_ns();
                chains.begin(now);
                event.drain(|record| match record {
                    Record::Sample(sample) => {
                        let weight = sample.cpu_time.saturating_sub(*last_cpu_time);
                        *last_cpu_time = sample.cpu_time.max(*last_cpu_time);
                        all += 1;
                        if !wanted(sample.time) {
                            return;
                        }
                        raw.chain().extend(sample.callchain());
                        maps.keep_up(raw.chain(), now);
                        let broken = chains.mend(raw.chain(), &sample, maps) == Chain::Broken;
                        if *guesses {
                            waits.guess(sample.time, raw.chain(), broken);
                        }
                        raw.push(sample.time, 1, weight, sample.in_kernel, broken);
                    }
                    Record::Leaving(sample) => {
                        if !counts(sample.time) {
                            return;
                        }
                        let mut chain: Vec<u64> = sample.callchain().collect();
                        maps.keep_up(&chain, now);
                        let broken = chains.mend(&mut chain, &sample, maps) == Chain::Broken;
                        waits.leave(sample.time, chain, broken);
                    }
                    Record::Switch(switch) => match switch.to {
                        Where::Cpu => waits.end(switch.time),
                        Where::Wait | Where::Queue => {
                            left += 1;
                            waits.begin(switch.time, switch.to == Where::Queue);
                        }
                    },
                    Record::Lost(count) => {
                        *lost += count;
                        waits.lose();
                    }
                    Record::Other => {}
                });
                if left > 0 {
                    if let Some(ns) = delay.as_ref().and_then(RunDelay::ns) {
                        waits.delay(ns);
                    }
                    event.set_switch_period(wait_pacer.next(left, now));
                }
                if all > 0
                    && let Ok(cpu_time) = event.cpu_time_ns()
                {
                    event.set_period_ns(pacer.next(all, cpu_time));
                }
            }
            Self::Timer {
                slot,
                period_ns,
                last_cpu_time,
                owed_ns,
                ended,
            } => {
                *ended = slot.is_released();
                slot.drain(|sample| {
                    let weight = sample.cpu_time.saturating_sub(*last_cpu_time);
                    *last_cpu_time = sample.cpu_time.max(*last_cpu_time);
                    all += 1;
                    if !wanted(sample.time) {
                        return;
                    }
                    let Some((top, chain)) = sample.chain.split_first_chunk() else {
                        return;
                    };
                    raw.chain().extend(chain);
                    maps.keep_up(raw.chain(), sample.time);
                    chains.complete_by_top(raw.chain(), sample.time, top, maps);
                    let broken = !raw.chain().iter().any(|ip| maps.in_code_cache(*ip));
                    // CPU timers tick with the scheduler, often slower than asked: a tick that
                    // stands for several periods counts as several samples.
                    *owed_ns += weight;
                    let count = *owed_ns / *period_ns;
                    *owed_ns %= *period_ns;
                    raw.push(sample.time, count, weight, false, broken);
                });
            }
        }
        all
    }

    /// Gives back what the source holds in shared memory.
    pub(super) fn close(self) {
        if let Self::Timer { slot, .. } = self {
            slot.free();
        }
    }

    /// Samples lost since the last call.
    pub(super) fn take_lost(&mut self) -> u64 {
        match self {
            Self::Perf { lost, .. } => std::mem::take(lost),
            Self::Timer { slot, .. } => slot.take_lost(),
        }
    }
}

/// Opens an event on a thread of the JVM. The JVM has named it, and with capabilities an event can be opened on any.
///
/// # Errors
/// Those of [`PerfEvent::open`] and [`Access::check_thread`].
fn open_event(
    access: &Access,
    (jvm, tid): (u32, u32),
    period_ns: u64,
    waits: bool,
) -> io::Result<PerfEvent> {
    access.check_thread(jvm, tid)?;
    let event = PerfEvent::open(tid, period_ns, waits)?;
    // The number may have been another thread's when the event was opened. Not if that thread lives on after this:
    // then it has had the number all the time.
    access.check_thread(jvm, tid)?;
    match event.thread_has_ended() {
        true => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        false => Ok(event),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_event_is_opened_on_another_processs_thread() {
        let parent = std::os::unix::process::parent_id();
        let opened = open_event(
            &Access::default(),
            (std::process::id(), parent),
            10_000_000,
            false,
        );
        let errno = opened.err().and_then(|e| e.raw_os_error());
        assert_eq!(errno, Some(libc::ESRCH));
    }

    #[test]
    fn a_thread_that_lives_passes_the_checks() {
        let thread = nix::unistd::gettid().as_raw() as u32;
        let place = (std::process::id(), thread);
        // Where events are not allowed there is another error.
        if let Err(e) = open_event(&Access::default(), place, 10_000_000, false) {
            assert_ne!(e.raw_os_error(), Some(libc::ESRCH));
        }
    }

    #[test]
    fn an_event_says_that_its_thread_has_ended() {
        let (tell, told) = std::sync::mpsc::channel();
        let (go_on, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(nix::unistd::gettid().as_raw() as u32).unwrap();
            let _ = wait.recv();
        });
        let opened = PerfEvent::open(told.recv().unwrap(), 10_000_000, false);
        let before = opened.as_ref().map(PerfEvent::thread_has_ended);
        drop(go_on);
        thread.join().unwrap();
        if let (Ok(event), Ok(before)) = (&opened, before) {
            assert!(!before);
            // One that is joined has not quite ended for the kernel; the test's runner ends what never ends.
            while !event.thread_has_ended() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}
