//! OpenTelemetry's profiles signal (in development): a `ProfilesData` message as protobuf, as files of
//! the collector hold it. The messages are those of the `opentelemetry-proto` crate.

use std::io::{self, Write};

use indexmap::IndexMap;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::profiles::v1development::{
    self as proto, ProfilesData, ProfilesDictionary, ResourceProfiles, Sample, ScopeProfiles,
    ValueType,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

use super::table::Table;
use super::{Span, apps, index32, signed};
use crate::attribute::Attributor;
use crate::profile::{Group, Profile, Selection, Weight};
use crate::stacks::{FrameKind, Level, Nesting, Stack, StackFrame};

/// Stack and attributes, which identify a sample.
type Identity = (i32, Vec<i32>);

/// Writes a resource for each application, each with two profiles of the same samples: `cpu` in
/// nanoseconds, which viewers show first, and `samples` in counts.
///
/// # Errors
/// If `out` fails.
pub fn otlp(
    profile: &Profile,
    selection: Selection,
    level: Level,
    mut out: impl Write,
) -> io::Result<()> {
    let mut dictionary = Dictionary::new();
    let mut attributor = Attributor::new(profile);
    let mut resources = Vec::new();
    for app in apps(profile, selection) {
        let mut samples: IndexMap<Identity, Weight> = IndexMap::new();
        let of_app = profile.selected(selection).filter(|(g, _)| *g.app == *app);
        for (group, weight) in of_app {
            let stack = Stack::new(&mut attributor, group, level, Nesting::Code);
            let attributes = dictionary.sample_attributes(group, &stack.owner);
            let identity = (dictionary.stack(stack.frames), attributes);
            samples.entry(identity).or_default().add(weight);
        }
        let cpu = dictionary.value_type("cpu", "nanoseconds");
        let counts = dictionary.value_type("samples", "count");
        let span = Span::new(profile, Some(app));
        let of = |sample_type, value: fn(&Weight) -> u64| proto::Profile {
            sample_type: Some(sample_type),
            samples: samples
                .iter()
                .map(|((stack, attributes), weight)| Sample {
                    stack_index: *stack,
                    attribute_indices: attributes.clone(),
                    values: vec![signed(value(weight))],
                    ..Sample::default()
                })
                .collect(),
            time_unix_nano: span.start_ns.max(0) as u64,
            duration_nano: span.duration_ns() as u64,
            period_type: Some(cpu),
            period: span.period_ns,
            ..proto::Profile::default()
        };
        resources.push(ResourceProfiles {
            resource: Some(resource(profile, app)),
            scope_profiles: vec![ScopeProfiles {
                scope: Some(InstrumentationScope {
                    name: "unfuse".to_owned(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    ..InstrumentationScope::default()
                }),
                profiles: vec![of(cpu, |weight| weight.ns), of(counts, |w| w.samples)],
                ..ScopeProfiles::default()
            }],
            ..ResourceProfiles::default()
        });
    }
    let data = ProfilesData {
        resource_profiles: resources,
        dictionary: Some(dictionary.into_message()),
    };
    out.write_all(&data.encode_to_vec())
}

/// The attributes of an application; one outside Spark has OpenTelemetry's name for an unknown service.
fn resource(profile: &Profile, app: &str) -> Resource {
    let process = profile.processes.iter().find(|process| process.app == app);
    let named = process.filter(|process| !process.name.is_empty());
    let name = named.map_or("unknown_service:java", |process| &process.name);
    let mut attributes = vec![("service.name", name)];
    if !app.is_empty() {
        attributes.push(("spark.app.id", app));
    }
    Resource {
        attributes: attributes
            .into_iter()
            .map(|(key, value)| KeyValue {
                key: key.to_owned(),
                value: Some(text(value)),
                ..KeyValue::default()
            })
            .collect(),
        ..Resource::default()
    }
}

fn text(value: &str) -> AnyValue {
    AnyValue {
        value: Some(Value::StringValue(value.to_owned())),
    }
}

/// The tables that all profiles refer to. Index 0 of each is the zero value and means "none".
struct Dictionary {
    strings: Table<String>,
    /// Name and file.
    functions: Table<(i32, i32)>,
    /// Function, line and kind of frame.
    locations: Table<(i32, u32, Option<FrameKind>)>,
    stacks: Table<Vec<i32>>,
    attributes: Table<(i32, Attribute)>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Attribute {
    None,
    Text(String),
    Number(i64),
}

impl Dictionary {
    fn new() -> Self {
        Self {
            strings: Table::starting_with(String::new()),
            functions: Table::starting_with((0, 0)),
            locations: Table::starting_with((0, 0, None)),
            stacks: Table::starting_with(Vec::new()),
            attributes: Table::starting_with((0, Attribute::None)),
        }
    }

    fn string(&mut self, text: &str) -> i32 {
        index32(self.strings.index(text.to_owned()))
    }

    fn value_type(&mut self, name: &str, unit: &str) -> ValueType {
        ValueType {
            type_strindex: self.string(name),
            unit_strindex: self.string(unit),
        }
    }

    fn attribute(&mut self, key: &str, value: Attribute) -> i32 {
        let key = self.string(key);
        index32(self.attributes.index((key, value)))
    }

    fn sample_attributes(&mut self, group: &Group, owner: &str) -> Vec<i32> {
        let stage = group.stage.map(i64::from).map(Attribute::Number);
        [
            ("spark.sql.execution.id", group.query.map(Attribute::Number)),
            ("spark.stage.id", stage),
            ("spark.operator", Some(Attribute::Text(owner.to_owned()))),
            (
                "thread.name",
                Some(Attribute::Text(group.thread.to_string())),
            ),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some(self.attribute(key, value?)))
        .collect()
    }

    /// The index of a stack, whose locations are leaf first.
    fn stack(&mut self, frames: Vec<StackFrame>) -> i32 {
        let locations = frames.into_iter().rev().map(|frame| {
            let name = self.string(&frame.name);
            let file = self.string(frame.file);
            let function = index32(self.functions.index((name, file)));
            let location = (function, frame.line, Some(frame.kind));
            index32(self.locations.index(location))
        });
        let locations = locations.collect();
        index32(self.stacks.index(locations))
    }

    fn into_message(mut self) -> ProfilesDictionary {
        let locations = std::mem::replace(&mut self.locations, Table::new()).into_values();
        let location_table = locations
            .into_iter()
            .map(|(function_index, line, kind)| proto::Location {
                lines: kind
                    .map(|_| proto::Line {
                        function_index,
                        line: i64::from(line),
                        column: 0,
                    })
                    .into_iter()
                    .collect(),
                attribute_indices: kind
                    .map(|kind| self.attribute("profile.frame.type", frame_type(kind)))
                    .into_iter()
                    .collect(),
                ..proto::Location::default()
            })
            .collect();
        let functions = self.functions.into_values().into_iter();
        let stacks = self.stacks.into_values().into_iter();
        let attributes = self.attributes.into_values().into_iter();
        ProfilesDictionary {
            mapping_table: vec![proto::Mapping::default()],
            location_table,
            function_table: functions
                .map(|(name, file)| proto::Function {
                    name_strindex: name,
                    filename_strindex: file,
                    ..proto::Function::default()
                })
                .collect(),
            link_table: vec![proto::Link::default()],
            string_table: self.strings.into_values(),
            attribute_table: attributes.map(attribute_message).collect(),
            stack_table: stacks
                .map(|location_indices| proto::Stack { location_indices })
                .collect(),
        }
    }
}

/// OpenTelemetry's name for the kind of frame, if it has one.
fn frame_type(kind: FrameKind) -> Attribute {
    let word = match kind {
        FrameKind::Java => "jvm",
        FrameKind::Python => "cpython",
        other => other.name(),
    };
    Attribute::Text(word.to_owned())
}

fn attribute_message((key, value): (i32, Attribute)) -> proto::KeyValueAndUnit {
    let value = match value {
        Attribute::None => None,
        Attribute::Text(value) => Some(text(&value)),
        Attribute::Number(number) => Some(AnyValue {
            value: Some(Value::IntValue(number)),
        }),
    };
    proto::KeyValueAndUnit {
        key_strindex: key,
        value,
        unit_strindex: 0,
    }
}
