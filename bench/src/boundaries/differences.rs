//! How the added arithmetic changes the time of each operator.

use std::collections::{BTreeMap, BTreeSet};

use super::HEADINGS;
use super::shapes::Variant;
use crate::stats;

/// CPU time of each operator in one run of a query.
pub(super) type Run = BTreeMap<String, Time>;

/// CPU time, s, and the bounds that unfuse reports for it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Time {
    pub(super) s: f64,
    pub(super) low_s: f64,
    pub(super) high_s: f64,
}

/// Differences between one altered query and the base query, a value for each run.
#[derive(Default)]
pub(super) struct Differences {
    pub(super) added: Vec<f64>,
    pub(super) operators: BTreeMap<String, Vec<f64>>,
    pub(super) held: Held,
}

/// Number of operators' differences whose bounds contain the true value, and number of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) held: usize,
    pub(super) all: usize,
}

impl Held {
    /// Counts the operators of two runs. The truth is 0, and for the altered operator the added time.
    pub(super) fn add(&mut self, base: &Run, altered: &Run, operator: Option<&str>) {
        let operators = |run: &Run| {
            let operators = run.iter().filter(|(name, _)| name.as_str() != HEADINGS);
            operators.map(|(_, time)| time.s).sum::<f64>()
        };
        let added = operators(altered) - operators(base);
        for (name, before) in base.iter().filter(|(name, _)| name.as_str() != HEADINGS) {
            let after = altered.get(name).copied().unwrap_or_default();
            let truth = if operator == Some(name) { added } else { 0.0 };
            let bounds = after.low_s - before.high_s..=after.high_s - before.low_s;
            self.held += usize::from(bounds.contains(&truth));
            self.all += 1;
        }
    }

    /// The share that holds it, with its 95% interval.
    pub(super) fn share(self) -> (f64, [f64; 2]) {
        stats::share(self.held as f64, self.all as f64)
    }
}

impl Differences {
    pub(super) fn add(&mut self, base: &Run, altered: &Run) {
        let runs = self.added.len();
        let sum = |run: &Run| run.values().map(|time| time.s).sum::<f64>();
        self.added.push(sum(altered) - sum(base));
        let names: BTreeSet<&String> = base.keys().chain(altered.keys()).collect();
        for name in names {
            let time = |run: &Run| run.get(name).copied().unwrap_or_default().s;
            let of = self.operators.entry(name.clone()).or_default();
            of.resize(runs, 0.0);
            of.push(time(altered) - time(base));
        }
        for of in self.operators.values_mut() {
            of.resize(runs + 1, 0.0);
        }
    }

    /// Mean of values as a part of the mean of the added time, and half the width of its 95% interval.
    pub(super) fn part(&self, values: &[f64]) -> (f64, f64) {
        let (added, _) = stats::mean_and_half_width(&self.added);
        let share = stats::mean_and_half_width(values).0 / added;
        // The variance of a ratio of means comes from each run's residual from that ratio.
        let left: Vec<f64> = values
            .iter()
            .zip(&self.added)
            .map(|(value, added)| value - share * added)
            .collect();
        (share, stats::mean_and_half_width(&left).1 / added)
    }

    /// The unaltered operator with the largest part of the added time, with that part and half the width of its interval.
    pub(super) fn most<'a>(&'a self, variant: &'a Variant) -> Option<(&'a str, (f64, f64))> {
        self.others(variant)
            .map(|(name, values)| (name.as_str(), self.part(values)))
            .max_by(|a, b| a.1.0.total_cmp(&b.1.0))
    }

    /// The sum by which other operators decrease, as a part of the added time.
    fn less(&self, variant: &Variant) -> f64 {
        let parts = self.others(variant).map(|(_, values)| self.part(values).0);
        parts
            .filter(|part| *part < 0.0)
            .fold(0.0, |sum, part| sum - part)
    }

    fn others<'a>(
        &'a self,
        variant: &'a Variant,
    ) -> impl Iterator<Item = (&'a String, &'a Vec<f64>)> {
        let altered = variant.operator();
        self.operators
            .iter()
            .filter(move |(name, _)| name.as_str() != altered && name.as_str() != HEADINGS)
    }

    pub(super) fn row(&self, variant: &Variant) -> String {
        let percent = |(share, half): (f64, f64)| {
            format!(
                "{:+.1} ({:+.1} to {:+.1})",
                100.0 * share,
                100.0 * (share - half),
                100.0 * (share + half)
            )
        };
        let part_of = |name: &str| {
            let values = self.operators.get(name);
            values.map_or_else(String::new, |values| percent(self.part(values)))
        };
        let (added, half) = stats::mean_and_half_width(&self.added);
        format!(
            "| {} | {} | {} | {} | {added:.2} ± {half:.2} | {} | {} | {} | {:.1} | {:.0} |\n",
            variant.shape,
            variant.place,
            variant.work.name(),
            self.added.len(),
            part_of(variant.operator()),
            part_of(HEADINGS),
            self.most(variant)
                .map_or_else(String::new, |(name, part)| format!(
                    "{name} {}",
                    percent(part)
                )),
            100.0 * self.less(variant),
            100.0 * self.held.share().0,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::shapes::Work;
    use super::*;

    #[test]
    fn parts_are_of_the_added_time() {
        let mut differences = Differences::default();
        for noise in [0.0, 0.1, -0.1] {
            let time = |s| Time {
                s,
                low_s: s - 0.06,
                high_s: s + 0.06,
            };
            let run = |filter: f64, join: f64| {
                Run::from([
                    ("Filter".to_owned(), time(filter)),
                    ("Join".to_owned(), time(join)),
                ])
            };
            let (base, altered) = (run(1.0, 2.0), run(1.9 + noise, 2.1));
            differences.add(&base, &altered);
            differences.held.add(&base, &altered, Some("Filter"));
        }
        assert_eq!(differences.held, Held { held: 6, all: 6 });
        let variant = Variant {
            shape: String::new(),
            place: "Filter.one".to_owned(),
            work: Work::Dependent,
        };
        let (name, (share, half)) = differences.most(&variant).expect("another operator");
        assert_eq!(name, "Join");
        assert!((share - 0.1).abs() < 1e-9 && half < 0.05, "{share} {half}");
        assert_eq!(differences.less(&variant), 0.0);
    }
}
