//! Lines of Python code that have most of a part.

use std::collections::BTreeMap;

use unfuse_postprocess::WaitReason;

use super::parts::{Cause, PythonLines, Run};
use crate::numbered::Key;

/// The means of the lines of several runs.
pub(super) fn python_means(runs: &[Run]) -> PythonLines {
    let mut means = PythonLines::new();
    let of_runs = runs.iter().flat_map(|run| &run.python);
    for (key, lines) in of_runs {
        let sums = means.entry(key.clone()).or_default();
        for (line, ns) in lines {
            *sums.entry(line.clone()).or_default() += ns / runs.len() as f64;
        }
    }
    means
}

/// The line of Python code that has most of the time of a cause, or most of what it takes more than before:
/// `clean(job.py:12)`. `None` if no line has half of it.
pub(super) fn python_line<'a>(
    cause: &Cause,
    before: &'a PythonLines,
    after: &'a PythonLines,
) -> Option<&'a str> {
    let is_wanted = |key: &Key| match cause {
        Cause::Operator(own) => own == key,
        // A task waits while its worker computes.
        Cause::Wait(WaitReason::Python) => true,
        _ => false,
    };
    let mut changes: BTreeMap<&str, f64> = BTreeMap::new();
    for (lines, sign) in [(before, -1.0), (after, 1.0)] {
        let wanted = lines.iter().filter(|(key, _)| is_wanted(key));
        for (line, ns) in wanted.flat_map(|(_, lines)| lines) {
            *changes.entry(line).or_default() += sign * ns;
        }
    }
    // What went away explains a query that became faster.
    let all: f64 = changes.values().sum();
    let most = changes
        .iter()
        .max_by(|a, b| (*a.1 * all).total_cmp(&(*b.1 * all)));
    match most {
        Some((line, ns)) if ns / all >= 0.5 => Some(*line),
        _ => None,
    }
}
