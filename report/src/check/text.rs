//! The answer on a terminal, and the words that all forms share.

use std::fmt::Write as _;

use unfuse_format::counted;

use super::answer::{Answer, Comparison, Measure, MissingQuery, Query, Status};
use super::change::Change;
use crate::text::shorten;
use crate::words::{name, row_time, time};

/// Queries that only one side has, of which the names are printed.
const MOST_NAMES: usize = 10;

/// The answer as text: what is not `ok`, worst first, at most `limit` rows.
pub fn render(answer: &Answer, limit: usize) -> String {
    let mut text = format!("{}\n", headline(answer));
    let rows = rows(answer);
    if !rows.is_empty() {
        text += "\nstatus         change                range   before      now  what\n";
    }
    for row in rows.iter().take(limit) {
        text += &line(row);
    }
    if rows.len() > limit {
        let more = counted(rows.len() - limit, "more row");
        let _ = writeln!(text, "… {more} (--limit)");
    }
    let replanned = answer
        .queries
        .iter()
        .filter(|query| query.status != Status::Ok);
    for (query, plan) in replanned
        .filter_map(|query| Some((query, query.plan.as_ref()?)))
        .take(limit)
    {
        let _ = writeln!(text, "{}: {plan}", name(&query.name));
    }
    for (queries, only) in [
        (&answer.only_before, &answer.base),
        (&answer.only_now, &answer.profile),
    ] {
        if !queries.is_empty() {
            let _ = writeln!(text, "only in {only}: {}", names(queries));
        }
    }
    if let Some(next) = &answer.next {
        let _ = writeln!(text, "next: {next}");
    }
    for note in &answer.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

/// What was compared, and how often which status was found.
pub(super) fn headline(answer: &Answer) -> String {
    let mut found: Vec<String> = Vec::new();
    let failed = answer
        .queries
        .iter()
        .filter(|query| query.status == Status::Failed)
        .count();
    let failed = failed
        + answer
            .only_now
            .iter()
            .filter(|query| query.error.is_some())
            .count();
    if failed > 0 {
        found.push(format!("{} failed", counted(failed, "query")));
    }
    for (status, adjective) in [
        (Status::Regression, ""),
        (Status::NotShown, "not shown"),
        (Status::MoreRows, "with more rows"),
        (Status::BusyHost, "by a busy host"),
        (Status::Improved, "improved"),
    ] {
        let (all, queries) = answer.count(status);
        if all > 0 {
            let what = match adjective {
                "" => counted(all, "regression"),
                adjective => format!("{all} {adjective}"),
            };
            found.push(format!("{what} in {}", counted(queries, "query")));
        }
    }
    if answer.queries.is_empty() && found.is_empty() {
        return format!(
            "nothing to compare yet: {} has no runs of these queries",
            answer.base
        );
    }
    let found = match found.as_slice() {
        [] => "nothing to report".to_owned(),
        found => found.join(", "),
    };
    format!(
        "{found}: {} of both {} and {}, limit +{}, {} at 95% together",
        counted(answer.queries.len(), "query"),
        answer.base,
        answer.profile,
        answer.limit,
        counted(answer.comparisons, "comparison")
    )
}

/// A finding about a query.
pub(super) enum Row<'a> {
    /// It failed, for this reason.
    Failed(&'a str, &'a str),
    /// One of its measures.
    Compared(&'a Query, &'a Comparison),
}

/// The findings that are not `ok`, worst first.
pub(super) fn rows(answer: &Answer) -> Vec<Row<'_>> {
    let failed = answer
        .queries
        .iter()
        .filter_map(|query| Some((&query.name, query.error.as_ref()?)));
    let new = answer
        .only_now
        .iter()
        .filter_map(|query| Some((&query.name, query.error.as_ref()?)));
    let mut rows: Vec<Row<'_>> = failed
        .chain(new)
        .map(|(name, error)| Row::Failed(name, error))
        .collect();
    let mut compared: Vec<(&Query, &Comparison)> = answer
        .queries
        .iter()
        .flat_map(|query| {
            query
                .comparisons
                .iter()
                .map(move |comparison| (query, comparison))
        })
        .filter(|(_, comparison)| comparison.status != Status::Ok)
        .collect();
    compared.sort_by(|(_, a), (_, b)| {
        super::answer::worst_first(a.status, a.seconds.change, b.status, b.seconds.change)
    });
    rows.extend(
        compared
            .into_iter()
            .map(|(query, comparison)| Row::Compared(query, comparison)),
    );
    rows
}

