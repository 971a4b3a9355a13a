//! Numbers and names in sentences.

use unfuse_format::counted;

use crate::text::shorten;

/// `340 ms`, `3.4 s`, `92 s`, `14 min`, `2 h 13 min`.
pub(crate) fn time(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    let minutes = (seconds / 60.0).round();
    match seconds {
        s if s < 0.9995 => format!("{:.0} ms", s * 1e3),
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 599.5 => format!("{s:.0} s"),
        _ if minutes < 120.0 => format!("{minutes:.0} min"),
        _ => format!(
            "{:.0} h {:.0} min",
            (minutes / 60.0).floor(),
            minutes % 60.0
        ),
    }
}

/// `3.2 GiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["bytes", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return if unit == "bytes" {
                count(bytes as usize, "byte")
            } else {
                format!("{value:.1} {unit}")
            };
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

/// A number with its noun: `1 run`, `8 runs`, `12,000 runs`.
pub(crate) fn count(number: usize, one: &str) -> String {
    counted(thousands(number), one)
}

/// With commas between thousands.
pub(crate) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `2.5`, `25`, `1,200`.
pub(crate) fn number(value: f64) -> String {
    match value {
        v if v < 9.95 => format!("{v:.1}"),
        v => thousands(v.min(1e15).round() as usize),
    }
}

/// `48%`, `less than 1%`; `part` is 0 to 1.
pub(crate) fn percent(part: f64) -> String {
    match 100.0 * part {
        p if p > 0.0 && p < 0.5 => "less than 1%".to_owned(),
        p => format!("{p:.0}%"),
    }
}

/// CPU time of a row: `0.4 ns`, `120 ns`, `3.5 µs`, `20 ms`.
pub(crate) fn row_time(ns: f64) -> String {
    match ns {
        ns if ns < 9.95 => format!("{ns:.1} ns"),
        ns if ns < 999.5 => format!("{ns:.0} ns"),
        ns if ns < 9_950.0 => format!("{:.1} µs", ns / 1e3),
        ns if ns < 999_500.0 => format!("{:.0} µs", ns / 1e3),
        ns => format!("{:.1} ms", ns / 1e6),
    }
}

/// A name shortened for use in a sentence.
pub(crate) fn name(name: &str) -> String {
    shorten(name, 60)
}

/// Whole percentages that add up to `sum`, by largest remainders; all 0 if `of` is.
pub(crate) fn percentages(parts: &[u64], of: u64, sum: u32) -> Vec<u32> {
    if of == 0 {
        return vec![0; parts.len()];
    }
    let exact: Vec<f64> = parts
        .iter()
        .map(|ns| f64::from(sum) * *ns as f64 / of as f64)
        .collect();
    let mut whole: Vec<u32> = exact.iter().map(|value| value.floor() as u32).collect();
    let missing = sum.saturating_sub(whole.iter().sum());
    let mut by_remainder: Vec<usize> = (0..parts.len()).collect();
    by_remainder.sort_by(|a, b| {
        (exact[*b].fract())
            .total_cmp(&exact[*a].fract())
            .then(a.cmp(b))
    });
    for index in by_remainder.into_iter().take(missing as usize) {
        whole[index] += 1;
    }
    whole
}

/// A path quoted for a shell.
pub(crate) fn shell(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if !path.is_empty() && path.chars().all(is_plain) {
        return path.to_owned();
    }
    format!("'{}'", path.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_have_units() {
        let times = [
            340_000_000,
            3_400_000_000,
            92_000_000_000,
            840_000_000_000,
            7_980_000_000_000,
        ];
        assert_eq!(
            times.map(time),
            ["340 ms", "3.4 s", "92 s", "14 min", "2 h 13 min"]
        );
        assert_eq!(
            [1, 2048, 3_435_973_837].map(bytes),
            ["1 byte", "2.0 KiB", "3.2 GiB"]
        );
        assert_eq!(count(1, "run"), "1 run");
        assert_eq!(count(12_000, "run"), "12,000 runs");
        assert_eq!([0.001, 0.48].map(percent), ["less than 1%", "48%"]);
        assert_eq!(shell("a/b-1"), "a/b-1");
        assert_eq!(shell("it's $HOME"), r"'it'\''s $HOME'");
    }

    proptest! {
        #[test]
        fn percentages_add_up(parts in prop::collection::vec(0u64..1_000_000_000_000, 1..12), sum in 0u32..=100) {
            let whole: u64 = parts.iter().sum();
            let found = percentages(&parts, whole, sum);
            prop_assert_eq!(found.iter().sum::<u32>(), if whole == 0 { 0 } else { sum });
            for (part, percent) in parts.iter().zip(&found) {
                let exact = f64::from(sum) * *part as f64 / whole.max(1) as f64;
                prop_assert!((exact - f64::from(*percent)).abs() < 1.0 + 1e-9);
            }
        }
    }
}
