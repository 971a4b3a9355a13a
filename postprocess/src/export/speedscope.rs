//! speedscope's own JSON: a profile for each stage and one for the work outside tasks.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::table::Table;
use super::{apps, signed, title};
use crate::attribute::Attributor;
use crate::profile::{Profile, Selection, Weight};
use crate::stacks::{FrameKind, Level, Nesting, Stack, StackFrame};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: &'static str,
    name: String,
    active_profile_index: usize,
    shared: SharedFrames<'a>,
    profiles: Vec<SampledProfile>,
}

#[derive(Serialize)]
struct SharedFrames<'a> {
    frames: Vec<Frame<'a>>,
}

#[derive(Serialize, PartialEq, Eq, Hash)]
struct Frame<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

/// One profile. Its samples are sorted by stack, not by time.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SampledProfile {
    r#type: &'static str,
    name: String,
    unit: &'static str,
    start_value: u8,
    /// Sum of the weights, ns.
    end_value: i64,
    /// Stacks as indices of frames, root first.
    samples: Vec<Vec<usize>>,
    /// CPU time of each sample, ns.
    weights: Vec<i64>,
}

/// Sorts profiles: work outside tasks comes last.
type Key<'a> = (bool, &'a str, Option<i64>, Option<i32>);

/// Writes the samples of a selection, with weights in nanoseconds of CPU time. The profile with the most samples is
/// shown first.
///
/// # Errors
/// If `out` fails.
pub fn speedscope(
    profile: &Profile,
    selection: Selection,
    level: Level,
    mut out: impl Write,
) -> io::Result<()> {
    let mut parts: BTreeMap<Key, BTreeMap<Vec<StackFrame>, Weight>> = BTreeMap::new();
    let mut attributor = Attributor::new(profile);
    for (group, weight) in profile.selected(selection) {
        let mut frames = Stack::new(&mut attributor, group, level, Nesting::Code).frames;
        if group.stage.is_some() {
            // The profile is the stage.
            frames.retain(|frame| frame.kind != FrameKind::Scope);
        }
        let key = (group.stage.is_none(), &*group.app, group.query, group.stage);
        let part = parts.entry(key).or_default();
        part.entry(frames).or_default().add(weight);
    }
    let several_apps = apps(profile, selection).len() > 1;
    let mut frames = Table::new();
    let profiles: Vec<SampledProfile> = parts
        .into_iter()
        .map(|(key, stacks)| sampled(name(key, several_apps), stacks, &mut frames))
        .collect();
    let most = (0..profiles.len())
        .rev()
        .max_by_key(|index| profiles[*index].end_value);
    let file = File {
        schema: SCHEMA,
        exporter: concat!("unfuse ", env!("CARGO_PKG_VERSION")),
        name: title(profile),
        active_profile_index: most.unwrap_or(0),
        shared: SharedFrames {
            frames: frames.into_values(),
        },
        profiles,
    };
    serde_json::to_writer(&mut out, &file)?;
    writeln!(out)
}

fn sampled<'a>(
    name: String,
    stacks: BTreeMap<Vec<StackFrame<'a>>, Weight>,
    frames: &mut Table<Frame<'a>>,
) -> SampledProfile {
    let weights: Vec<i64> = stacks.values().map(|weight| signed(weight.ns)).collect();
    let samples = stacks.into_keys().map(|stack| {
        let indices = stack.into_iter().map(|frame| {
            frames.index(Frame {
                name: frame.name,
                file: frame.file,
                line: Some(frame.line).filter(|line| *line > 0),
            })
        });
        indices.collect()
    });
    SampledProfile {
        r#type: "sampled",
        name,
        unit: "nanoseconds",
        start_value: 0,
        end_value: weights.iter().fold(0, |sum, ns| sum.saturating_add(*ns)),
        samples: samples.collect(),
        weights,
    }
}

fn name((_, app, query, stage): Key, with_app: bool) -> String {
    let part = match (query, stage) {
        (Some(query), Some(stage)) => format!("query {query} stage {stage}"),
        (None, Some(stage)) => format!("stage {stage}"),
        _ => "outside tasks".to_owned(),
    };
    if with_app {
        format!("{app} {part}")
    } else {
        part
    }
}
