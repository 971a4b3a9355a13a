//! The effect of a culprit on a victim, from an experiment: the culprit is held back in randomly chosen slices of time.
//!
//! Slices come in pairs of equal length, one of which is drawn to be the one in which the culprit is held back. If that made no
//! difference, each pair's difference would be as likely to be positive as negative. So the estimate is that of Hodges and Lehmann
//! (1963), the median of the means of any two differences, with the interval that Wilcoxon's signed-rank test does not reject
//! (95%). Both hold for any distribution of the differences that is symmetric, and a few odd slices hardly change them.

/// The share of experiments without an effect that is taken for one with an effect, on each side.
const TAIL: f64 = 0.025;
/// The culprit must have got at least this many CPUs less while it was held back: then an effect has a cause.
const LEAST_DOSE: f64 = 0.01;
/// A smaller number of pairs has no interval of 95%.
pub const LEAST_PAIRS: usize = 6;

/// What two queries used in a slice of time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProofSlice {
    /// Length, s.
    pub seconds: f64,
    /// CPU time of the victim's tasks, s.
    pub victim_cpu_s: f64,
    /// CPU time of the culprit, s.
    pub culprit_cpu_s: f64,
}

/// Two slices that follow each other in a random order.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProofPair {
    /// The one in which the culprit ran as usual.
    pub free: ProofSlice,
    /// The one in which it was held back.
    pub held: ProofSlice,
}

/// The result of an experiment. CPUs are CPU seconds a second, means over slices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Proof {
    /// Number of pairs.
    pub pairs: usize,
    /// CPUs that the victim got while the culprit ran as usual.
    pub victim_free_cpus: f64,
    /// The same while the culprit was held back.
    pub victim_held_cpus: f64,
    /// CPUs that the culprit got while it ran as usual.
    pub culprit_free_cpus: f64,
    /// The same while it was held back.
    pub culprit_held_cpus: f64,
    /// How much faster the victim progressed while the culprit was held back: 0.5 is half as fast again, negative is slower.
    /// `None` if the victim got no CPU time while the culprit ran as usual.
    pub faster: Option<Range>,
}

/// A value with its 95% interval, which is unbounded with fewer than [`LEAST_PAIRS`] pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Range {
    /// The same of a value that grows with this one.
    #[must_use]
    pub fn map(self, of: impl Fn(f64) -> f64) -> Self {
        Self {
            value: of(self.value),
            low: of(self.low),
            high: of(self.high),
        }
    }
}

impl Proof {
    /// Compares the slices of an experiment; `None` without a pair.
    pub fn from_pairs(pairs: &[ProofPair]) -> Option<Self> {
        let pairs: Vec<&ProofPair> = pairs
            .iter()
            .filter(|pair| pair.free.seconds > 0.0 && pair.held.seconds > 0.0)
            .collect();
        let mean = |cpus: &dyn Fn(&ProofPair) -> f64| {
            pairs.iter().map(|pair| cpus(pair)).sum::<f64>() / pairs.len() as f64
        };
        let victim = |slice: ProofSlice| slice.victim_cpu_s / slice.seconds;
        let culprit = |slice: ProofSlice| slice.culprit_cpu_s / slice.seconds;
        let mut differences: Vec<f64> = pairs
            .iter()
            .map(|pair| victim(pair.held) - victim(pair.free))
            .collect();
        let difference = hodges_lehmann(&mut differences)?;
        let usual = mean(&|pair| victim(pair.free));
        Some(Self {
            pairs: pairs.len(),
            victim_free_cpus: usual,
            victim_held_cpus: mean(&|pair| victim(pair.held)),
            culprit_free_cpus: mean(&|pair| culprit(pair.free)),
            culprit_held_cpus: mean(&|pair| culprit(pair.held)),
            faster: (usual > 0.0).then(|| difference.map(|cpus| cpus / usual)),
        })
    }

    /// Whether the culprit got noticeably less CPU time while it was held back. Otherwise the experiment says nothing of it.
    pub fn was_held_back(&self) -> bool {
        self.culprit_free_cpus - self.culprit_held_cpus >= LEAST_DOSE
    }

    /// Whether the culprit slows the victim down.
    pub fn is_proven(&self) -> bool {
        self.was_held_back() && self.faster.is_some_and(|faster| faster.low > 0.0)
    }

    /// How much sooner a victim would have got as far without the culprit if it ran this long beside it, s.
    pub fn sooner(&self, beside_s: f64) -> Option<Range> {
        // An infinite gain saves all the time; one of -100% or less would never have ended.
        let saved = |faster: f64| match faster {
            faster if faster <= -1.0 => f64::NEG_INFINITY,
            f64::INFINITY => beside_s,
            faster => beside_s * faster / (1.0 + faster),
        };
        self.faster.map(|faster| faster.map(saved))
    }
}

