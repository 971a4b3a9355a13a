//! Durations and sizes as people write them.

use std::time::Duration;

/// What a duration looks like, for messages.
const DURATION: &str = "a duration such as 30s, 5m, 2h or 1d is expected";
/// What a size looks like, for messages.
const SIZE: &str = "a size such as 512MB or 2GB is expected";

/// The longest duration, s: 300 years of it fit into 64 bits of ns.
const MOST_SECONDS: f64 = 9e9;
/// The largest size, bytes.
const MOST_BYTES: f64 = 1e18;

/// A duration: a number and `ms`, `s`, `m`, `h`, `d` or `w`. A number alone counts seconds, as it did in older versions.
///
/// # Errors
/// What is expected, for the user.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = number_and_unit(text).ok_or(DURATION)?;
    let seconds = match unit {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        "w" => 7.0 * 86_400.0,
        _ => return Err(DURATION.to_owned()),
    };
    let seconds = number * seconds;
    if seconds > MOST_SECONDS {
        return Err(format!("{text} is too long; {DURATION}"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// A size in bytes: a number and `KB`, `MB`, `GB` or `TB`, which are powers of 1024 as `KiB` and so on are. Case does not
/// matter, and the `B` may be missing. A number alone counts bytes.
///
/// # Errors
/// What is expected, for the user.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (number, unit) = number_and_unit(text).ok_or(SIZE)?;
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(SIZE.to_owned()),
    };
    let bytes = number * (1u64 << shift) as f64;
    if bytes > MOST_BYTES {
        return Err(format!("{text} is too much; {SIZE}"));
    }
    Ok(bytes as u64)
}

/// A number without sign or exponent, and what follows it.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = text[..text.len() - unit.len()].parse::<f64>().ok()?;
    number.is_finite().then_some((number, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_one_syntax() {
        let seconds = |text: &str| parse_duration(text).map(|duration| duration.as_secs_f64());
        assert_eq!(seconds("30s"), Ok(30.0));
        assert_eq!(seconds("500ms"), Ok(0.5));
        assert_eq!(seconds("1.5m"), Ok(90.0));
        assert_eq!(seconds("2h"), Ok(7200.0));
        assert_eq!(seconds("7d"), Ok(7.0 * 86_400.0));
        assert_eq!(seconds("1w"), Ok(7.0 * 86_400.0));
        assert_eq!(seconds("7"), Ok(7.0));
        let long = "9".repeat(400);
        for wrong in [
            "", "s", "3 s", "3S", "-1s", "1.2.3s", "1e3s", "9999999d", &long,
        ] {
            let message = parse_duration(wrong).unwrap_err();
            assert!(message.contains("such as 30s"), "{wrong}: {message}");
        }
    }

    #[test]
    fn sizes_have_one_syntax() {
        assert_eq!(parse_size("2GB"), Ok(2 << 30));
        assert_eq!(parse_size("1.5g"), Ok(3 << 29));
        assert_eq!(parse_size("500MiB"), Ok(500 << 20));
        assert_eq!(parse_size("64k"), Ok(64 << 10));
        assert_eq!(parse_size("1TB"), Ok(1 << 40));
        assert_eq!(parse_size("1234"), Ok(1234));
        let long = "9".repeat(400);
        for wrong in ["", "GB", "2 GB", "2PB", "-1GB", "2GBs", "9999999TB", &long] {
            let message = parse_size(wrong).unwrap_err();
            assert!(message.contains("such as 512MB"), "{wrong}: {message}");
        }
    }
}
