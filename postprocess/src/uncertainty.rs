//! Bounds of a share.
//!
//! Two things make a share uncertain. Samples are a random draw. And the compiler describes only some instructions, so
//! a sample between the descriptions of two operators may be of either, or of one between them.

/// Quantile of the normal distribution for 95% of the cases.
const Z: f64 = 1.96;

/// The evidence for one part of a whole, in samples or in time (see [`crate::Weight::value`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Samples of the part.
    own: u64,
    /// Of these, samples that another part may own.
    doubtful: u64,
    /// Samples of other parts that this part may own.
    possible: u64,
}

impl Evidence {
    /// Adds samples of the part; `doubtful` if another part may own them.
    pub fn add(&mut self, value: u64, doubtful: bool) {
        self.own = self.own.saturating_add(value);
        if doubtful {
            self.doubtful = self.doubtful.saturating_add(value);
        }
    }

    /// Adds samples of another part that this one may own.
    pub fn add_possible(&mut self, value: u64) {
        self.possible = self.possible.saturating_add(value);
    }

    /// Adds the evidence for the same part of another whole; both wholes then count as one.
    pub fn add_all(&mut self, other: Self) {
        self.own = self.own.saturating_add(other.own);
        self.doubtful = self.doubtful.saturating_add(other.doubtful);
        self.possible = self.possible.saturating_add(other.possible);
    }

    /// Bounds of the part's share of `whole`, estimated from `samples` samples; 0 to 1 without samples.
    ///
    /// The lower bound is that of Wilson's 95% interval of the certain samples, the upper bound that of all possible
    /// ones.
    pub fn bounds(self, whole: u64, samples: u64) -> (f64, f64) {
        if whole == 0 {
            return (0.0, 1.0);
        }
        let samples = samples as f64;
        let part = |value: u64| (value as f64 / whole as f64).min(1.0);
        let least = part(self.own.saturating_sub(self.doubtful));
        let most = part(self.own.saturating_add(self.possible));
        (wilson(least, samples).0, wilson(most, samples).1)
    }
}

/// Wilson's 95% score interval of a share found in `samples` samples (Wilson 1927); 0 to 1 without samples.
pub fn wilson(share: f64, samples: f64) -> (f64, f64) {
    if samples <= 0.0 {
        return (0.0, 1.0);
    }
    let n = samples;
    let z2 = Z * Z;
    let middle = share + z2 / (2.0 * n);
    let half = Z * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    let whole = 1.0 + z2 / n;
    // The interval contains the share by definition; at 0 and 1 rounding can exclude it.
    (
        ((middle - half) / whole).max(0.0).min(share),
        ((middle + half) / whole).min(1.0).max(share),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bounds_are_those_of_wilson() {
        // 30 of 100: 0.2189 to 0.3958 (Newcombe 1998, method 3, as any statistics package gives it).
        let mut evidence = Evidence::default();
        evidence.add(30, false);
        let (low, high) = evidence.bounds(100, 100);
        assert!((low - 0.2189).abs() < 1e-4, "{low}");
        assert!((high - 0.3958).abs() < 1e-4, "{high}");
    }

    #[test]
    fn rounding_leaves_no_share_out() {
        for samples in 1..2000 {
            for share in [0.0, 1.0] {
                let (low, high) = wilson(share, f64::from(samples));
                assert!(low <= share && share <= high, "{share} of {samples}");
            }
        }
    }

    #[test]
    fn what_is_doubtful_widens_both_sides() {
        let mut sure = Evidence::default();
        sure.add(300, false);
        let mut doubtful = Evidence::default();
        doubtful.add(200, false);
        doubtful.add(100, true);
        doubtful.add_possible(50);
        let (low, high) = sure.bounds(1000, 1000);
        let (lower, higher) = doubtful.bounds(1000, 1000);
        assert_eq!(sure.own, doubtful.own);
        assert!(lower < low - 0.08 && higher > high + 0.04);
    }

    proptest! {
        #[test]
        fn bounds_hold_the_share(own in 0u64..1000, doubtful in 0u64..1000, possible in 0u64..u64::MAX, rest in 0u64..1000) {
            let mut evidence = Evidence::default();
            evidence.add(own, false);
            evidence.add(doubtful, true);
            evidence.add_possible(possible);
            let whole = own + doubtful + rest;
            let (low, high) = evidence.bounds(whole, whole);
            prop_assert!((0.0..=1.0).contains(&low) && (0.0..=1.0).contains(&high));
            if whole > 0 {
                let share = (own + doubtful) as f64 / whole as f64;
                prop_assert!(low <= share && share <= high);
            }
        }
    }
}
