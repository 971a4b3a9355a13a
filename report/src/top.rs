//! Totals as a table: aligned, and narrow enough for a terminal.

use unfuse_postprocess::{By, Time, Total, Totals};

use crate::text::shorten;

/// Columns of the text.
const WIDTH: usize = 100;
/// Columns of a full bar.
const BAR: usize = 20;

/// What the column of ranges says.
const RANGE_MEANS: &str =
    "range: the share lies in it with 95% certainty, as far as samples can tell";
/// What it says of operators, too.
const OPERATORS_RANGE_MEANS: &str =
    "; code between the lines of two operators\n       is in the ranges of both (docs/accuracy.md)";

/// Totals as text, at most `limit` rows.
pub fn render(totals: &Totals, by: By, time: Time, limit: usize) -> String {
    let mut text = String::new();
    let columns = Columns::of(totals, time);
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
        let name = match (row.heading, row.detail.is_empty()) {
            (true, _) => format!("[{}]", row.operator),
            (false, true) => row.operator.clone(),
            (false, false) if by == By::Query => format!("{}  {}", row.operator, row.detail),
            (false, false) => row.detail.clone(),
        };
        let name = match row.waiting_for {
            Some(what) => format!("[{what}] {name}"),
            None => name,
        };
        let figures = columns.of_row(row);
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
    if shown.len() > limit {
        text += &format!("        … {} more rows (--limit)\n", shown.len() - limit);
    }
    let samples = (totals.samples, totals.cpu_seconds);
    let waits = (totals.waits, totals.waiting_seconds);
    let figures = columns.text(samples, waits);
    text += &format!("{:>6.1}% {}{figures}  total\n", 100.0, columns.no_range());
    if columns.ranged {
        text += RANGE_MEANS;
        if by == By::Operator {
            text += OPERATORS_RANGE_MEANS;
        }
        text += "\n";
    }
    if by == By::Rule {
        let shares = totals
            .standings()
            .map(|(standing, share)| format!("{} {:.2}%", standing.name(), 100.0 * share));
        text += &format!("of the tasks: {}\n", shares.join(", "));
    }
    text
}

/// Which figures a row has.
struct Columns {
    cpu: bool,
    waiting: bool,
    /// Bounds of the shares.
    ranged: bool,
}

impl Columns {
    fn of(totals: &Totals, time: Time) -> Self {
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
        match (row.share_low, row.share_high) {
            (Some(low), Some(high)) if self.ranged => {
                let range = format!("{:.1}-{:.1}%", 100.0 * low, 100.0 * high);
                format!("{range:>11}")
            }
            _ => self.no_range(),
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

    fn of_row(&self, row: &Total) -> String {
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
