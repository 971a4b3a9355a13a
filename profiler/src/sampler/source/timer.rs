//! Samples from the CPU timer of a thread, in a ring in shared memory.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::{Intake, SampleSource};
use crate::timer::Slot;

pub(super) struct TimerSource<'a> {
    slot: Slot<'a>,
    period_ns: u64,
    /// CPU time at the last sample, ns.
    last_cpu_time: u64,
    /// CPU time that is not in a sample yet, ns.
    owed_ns: u64,
    /// Whether the next sample stands for CPU time of a pause too.
    skips: bool,
    ended: bool,
}

impl<'a> TimerSource<'a> {
    pub(super) fn new(slot: Slot<'a>, period_ns: u64) -> Self {
        Self {
            last_cpu_time: slot.cpu_time_at_start(),
            slot,
            period_ns,
            owed_ns: 0,
            skips: false,
            ended: false,
        }
    }
}

impl SampleSource for TimerSource<'_> {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The ring does not wake the sampler.
    fn patience(&self, _work_pending: bool) -> Duration {
        Duration::from_millis(200)
    }

    fn cpu_time_ns(&self) -> u64 {
        0
    }

    fn thread_ended(&self) -> bool {
        self.ended
    }

    fn drain(&mut self, intake: &mut Intake<'_, '_>) -> u64 {
        let mut samples = 0;
        self.ended = self.slot.is_released();
        let Self {
            slot,
            period_ns,
            last_cpu_time,
            owed_ns,
            skips,
            ..
        } = self;
        slot.drain(|sample| {
            let weight = sample.cpu_time.saturating_sub(*last_cpu_time);
            *last_cpu_time = sample.cpu_time.max(*last_cpu_time);
            samples += 1;
            if std::mem::take(skips) {
                return;
            }
            if !intake.keeps_samples_at(sample.time) {
                return;
            }
            let Some((top, callers)) = sample.chain.split_first_chunk() else {
                return;
            };
            let chain = intake.raw.chain();
            chain.extend(callers);
            intake.maps.keep_up(chain, sample.time);
            intake
                .chains
                .complete_by_top(chain, sample.time, top, intake.maps);
            let broken = !chain.iter().any(|ip| intake.maps.in_code_cache(*ip));
            // CPU timers tick with the scheduler, often slower than requested: a tick for several periods counts as
            // several samples.
            *owed_ns += weight;
            let count = *owed_ns / *period_ns;
            *owed_ns %= *period_ns;
            intake.raw.push(sample.time, count, weight, false, broken);
        });
        samples
    }

    fn set_paused(&mut self, paused: bool) {
        self.slot.set_paused(paused);
        if !paused {
            self.skips = true;
        }
    }

    fn take_lost(&mut self) -> u64 {
        self.slot.take_lost()
    }

    fn close(&self) {
        self.slot.free();
    }
}
