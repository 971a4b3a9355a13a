//! Folded stacks: frames from root to leaf joined by `;`, a space, a count.
//!
//! The full level is the thesis's (chapter 4, "Aggregation"): the stage, then methods, each with its
//! `file@Lline`, and an operator frame wherever an operator's code begins. The operator level
//! ("Simplification") leaves the stage and the operators. Operators nest the way rows pass them: from
//! the one that produces to the one that consumes.

use std::collections::BTreeMap;

use unfuse_format::Frame;

use crate::attribute::{Attribution, Owner};
use crate::profile::{Group, Profile, Selection, Weight};
use crate::totals::method_name;

/// How much of a stack is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Stage and operators.
    Operator,
    /// Every frame.
    Full,
}

/// Folded stacks of a selection with their sample counts, sorted.
pub fn folded(profile: &Profile, selection: Selection, level: Level) -> Vec<(String, u64)> {
    let mut sums: BTreeMap<String, Weight> = BTreeMap::new();
    for (group, weight) in profile.selected(selection) {
        sums.entry(fold(profile, group, level))
            .or_default()
            .add(*weight);
    }
    sums.into_iter()
        .map(|(stack, weight)| (stack, weight.samples))
        .filter(|(_, samples)| *samples > 0)
        .collect()
}

fn fold(profile: &Profile, group: &Group, level: Level) -> String {
    let attribution = Attribution::of(profile, group);
    let mut parts = vec![match (group.query, group.stage) {
        (Some(query), Some(stage)) => format!("query {query} stage {stage}"),
        (None, Some(stage)) => format!("stage {stage}"),
        _ => clean(&group.thread),
    }];
    let operator = |node: usize| -> String {
        let plan = attribution
            .execution
            .as_ref()
            .and_then(|key| profile.plans.get(key));
        plan.map_or_else(String::new, |plan| clean(&plan.nodes[node].detail))
    };
    match level {
        Level::Operator => {
            parts.extend(attribution.begins.iter().map(|(_, node)| operator(*node)));
        }
        Level::Full => {
            let frames = profile
                .stacks
                .get(&group.stack)
                .map_or(&[][..], Vec::as_slice);
            let mut begins = attribution.begins.iter().peekable();
            for (index, frame) in frames.iter().enumerate() {
                parts.push(clean(&method_name(frame)));
                parts.extend(location(frame));
                while let Some((_, node)) = begins.next_if(|(at, _)| *at <= index) {
                    parts.push(operator(*node));
                }
            }
        }
    }
    if let Owner::Heading(heading) = attribution.owner
        && group.stage.is_some()
    {
        parts.insert(1, heading.to_owned());
    }
    parts.join(";")
}

/// `file@Lline`, for frames that have one.
fn location(frame: &Frame) -> Option<String> {
    (frame.line > 0).then(|| clean(&format!("{}@L{}", frame.file, frame.line)))
}

/// A frame may hold neither the separator nor a line break.
fn clean(text: &str) -> String {
    text.replace(';', ",").replace(['\n', '\r', '\t'], " ")
}
