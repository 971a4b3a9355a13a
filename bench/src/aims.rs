//! Aims for figures, and whether a measurement shows that they are reached.

use std::fmt;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::page::{Figure, after_number};

/// All aims.
pub static AIMS: LazyLock<Vec<Aim>> = LazyLock::new(|| {
    let table: Table = toml::from_str(include_str!("../aims.toml")).expect("aims.toml is tested");
    table.aim
});

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    aim: Vec<Aim>,
}

/// A limit for a figure of a page.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Aim {
    /// The page.
    pub page: String,
    /// The figure's name.
    pub figure: String,
    /// The source of the aim, such as an issue.
    pub source: String,
    /// The limit, in the figure's unit.
    #[serde(flatten)]
    pub limit: Limit,
}

/// A limit.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The figure should not be above it.
    AtMost(f64),
    /// The figure should not be below it.
    AtLeast(f64),
}

/// The result of comparing a figure with its aim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval is within the limit.
    Met,
    /// The whole interval is beyond the limit.
    Missed,
    /// Neither, or there is no interval.
    NotShown,
}

impl Aim {
    /// The aim of a figure, if there is one.
    pub fn find(page: &str, figure: &str) -> Option<&'static Self> {
        AIMS.iter()
            .find(|aim| aim.page == page && aim.figure == figure)
    }

    /// Compares a figure's interval with the aim. The value alone decides nothing.
    pub fn verdict(&self, figure: &Figure) -> Verdict {
        let Some([low, high]) = figure.interval else {
            return Verdict::NotShown;
        };
        let (good, bad) = match self.limit {
            Limit::AtMost(limit) => (high <= limit, low > limit),
            Limit::AtLeast(limit) => (low >= limit, high < limit),
        };
        match (good, bad) {
            (true, _) => Verdict::Met,
            (_, true) => Verdict::Missed,
            _ => Verdict::NotShown,
        }
    }

    /// The limit in words: `at most 200 ns`.
    pub fn text(&self, unit: &str) -> String {
        let (words, limit) = match self.limit {
            Limit::AtMost(limit) => ("at most", limit),
            Limit::AtLeast(limit) => ("at least", limit),
        };
        format!("{words} {limit}{}", after_number(unit))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::NotShown => "not shown",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aim(limit: Limit) -> Aim {
        Aim {
            page: "page".to_owned(),
            figure: "figure".to_owned(),
            source: "issue 0".to_owned(),
            limit,
        }
    }

    #[test]
    fn only_the_whole_interval_decides() {
        let within = |low, high| Figure::new("a", "a", 9.0, "ns", 0).within(Some([low, high]));
        let most = aim(Limit::AtMost(10.0));
        assert_eq!(most.verdict(&within(8.0, 10.0)), Verdict::Met);
        assert_eq!(most.verdict(&within(8.0, 10.1)), Verdict::NotShown);
        assert_eq!(most.verdict(&within(10.0, 11.0)), Verdict::NotShown);
        assert_eq!(most.verdict(&within(10.1, 11.0)), Verdict::Missed);
        let least = aim(Limit::AtLeast(10.0));
        assert_eq!(least.verdict(&within(10.0, 11.0)), Verdict::Met);
        assert_eq!(least.verdict(&within(9.0, 10.0)), Verdict::NotShown);
        assert_eq!(least.verdict(&within(8.0, 9.9)), Verdict::Missed);
    }

    #[test]
    fn one_run_shows_nothing_but_a_count_does() {
        let once = Figure::new("a", "a", 1.0, "", 0);
        assert_eq!(aim(Limit::AtMost(2.0)).verdict(&once), Verdict::NotShown);
        let count = once.exact();
        assert_eq!(aim(Limit::AtMost(2.0)).verdict(&count), Verdict::Met);
        assert_eq!(aim(Limit::AtLeast(2.0)).verdict(&count), Verdict::Missed);
        let unbounded = count.within(Some([f64::NEG_INFINITY, 1.0]));
        assert_eq!(
            aim(Limit::AtMost(2.0)).verdict(&unbounded),
            Verdict::NotShown
        );
    }

    #[test]
    fn the_table_of_aims_can_be_read_and_names_each_figure_once() {
        for (index, aim) in AIMS.iter().enumerate() {
            let again = AIMS[..index]
                .iter()
                .any(|other| other.page == aim.page && other.figure == aim.figure);
            assert!(!again, "{} {} has two aims", aim.page, aim.figure);
        }
        assert!(!AIMS.is_empty());
    }
}
