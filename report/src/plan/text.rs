//! The plan as a tree for a terminal.

use std::fmt::Write as _;

use super::{Answer, PlanNode, Share};
use crate::text::shorten;
use crate::words;

/// Columns of the text.
const WIDTH: usize = 120;
/// Columns that the tree has at least, and the depth up to which it is indented.
const ROOM: usize = 40;
const DEEPEST: usize = 20;
/// Lines of code below an operator, and the share of the query's CPU time that each has at least.
const LINES: usize = 2;
const LEAST: f64 = 0.02;

/// Without waits the column of waits is empty.
const HEAD: [&str; 2] = [
    " cpu s   share       range  wait s          rows    ns/row  operator\n",
    " cpu s   share       range          rows    ns/row  operator\n",
];
const MEANING: &str = "\
*(n): fused into codegen stage n; rows: put out
range: the share lies in it with 95% certainty, as far as samples can tell
ns/row: CPU time for each row that the operator got, or that it put out if it got none
";

/// The plans as text. Nodes that only pass rows on are left out, unless `all` is asked for.
pub fn render(answers: &[Answer], all: bool) -> String {
    let mut text: String = answers
        .iter()
        .map(|answer| plan(answer, all) + "\n")
        .collect();
    text += MEANING;
    text
}

fn plan(answer: &Answer, all: bool) -> String {
    let mut text = match answer.query {
        Some(query) => format!("query {query}: {}\n", shorten(&answer.name, 100)),
        None => format!("{}\n", answer.name),
    };
    let mut sums = vec![format!("{:.2} s of CPU time", answer.cpu_s)];
    if let Some(wall) = answer.wall_s {
        sums.insert(0, format!("{wall:.2} s"));
    }
    if let Some(wait) = answer.wait_s {
        sums.push(format!("{wait:.2} s of waiting"));
    }
    text += &sums.join(", ");
    text += "\n";
    if let Some(error) = &answer.error {
        let _ = writeln!(text, "failed: {}", shorten(error, 100));
    }
    text += "\n";
    let waits = answer.wait_s.is_some();
    text += HEAD[usize::from(!waits)];
    // The depth at which the children of each node stand.
    let mut depths: Vec<(i32, usize)> = Vec::new();
    let (mut hidden, mut hidden_cpu) = (0, 0.0);
    for node in &answer.nodes {
        let depth = depth_of(&depths, node.parent_id);
        if node.passes && !all {
            depths.push((node.node_id, depth));
            hidden += 1;
            hidden_cpu += node.own.cpu_s;
            continue;
        }
        depths.push((node.node_id, depth + 1));
        text += &row(node, depth, waits);
    }
    for heading in &answer.headings {
        let _ = writeln!(
            text,
            "{}  [{}]",
            figures(&heading.own, None, None, waits),
            heading.name
        );
    }
    if hidden > 0 {
        let _ = writeln!(
            text,
            "{hidden_cpu:>6.2}  {} that only pass{} rows on (--all)",
            words::count(hidden, "node"),
            if hidden == 1 { "es" } else { "" }
        );
    }
    text
}

/// Where the children of a node stand; parents come before them.
fn depth_of(depths: &[(i32, usize)], parent: Option<i32>) -> usize {
    let known = depths.iter().rev().find(|(id, _)| Some(*id) == parent);
    known.map_or(0, |(_, depth)| *depth)
}

fn row(node: &PlanNode, depth: usize, waits: bool) -> String {
    let figures = figures(&node.own, node.rows, node.ns_per_row, waits);
    let indent = "  ".repeat(depth.min(DEEPEST));
    let fused = node
        .codegen_stage
        .map_or_else(String::new, |stage| format!("*({stage}) "));
    let name = if node.detail.is_empty() {
        &node.operator
    } else {
        &node.detail
    };
    let taken = figures.chars().count() + 2 + indent.len();
    let room = WIDTH.saturating_sub(taken).max(ROOM);
    let mut text = format!(
        "{figures}  {indent}{}\n",
        shorten(&format!("{fused}{name}"), room)
    );
    let hot = node.lines.iter().filter(|line| line.share >= LEAST);
    for line in hot.take(LINES) {
        let callee = line.callee.iter().map(|callee| format!(" → {callee}"));
        let code = callee.fold(line.text.clone(), |code, callee| code + &callee);
        let share = format!("{:>6}{:>7.1}%", "", 100.0 * line.share);
        let gap = " ".repeat(figures.chars().count().saturating_sub(share.len()) + 2);
        let what = shorten(&format!("{}: {code}", line.place), room);
        text += &format!("{share}{gap}{indent}  {what}\n");
    }
    text
}

fn figures(own: &Share, rows: Option<i64>, ns_per_row: Option<f64>, waits: bool) -> String {
    let range = match own.samples {
        0 => String::new(),
        _ => format!(
            "{:.1}-{:.1}%",
            100.0 * own.share_low,
            100.0 * own.share_high
        ),
    };
    let rows = rows.map_or_else(String::new, |rows| words::thousands(rows.max(0) as usize));
    let per_row = ns_per_row.filter(|_| own.samples > 0);
    let wait = match waits {
        true => format!(" {:>7.2}", own.wait_s),
        false => String::new(),
    };
    format!(
        "{:>6.2} {:>6.1}% {range:>11}{wait} {rows:>13} {:>9}",
        own.cpu_s,
        100.0 * own.share,
        per_row.map_or_else(String::new, words::number),
    )
}
