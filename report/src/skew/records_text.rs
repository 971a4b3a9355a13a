//! Slow records and results, as text for a terminal.

use std::fmt::Write;

use unfuse_provenance::SEVERAL;

use super::records::{Place, Records, SlowRecord, SlowResult};
use super::text::{WIDTH, percent, seconds};
use crate::text::shorten;
use unfuse_format::counted;

/// The column in which the description of a record begins.
const INDENT: usize = 32;

pub(super) fn render(text: &mut String, records: &Records) {
    let _ = writeln!(
        text,
        "Records: {} from {}, followed through {}.",
        counted(records.results, "result"),
        counted(records.inputs, "input"),
        counted(records.tasks, "task")
    );
    if !records.slow_records.is_empty() {
        text.push_str(
            "\n      took  of its task    saves  slow records, each in the stage where it took longest\n",
        );
    }
    for record in &records.slow_records {
        slow(text, record);
    }
    if !records.slow_results.is_empty() {
        text.push_str("\n      took  slow results, each with its slowest path\n");
    }
    for result in &records.slow_results {
        way(text, result);
    }
}

fn slow(text: &mut String, record: &SlowRecord) {
    let or_not = |part: Option<String>| part.unwrap_or_else(|| "-".to_owned());
    let _ = writeln!(
        text,
        "{:>10}  {:>11}  {:>7}  {}",
        seconds(1e3 * record.seconds),
        or_not(record.share_of_task.map(percent)),
        or_not(record.saves_seconds.map(|saved| seconds(1e3 * saved))),
        shorten(&content(&record.at), WIDTH - INDENT - 2),
    );
    let _ = writeln!(
        text,
        "{:INDENT$}  {}",
        "",
        shorten(&place(&record.at), WIDTH - INDENT - 2)
    );
    let lines: Vec<String> = record
        .lines
        .iter()
        .map(|line| format!("{} {}", percent(line.share), line.line))
        .collect();
    if !lines.is_empty() {
        let lines = format!("at {}", lines.join(", "));
        let _ = writeln!(
            text,
            "{:INDENT$}  {}",
            "",
            shorten(&lines, WIDTH - INDENT - 2)
        );
    }
}

fn way(text: &mut String, result: &SlowResult) {
    let made = match &result.content {
        Some(content) => quoted(content, result.cut),
        None => format!("record {}", result.position),
    };
    let made = format!(
        "{made} (stage {}, partition {})",
        result.stage, result.partition
    );
    let _ = writeln!(
        text,
        "{:>10}  {}",
        seconds(1e3 * result.seconds),
        shorten(&made, WIDTH - 12)
    );
    let step = format!(
        "{} of it in stage {}: {}",
        seconds(1e3 * result.slowest_step_seconds),
        result.slowest_step.stage,
        content(&result.slowest_step)
    );
    let _ = writeln!(text, "{:12}{}", "", shorten(&step, WIDTH - 12));
    let input = &result.expensive_input;
    let from = format!(
        "from {}; the slowest path begins with {}, {}",
        counted(result.inputs, "input"),
        content(input),
        place(input)
    );
    let _ = writeln!(text, "{:12}{}", "", shorten(&from, WIDTH - 12));
}

fn content(at: &Place) -> String {
    match &at.content {
        Some(content) => quoted(content, at.cut),
        None if at.position == SEVERAL => "made of several records".to_owned(),
        None => format!("record {} of partition {}", at.position, at.partition),
    }
}

fn quoted(content: &str, cut: bool) -> String {
    format!("{content}{}", if cut { "…" } else { "" })
}

fn place(at: &Place) -> String {
    let mut place = format!("stage {}, partition {}", at.stage, at.partition);
    match (&at.file, at.offset, at.row) {
        (Some(file), Some(offset), _) => {
            let _ = write!(place, ", {file} at byte {offset}");
        }
        (Some(file), None, Some(row)) if at.file_start == 0 => {
            let _ = write!(place, ", {file} row {row}");
        }
        (Some(file), None, Some(row)) => {
            let _ = write!(place, ", {file} row {row} after byte {}", at.file_start);
        }
        _ if at.position == SEVERAL => {
            let _ = write!(place, ", after everything it read");
        }
        _ => {
            let _ = write!(place, ", record {} of {}", at.position, from(at.kind));
        }
    }
    place
}

fn from(kind: &str) -> &str {
    match kind {
        "shuffle" => "what it read from a shuffle",
        "cached" => "what it read from a cache",
        _ => "what it read",
    }
}
