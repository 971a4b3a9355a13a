//! A part of the time, as it is asked for.

use std::str::FromStr;

use unfuse_contention::Span;

use crate::ReportError;

/// `FROM..TO` in seconds since the first task, either of which may be left out; negative numbers count from the end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    from: Option<f64>,
    to: Option<f64>,
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "seconds since the first task are expected, such as 10..60, 30.. or -60.. (the last minute)".to_owned()
        };
        let (from, to) = text.split_once("..").ok_or_else(wrong)?;
        let bound = |text: &str| match text.trim().trim_end_matches('s') {
            "" => Ok(None),
            number => match number.parse::<f64>() {
                Ok(seconds) if seconds.abs() < 1e9 => Ok(Some(seconds)),
                _ => Err(wrong()),
            },
        };
        Ok(Self {
            from: bound(from)?,
            to: bound(to)?,
        })
    }
}

impl Window {
    /// The span, where tasks ran from `origin_ns` to `end_ns`.
    ///
    /// # Errors
    /// If no task ran in it.
    pub fn span(self, origin_ns: i64, end_ns: i64) -> Result<Span, ReportError> {
        let at = |seconds: f64| {
            let origin = if seconds.is_sign_negative() {
                end_ns
            } else {
                origin_ns
            };
            // At most some 30 years away from a time of this century; what begins later has nothing in it.
            origin.saturating_add((seconds * 1e9) as i64).max(0)
        };
        let start = self.from.map_or(origin_ns, at);
        let end = self.to.map_or(end_ns, at);
        if start >= end || start >= end_ns || end <= origin_ns {
            return Err(ReportError::Refused(format!(
                "nothing is in that window: tasks ran for {:.1} s",
                (end_ns - origin_ns) as f64 / 1e9
            )));
        }
        Ok(Span { start, end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn span(text: &str) -> Result<(i64, i64), ReportError> {
        let window: Window = text.parse().map_err(ReportError::Refused)?;
        let span = window.span(100 * S, 200 * S)?;
        Ok((span.start / S, span.end / S))
    }

    #[test]
    fn windows_count_from_either_end() {
        assert_eq!(span("10..60").unwrap(), (110, 160));
        assert_eq!(span("30s..").unwrap(), (130, 200));
        assert_eq!(span("..30").unwrap(), (100, 130));
        assert_eq!(span("-60..").unwrap(), (140, 200));
        assert_eq!(span("-60..-30").unwrap(), (140, 170));
        for wrong in ["60..10", "60", "a..b", "..nan", "1e99.."] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }
}
