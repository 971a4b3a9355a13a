//! The window of time of a question.

use std::str::FromStr;

use unfuse_contention::Span;

use crate::ReportError;

/// A window of time. It is parsed from `FROM..TO` in seconds since the first task; either may be omitted. Negative
/// numbers count from the end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    from: Option<Edge>,
    to: Option<Edge>,
}

/// An edge of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Edge {
    /// So many seconds after the first task began or, if negative, before the last one ended.
    Relative(f64),
    /// Ns since the epoch.
    Absolute(i64),
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
                Ok(seconds) if seconds.abs() < 1e9 => Ok(Some(Edge::Relative(seconds))),
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
    /// The window between two times, ns since the epoch.
    pub fn between(start_ns: Option<i64>, end_ns: Option<i64>) -> Self {
        Self {
            from: start_ns.map(Edge::Absolute),
            to: end_ns.map(Edge::Absolute),
        }
    }

    /// The window between two times before the last task ended, s.
    pub fn before_end(start_s: Option<f64>, end_s: Option<f64>) -> Self {
        let edge = |seconds: f64| Edge::Relative(-seconds.min(1e9));
        Self {
            from: start_s.map(edge),
            to: end_s.map(edge),
        }
    }

    /// The span of the window, if tasks ran from `origin_ns` to `end_ns`.
    ///
    /// # Errors
    /// If no task ran in the window.
    pub fn span(self, origin_ns: i64, end_ns: i64) -> Result<Span, ReportError> {
        let ns = |edge: Edge| {
            let (origin, seconds) = match edge {
                Edge::Absolute(ns) => return ns,
                Edge::Relative(seconds) if seconds.is_sign_negative() => (end_ns, seconds),
                Edge::Relative(seconds) => (origin_ns, seconds),
            };
            // At most about 30 years from a time in this century; a window that begins later is empty.
            origin.saturating_add((seconds * 1e9) as i64).max(0)
        };
        let start = self.from.map_or(origin_ns, ns);
        let end = self.to.map_or(end_ns, ns);
        if start >= end || start >= end_ns || end <= origin_ns {
            return Err(ReportError::Refused(format!(
                "no task ran in that window: tasks ran for {:.1} s",
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
    fn times_of_the_clock_are_taken_as_they_are() {
        let span = |window: Window| {
            window
                .span(100 * S, 200 * S)
                .map(|span| (span.start / S, span.end / S))
        };
        assert_eq!(
            span(Window::between(Some(120 * S), None)).unwrap(),
            (120, 200)
        );
        assert_eq!(
            span(Window::between(None, Some(150 * S))).unwrap(),
            (100, 150)
        );
        assert!(span(Window::between(Some(200 * S), None)).is_err());
        assert_eq!(
            span(Window::before_end(Some(60.0), Some(30.0))).unwrap(),
            (140, 170)
        );
        assert_eq!(
            span(Window::before_end(Some(60.0), Some(0.0))).unwrap(),
            (140, 200)
        );
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
