//! The answer on a terminal.

use std::fmt::Write as _;

use unfuse_format::counted;

use super::{Answer, Part, Runs};
use crate::text::shorten;

/// The answer as text, at most `limit` parts.
pub fn render(answer: &Answer, limit: usize) -> String {
    let mut text = format!("{}\n", shorten(&answer.name, 100));
    let runs = |runs: &Runs| format!("{:.2} s ({})", runs.wall_s, runs_text(&runs.queries));
    match (&answer.before, answer.difference_s) {
        (Some(before), Some(difference)) => {
            let direction = if difference < 0.0 { "faster" } else { "slower" };
            let _ = writeln!(
                text,
                "{} now, {} before: {:.2} s {direction}\n",
                runs(&answer.now),
                runs(before),
                difference.abs()
            );
            text += " seconds             range   before     now  what\n";
        }
        _ => {
            let _ = writeln!(text, "{}\n", runs(&answer.now));
            text += " seconds             range  share  what\n";
        }
    }
    let shown = answer.parts.iter().take(limit);
    for part in shown {
        text += &line(part, answer);
    }
    let left = answer.parts.len().saturating_sub(limit);
    if left > 0 {
        let _ = writeln!(text, "… {left} more parts (--limit)");
    }
    let (sum, what) = match answer.difference_s {
        Some(difference) => (format!("{difference:+8.2}"), "difference"),
        None => (format!("{:8.2}", answer.now.wall_s), "wall time"),
    };
    let _ = writeln!(text, "{sum}  {what}");
    let commands = answer
        .parts
        .iter()
        .take(3)
        .filter_map(|part| part.command.as_deref());
    let mut seen: Vec<&str> = Vec::new();
    for command in commands {
        if !seen.contains(&command) {
            seen.push(command);
            let _ = writeln!(
                text,
                "{}{command}",
                if seen.len() == 1 { "next: " } else { "      " }
            );
        }
    }
    for note in &answer.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

fn line(part: &Part, answer: &Answer) -> String {
    let seconds = |value: Option<f64>| value.map_or_else(String::new, |s| format!("{s:.2}"));
    let compared = answer.difference_s.is_some();
    let (low, high) = (part.seconds_low, part.seconds_high);
    // Without a sign nobody needs one.
    let range = match (high - low >= 0.005, compared) {
        (false, _) => String::new(),
        (true, true) => format!("{low:+.2} to {high:+.2}"),
        (true, false) => format!("{:.2} to {high:.2}", low.max(0.0)),
    };
    if compared {
        format!(
            "{:+8.2}  {range:>16}  {:>7} {:>7}  {}\n",
            part.seconds,
            seconds(part.before_s),
            seconds(part.after_s),
            part.what
        )
    } else {
        let share = 100.0 * part.seconds / answer.now.wall_s.max(1e-9);
        format!(
            "{:8.2}  {range:>16}  {share:>4.0}%  {}\n",
            part.seconds, part.what
        )
    }
}

/// `query 7`, `8 runs`.
fn runs_text(queries: &[i64]) -> String {
    match queries {
        [one] => format!("query {one}"),
        several => counted(several.len(), "run"),
    }
}
