//! The Firefox Profiler's processed profile format: a track for each thread, with operators as categories.
//!
//! A frame without a category inherits that of its caller, so everything that an operator does has the operator's: the
//! category (a colour in the timeline) is its name, the subcategory the operator as the plan prints it.

mod message;
mod shared;

use std::collections::HashMap;
use std::io::{self, Write};

use unfuse_format::ProcessRow;

use self::message::{File, Meta, SampleUnits, Samples, Thread};
use self::shared::SharedTables;
use super::{Span, title};
use crate::attribute::Attributor;
use crate::profile::{Group, Profile, Selection, Slice};
use crate::stacks::{FrameKind, Level, Nesting, Stack};

/// A row of samples is split into at most so many; a damaged row may contain any number.
const MOST: u64 = 100_000;

/// Writes the samples of a selection, with weights in milliseconds of CPU time. For each stack the profile has the
/// first time, the last time and the number of its samples in a window; the samples are spread evenly between the two.
///
/// # Errors
/// If `out` fails, or the profile's samples cannot be read again.
pub fn firefox(
    profile: &Profile,
    selection: Selection,
    level: Level,
    mut out: impl Write,
) -> io::Result<()> {
    let slices = profile.timeline(selection).map_err(io::Error::other)?;
    let span = Span::new(profile, None);
    let first = slices.iter().map(|slice| slice.start_ns).min();
    let origin_ns = first.map_or(span.start_ns, |first| first.min(span.start_ns));
    let mut shared = SharedTables::new();
    let mut attributor = Attributor::new(profile);
    let mut known: HashMap<&Group, Option<usize>> = HashMap::new();
    let threads = slices
        .chunk_by(|a, b| a.thread == b.thread)
        .map(|slices| {
            let stacks: Vec<Option<usize>> = slices
                .iter()
                .map(|slice| {
                    *known.entry(&slice.group).or_insert_with_key(|group| {
                        shared.stack(frames(&mut attributor, group, level))
                    })
                })
                .collect();
            thread(profile, slices, &stacks, origin_ns)
        })
        .collect();
    let file = File {
        meta: Meta {
            interval: span.period_ns as f64 / 1e6,
            start_time: origin_ns as f64 / 1e6,
            product: title(profile),
            imported_from: concat!("unfuse ", env!("CARGO_PKG_VERSION")),
            process_type: 0,
            stackwalk: 1,
            oscpu: "Linux x86_64",
            version: 31,
            preprocessed_profile_version: message::VERSION,
            symbolicated: true,
            symbolication_not_supported: true,
            uses_only_one_stack_type: true,
            source_code_is_not_on_searchfox: true,
            sample_units: SampleUnits {
                time: "ms",
                event_delay: "ms",
                thread_cpu_delta: "ns",
            },
            categories: shared.categories(),
            marker_schema: [],
        },
        libs: [],
        pages: [],
        counters: [],
        shared: shared.into_message(),
        threads,
    };
    serde_json::to_writer(&mut out, &file)?;
    writeln!(out)
}

/// Outside tasks the scope is the thread, which has its own track.
fn frames<'a, 'p: 'a>(
    attributor: &mut Attributor<'p>,
    group: &'a Group,
    level: Level,
) -> Stack<'a> {
    let mut stack = Stack::new(attributor, group, level, Nesting::Code);
    if group.stage.is_none() && stack.frames.len() > 1 {
        stack.frames.retain(|frame| frame.kind != FrameKind::Scope);
    }
    stack
}

/// One thread from its slices and the stack of each.
fn thread(profile: &Profile, slices: &[Slice], stacks: &[Option<usize>], origin_ns: i64) -> Thread {
    let key = &slices[0].thread;
    let process = profile
        .processes
        .iter()
        .rfind(|process| *process.host == *key.host && process.pid == key.pid);
    let millis = |ns: i64| ns.saturating_sub(origin_ns) as f64 / 1e6;
    let mut samples: Vec<(i64, Option<usize>, u64)> = Vec::new();
    for (slice, stack) in slices.iter().zip(stacks) {
        samples.extend(spread(slice).map(|(time, ns)| (time, *stack, ns)));
    }
    samples.sort();
    let last_ns = samples.last().map_or(origin_ns, |(time, ..)| *time);
    Thread {
        name: slices[0].group.thread.to_string(),
        process_name: process_name(process, &key.host),
        process_type: "default",
        process_startup_time: millis(process.map_or(origin_ns, |process| process.start_ns)),
        process_shutdown_time: process.map(|process| millis(process.end_ns)),
        register_time: millis(slices[0].start_ns),
        unregister_time: millis(last_ns),
        paused_ranges: [],
        is_main_thread: false,
        pid: format!("{}-{}", key.host, key.pid),
        tid: key.tid,
        samples: Samples {
            length: samples.len(),
            weight_type: "tracing-ms",
            time: samples.iter().map(|(time, ..)| millis(*time)).collect(),
            stack: samples.iter().map(|(_, stack, _)| *stack).collect(),
            weight: samples.iter().map(|(.., ns)| *ns as f64 / 1e6).collect(),
            thread_cpu_delta: samples.iter().map(|(.., ns)| *ns).collect(),
        },
        markers: message::Markers::default(),
    }
}

/// The name with the host, if several executors run there.
fn process_name(process: Option<&ProcessRow>, host: &str) -> String {
    match process.map_or("", |process| &process.executor) {
        "" => format!("java on {host}"),
        "driver" => format!("driver on {host}"),
        executor => format!("executor {executor} on {host}"),
    }
}

/// Start, ns since the epoch, and CPU time, ns, of each of a slice's samples.
fn spread(slice: &Slice) -> impl Iterator<Item = (i64, u64)> {
    let samples = slice.weight.samples.clamp(1, MOST);
    let length = slice.end_ns.saturating_sub(slice.start_ns).max(0);
    let (each, rest) = (slice.weight.ns / samples, slice.weight.ns % samples);
    (0..samples).map(move |index| {
        let offset = i128::from(length) * i128::from(index) / i128::from((samples - 1).max(1));
        let ns = each + u64::from(index < rest);
        (slice.start_ns.saturating_add(offset as i64), ns)
    })
}
