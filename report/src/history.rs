//! The same query in several profiles: the answer of `unfuse history` as data ([`Answer`]) and as text ([`render`]).

use std::fmt::Write as _;

use chrono::DateTime;
use schemars::JsonSchema;
use serde::Serialize;
use unfuse_postprocess::{History, Profile, histories, median};

use crate::ReportError;
use crate::text::shorten;

/// Operators with a smaller part of a query's CPU time are not shown.
const LEAST: f64 = 0.002;

/// The queries of some profiles with their runs.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Answer {
    /// All queries.
    Queries(Vec<History>),
    /// The requested query.
    Query(History),
}

impl Answer {
    /// The queries of some profiles: all, or the one whose fingerprint begins with `fingerprint`, in upper or lower
    /// case.
    ///
    /// # Errors
    /// If no query, or more than one, has such a fingerprint.
    pub fn from_profiles(
        profiles: &[Profile],
        fingerprint: Option<&str>,
    ) -> Result<Self, ReportError> {
        let mut known = histories(profiles);
        let Some(wanted) = fingerprint.map(str::to_lowercase) else {
            return Ok(Self::Queries(known));
        };
        known.retain(|history| history.fingerprint.starts_with(&wanted));
        if known.len() > 1 {
            return Err(ReportError::Refused(format!(
                "{} queries have fingerprints that begin so; give more of it",
                known.len()
            )));
        }
        known.pop().map(Self::Query).ok_or_else(|| {
            ReportError::Refused(
                "no query has that fingerprint; `unfuse history` lists them all".to_owned(),
            )
        })
    }
}

/// The answer as text for a terminal, with at most `limit` queries or runs; the latest runs.
pub fn render(answer: &Answer, limit: usize) -> String {
    match answer {
        Answer::Queries(queries) => list(queries, limit),
        Answer::Query(query) => runs(query, limit),
    }
}

/// All queries, one in each line.
fn list(histories: &[History], limit: usize) -> String {
    let mut text =
        "fingerprint        runs  median cpu s    last  vs median  last run (UTC)    query\n"
            .to_owned();
    for history in histories.iter().take(limit) {
        let Some(last) = history.runs.last() else {
            continue;
        };
        let usual = history.median_cpu_s();
        let _ = writeln!(
            text,
            "{}  {:>5}  {usual:>12.2}  {:>6.2}  {:>9}  {}  {}",
            history.fingerprint,
            history.runs.len(),
            last.cpu_s,
            change(last.cpu_s, usual),
            time(last.started_ms),
            shorten(&history.name, 60),
        );
    }
    if histories.len() > limit {
        let _ = writeln!(text, "… {} more queries (--limit)", histories.len() - limit);
    }
    text
}

/// One query: its runs, then its operators.
fn runs(history: &History, limit: usize) -> String {
    let usual = history.median_cpu_s();
    let mut text = format!(
        "{}  {}\n{} runs, median {usual:.2} s of CPU time\n\n",
        history.fingerprint,
        shorten(&history.name, 100),
        history.runs.len()
    );
    let skipped = history.runs.len().saturating_sub(limit);
    text +=
        "started (UTC)     duration s   cpu s  vs median  application                    query\n";
    if skipped > 0 {
        let _ = writeln!(text, "… {skipped} earlier runs (--limit)");
    }
    for run in &history.runs[skipped..] {
        let duration = run
            .duration_ms
            .map_or_else(|| "-".to_owned(), |ms| format!("{:.1}", ms as f64 / 1000.0));
        let failed = run
            .error
            .as_ref()
            .map_or_else(String::new, |e| format!("failed: {}", shorten(e, 40)));
        let line = format!(
            "{}  {duration:>10}  {:>6.2}  {:>9}  {:<29}  {:>5}  {failed}",
            time(run.started_ms),
            run.cpu_s,
            change(run.cpu_s, usual),
            run.app,
            run.query,
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    operators(&mut text, history);
    text
}

/// The operators of a query over its runs.
fn operators(text: &mut String, history: &History) {
    let usual = history.median_cpu_s();
    *text += "\nmedian cpu s    last  vs median  over the runs         operator\n";
    for (part, times) in &history.operators() {
        let median = median(&mut times.clone());
        let last = times.last().copied().unwrap_or_default();
        if median.max(last) < LEAST * usual {
            continue;
        }
        let node = part
            .node
            .map_or_else(String::new, |node| format!("({node})"));
        let name = if part.detail.is_empty() {
            &part.operator
        } else {
            &part.detail
        };
        let _ = writeln!(
            text,
            "{median:>12.2}  {last:>6.2}  {:>9}  {:<20}  {}",
            change(last, median),
            trend(times, 20),
            shorten(format!("{node} {name}").trim_start(), 60)
        );
    }
}

fn change(value: f64, usual: f64) -> String {
    if usual <= 0.0 {
        return "-".to_owned();
    }
    format!("{:+.0}%", 100.0 * (value / usual - 1.0))
}

fn time(ms: Option<i64>) -> String {
    ms.and_then(DateTime::from_timestamp_millis).map_or_else(
        || format!("{:16}", "-"),
        |time| time.format("%Y-%m-%d %H:%M").to_string(),
    )
}

/// The last values as bars; the largest of all is a full bar.
fn trend(values: &[f64], most: usize) -> String {
    let largest = values.iter().copied().fold(0.0, f64::max);
    let bars = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    values[values.len().saturating_sub(most)..]
        .iter()
        .map(|value| {
            if largest > 0.0 {
                bars[((value / largest * 8.0).ceil() as usize).clamp(1, 8) - 1]
            } else {
                bars[0]
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trends_go_from_zero_to_the_largest() {
        assert_eq!(trend(&[0.0, 1.0, 4.0, 8.0], 20), "▁▁▄█");
        assert_eq!(trend(&[8.0, 1.0], 1), "▁");
        assert_eq!(trend(&[0.0], 5), "▁");
        assert_eq!(trend(&[], 5), "");
    }

    #[test]
    fn changes_are_against_what_is_usual() {
        assert_eq!(change(3.0, 2.0), "+50%");
        assert_eq!(change(1.0, 0.0), "-");
    }
}
