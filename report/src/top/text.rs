//! Totals as a table for a terminal.

use std::collections::HashMap;

use unfuse_postprocess::{By, QueryFamily, Time, Total, Totals};

use super::{FamilyRow, Top};
use crate::text::shorten;
use crate::words;

/// Columns of the text.
const WIDTH: usize = 100;
/// Columns of a full bar.
const BAR: usize = 20;
/// Maximum number of queries that are named below a table.
const MOST_NAMES: usize = 8;

/// Explains the column of ranges.
const RANGE_MEANS: &str =
    "range: the share lies in it with 95% certainty, as far as samples can tell";
/// The same for operators.
const OPERATORS_RANGE_MEANS: &str =
    "; code between the lines of two operators\n       is in the ranges of both (docs/accuracy.md)";

/// Explains the column of times for each row.
const ROW_MEANS: &str =
    "ns/row: CPU time for each row that the operator got, or that it put out if it got none";

/// Operators over all runs of their queries, as text of at most `limit` rows.
pub(super) fn render_families(top: &Top, limit: usize) -> String {
    let totals = &top.totals;
    let columns = Columns::new(totals, top.time);
    let (rows, runs) = (top.family_rows(), top.runs());
    let has_rows = rows.iter().any(|row| row.ns_per_row().is_some());
    let shown = rows.iter().take(limit);
    let per_row = shown.filter_map(|row| Some(words::number(row.ns_per_row()?).len() + 2));
    // A row can take milliseconds, so its number can be wide.
    let width = if has_rows {
        per_row.fold(8, usize::max)
    } else {
        0
    };
    let in_column = |text: &str| match has_rows {
        true => format!("{text:>width$}"),
        false => String::new(),
    };
    let mut text = format!(
        "  share {}{}{}  query  runs  node  operator\n",
        columns.range_head(),
        columns.heads(),
        in_column("ns/row"),
    );
    let number = |value: Option<i64>| value.map_or_else(|| "-".to_owned(), |v| v.to_string());
    for row in rows.iter().take(limit) {
        let bounds = row.evidence.bounds(totals.whole, totals.samples);
        let range = columns.range_of(Some(bounds));
        let samples = (row.samples, row.cpu_seconds);
        let figures = columns.text(samples, (row.waits, row.waiting_seconds));
        let per_row = match row.ns_per_row() {
            Some(ns) => in_column(&words::number(ns)),
            None => in_column("-"),
        };
        let of_family = row.family.and_then(|family| runs.get(&family.number));
        let query = of_family.and_then(|runs| runs.first().copied());
        let place = format!(
            "  {:>5}  {:>4}  {:>4}  ",
            number(query.or(row.first.query)),
            number(of_family.map(|runs| runs.len() as i64)),
            number(row.first.node_id.map(i64::from)),
        );
        let taken = 8 + range.chars().count() + figures.len() + per_row.len() + place.len();
        let room = WIDTH.saturating_sub(taken).max(40);
        let share = 100.0 * row.share;
        let name = shorten(&name(row.first, By::Operator), room);
        text += &format!("{share:>6.1}% {range}{figures}{per_row}{place}{name}\n");
    }
    text += &more(rows.len(), limit);
    text += &columns.total(totals, &in_column(""));
    text += &names(rows.iter().take(limit), &runs);
    text += &columns.meaning(By::Operator);
    if has_rows {
        text += ROW_MEANS;
        text += "\n";
    }
    text
}

/// The names of the queries in some rows.
fn names<'a>(
    rows: impl Iterator<Item = &'a FamilyRow<'a>>,
    runs: &HashMap<usize, Vec<i64>>,
) -> String {
    let mut known: Vec<(usize, String)> = Vec::new();
    let mut is_cut = false;
    for row in rows {
        let of_family = |family: &'a QueryFamily| Some((family, runs.get(&family.number)?));
        let Some((family, [query, more @ ..])) = row
            .family
            .and_then(of_family)
            .map(|(family, runs)| (family, runs.as_slice()))
        else {
            continue;
        };
        if known.iter().any(|(number, _)| *number == family.number) {
            continue;
        }
        if known.len() == MOST_NAMES {
            is_cut = true;
            break;
        }
        let runs = match more {
            [] => String::new(),
            _ => format!("  ({})", words::count(more.len() + 1, "run")),
        };
        let name = shorten(&family.name, 80);
        known.push((family.number, format!("query {query}: {name}{runs}\n")));
    }
    let mut text: String = known.into_iter().map(|(_, line)| line).collect();
    if is_cut {
        text += "        … more queries (--by query)\n";
    }
    text
}

/// The line with the number of rows that are not shown.
fn more(rows: usize, limit: usize) -> String {
    match rows.saturating_sub(limit) {
        0 => String::new(),
        more => format!("        … {} (--limit)\n", words::count(more, "more row")),
    }
}

/// An operator, a heading in brackets, or the value of another key.
fn name(row: &Total, by: By) -> String {
    let name = match (row.heading, row.detail.is_empty()) {
        (true, _) => format!("[{}]", row.operator),
        (false, true) => row.operator.clone(),
        (false, false) if by == By::Query => format!("{}  {}", row.operator, row.detail),
        (false, false) => row.detail.clone(),
    };
    match row.waiting_for {
        Some(what) => format!("[{what}] {name}"),
        None => name,
    }
}

