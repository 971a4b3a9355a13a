//! Robust statistics.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The factor from the median of absolute deviations to the standard deviation of a normal distribution.
const MAD_TO_SIGMA: f64 = 1.4826;
/// The weight of a sample if the spread is estimated by the MAD instead of the standard deviation (asymptotic
/// efficiency for normal values).
const MAD_EFFICIENCY: f64 = 0.37;

/// The middle value, or the mean of the two middle values; 0 without values.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    let half = values.len() / 2;
    if values.is_empty() {
        return 0.0;
    }
    let even = values.len().is_multiple_of(2);
    let (below, middle, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    let upper = *middle;
    match below.iter().copied().max_by(f64::total_cmp) {
        Some(lower) if even => f64::midpoint(lower, upper),
        _ => upper,
    }
}

/// The standard deviation of the bulk of the values about their median.
pub(super) fn spread(values: &[f64]) -> f64 {
    let middle = median(values.iter().copied());
    MAD_TO_SIGMA * median(values.iter().map(|value| (value - middle).abs()))
}

/// The probability that chance makes any of `n` values deviate upwards by `z` times their spread, if the spread was
/// estimated from the same values by the MAD: Student's t, with the degrees of freedom of that estimate, times `n`
/// (Bonferroni).
pub(super) fn chance_of_outlier(z: f64, n: usize) -> f64 {
    let freedom = (MAD_EFFICIENCY * (n as f64 - 1.0)).max(0.5);
    let tail = StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |t| t.sf(z));
    (tail * n as f64).clamp(0.0, 1.0)
}

/// The same if the spread were known exactly.
pub(super) fn chance_if_spread_known(z: f64, n: usize) -> f64 {
    (normal_tail(z) * n as f64).clamp(0.0, 1.0)
}

fn normal_tail(z: f64) -> f64 {
    Normal::new(0.0, 1.0).map_or(1.0, |normal| normal.sf(z))
}

/// The ranks of values.
pub(super) struct Ranks {
    /// The rank of each value, from 1; equal values have the mean of theirs.
    of: Vec<f64>,
    /// The reduction of the variance of rank sums by ties.
    ties: f64,
}

impl Ranks {
    pub(super) fn from_values(values: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
        let mut ranks = Self {
            of: vec![0.0; values.len()],
            ties: 0.0,
        };
        let mut position = 0;
        for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
            let tied = equal.len() as f64;
            for value in equal {
                ranks.of[*value] = position as f64 + f64::midpoint(tied, 1.0);
            }
            ranks.ties += tied.powi(3) - tied;
            position += equal.len();
        }
        ranks
    }

    /// For each group, the probability that chance ranks its values as high as they are among all (Mann and Whitney,
    /// one-sided, with ties). At least the probability of one choice of its size; exactly that if all its values are
    /// above the others. `group` has the index of each value's group; `groups` or more if it is in none.
    pub(super) fn chances(&self, group: &[u32], groups: usize) -> Vec<f64> {
        let mut sums = vec![(0.0, 0.0); groups];
        for (group, rank) in group.iter().zip(&self.of) {
            if let Some((inside, sum)) = sums.get_mut(*group as usize) {
                *inside += 1.0;
                *sum += rank;
            }
        }
        let chance = |(inside, sum): (f64, f64)| self.chance(inside, sum);
        sums.into_iter().map(chance).collect()
    }

    fn chance(&self, inside: f64, rank_sum: f64) -> f64 {
        let n = self.of.len() as f64;
        let outside = n - inside;
        if inside == 0.0 || outside == 0.0 {
            return 1.0;
        }
        let u = rank_sum - inside * (inside + 1.0) / 2.0;
        let rarest = 1.0 / choices(n, inside);
        if u >= inside * outside {
            return rarest;
        }
        let variance = inside * outside / 12.0 * (n + 1.0 - self.ties / (n * (n - 1.0)));
        if variance <= 0.0 {
            return 1.0;
        }
        let z = (u - inside * outside / 2.0 - 0.5) / variance.sqrt();
        normal_tail(z).clamp(rarest, 1.0)
    }
}

/// The number of ways to choose `k` of `n`.
fn choices(n: f64, k: f64) -> f64 {
    let k = k.min(n - k) as u32;
    (0..k).fold(1.0, |ways, i| ways * (n - f64::from(i)) / f64::from(i + 1))
}

