//! pprof's `profile.proto`, compressed, for `go tool pprof` and other readers of the format.

mod message;

use std::borrow::Cow;
use std::io::{self, Write};

use flate2::{Compression, GzBuilder};
use prost::Message;

use self::message::{Function, Label, Line, Location, Sample, ValueType};
use super::table::Table;
use super::{Span, signed};
use crate::attribute::Attributor;
use crate::generated::generated_hash;
use crate::profile::{Group, Profile, Selection};
use crate::stacks::{Level, Nesting, Stack, StackFrame};

/// Writes the samples of a selection: `samples` in counts and `cpu` in nanoseconds, which viewers show first. The
/// labels are app, query, stage, operator and thread.
///
/// Generated code has its file's path in the profile directory, so that `-source_path DIR` finds it.
///
/// # Errors
/// If `out` fails.
pub fn pprof(
    profile: &Profile,
    selection: Selection,
    level: Level,
    out: impl Write,
) -> io::Result<()> {
    let mut tables = Tables {
        strings: Table::starting_with(String::new()),
        functions: Table::new(),
        locations: Table::new(),
    };
    let mut attributor = Attributor::new(profile);
    let samples = profile
        .selected(selection)
        .map(|(group, weight)| {
            let stack = Stack::new(&mut attributor, group, level, Nesting::Code);
            Sample {
                label: tables.labels(group, &stack.owner),
                location_id: tables.locations(stack.frames),
                value: vec![signed(weight.samples), signed(weight.ns)],
            }
        })
        .collect();
    let span = Span::new(profile, None);
    let cpu = ValueType {
        r#type: tables.string("cpu"),
        unit: tables.string("nanoseconds"),
    };
    let counts = ValueType {
        r#type: tables.string("samples"),
        unit: tables.string("count"),
    };
    let (location, function, string_table) = tables.into_messages();
    let message = message::Profile {
        sample_type: vec![counts, cpu],
        sample: samples,
        location,
        function,
        string_table,
        time_nanos: span.start_ns,
        duration_nanos: span.duration_ns(),
        period_type: Some(cpu),
        period: span.period_ns,
        default_sample_type: cpu.r#type,
    };
    let mut gzip = GzBuilder::new().write(out, Compression::default());
    gzip.write_all(&message.encode_to_vec())?;
    gzip.finish()?.flush()
}

struct Tables {
    strings: Table<String>,
    /// Name and file, as indices of strings.
    functions: Table<(i64, i64)>,
    locations: Table<Line>,
}

impl Tables {
    fn string(&mut self, text: &str) -> i64 {
        self.strings.index(text.to_owned()) as i64
    }

    fn labels(&mut self, group: &Group, owner: &str) -> Vec<Label> {
        let query = group.query.map(|query| query.to_string());
        let stage = group.stage.map(|stage| stage.to_string());
        [
            ("app", Some(&*group.app).filter(|app| !app.is_empty())),
            ("query", query.as_deref()),
            ("stage", stage.as_deref()),
            ("operator", Some(owner)),
            ("thread", Some(&*group.thread)),
        ]
        .into_iter()
        .filter_map(|(key, value)| {
            Some(Label {
                key: self.string(key),
                str: self.string(value?),
            })
        })
        .collect()
    }

    /// Ids of the frames' locations, leaf first. Ids are indices from 1.
    fn locations(&mut self, frames: Vec<StackFrame>) -> Vec<u64> {
        let ids = frames.into_iter().rev().map(|frame| {
            let name = self.string(&frame.name);
            let filename = self.string(&path(frame.file));
            let line = Line {
                function_id: self.functions.index((name, filename)) as u64 + 1,
                line: i64::from(frame.line),
            };
            self.locations.index(line) as u64 + 1
        });
        ids.collect()
    }

    fn into_messages(self) -> (Vec<Location>, Vec<Function>, Vec<String>) {
        let locations = (1..).zip(self.locations.into_values());
        let functions = (1..).zip(self.functions.into_values());
        (
            locations
                .map(|(id, line)| Location {
                    id,
                    line: vec![line],
                })
                .collect(),
            functions
                .map(|(id, (name, filename))| Function { id, name, filename })
                .collect(),
            self.strings.into_values(),
        )
    }
}

/// `sources/HASH.java` for generated code.
fn path(file: &str) -> Cow<'_, str> {
    match generated_hash(file) {
        Some(hash) => format!("sources/{hash}.java").into(),
        None => file.into(),
    }
}
