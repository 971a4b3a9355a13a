//! Chooses the profiled tasks if only a share of them is profiled.

use crate::wire::TaskAttempt;

/// A share of all tasks, in units of 2⁻³².
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskShare(u64);

const WHOLE: u64 = 1 << 32;

impl Default for TaskShare {
    fn default() -> Self {
        Self(WHOLE)
    }
}

impl TaskShare {
    /// `1/K` or a decimal fraction, above 0 and at most 1.
    ///
    /// # Errors
    /// What is expected instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let fraction = match text.split_once('/') {
            Some(("1", of)) => of.parse::<u32>().ok().map(|of| 1.0 / f64::from(of)),
            Some(_) => None,
            None => text.parse().ok(),
        };
        fraction
            .filter(|fraction| (1e-6..=1.0).contains(fraction))
            .map(|fraction: f64| Self((fraction * WHOLE as f64).round() as u64))
            .ok_or_else(|| "a fraction such as 1/10 or 0.1 is expected".to_owned())
    }

    /// Whether it is less than all tasks.
    pub fn is_partial(self) -> bool {
        self.0 < WHOLE
    }

    /// The probability with which a task is profiled.
    pub fn fraction(self) -> f64 {
        self.0 as f64 / WHOLE as f64
    }

    /// Whether a task is drawn: depends only on the task and the JVM's seed, so it has no pattern in time or in the
    /// order of tasks, and every process draws the same.
    pub(crate) fn draws(self, task: TaskAttempt, seed: u64) -> bool {
        let mut hash = seed;
        for part in [
            u64::from(task.stage.cast_unsigned()),
            u64::from(task.stage_attempt.cast_unsigned()),
            task.task.cast_unsigned(),
        ] {
            hash = mix(hash ^ part);
        }
        hash >> 32 < self.0
    }

    /// The CPU time of a profiled task's sample, ns, scaled to include tasks that were not drawn, so that the expected
    /// sum is correct.
    pub(crate) fn scale(self, ns: u64) -> u64 {
        let scaled =
            (u128::from(ns) * u128::from(WHOLE) + u128::from(self.0) / 2) / u128::from(self.0);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

/// A number that no other JVM is likely to have.
pub(crate) fn seed() -> u64 {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    mix(mix(now.as_nanos() as u64) ^ u64::from(std::process::id()))
}

/// The finalizer of SplitMix64.
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn task(task: i64) -> TaskAttempt {
        TaskAttempt {
            stage: 3,
            stage_attempt: 0,
            task,
        }
    }

    #[test]
    fn fractions_are_read() {
        assert_eq!(TaskShare::parse("1/4"), Ok(TaskShare(1 << 30)));
        assert_eq!(TaskShare::parse("0.25"), Ok(TaskShare(1 << 30)));
        assert!(!TaskShare::parse("1").unwrap().is_partial());
        for wrong in [
            "", "0", "2", "2/3", "1/0", "-0.1", "1/", "nan", "inf", "half",
        ] {
            assert!(TaskShare::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn weights_are_unbiased() {
        // 2,000 draws of 400 tasks with different CPU times: the mean of the sums is the true sum.
        let share = TaskShare::parse("1/3").unwrap();
        let cpu = |task: i64| 1_000_000 + 37_000 * (task % 4) as u64;
        let truth: u64 = (0..400).map(cpu).sum();
        let sums: Vec<f64> = (0..2_000)
            .map(|seed| {
                let drawn = (0..400).filter(|t| share.draws(task(*t), seed));
                drawn.map(|t| share.scale(cpu(t)) as f64).sum()
            })
            .collect();
        let mean = sums.iter().sum::<f64>() / sums.len() as f64 / truth as f64;
        // One draw deviates by sqrt((1-p)/p/n) = 7%, the mean by 0.16%.
        assert!((mean - 1.0).abs() < 0.006, "{mean}");
        let spread = sums
            .iter()
            .map(|sum| (sum / truth as f64 - 1.0).powi(2))
            .sum::<f64>()
            / sums.len() as f64;
        assert!((0.063..0.078).contains(&spread.sqrt()), "{}", spread.sqrt());
    }

    proptest! {
        #[test]
        fn a_whole_share_draws_all_and_changes_nothing(id: i64, seed: u64, ns: u64) {
            prop_assert!(TaskShare::default().draws(task(id), seed));
            prop_assert_eq!(TaskShare::default().scale(ns), ns);
        }
    }
}
