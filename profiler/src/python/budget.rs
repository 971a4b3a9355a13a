//! Lowers the rate while samples cost more than they may.

/// The part of the workers' CPU time that their samples may cost: one in this many.
const PART: u64 = 100;
/// The period for which that is the limit, ns: at higher rates, which the user has asked for, samples may cost as much
/// each.
const PERIOD_NS: u64 = 5_000_000;
/// Longest period, in periods of the option.
const LONGEST: u64 = 8;
/// CPU time of workers after which the cost is judged, ns.
const ENOUGH_NS: u64 = 2_000_000_000;

/// The cost of samples since it was judged last.
#[derive(Debug)]
pub(super) struct Budget {
    /// Period of the option, ns.
    nominal_ns: u64,
    /// The period is so many times that.
    factor: u64,
    /// CPU time of workers that was sampled, ns.
    sampled_ns: u64,
    /// The sampler's own CPU time at the last judgement, ns.
    own_ns: u64,
}

impl Budget {
    /// For a period of CPU time, ns; the sampler has used `own_ns` so far.
    pub(super) fn new(nominal_ns: u64, own_ns: u64) -> Self {
        Self {
            nominal_ns,
            factor: 1,
            sampled_ns: 0,
            own_ns,
        }
    }

    /// The CPU time after which a worker is sampled, ns.
    pub(super) fn period_ns(&self) -> u64 {
        self.nominal_ns.saturating_mul(self.factor)
    }

    /// Notes a sample that stands for so much CPU time.
    pub(super) fn add(&mut self, ns: u64) {
        self.sampled_ns = self.sampled_ns.saturating_add(ns);
    }

    /// Doubles the period if samples cost too much, halves it if they would not. `own_ns` is the sampler's CPU time so far.
    pub(super) fn judge(&mut self, own_ns: u64) {
        if self.sampled_ns < ENOUGH_NS {
            return;
        }
        let cost = own_ns.saturating_sub(self.own_ns);
        let more = PERIOD_NS.max(self.nominal_ns) / self.nominal_ns.max(1);
        let allowed = self.sampled_ns / PART * more;
        if cost > allowed {
            self.factor = (2 * self.factor).min(LONGEST);
        } else if cost.saturating_mul(5) < allowed.saturating_mul(2) {
            self.factor = (self.factor / 2).max(1);
        }
        self.sampled_ns = 0;
        self.own_ns = own_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Samples for so many seconds of CPU time at a cost for each; returns the period, and the part that it cost at last.
    fn run(budget: &mut Budget, own_ns: &mut u64, seconds: u64, cost_ns: u64) -> (u64, f64) {
        let (mut part, mut left) = (0.0, seconds * 1_000 * MS);
        while left > 0 {
            let (before, mut sampled) = (*own_ns, 0);
            while sampled < 2_000 * MS {
                sampled += budget.period_ns();
                budget.add(budget.period_ns());
                *own_ns += cost_ns;
            }
            part = (*own_ns - before) as f64 / sampled as f64;
            left = left.saturating_sub(sampled);
            budget.judge(*own_ns);
        }
        (budget.period_ns(), part)
    }

    #[test]
    fn samples_that_cost_too_much_are_fewer_until_they_cost_less() {
        let mut own_ns = 7;
        let mut budget = Budget::new(5 * MS, own_ns);
        assert_eq!(run(&mut budget, &mut own_ns, 60, 30_000).0, 5 * MS);
        let (period, part) = run(&mut budget, &mut own_ns, 60, 120_000);
        assert_eq!(period, 20 * MS);
        assert!(part <= 0.01, "{part}");
        assert_eq!(run(&mut budget, &mut own_ns, 60, 50 * MS).0, 40 * MS);
        assert_eq!(run(&mut budget, &mut own_ns, 60, 30_000).0, 5 * MS);
        // Little CPU time is not judged.
        budget.add(MS);
        budget.judge(own_ns + 1_000 * MS);
        assert_eq!(budget.period_ns(), 5 * MS);
    }

    #[test]
    fn at_a_higher_rate_a_sample_may_cost_as_much() {
        let mut own_ns = 0;
        let mut budget = Budget::new(MS, own_ns);
        assert_eq!(run(&mut budget, &mut own_ns, 20, 30_000).0, MS);
        assert_eq!(run(&mut budget, &mut own_ns, 20, 80_000).0, 2 * MS);
        let mut slow = Budget::new(50 * MS, own_ns);
        assert_eq!(run(&mut slow, &mut own_ns, 20, 300_000).0, 50 * MS);
    }
}
