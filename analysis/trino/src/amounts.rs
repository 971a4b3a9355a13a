//! Amounts and times as Trino writes them: `1.62s`, `3449610B`, `2026-11-28T02:04:47.554Z`.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, de};

/// Seconds in a unit of time.
const TIMES: [(&str, f64); 7] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3_600.0),
    ("d", 86_400.0),
];
/// Bytes in a unit of size.
const SIZES: [(&str, f64); 6] = [
    ("B", 1.0),
    ("kB", 1024.0),
    ("MB", 1_048_576.0),
    ("GB", 1_073_741_824.0),
    ("TB", 1_099_511_627_776.0),
    ("PB", 1_125_899_906_842_624.0),
];

/// An amount in the first unit of these that it has; `None` if it is none, negative or without an end.
fn parse(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let amount = digits.parse::<f64>().ok()? * factor;
    (amount.is_finite() && amount >= 0.0).then_some(amount)
}

fn read<'de, D: Deserializer<'de>>(from: D, units: &[(&str, f64)]) -> Result<f64, D::Error> {
    let text = String::deserialize(from)?;
    parse(&text, units).ok_or_else(|| {
        let text: String = text.chars().take(40).collect();
        de::Error::custom(format!("{text:?} is no amount such as 1.5{}", units[0].0))
    })
}

/// Reads a time, s.
pub(crate) fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    read(from, &TIMES)
}

/// Reads a size, bytes.
pub(crate) fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    read(from, &SIZES)
}

/// Reads a time.
pub(crate) fn time<'de, D: Deserializer<'de>>(from: D) -> Result<DateTime<Utc>, D::Error> {
    let text = String::deserialize(from)?;
    let time = DateTime::parse_from_rfc3339(&text).map_err(de::Error::custom)?;
    Ok(time.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_a_unit() {
        for (text, seconds) in [
            ("1.62s", 1.62),
            ("136.98ms", 0.136_98),
            ("0.00ns", 0.0),
            ("1.57m", 94.2),
            ("2.00d", 172_800.0),
        ] {
            let read = parse(text, &TIMES).expect(text);
            assert!((read - seconds).abs() < 1e-9, "{text}: {read}");
        }
        assert_eq!(parse("3449610B", &SIZES), Some(3_449_610.0));
        assert_eq!(parse("1.5kB", &SIZES), Some(1536.0));
        for wrong in ["", "s", "1", "-1s", "infs", "1.5 s", "1e999s", "1B", "nans"] {
            assert_eq!(parse(wrong, &TIMES), None, "{wrong}");
        }
    }
}
