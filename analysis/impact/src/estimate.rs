//! Values that depend on means of repeated measurements, with confidence intervals by the delta method.
//!
//! A value f of the means x̄_s of independent groups of n_s repetitions has, to first order, the variance Σ (∂f/∂x_s)²
//! s_s² / n_s, where s_s² is the sample variance of a group. The interval is f ± t·√variance, with Student's t at the
//! degrees of freedom of Welch and Satterthwaite, so few repetitions make it wide. If a group with any influence has
//! only one repetition, there is no interval.

use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Confidence level of every interval, 0 to 1.
pub const CONFIDENCE: f64 = 0.95;

/// An interval at [`CONFIDENCE`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// Repetitions of one measurement, as their mean.
#[derive(Clone, Debug)]
pub struct Sample {
    pub(crate) mean: f64,
    /// Variance of the mean; none for a single repetition.
    variance: Option<f64>,
    /// Degrees of freedom of the variance.
    freedom: f64,
}

impl Sample {
    /// The sample of at least one value.
    pub fn from_values(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self {
            mean,
            variance: (values.len() > 1).then(|| squares / (count - 1.0) / count),
            freedom: count - 1.0,
        }
    }

    /// A mean whose variance comes from elsewhere, with the degrees of freedom of that; infinite if it is known exactly.
    pub fn from_variance(mean: f64, variance: f64, freedom: f64) -> Self {
        Self {
            mean,
            variance: Some(variance),
            freedom,
        }
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The variance of the mean; none for a single repetition.
    pub fn variance(&self) -> Option<f64> {
        self.variance
    }
}

/// The interval of the mean of `after` less that of `before` (Welch), if `together` intervals must hold at once
/// (Bonferroni); none if a variance is not known.
pub fn difference(before: &Sample, after: &Sample, together: usize) -> Option<Interval> {
    let samples = [before.clone(), after.clone()];
    let [old, new] = [0, 1].map(|group| Estimate::mean(&samples, group));
    new.minus(&old).interval(&samples, together)
}

/// A value with its derivative by each group's mean.
#[derive(Clone, Debug)]
pub(crate) struct Estimate {
    pub(crate) value: f64,
    slopes: Vec<f64>,
}

impl Estimate {
    pub(crate) fn constant(value: f64, groups: usize) -> Self {
        Self {
            value,
            slopes: vec![0.0; groups],
        }
    }

    /// The mean of one of `groups` groups.
    pub(crate) fn mean(samples: &[Sample], group: usize) -> Self {
        let mut mean = Self::constant(samples[group].mean, samples.len());
        mean.slopes[group] = 1.0;
        mean
    }

    pub(crate) fn plus(&self, other: &Self, factor: f64) -> Self {
        let slopes = self.slopes.iter().zip(&other.slopes);
        Self {
            value: self.value + factor * other.value,
            slopes: slopes.map(|(a, b)| a + factor * b).collect(),
        }
    }

    pub(crate) fn minus(&self, other: &Self) -> Self {
        self.plus(other, -1.0)
    }

    pub(crate) fn over(&self, other: &Self) -> Self {
        let ratio = self.value / other.value;
        let slopes = self.slopes.iter().zip(&other.slopes);
        Self {
            value: ratio,
            slopes: slopes.map(|(a, b)| (a - ratio * b) / other.value).collect(),
        }
    }

    /// Its interval if `together` intervals must hold at once (Bonferroni).
    pub(crate) fn interval(&self, samples: &[Sample], together: usize) -> Option<Interval> {
        let mut variance = 0.0;
        let mut weights = 0.0;
        for (slope, sample) in self.slopes.iter().zip(samples) {
            if *slope == 0.0 {
                continue;
            }
            let part = slope * slope * sample.variance?;
            variance += part;
            weights += part * part / sample.freedom;
        }
        // Without weights, all variances are known exactly, or so small that their squares underflow.
        let freedom = if weights > 0.0 {
            variance * variance / weights
        } else {
            f64::INFINITY
        };
        let half = quantile(freedom, together) * variance.sqrt();
        half.is_finite().then_some(Interval {
            low: self.value - half,
            high: self.value + half,
        })
    }
}

/// Quantile of Student's t for two-sided intervals.
fn quantile(freedom: f64, together: usize) -> f64 {
    let outside = (1.0 - CONFIDENCE) / together.max(1) as f64;
    // Every group has at least one degree, so only rounding can be below it. Above the limit it is the normal distribution.
    StudentsT::new(0.0, 1.0, freedom.clamp(1.0, 1e6)).map_or(f64::INFINITY, |distribution| {
        // From below: near 1 the argument has too few digits.
        -distribution.inverse_cdf(outside / 2.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantile_is_that_of_tables() {
        for (freedom, t) in [(1.0, 12.706), (2.0, 4.303), (4.0, 2.776), (30.0, 2.042)] {
            assert!((quantile(freedom, 1) - t).abs() < 1e-3, "{freedom}");
        }
        // 0.05 / 5 outside: the 99% column.
        assert!((quantile(10.0, 5) - 3.169).abs() < 1e-3);
        // That of the normal distribution.
        assert!((quantile(f64::INFINITY, 1) - 1.960).abs() < 1e-3);
        assert!((quantile(f64::INFINITY, 1000) - 4.056).abs() < 1e-2);
    }

    #[test]
    fn the_mean_of_a_sample_has_students_interval() {
        let samples = [Sample::from_values(&[1.0, 2.0, 3.0])];
        let interval = Estimate::mean(&samples, 0).interval(&samples, 1).unwrap();
        // 4.303 / √3
        assert!((interval.high - 2.0 - 2.484).abs() < 1e-3, "{interval:?}");
    }

    #[test]
    fn a_ratio_has_the_slopes_of_its_derivative() {
        let samples = [
            Sample::from_values(&[6.0, 6.0]),
            Sample::from_values(&[3.0, 3.0]),
        ];
        let ratio = Estimate::mean(&samples, 0).over(&Estimate::mean(&samples, 1));
        assert_eq!(
            (ratio.value, ratio.slopes.as_slice()),
            (2.0, &[1.0 / 3.0, -2.0 / 3.0][..])
        );
        let sure = ratio.interval(&samples, 1).unwrap();
        assert_eq!((sure.low, sure.high), (2.0, 2.0));
    }

    #[test]
    fn a_difference_has_the_interval_of_welch() {
        // Variances of the means 1 and 4/3, with 2 degrees each: 3.919 degrees of freedom, t = 2.798.
        let before = Sample::from_values(&[1.0, 1.0 + 3f64.sqrt(), 1.0 + 2.0 * 3f64.sqrt()]);
        let after = Sample::from_values(&[5.0, 7.0, 9.0]);
        let found = difference(&before, &after, 1).unwrap();
        let middle = 6.0 - 3f64.sqrt();
        assert!((f64::midpoint(found.low, found.high) - middle).abs() < 1e-9);
        assert!((found.high - middle - 4.27).abs() < 0.01, "{found:?}");
        let known = Sample::from_variance(0.0, 1.0, f64::INFINITY);
        let found = difference(&known, &Sample::from_variance(1.0, 0.0, f64::INFINITY), 1);
        assert!((found.unwrap().high - 2.96).abs() < 1e-2);
    }

    #[test]
    fn one_repetition_has_no_interval() {
        let samples = [
            Sample::from_values(&[6.0]),
            Sample::from_values(&[3.0, 4.0]),
        ];
        assert!(Estimate::mean(&samples, 0).interval(&samples, 1).is_none());
        // A group without influence does not matter.
        assert!(Estimate::mean(&samples, 1).interval(&samples, 1).is_some());
    }
}