/// The center of symmetric differences, with its 95% interval.
fn hodges_lehmann(differences: &mut [f64]) -> Option<Range> {
    let count = differences.len();
    let mut means: Vec<f64> = (0..count)
        .flat_map(|i| (i..count).map(move |j| (i, j)))
        .map(|(i, j)| f64::midpoint(differences[i], differences[j]))
        .collect();
    means.sort_by(f64::total_cmp);
    let all = means.len();
    let value = f64::midpoint(*means.get(all.checked_sub(1)? / 2)?, means[all / 2]);
    let (low, high) = match rejected(count) {
        0 => (f64::NEG_INFINITY, f64::INFINITY),
        rank => (means[rank - 1], means[all - rank]),
    };
    Some(Range { value, low, high })
}

/// The number of smallest sums of signed ranks that Wilcoxon's test rejects on one side; 0 if it rejects none.
fn rejected(pairs: usize) -> usize {
    let most = pairs * (pairs + 1) / 2;
    // How likely each sum of the ranks of positive differences is, if signs are random.
    let mut likely = vec![0.0; most + 1];
    likely[0] = 1.0;
    for rank in 1..=pairs {
        for sum in (0..=most).rev() {
            let without = likely[sum];
            let with = sum.checked_sub(rank).map_or(0.0, |before| likely[before]);
            likely[sum] = f64::midpoint(without, with);
        }
    }
    let mut below = 0.0;
    let fits = |chance: &&f64| {
        below += **chance;
        below <= TAIL
    };
    likely.iter().take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs in which the victim gets these CPUs, and the culprit 1 and 0.1.
    fn pairs(free_and_held: &[(f64, f64)]) -> Vec<ProofPair> {
        let slice = |victim, culprit| ProofSlice {
            seconds: 2.0,
            victim_cpu_s: 2.0 * victim,
            culprit_cpu_s: 2.0 * culprit,
        };
        let pair = |(free, held): &(f64, f64)| ProofPair {
            free: slice(*free, 1.0),
            held: slice(*held, 0.1),
        };
        free_and_held.iter().map(pair).collect()
    }

    #[test]
    fn critical_values_are_those_of_the_table() {
        // Wilcoxon's table for 0.05, two-sided: the largest sum that is rejected.
        for (pairs, critical) in [(6, 0), (7, 2), (8, 3), (10, 8), (15, 25), (20, 52)] {
            assert_eq!(rejected(pairs), critical + 1, "{pairs} pairs");
        }
        assert_eq!(rejected(LEAST_PAIRS - 1), 0);
    }

    #[test]
    fn an_effect_in_every_pair_is_proven() {
        let speeds = [1.0, 1.1, 0.9, 1.05, 0.95, 1.0, 1.02, 0.98];
        let pairs = pairs(&speeds.map(|free| (free, free + 0.5)));
        let proof = Proof::from_pairs(&pairs).unwrap();
        assert!(proof.is_proven() && proof.pairs == 8, "{proof:?}");
        assert!((proof.faster.unwrap().value - 0.5).abs() < 1e-9);
        // A third of the time is lost if 1.5 times as much is done without the culprit.
        assert!((proof.sooner(30.0).unwrap().value - 10.0).abs() < 1e-6);
    }

    #[test]
    fn nothing_is_proven_without_an_effect_or_with_few_pairs() {
        let none = [
            (1.0, 1.1),
            (1.0, 0.9),
            (1.0, 1.05),
            (1.0, 0.95),
            (1.0, 1.02),
            (1.0, 0.98),
            (1.0, 1.0),
        ];
        let proof = Proof::from_pairs(&pairs(&none)).unwrap();
        let faster = proof.faster.unwrap();
        assert!(!proof.is_proven() && faster.low < 0.0 && faster.high > 0.0);
        let few = Proof::from_pairs(&pairs(&[(1.0, 2.0); 5])).unwrap();
        assert!(!few.is_proven() && few.faster.unwrap().low == f64::NEG_INFINITY);
        assert_eq!(few.sooner(10.0).unwrap().high, 10.0);
        assert_eq!(Proof::from_pairs(&[]), None);
    }

    #[test]
    fn a_culprit_that_lost_nothing_proves_nothing() {
        let mut pairs = pairs(&[(1.0, 2.0); 10]);
        for pair in &mut pairs {
            pair.free.culprit_cpu_s = pair.held.culprit_cpu_s;
        }
        let proof = Proof::from_pairs(&pairs).unwrap();
        assert!(!proof.was_held_back() && !proof.is_proven());
        assert!(proof.faster.unwrap().low > 0.0);
    }
}
