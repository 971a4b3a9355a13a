//! Pseudo-random numbers that are the same in every run: the same profile gives the same answer.

/// The generator SplitMix64 (Steele, Lea, Flood 2014).
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to below `limit`, which is at least 1.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// About the standard normal distribution: a sum of twelve uniform numbers.
    pub(super) fn normal(&mut self) -> f64 {
        let uniform = |number: u64| (number >> 11) as f64 / (1u64 << 53) as f64;
        (0..12).map(|_| uniform(self.next())).sum::<f64>() - 6.0
    }
}
