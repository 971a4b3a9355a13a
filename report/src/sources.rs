//! Generated sources with the samples of each query.

use std::collections::BTreeMap;
use unfuse_format::{ExecutionId, StackId};

use crate::model::{Cost, HotSource, Source};
use unfuse_postprocess::{Profile, generated_hash};
use unfuse_postprocess::{RegionKind, RegionMap};

/// Lines of generated code with samples, by hash.
#[derive(Default)]
pub(super) struct HotLines<'a>(BTreeMap<&'a str, BTreeMap<u32, Cost>>);

impl<'a> HotLines<'a> {
    /// A sample counts at the line of its innermost generated frame.
    pub(super) fn add(&mut self, profile: &'a Profile, stack: StackId, cost: Cost) {
        let frames = profile.stacks.get(&stack).map_or(&[][..], Vec::as_slice);
        let innermost = frames
            .iter()
            .rev()
            .find_map(|frame| Some((generated_hash(&frame.file)?, frame.line)));
        if let Some((hash, line)) = innermost {
            let lines = self.0.entry(hash).or_default();
            lines.entry(line).or_default().add(cost);
        }
    }

    /// The sources, most CPU time first.
    pub(super) fn into_sources(
        self,
        profile: &Profile,
        execution: Option<&ExecutionId>,
    ) -> Vec<HotSource> {
        let source = |(hash, lines): (&str, BTreeMap<u32, Cost>)| {
            let mut cost = Cost::default();
            lines.values().for_each(|line| cost.add(*line));
            let texts = execution.and_then(|execution| profile.generated.get(execution));
            let generated = texts.and_then(|texts| texts.get(hash));
            HotSource {
                hash: hash.to_owned(),
                cost,
                lines: lines
                    .into_iter()
                    .map(|(line, cost)| (line, cost.cpu_ns, cost.samples))
                    .collect(),
                nodes: generated.cloned().unwrap_or_default(),
            }
        };
        let mut sources: Vec<_> = self.0.into_iter().map(source).collect();
        sources.sort_by_key(|source| std::cmp::Reverse(source.cost.cpu_ns));
        sources
    }
}

/// A source with the operator regions of its lines.
pub(super) fn source(class: &str, text: String, map: Option<&RegionMap>) -> Source {
    let mut regions: Vec<(u32, u32, i32, bool)> = Vec::new();
    for line in 1..=text.lines().count() as u32 {
        let Some(region) = map.and_then(|map| map.innermost(line)) else {
            continue;
        };
        let produces = region.kind == RegionKind::Produce;
        match regions.last_mut() {
            Some(run) if run.1 + 1 == line && (run.2, run.3) == (region.id, produces) => {
                run.1 = line;
            }
            _ => regions.push((line, line, region.id, produces)),
        }
    }
    Source {
        class: class.to_owned(),
        text,
        regions,
    }
}
