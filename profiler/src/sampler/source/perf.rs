//! Samples and switches of a thread from a perf_event ring.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use super::{Intake, SampleSource};
use crate::clock::monotonic_ns;
use crate::perf_event::{PerfEvent, Record, Sample, Switch, SwitchTarget};
use crate::sampler::access::Access;
use crate::sampler::pacer::{Pacer, WaitPacer};
use crate::sampler::repair::Chain;
use crate::sampler::run_delay::RunDelay;

pub(super) struct PerfSource {
    event: PerfEvent,
    pacer: Pacer,
    wait_pacer: WaitPacer,
    /// How long the thread waited for a CPU, from the scheduler; none without waits.
    delay: Option<RunDelay>,
    /// Whether waits are recorded.
    waits: bool,
    batch: Batch,
}

/// Data from the records of one ring so far.
#[derive(Default)]
struct Batch {
    /// CPU time at the last sample, ns.
    last_cpu_time: u64,
    /// Samples lost since the last call of `take_lost`.
    lost: u64,
    /// Number of samples in this batch.
    samples: u64,
    /// Number of times that the thread left its CPU in this batch.
    left: u64,
}

impl PerfSource {
    pub(super) fn open(
        access: &Access,
        (process, tid): (u32, u32),
        period_ns: u64,
        waits: bool,
    ) -> io::Result<Self> {
        let event = open_event(access, (process, tid), period_ns, waits)?;
        // Not more than the CPU samples of a busy thread.
        let most = 1_000_000_000 / period_ns.max(1);
        Ok(Self {
            pacer: Pacer::new(period_ns, u64::from(tid)),
            wait_pacer: WaitPacer::new(most, u64::from(tid), monotonic_ns()),
            delay: RunDelay::open(process, tid).filter(|_| waits),
            waits,
            event,
            batch: Batch::default(),
        })
    }
}

impl SampleSource for PerfSource {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.event.as_fd())
    }

    /// The ring wakes the sampler.
    fn patience(&self, work_pending: bool) -> Duration {
        // A wake-up costs more than the few samples of a mostly idle thread.
        Duration::from_secs(if work_pending { 2 } else { 10 })
    }

    fn cpu_time_ns(&self) -> u64 {
        self.event.cpu_time_ns().unwrap_or(0)
    }

    /// The descriptor reports it.
    fn thread_ended(&self) -> bool {
        false
    }

    fn drain(&mut self, intake: &mut Intake<'_, '_>) -> u64 {
        let now = monotonic_ns();
        intake.chains.begin(now);
        let batch = &mut self.batch;
        (batch.samples, batch.left) = (0, 0);
        let waits = self.waits;
        self.event.drain(|record| match record {
            Record::Sample(sample) => batch.sample(&sample, waits, now, intake),
            Record::Leaving(sample, to) => leave(&sample, to, now, intake),
            Record::Switch(switch) => batch.switch(switch, intake),
            Record::Lost(count) => {
                batch.lost += count;
                intake.waits.lose();
            }
            Record::Handover(_) | Record::Other => {}
        });
        let (samples, left) = (batch.samples, batch.left);
        if left > 0 {
            if let Some(delay) = &self.delay
                && !intake.waits.defers_delay()
                && let Some(ns) = delay.ns()
            {
                intake.waits.delay(ns);
            }
            self.event
                .set_switch_period(self.wait_pacer.next(left, now));
        }
        if samples > 0 {
            // The CPU time after the last sample, which the new period loses, counts at the next wake-up. To read it now
            // would interrupt the thread's CPU.
            let period = self.pacer.next(samples, self.batch.last_cpu_time);
            self.event.set_period_ns(period);
        }
        samples
    }

    fn set_paused(&mut self, paused: bool) {
        self.event.set_paused(paused);
    }

    fn guesses_waits(&self) -> bool {
        self.waits && !self.event.samples_switches()
    }

    fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.batch.lost)
    }

    fn close(&self) {}
}

impl Batch {
    /// Takes a sample of the thread on its CPU.
    fn sample(&mut self, sample: &Sample<'_>, waits: bool, now: u64, intake: &mut Intake<'_, '_>) {
        let weight = sample.cpu_time.saturating_sub(self.last_cpu_time);
        self.last_cpu_time = sample.cpu_time.max(self.last_cpu_time);
        self.samples += 1;
        if !intake.keeps_samples_at(sample.time) {
            return;
        }
        let chain = intake.raw.chain();
        chain.extend(sample.callchain());
        intake.maps.keep_up(chain, now);
        let broken = intake.chains.complete(chain, sample, intake.maps) == Chain::Broken;
        if waits {
            intake.waits.run(sample.time, chain, broken);
        }
        intake
            .raw
            .push(sample.time, 1, weight, sample.in_kernel, broken);
    }

    /// Processes a switch of the thread to or from its CPU.
    fn switch(&mut self, switch: Switch, intake: &mut Intake<'_, '_>) {
        match switch.to {
            SwitchTarget::Cpu => intake.waits.end(switch.time),
            SwitchTarget::Wait | SwitchTarget::Queue => {
                self.left += 1;
                let preempted = switch.to == SwitchTarget::Queue;
                intake.waits.begin(switch.time, preempted);
            }
        }
    }
}

/// Takes the stack of the thread as it leaves its CPU, if its wait cannot count at the last sample of the task.
fn leave(sample: &Sample<'_>, to: Option<SwitchTarget>, now: u64, intake: &mut Intake<'_, '_>) {
    let is_preempted = to == Some(SwitchTarget::Queue);
    if !intake.counts_waits_at(sample.time) || is_preempted && intake.has_run_in_task(sample.time) {
        return;
    }
    let mut chain: Vec<u64> = sample.callchain().collect();
    intake.maps.keep_up(&chain, now);
    let broken = intake.chains.complete(&mut chain, sample, intake.maps) == Chain::Broken;
    intake.waits.leave(sample.time, chain, broken);
}

/// Opens an event on a thread that the JVM announced. With capabilities, an event can be opened on any thread.
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
    // Another thread may have had the number when the event was opened. Not if the thread still lives after this check:
    // then it had the number all the time.
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
        // If events are not allowed, the error is another one.
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
            // A joined thread may still exist for the kernel; the test runner ends a test that never ends.
            while !event.thread_has_ended() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}
