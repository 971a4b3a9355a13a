//! The answer on a terminal.

use std::fmt::Write as _;

use unfuse_format::counted;

use super::{Advice, Answer};
use crate::text::shorten;
use crate::words::{count, shell};

/// The answer as text, at most `limit` suggestions.
pub fn render(answer: &Answer, limit: usize) -> String {
    let queries = count(answer.looked_at, "query");
    let mut text = match answer.advice.len() {
        0 => format!("Nothing that unfuse knows a change for stands out in {queries}.\n"),
        found => format!(
            "{} for {queries}, what saves most first\n",
            counted(found, "suggestion")
        ),
    };
    for (at, advice) in answer.advice.iter().take(limit).enumerate() {
        text += &suggestion(at + 1, advice);
    }
    let left = answer.advice.len().saturating_sub(limit);
    if left > 0 {
        let _ = writeln!(text, "\n… {} more (--limit)", counted(left, "suggestion"));
    }
    text.push('\n');
    for note in &answer.notes {
        let _ = writeln!(text, "note: {note}");
    }
    if answer.advice.is_empty() {
        let _ = writeln!(text, "next: unfuse why {}", shell(&answer.source));
    }
    text
}

fn suggestion(number: usize, advice: &Advice) -> String {
    let saves = &advice.estimate;
    let runs = match advice.runs {
        1 => String::new(),
        runs => format!(", in each of {runs} runs"),
    };
    format!(
        "\n{number}. {}\n   saves {:.2} s ({:.2} to {:.2}) of {:.2} s of query {}{runs}: {}\n   why:  {}\n   do:   {}\n   risk: {}\n   see:  {}\n",
        advice.title,
        saves.saves_s,
        saves.saves_low_s,
        saves.saves_high_s,
        advice.measured_s,
        advice.query,
        shorten(&advice.name, 60),
        advice.why,
        advice.action,
        advice.risk,
        advice.command,
    )
}
