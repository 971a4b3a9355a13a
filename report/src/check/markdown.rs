//! The answer as a table for a comment on a pull request.

use std::fmt::Write as _;

use unfuse_format::counted;

use super::answer::{Answer, MissingQuery, Status};
use super::text::{Row, besides, duration, headline, measure, percent, range, rows, word};
use crate::text::shorten;

/// The longest name, in characters.
const ROOM: usize = 80;

/// The answer as Markdown, at most `limit` rows of the table.
pub fn markdown(answer: &Answer, limit: usize) -> String {
    let verdict = if answer.failed { "failed" } else { "passed" };
    let mut text = format!(
        "### unfuse check {verdict}\n\n{}\n",
        escaped(&headline(answer), 400)
    );
    let rows = rows(answer);
    if !rows.is_empty() {
        text += "\n| status | query | measure | change | range | before | now |\n|---|---|---|---:|---:|---:|---:|\n";
    }
    for row in rows.iter().take(limit) {
        let _ = match row {
            Row::Failed(query, error) => {
                writeln!(
                    text,
                    "| **failed** | {} | {} | | | | |",
                    code(query),
                    code(error)
                )
            }
            Row::Compared(query, comparison) => writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} |",
                match comparison.status {
                    Status::Regression => "**regression**",
                    status => word(status),
                },
                code(&query.name),
                escaped(
                    &format!("{}{}", measure(comparison), besides(comparison)),
                    200
                ),
                percent(comparison.seconds.change),
                range(&comparison.seconds),
                duration(comparison.seconds.before),
                duration(comparison.seconds.now),
            ),
        };
    }
    if rows.len() > limit {
        let more = counted(rows.len() - limit, "more row");
        let _ = writeln!(text, "\n{more} (--limit)");
    }
    let plans = answer
        .queries
        .iter()
        .filter(|query| query.status != Status::Ok);
    let plans: Vec<String> = plans
        .filter_map(|query| {
            Some(format!(
                "* {}: {}\n",
                code(&query.name),
                escaped(query.plan.as_ref()?, 200)
            ))
        })
        .take(limit)
        .collect();
    if !plans.is_empty() {
        text.push('\n');
        text += &plans.concat();
    }
    for (queries, side) in [(&answer.only_before, "before"), (&answer.only_now, "now")] {
        if !queries.is_empty() {
            let _ = writeln!(text, "\nOnly {side}: {}", names(queries, limit));
        }
    }
    for note in &answer.notes {
        let _ = writeln!(text, "\nNote: {}", escaped(note, 400));
    }
    text
}

fn names(queries: &[MissingQuery], limit: usize) -> String {
    let mut names: Vec<String> = queries
        .iter()
        .take(limit)
        .map(|query| code(&query.name))
        .collect();
    if queries.len() > limit {
        names.push(format!("{} more", queries.len() - limit));
    }
    names.join(", ")
}

/// A text in the font of code, in which servers link no users and issues.
fn code(text: &str) -> String {
    format!("<code>{}</code>", escaped(text, ROOM))
}

/// A text in one line without any markup: what Markdown or HTML could obey becomes a character reference.
fn escaped(text: &str, room: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for c in shorten(text, room).chars() {
        match c {
            ' ' | '%' | '(' | ')' | '+' | ',' | '-' | '/' | ';' => out.push(c),
            c if c.is_ascii_punctuation() => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}