/// Totals as text of at most `limit` rows.
pub(super) fn render(totals: &Totals, by: By, time: Time, limit: usize) -> String {
    let mut text = String::new();
    let columns = Columns::new(totals, time);
    let with_place = by == By::Operator;
    let place = if with_place {
        "query  stage  node  "
    } else {
        ""
    };
    text += &format!(
        "  share {}{}  {:BAR$}  {place}{}\n",
        columns.range_head(),
        columns.heads(),
        "",
        title(by)
    );
    let shown: Vec<_> = totals.rows.iter().filter(|row| row.share > 0.0).collect();
    for row in shown.iter().take(limit) {
        let number = |value: Option<i64>| value.map_or_else(|| "-".to_owned(), |v| v.to_string());
        let place = if with_place {
            format!(
                "{:>5}  {:>5}  {:>4}  ",
                number(row.query),
                number(row.stage.map(i64::from)),
                number(row.node_id.map(i64::from)),
            )
        } else {
            String::new()
        };
        let name = name(row, by);
        let figures = columns.row(row);
        let range = columns.range(row);
        let taken = 10 + range.len() + figures.len() + BAR + place.len();
        let room = WIDTH.saturating_sub(taken).max(40);
        text += &format!(
            "{:>6.1}% {range}{figures}  {}  {place}{}\n",
            100.0 * row.share,
            bar(row.share),
            shorten(&name, room),
        );
    }
    text += &more(shown.len(), limit);
    text += &columns.total(totals, "");
    text += &columns.meaning(by);
    if by == By::Rule {
        let shares = totals
            .standings()
            .map(|(standing, share)| format!("{} {:.2}%", standing.name(), 100.0 * share));
        text += &format!("of the tasks: {}\n", shares.join(", "));
    }
    text
}

/// The columns of figures.
struct Columns {
    cpu: bool,
    waiting: bool,
    /// Bounds of the shares.
    ranged: bool,
}

impl Columns {
    fn new(totals: &Totals, time: Time) -> Self {
        Self {
            cpu: time != Time::OffCpu,
            waiting: time != Time::Cpu || totals.waits > 0,
            ranged: time == Time::Cpu && totals.samples > 0,
        }
    }

    fn range_head(&self) -> &'static str {
        if self.ranged { "      range" } else { "" }
    }

    fn range(&self, row: &Total) -> String {
        self.range_of(row.share_low.zip(row.share_high))
    }

    fn range_of(&self, bounds: Option<(f64, f64)>) -> String {
        match bounds {
            Some((low, high)) if self.ranged => {
                let range = format!("{:.1}-{:.1}%", 100.0 * low, 100.0 * high);
                format!("{range:>11}")
            }
            _ => self.no_range(),
        }
    }

    /// The last line; `room` fills the column of rows.
    fn total(&self, totals: &Totals, room: &str) -> String {
        let samples = (totals.samples, totals.cpu_seconds);
        let figures = self.text(samples, (totals.waits, totals.waiting_seconds));
        format!(
            "{:>6.1}% {}{figures}{room}  total\n",
            100.0,
            self.no_range()
        )
    }

    /// Explains the ranges.
    fn meaning(&self, by: By) -> String {
        let operators = match by {
            By::Operator => OPERATORS_RANGE_MEANS,
            _ => "",
        };
        match self.ranged {
            true => format!("{RANGE_MEANS}{operators}\n"),
            false => String::new(),
        }
    }

    fn no_range(&self) -> String {
        " ".repeat(self.range_head().len())
    }

    fn heads(&self) -> &'static str {
        match (self.cpu, self.waiting) {
            (true, false) => "  samples   cpu s",
            (true, true) => "  samples   cpu s  wait s",
            (false, _) => "    waits  wait s",
        }
    }

    fn row(&self, row: &Total) -> String {
        let samples = (row.samples, row.cpu_seconds);
        self.text(samples, (row.waits, row.waiting_seconds))
    }

    fn text(&self, (samples, cpu_s): (u64, f64), (waits, waiting_s): (u64, f64)) -> String {
        match (self.cpu, self.waiting) {
            (true, false) => format!("{samples:>9} {cpu_s:>7.2}"),
            (true, true) => format!("{samples:>9} {cpu_s:>7.2} {waiting_s:>7.2}"),
            (false, _) => format!("{waits:>9} {waiting_s:>7.2}"),
        }
    }
}

fn title(by: By) -> &'static str {
    match by {
        By::Operator => "operator",
        By::Line => "line",
        By::Method => "method",
        By::Stage => "stage",
        By::Query => "query",
        By::Thread => "thread",
        By::Rule => "rule",
    }
}

fn bar(share: f64) -> String {
    let eighths = (share * BAR as f64 * 8.0).round() as usize;
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    let bar = "█".repeat((eighths / 8).min(BAR)) + part;
    let used = bar.chars().count();
    bar + &" ".repeat(BAR.saturating_sub(used))
}
