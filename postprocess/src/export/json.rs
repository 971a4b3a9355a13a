//! unfuse's own JSON, for programs that have no profile format. `docs/schemas/export.json` describes it.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use super::table::Table;
use crate::attribute::Attributor;
use crate::profile::{Profile, Selection};
use crate::stacks::{Level, Nesting, Stack};
use crate::totals::{By, Total, Totals};

/// Raised by every change that readers must handle; new fields do not raise it.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct File<'a> {
    format: &'static str,
    version: u32,
    writer: &'static str,
    processes: Vec<Process<'a>>,
    operators: Vec<Total>,
    frames: Vec<Frame<'a>>,
    samples: Vec<Sample<'a>>,
}

#[derive(Serialize)]
struct Process<'a> {
    app: &'a str,
    name: &'a str,
    spark: &'a str,
    host: &'a str,
    executor: &'a str,
    pid: u32,
    rate_hz: u32,
    start_ns: i64,
    end_ns: i64,
    samples: u64,
    lost_samples: u64,
}

#[derive(Serialize, PartialEq, Eq, Hash)]
struct Frame<'a> {
    kind: &'static str,
    name: Cow<'a, str>,
    file: &'a str,
    line: u32,
}

#[derive(Serialize)]
struct Sample<'a> {
    app: &'a str,
    query: Option<i64>,
    stage: Option<i32>,
    stage_attempt: Option<i32>,
    thread: &'a str,
    node_id: Option<i32>,
    operator: Cow<'a, str>,
    rule: String,
    samples: u64,
    cpu_ns: u64,
    stack: Vec<usize>,
}

/// Writes totals by operator and the samples of a selection by stack.
///
/// # Errors
/// If `out` fails.
pub fn json(
    profile: &Profile,
    selection: Selection,
    level: Level,
    mut out: impl Write,
) -> io::Result<()> {
    let mut frames = Table::new();
    let mut attributor = Attributor::new(profile);
    let samples = profile
        .selected(selection)
        .map(|(group, weight)| {
            let stack = Stack::new(&mut attributor, group, level, Nesting::Code);
            let indices = stack.frames.into_iter().map(|frame| {
                frames.index(Frame {
                    kind: frame.kind.name(),
                    name: frame.name,
                    file: frame.file,
                    line: frame.line,
                })
            });
            Sample {
                app: &group.app,
                query: group.query,
                stage: group.stage,
                stage_attempt: group.attempt,
                thread: &group.thread,
                node_id: stack.node.map(|node| node.id),
                operator: stack.owner,
                rule: stack.rule.to_string(),
                samples: weight.samples,
                cpu_ns: weight.ns,
                stack: indices.collect(),
            }
        })
        .collect();
    let file = File {
        format: "unfuse",
        version: VERSION,
        writer: concat!("unfuse ", env!("CARGO_PKG_VERSION")),
        processes: processes(profile),
        operators: Totals::new(profile, selection, By::Operator).rows,
        frames: frames.into_values(),
        samples,
    };
    serde_json::to_writer(&mut out, &file)?;
    writeln!(out)
}

fn processes(profile: &Profile) -> Vec<Process<'_>> {
    let rows = profile.processes.iter().map(|row| Process {
        app: &row.app,
        name: &row.name,
        spark: &row.spark,
        host: &row.host,
        executor: &row.executor,
        pid: row.pid,
        rate_hz: row.rate_hz,
        start_ns: row.start_ns,
        end_ns: row.end_ns,
        samples: row.samples,
        lost_samples: row.lost_samples,
    });
    rows.collect()
}
