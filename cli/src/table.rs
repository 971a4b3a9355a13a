//! Tables for people: aligned, and narrow enough for a terminal.

use unfuse_postprocess::{By, Totals};

/// Columns of the text.
const WIDTH: usize = 100;
/// Columns of a full bar.
const BAR: usize = 20;

/// Totals as text, at most `limit` rows.
pub fn render(totals: &Totals, by: By, limit: usize) -> String {
    let mut text = String::new();
    let with_place = by == By::Operator;
    let place = if with_place {
        "query  stage  node  "
    } else {
        ""
    };
    text += &format!(
        "  share   samples   cpu s  {:BAR$}  {place}{}\n",
        "",
        title(by)
    );
    let shown: Vec<_> = totals.rows.iter().filter(|row| row.samples > 0).collect();
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
        let room = WIDTH.saturating_sub(27 + BAR + place.len()).max(40);
        text += &format!(
            "{:>6.1}% {:>9} {:>7.2}  {}  {place}{}\n",
            100.0 * row.share,
            row.samples,
            row.cpu_seconds,
            bar(row.share),
            shorten(&name, room),
        );
    }
    if shown.len() > limit {
        text += &format!("        … {} more rows (--limit)\n", shown.len() - limit);
    }
    text += &format!(
        "{:>6.1}% {:>9} {:>7.2}  total\n",
        100.0, totals.samples, totals.cpu_seconds
    );
    text
}

fn title(by: By) -> &'static str {
    match by {
        By::Operator => "operator",
        By::Line => "line",
        By::Method => "method",
        By::Stage => "stage",
        By::Query => "query",
        By::Thread => "thread",
    }
}

fn bar(share: f64) -> String {
    let eighths = (share * BAR as f64 * 8.0).round() as usize;
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    let bar = "█".repeat((eighths / 8).min(BAR)) + part;
    let used = bar.chars().count();
    bar + &" ".repeat(BAR.saturating_sub(used))
}

/// In one line, at most so many characters.
pub fn shorten(text: &str, room: usize) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if one_line.chars().count() <= room {
        return one_line;
    }
    one_line.chars().take(room - 1).collect::<String>() + "…"
}
