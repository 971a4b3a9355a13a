//! By how much a measure may grow.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Serialize;

/// The largest one; more is most likely a percentage without its sign.
const MOST: f64 = 100.0;

/// By how much a measure may grow, as a part of what it was: 0.05 is 5%.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Limit(f64);

impl Limit {
    /// As a part of what it was.
    pub fn part(self) -> f64 {
        self.0
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, is_percent) = match text.trim().strip_suffix('%') {
            Some(number) => (number.trim_end(), true),
            None => (text.trim(), false),
        };
        let value: f64 = number
            .parse()
            .ok()
            .filter(|value: &f64| value.is_finite())
            .ok_or_else(|| format!("{text:?} is no percentage; write for example 5% or 0.05"))?;
        if !is_percent && value >= 1.0 {
            return Err(format!(
                "{text:?} has no percent sign; write {value}%, or a part below 1 such as 0.05"
            ));
        }
        let part = if is_percent { value / 100.0 } else { value };
        if !(0.0..=MOST).contains(&part) {
            return Err(format!("{text:?} is not between 0% and {}%", 100.0 * MOST));
        }
        Ok(Self(part))
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the digits that only rounding makes.
        write!(f, "{}%", (self.0 * 1e6).round() / 1e4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_percentages_or_parts() {
        for (text, part) in [
            ("5%", 0.05),
            ("0.05", 0.05),
            (" 7.5 % ", 0.075),
            ("0", 0.0),
            ("150%", 1.5),
        ] {
            let limit: Limit = text.parse().expect(text);
            assert!((limit.part() - part).abs() < 1e-12, "{text}");
        }
        assert_eq!("7%".parse::<Limit>().expect("7%").to_string(), "7%");
        assert_eq!("0.075".parse::<Limit>().expect("7.5%").to_string(), "7.5%");
        for (text, says) in [
            ("5", "write 5%"),
            ("", "is no percentage"),
            ("five%", "is no percentage"),
            ("NaN", "is no percentage"),
            ("-1%", "is not between"),
            ("1e9%", "is not between"),
        ] {
            let error = text.parse::<Limit>().expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
