//! Times as they are asked for.

use std::time::Duration;

/// A time such as 30s, 500ms or 2m; without a unit, seconds. The error is for the person.
pub fn duration(text: &str) -> Result<Duration, String> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = &text[..text.len() - unit.len()];
    let seconds = match unit {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("a time such as 30s, 500ms or 2m is expected".to_owned()),
    };
    number
        .parse::<f64>()
        .ok()
        .map(|number| number * seconds)
        .filter(|seconds| (0.001..=604_800.0).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "a time such as 30s, 500ms or 2m is expected, a week at most".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("7"), Ok(Duration::from_secs(7)));
        for wrong in ["", "s", "0s", "3 s", "3d", "-1s", "1.2.3s", "999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
