//! The answer on a terminal.

use std::fmt::Write as _;

use unfuse_format::counted;
use unfuse_sizing::what_if::{Change, Floor};

use super::{Answer, Operators, warning};
use crate::text::shorten;
use crate::words::percent;

/// The answer as text.
pub fn render(answer: &Answer) -> String {
    let mut text = heading(answer);
    if let Some(warning) = warning(answer.replay_error) {
        let _ = writeln!(text, "{warning}");
    }
    text.push('\n');
    match &answer.estimate {
        Some(found) => {
            let share = found.saves_s / answer.now_s.max(1e-9);
            let _ = writeln!(text, "  now  {:9.2} s  {}", answer.now_s, replayed(answer));
            let _ = writeln!(
                text,
                " then  {:9.2} s  {}",
                found.then_s,
                range(found.then_low_s, found.then_high_s)
            );
            let _ = writeln!(
                text,
                "saves  {:9.2} s  {}, {}",
                found.saves_s,
                range(found.saves_low_s, found.saves_high_s),
                percent(share)
            );
        }
        None => {
            trials(&mut text, answer);
            floors(&mut text, answer);
        }
    }
    for note in &answer.notes {
        let _ = writeln!(text, "note: {note}");
    }
    if answer.estimate.is_some() {
        let _ = writeln!(text, "next: {}", answer.overview());
    }
    text
}

fn heading(answer: &Answer) -> String {
    let what = match (answer.query, &answer.name) {
        (Some(query), Some(name)) => format!("{} (query {query})", shorten(name, 60)),
        (Some(query), None) => format!("query {query}"),
        (None, _) => format!("application {}", shorten(&answer.app, 60)),
    };
    let with = format!(
        "{} on {}",
        counted(answer.tasks, "task"),
        counted(answer.slots, "slot")
    );
    if answer.changes.is_empty() {
        return format!(
            "{what}: {:.2} s, {with}; {}\n",
            answer.measured_s,
            replayed(answer)
        );
    }
    format!("{what}, {with}, if {}\n", answer.changes.join(" and "))
}

/// How far the replay is from the measured time.
fn replayed(answer: &Answer) -> String {
    let direction = if answer.replay_error < 0.0 {
        "shorter"
    } else {
        "longer"
    };
    let share = 100.0 * answer.replay_error.abs();
    let by = match share {
        share if share < 0.05 => "the replay takes as long".to_owned(),
        share => format!("the replay is {share:.1}% {direction}"),
    };
    match answer.changes.is_empty() {
        true => by,
        false => format!("measured {:.2} s; {by}", answer.measured_s),
    }
}

fn range(low: f64, high: f64) -> String {
    format!("{} to {} s", without_sign(low), without_sign(high))
}

/// Two decimals, 0 without a sign.
fn without_sign(seconds: f64) -> String {
    let rounded = (seconds * 100.0).round() / 100.0;
    format!("{:.2}", if rounded == 0.0 { 0.0 } else { rounded })
}

fn trials(text: &mut String, answer: &Answer) {
    let width = answer.each.iter().map(|trial| trial.change.len());
    let width = width.max().unwrap_or(0).max("change".len());
    let _ = writeln!(
        text,
        "  saves              range      then  {:width$}  each by itself",
        "change"
    );
    for trial in &answer.each {
        let found = &trial.estimate;
        let _ = writeln!(
            text,
            "{:>7}  {:>17}  {:>8}  {:width$}  {}",
            without_sign(found.saves_s),
            range(found.saves_low_s, found.saves_high_s),
            without_sign(found.then_s),
            trial.change,
            trial.what
        );
    }
    text.push('\n');
}

fn floors(text: &mut String, answer: &Answer) {
    let _ = writeln!(text, "seconds  floor");
    for bound in &answer.floors {
        let _ = writeln!(text, "{:>7}  {}", without_sign(bound.seconds), bound.what);
    }
}

/// What a change means.
pub(super) fn meaning(change: &Change, operators: &Operators) -> String {
    let text = match change {
        Change::Slots(slots) => return counted(slots, "slot"),
        Change::Executors(executors) => return counted(executors, "executor"),
        Change::Operator { node, .. } => {
            let name = operators
                .get(node)
                .map_or("a node of the plan", String::as_str);
            return name.to_owned();
        }
        Change::CachedScan { node, .. } => return format!("node {node} reads cached rows"),
        Change::WithoutQuery(query) => return format!("query {query} does not run"),
        Change::EndlessSlots => "a slot for each task",
        Change::NoSkew => "tasks of a stage take equally long",
        Change::NoGc => "no waits for garbage collection",
        Change::EndlessDisk => "no waits for disks",
        Change::EndlessNetwork => "no waits for shuffle blocks and the network",
        Change::NoCpuWait => "no waits for a CPU",
        Change::Python(_) => "Python workers",
    };
    text.to_owned()
}

/// What a floor means.
pub(super) fn floor(floor: Floor) -> &'static str {
    match floor {
        Floor::NoSkew => "no skew: the tasks of a stage take equally long",
        Floor::PerfectParallelism => "perfect parallelism: all slots are busy while a stage runs",
        Floor::EndlessSlots => {
            "endless slots: the critical path, with the longest task of each stage"
        }
        Floor::EndlessSlotsNoSkew => "endless slots, no skew",
        Floor::DriverOnly => "the driver alone: tasks take no time",
    }
}