fn line(row: &Row<'_>) -> String {
    let (query, comparison) = match row {
        Row::Failed(query, error) => {
            return format!(
                "{:<11} {:>9} {:>20}  {:>7}  {:>7}  {}: {}\n",
                "failed",
                "",
                "",
                "",
                "",
                name(query),
                shorten(error, 80)
            );
        }
        Row::Compared(query, comparison) => (query, comparison),
    };
    let seconds = &comparison.seconds;
    format!(
        "{:<11} {:>9} {:>20}  {:>7}  {:>7}  {} of {}{}\n",
        word(comparison.status),
        percent(seconds.change),
        range(seconds),
        duration(seconds.before),
        duration(seconds.now),
        measure(comparison),
        name(&query.name),
        besides(comparison),
    )
}

/// The name of a status.
pub(super) fn word(status: Status) -> &'static str {
    match status {
        Status::Failed => "failed",
        Status::Regression => "regression",
        Status::NotShown => "not shown",
        Status::MoreRows => "more rows",
        Status::BusyHost => "busy host",
        Status::Improved => "improved",
        Status::Ok => "ok",
    }
}

/// `wall time`, `CPU time`, `operator Sort (3)`.
pub(super) fn measure(comparison: &Comparison) -> String {
    match (comparison.measure, &comparison.operator) {
        (Measure::Wall, _) => "wall time".to_owned(),
        (Measure::Cpu, _) => "CPU time".to_owned(),
        (Measure::Operator, operator) => format!("operator {}", operator.as_deref().unwrap_or("?")),
    }
}

/// What else the status rests on.
pub(super) fn besides(comparison: &Comparison) -> String {
    match comparison.without_cpu_wait {
        Some(without) if comparison.status == Status::BusyHost => format!(
            "; without waits for a CPU {} before, {} now",
            duration(without.before),
            duration(without.now)
        ),
        _ => for_each_row(comparison),
    }
}

/// `; 21 ns a row before, 43 ns now`, with the rows if their number changed.
fn for_each_row(comparison: &Comparison) -> String {
    let Some(of_row) = &comparison.ns_per_row else {
        return String::new();
    };
    let rows = (1.0 + comparison.seconds.change) / (1.0 + of_row.change);
    let rows = match rows {
        rows if (rows - 1.0).abs() > 0.005 => format!("{rows:.2} times the rows, "),
        _ => String::new(),
    };
    format!(
        "; {rows}{} a row before, {} now",
        row_time(of_row.before),
        row_time(of_row.now)
    )
}

/// `+12.3%`, `+240%`.
pub(super) fn percent(part: f64) -> String {
    match 100.0 * part {
        // Ratios of odd profiles.
        percent if percent >= 1e6 => "> +1e6%".to_owned(),
        percent if percent >= 99.95 => format!("{percent:+.0}%"),
        percent => format!("{percent:+.1}%"),
    }
}

/// `+8.1% to +16.2%`.
pub(super) fn range(change: &Change) -> String {
    match (change.low, change.high) {
        (Some(low), Some(high)) => format!("{} to {}", percent(low), percent(high)),
        _ => "not known".to_owned(),
    }
}

/// Seconds with their unit.
pub(super) fn duration(seconds: f64) -> String {
    // Conversion saturates.
    time((seconds * 1e9) as u64)
}

fn names(queries: &[MissingQuery]) -> String {
    let mut names: Vec<String> = queries
        .iter()
        .take(MOST_NAMES)
        .map(|query| format!("{} ({})", name(&query.name), query.fingerprint))
        .collect();
    if queries.len() > MOST_NAMES {
        names.push(format!("{} more", queries.len() - MOST_NAMES));
    }
    names.join(", ")
}