/// The probability that chance correlates `times` with one of the measures as well as observed: the share of random
/// permutations of the times in which the best measure correlates as well or better.
pub(super) fn chance_of_going_together(measures: &[Vec<f64>], times: &[f64]) -> f64 {
    /// Number of permutations; the smallest possible result is one in so many.
    const SHUFFLES: usize = 999;
    let measures: Vec<Vec<f64>> = measures
        .iter()
        .filter_map(|values| centred(values))
        .collect();
    let Some(mut times) = centred(times) else {
        return 1.0;
    };
    let best = |times: &[f64]| {
        let sums = measures
            .iter()
            .map(|measure| measure.iter().zip(times).map(|(a, b)| a * b).sum::<f64>());
        sums.fold(f64::NEG_INFINITY, f64::max)
    };
    if measures.is_empty() {
        return 1.0;
    }
    // Sums in another order are only nearly equal.
    let observed = best(&times) - 1e-9;
    let mut random = Random(times.len() as u64);
    let mut as_good = 0;
    for _ in 0..SHUFFLES {
        for i in (1..times.len()).rev() {
            times.swap(i, random.below(i + 1));
        }
        as_good += usize::from(best(&times) >= observed);
    }
    (as_good + 1) as f64 / (SHUFFLES + 1) as f64
}

/// Centred on the median, with a sum of deviations of 1. `None` if nothing deviates.
fn centred(values: &[f64]) -> Option<Vec<f64>> {
    let middle = median(values.iter().copied());
    let sum: f64 = values.iter().map(|value| (value - middle).abs()).sum();
    (sum > 0.0).then(|| values.iter().map(|value| (value - middle) / sum).collect())
}

/// The same numbers each time (SplitMix64), so that answers are reproducible.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_and_the_spread_are_those_of_the_bulk() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median([]), 0.0);
        assert!((spread(&[9.0, 10.0, 11.0, 10.0, 1e9]) - MAD_TO_SIGMA).abs() < 1e-9);
    }

    #[test]
    fn few_values_make_nothing_sure() {
        assert!(chance_of_outlier(10.0, 3) > 0.1);
        assert!(chance_of_outlier(10.0, 100) < 1e-6);
        assert!(chance_of_outlier(2.0, 100) > 0.5);
    }

    #[test]
    fn ranks_tell_a_group_that_is_large_enough() {
        let values: Vec<f64> = (0..20).map(f64::from).collect();
        let of_upper = |values: &[f64], from| {
            let group: Vec<u32> = (0..20).map(|i| u32::from(i < from)).collect();
            Ranks::from_values(values).chances(&group, 1)[0]
        };
        assert!(of_upper(&values, 12) < 0.001);
        assert!((of_upper(&values, 19) - 1.0 / 20.0).abs() < 1e-9);
        assert!((of_upper(&values, 18) - 1.0 / 190.0).abs() < 1e-9);
        assert_eq!(of_upper(&values, 20), 1.0);
        assert_eq!(of_upper(&[1.0; 20], 12), 1.0);
    }

    #[test]
    fn groups_are_ranked_as_each_for_itself() {
        // With ties, and with values in no group.
        let values: Vec<f64> = (0..90).map(|i| f64::from(i * 37 % 23)).collect();
        let group: Vec<u32> = (0..90).map(|i| i / 7 % 9).collect();
        let ranks = Ranks::from_values(&values);
        for (number, chance) in (0..).zip(ranks.chances(&group, 8)) {
            let alone: Vec<u32> = group.iter().map(|of| u32::from(*of != number)).collect();
            assert_eq!(ranks.chances(&alone, 1), [chance]);
        }
    }

    #[test]
    fn one_pair_of_largest_values_is_chance_one_in_n() {
        let mut x = vec![1.0; 20];
        let mut y = vec![5.0; 20];
        (x[7], y[7]) = (100.0, 900.0);
        let chance = chance_of_going_together(&[x.clone()], &y);
        assert!((0.02..0.09).contains(&chance), "{chance}");
        y.swap(7, 8);
        assert!(chance_of_going_together(&[x], &y) > 0.5);
        assert_eq!(chance_of_going_together(&[vec![1.0; 20]], &y), 1.0);
    }
}
