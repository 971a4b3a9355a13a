//! The instructions of a work against those kept.

use std::fmt;

use anyhow::{Context, Result};

use super::callgrind::Counts;

/// How much a count may differ from the kept one.
const TOLERANCE: f64 = 0.02;
/// Functions shown where a work needs more instructions.
const SHOWN: usize = 5;

/// One work's counts beside those kept.
pub struct Comparison<'a> {
    work: &'a str,
    now: &'a Counts,
    kept: &'a Counts,
}

impl<'a> Comparison<'a> {
    /// An error if nothing is kept for the work.
    pub fn new(work: &'a str, now: &'a Counts, kept: Option<&'a Counts>) -> Result<Self> {
        let kept = kept.with_context(|| {
            format!("bench/gate.toml has no count of “{work}”: unfuse-bench gate --update")
        })?;
        Ok(Self { work, now, kept })
    }

    /// Whether more instructions were counted than are allowed.
    pub fn has_grown(&self) -> bool {
        self.change() > TOLERANCE
    }

    fn change(&self) -> f64 {
        self.now.instructions as f64 / self.kept.instructions as f64 - 1.0
    }

    /// The functions that grew, most first: name, instructions kept and now.
    fn grown(&self) -> Vec<(&str, u64, u64)> {
        let mut grown: Vec<_> = self
            .now
            .functions
            .iter()
            .map(|(name, now)| {
                let kept = self.kept.functions.get(name).copied().unwrap_or(0);
                (name.as_str(), kept, *now)
            })
            .filter(|(_, kept, now)| now > kept)
            .collect();
        grown.sort_by_key(|(_, kept, now)| std::cmp::Reverse(now - kept));
        grown.truncate(SHOWN);
        grown
    }
}

impl fmt::Display for Comparison<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millions = |count: u64| count as f64 / 1e6;
        let remark = match self.change() {
            change if change > TOLERANCE => "  MORE THAN 2%",
            change if change < -TOLERANCE => "  less: keep it with --update",
            _ => "",
        };
        writeln!(
            to,
            "{:<32} {:>9.1} M instructions, kept {:>9.1} M, {:+.2}%{remark}",
            self.work,
            millions(self.now.instructions),
            millions(self.kept.instructions),
            100.0 * self.change(),
        )?;
        if self.has_grown() {
            for (name, kept, now) in self.grown() {
                let (kept, now) = (millions(kept), millions(now));
                writeln!(to, "    {kept:>9.1} M to {now:>9.1} M  {name}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(instructions: u64, functions: &[(&str, u64)]) -> Counts {
        let functions = functions.iter().map(|(name, of)| ((*name).to_owned(), *of));
        Counts {
            instructions,
            functions: functions.collect(),
        }
    }

    #[test]
    fn a_function_that_grew_is_named() {
        let kept = counts(100_000_000, &[("read", 60_000_000), ("fold", 40_000_000)]);
        let now = counts(
            103_000_000,
            &[
                ("read", 59_000_000),
                ("fold", 40_100_000),
                ("sort", 3_900_000),
            ],
        );
        let comparison = Comparison::new("fold", &now, Some(&kept)).expect("kept");
        assert!(comparison.has_grown());
        assert_eq!(
            comparison.to_string(),
            "fold                                 103.0 M instructions, kept     100.0 M, +3.00%  MORE THAN 2%\n\
             \u{20}         0.0 M to       3.9 M  sort\n\
             \u{20}        40.0 M to      40.1 M  fold\n"
        );
    }

    #[test]
    fn two_percent_are_allowed() {
        let kept = counts(100_000_000, &[]);
        for (instructions, remark) in [
            (101_900_000, ""),
            (97_000_000, "  less: keep it with --update"),
        ] {
            let now = counts(instructions, &[]);
            let comparison = Comparison::new("read", &now, Some(&kept)).expect("kept");
            assert!(!comparison.has_grown());
            assert!(
                comparison
                    .to_string()
                    .trim_end()
                    .ends_with(&format!("%{remark}"))
            );
        }
        assert!(Comparison::new("read", &kept, None).is_err());
    }
}
