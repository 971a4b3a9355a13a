//! Tables for people: aligned, and narrow enough for a terminal.

use unfuse_postprocess::{By, Time, Total, Totals, plain};

/// Columns of the text.
const WIDTH: usize = 100;
/// Columns of a full bar.
const BAR: usize = 20;

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
        "  share {}  {:BAR$}  {place}{}\n",
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
        let taken = 10 + figures.len() + BAR + place.len();
        let room = WIDTH.saturating_sub(taken).max(40);
        text += &format!(
            "{:>6.1}% {figures}  {}  {place}{}\n",
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
    text += &format!("{:>6.1}% {}  total\n", 100.0, columns.text(samples, waits));
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
}

impl Columns {
    fn of(totals: &Totals, time: Time) -> Self {
        Self {
            cpu: time != Time::OffCpu,
            waiting: time != Time::Cpu || totals.waits > 0,
        }
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

/// In one line of characters that a terminal shows and does not obey, at most so many.
pub fn shorten(text: &str, room: usize) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let one_line = plain::line(&one_line).into_owned();
    if one_line.chars().count() <= room {
        return one_line;
    }
    one_line.chars().take(room - 1).collect::<String>() + "…"
}
