//! How much larger a measure is now than before, with its interval.

use schemars::JsonSchema;
use serde::Serialize;
use unfuse_impact::{Interval, Sample, difference};

/// A measure in one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Value {
    /// Its logarithm.
    ln: f64,
    /// The variance of that by sampling.
    variance: f64,
    /// By how much it may be less and more, because samples may be of another operator. This does not average out: it is the
    /// same for as long as a JVM runs.
    doubt: [f64; 2],
}

impl Value {
    /// A measure that is no estimate.
    pub(super) fn exact(value: f64) -> Self {
        Self {
            ln: value.ln(),
            variance: 0.0,
            doubt: [0.0; 2],
        }
    }

    /// CPU time in ns that `samples` samples found, each of which stands for `period` ns. Half a sample is added, so that
    /// there is a logarithm without samples.
    pub(super) fn from_samples(ns: u64, samples: u64, period: f64) -> Self {
        Self {
            ln: (ns as f64 + 0.5 * period).ln(),
            variance: 1.0 / (samples as f64 + 0.5),
            doubt: [0.0; 2],
        }
    }

    /// The same if its `ns` may be as little as the first number and as much as the second one.
    pub(super) fn within(self, ns: u64, [least, most]: [u64; 2], period: f64) -> Self {
        let ln = |ns: u64| (ns as f64 + 0.5 * period).ln();
        Self {
            doubt: [ln(ns) - ln(least.min(ns)), ln(most.max(ns)) - ln(ns)],
            ..self
        }
    }

    /// The same for each of `rows` rows.
    pub(super) fn per(self, rows: f64) -> Self {
        Self {
            ln: self.ln - rows.ln(),
            ..self
        }
    }
}

/// The samples of a measure on both sides, before and now.
#[derive(Debug, Clone)]
pub(super) struct Samples {
    before: Sample,
    now: Sample,
    /// By how much the change may be less and more than its interval, as logarithms.
    doubt: [f64; 2],
}

/// By how much a measure grew.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// Geometric mean over the runs before, in the unit of the measure.
    pub before: f64,
    /// The same now.
    pub now: f64,
    /// The change as a part of `before`: 0.2 is 20% more.
    pub change: f64,
    /// Lower end of its interval; null if a single run shows nothing.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl Samples {
    /// Of values, at least one on each side. Where a side has a single run, only `sampled` measures have an interval.
    ///
    /// Runs are taken to differ as much now as before, so both sides estimate one variance (Student); without a change, that
    /// is so. It is not taken to be below that by sampling. With single runs, there is only the variance by sampling.
    pub(super) fn new(before: &[Value], now: &[Value], sampled: bool) -> Self {
        let (old, new) = (Side::new(before), Side::new(now));
        let exact = |side: &Side| Sample::from_variance(side.mean, 0.0, f64::INFINITY);
        let is_bounded = sampled || old.count.min(new.count) > 1.0;
        let now = is_bounded.then(|| {
            let own = old.own + new.own;
            let freedom = old.count + new.count - 2.0;
            if freedom < 1.0 {
                return Sample::from_variance(new.mean, own, f64::INFINITY);
            }
            let of_run = (old.squares + new.squares) / freedom;
            let between = of_run * (1.0 / old.count + 1.0 / new.count);
            Sample::from_variance(new.mean, own.max(between), freedom)
        });
        Self {
            before: exact(&old),
            now: now.unwrap_or_else(|| Sample::from_values(&[new.mean])),
            doubt: [old.doubt[1] + new.doubt[0], old.doubt[0] + new.doubt[1]],
        }
    }

    /// Whether there is an interval.
    pub(super) fn is_bounded(&self) -> bool {
        self.before.variance().is_some() && self.now.variance().is_some()
    }

    /// The change, with an interval that holds together with those of `together` comparisons in all.
    pub(super) fn change(&self, together: usize) -> Change {
        let interval = difference(&self.before, &self.now, together);
        let end = |of: &dyn Fn(Interval) -> f64| {
            let change = interval.map(|interval| of(interval).exp_m1());
            change.filter(|change| change.is_finite())
        };
        Change {
            before: self.before.mean().exp(),
            now: self.now.mean().exp(),
            change: (self.now.mean() - self.before.mean()).exp_m1(),
            low: end(&|interval| interval.low - self.doubt[0]),
            high: end(&|interval| interval.high + self.doubt[1]),
        }
    }
}

/// Runs on one side.
struct Side {
    count: f64,
    mean: f64,
    /// Sum of the squares of the deviations from the mean.
    squares: f64,
    /// Variance of the mean by sampling.
    own: f64,
    doubt: [f64; 2],
}

impl Side {
    fn new(values: &[Value]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().map(|value| value.ln).sum::<f64>() / count;
        let squares = values.iter().map(|value| (value.ln - mean).powi(2)).sum();
        let own = values.iter().map(|value| value.variance).sum::<f64>() / count / count;
        Self {
            count,
            mean,
            squares,
            own,
            doubt: [0, 1]
                .map(|end| values.iter().map(|value| value.doubt[end]).sum::<f64>() / count),
        }
    }
}
