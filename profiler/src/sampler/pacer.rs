//! Chooses the next sampling period: random, so that samples do not synchronize with the program's own rhythm
//! (Mytkowicz et al. 2010), and controlled, so that samples ÷ rate stays the CPU time. Also chooses the waits whose
//! stacks are sampled.

/// Spread of the period around its nominal value.
const JITTER: f64 = 0.2;

/// The period of one event.
#[derive(Debug)]
pub(super) struct Pacer {
    nominal_ns: f64,
    samples: f64,
    random: u64,
}

impl Pacer {
    pub(super) fn new(nominal_ns: u64, seed: u64) -> Self {
        Self {
            nominal_ns: nominal_ns as f64,
            samples: 0.0,
            random: seed.wrapping_mul(2) | 1,
        }
    }

    /// The period until the next wake-up, given the number of samples since the last one and the CPU time since the
    /// event was opened. Setting a period restarts it in the kernel, which loses the time since the last sample; the
    /// correction recovers it over as many samples as came now.
    pub(super) fn next(&mut self, taken: u64, cpu_time_ns: u64) -> u64 {
        self.samples += taken as f64;
        let owed = cpu_time_ns as f64 / self.nominal_ns - self.samples;
        let batch = (taken as f64).max(4.0);
        let correction = (batch / (batch + owed).max(1.0)).clamp(0.75, 1.35);
        let jitter = 1.0 + JITTER * (2.0 * self.uniform() - 1.0);
        (self.nominal_ns * correction * jitter).max(50_000.0) as u64
    }

    fn uniform(&mut self) -> f64 {
        uniform(&mut self.random)
    }
}

/// A number from 0 to 1, by xorshift64: aperiodic enough, and needs no seed from the system. `random` is its state, not 0.
pub(crate) fn uniform(random: &mut u64) -> f64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    (*random >> 11) as f64 / (1u64 << 53) as f64
}

/// Chooses the waits of a thread whose stacks are copied: all, unless they are many.
#[derive(Debug)]
pub(super) struct WaitPacer {
    /// Maximum number of stacks a second.
    most: f64,
    last_ns: u64,
    random: u64,
}

impl WaitPacer {
    pub(super) fn new(most: u64, seed: u64, now_ns: u64) -> Self {
        Self {
            most: most.max(1) as f64,
            last_ns: now_ns,
            random: seed.wrapping_mul(2) | 1,
        }
    }

    /// Every how many waits to copy a stack, given the waits since the last call. Random, so that a program with
    /// alternating waits is not always sampled at the same one.
    pub(super) fn next(&mut self, waits: u64, now_ns: u64) -> u64 {
        let seconds = now_ns.saturating_sub(self.last_ns).max(1_000_000) as f64 / 1e9;
        self.last_ns = now_ns;
        let needed = waits as f64 / seconds / self.most;
        if needed <= 1.0 {
            return 1;
        }
        (needed * (0.75 + 0.5 * uniform(&mut self.random))).ceil() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_of_waits_are_bounded() {
        let second = 1_000_000_000;
        let mut pacer = WaitPacer::new(100, 3, 0);
        assert_eq!(pacer.next(90, second), 1);
        let periods: Vec<u64> = (2..50).map(|s| pacer.next(10_000, s * second)).collect();
        assert!(periods.iter().all(|period| (75..=126).contains(period)));
        assert!(periods.iter().any(|period| period != &periods[0]));
        assert_eq!(pacer.next(3, 51 * second), 1);
    }

    /// Simulates the kernel: whole periods yield samples, a new period starts from zero after a delay.
    #[test]
    fn samples_follow_cpu_time_although_restarts_lose_some() {
        let nominal = 5_000_000;
        let mut pacer = Pacer::new(nominal, 7);
        let (mut cpu, mut samples, mut period) = (0u64, 0u64, nominal);
        for round in 0..400u64 {
            let taken = 15;
            cpu += taken * period + round % 3_000_000;
            samples += taken;
            period = pacer.next(taken, cpu);
        }
        let ratio = samples as f64 * nominal as f64 / cpu as f64;
        assert!(
            (ratio - 1.0).abs() < 0.01,
            "samples stand for {ratio} of the CPU time"
        );
    }
}
