//! The bottleneck, with the certainty that intervals allow.

use schemars::JsonSchema;
use serde::Serialize;

use crate::Resource;
use crate::estimate::{Estimate, Sample};
use crate::indicators::{Candidates, Extreme, Indicator};

/// "The greatest one can be identified as the bottleneck" (section 6).
///
/// Indicators need not sum to 1: those of table 1 sum to 0.98 to 1.09, and for one job they may overlap by more. So a
/// CRI above 0.5 does not bound the others, and only measured indicators are compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "certainty", content = "resources")]
pub enum Verdict {
    /// Certainly this one of all four.
    Sure(Resource),
    /// Certainly this one of those that were measured; others were not.
    OfMeasured(Resource),
    /// One of these, the largest value first; the runs cannot separate them.
    Likely(Vec<Resource>),
    /// The largest value, from single runs: its certainty is unknown.
    Single(Resource),
    /// No indicator is certainly above 0 or, for single runs, above 0.
    Nothing,
}

pub(crate) fn verdict(indicators: &[Indicator], samples: &[Sample]) -> Verdict {
    let mut sorted: Vec<&Indicator> = indicators.iter().collect();
    sorted.sort_by(|a, b| b.value.total_cmp(&a.value));
    let Some(first) = sorted.first() else {
        return Verdict::Nothing;
    };
    if sorted.iter().any(|indicator| indicator.interval.is_none()) {
        return match first.value > 0.0 {
            true => Verdict::Single(first.resource),
            false => Verdict::Nothing,
        };
    }
    let low = |indicator: &Indicator| indicator.interval.map_or(0.0, |interval| interval.low);
    if sorted.iter().all(|indicator| low(indicator) <= 0.0) {
        return Verdict::Nothing;
    }
    let rivals: Vec<Resource> = sorted[1..]
        .iter()
        .filter(|rival| !surely_above(&first.candidates, &rival.candidates, samples))
        .map(|rival| rival.resource)
        .collect();
    match (rivals.is_empty(), sorted.len() == Resource::ALL.len()) {
        (true, true) => Verdict::Sure(first.resource),
        (true, false) => Verdict::OfMeasured(first.resource),
        (false, _) => Verdict::Likely([vec![first.resource], rivals].concat()),
    }
}

/// Whether one indicator is above another one, by the interval of their difference: both come from the same runs, so
/// their own intervals may overlap.
fn surely_above(upper: &Candidates, lower: &Candidates, samples: &[Sample]) -> bool {
    let comparisons = upper.of.len() * lower.of.len();
    let above = |a: &Estimate, b: &Estimate| {
        let interval = a.minus(b).interval(samples, comparisons);
        interval.is_some_and(|interval| interval.low > 0.0)
    };
    let above_lower = |a: &Estimate| match lower.extreme {
        Extreme::Largest => lower.of.iter().all(|b| above(a, b)),
        Extreme::Smallest => lower.of.iter().any(|b| above(a, b)),
    };
    match upper.extreme {
        Extreme::Largest => upper.of.iter().any(above_lower),
        Extreme::Smallest => upper.of.iter().all(above_lower),
    }
}
