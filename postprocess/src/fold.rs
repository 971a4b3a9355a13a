//! Folded stacks: frames from root to leaf joined by `;`, a space, a count.
//!
//! The full level is the thesis's (chapter 4, "Aggregation"): the stage, then methods, each with its
//! `file@Lline`, and an operator frame wherever an operator's code begins. The operator level
//! ("Simplification") leaves the stage and the operators.

use std::collections::BTreeMap;

use crate::attribute::Attributor;
use crate::profile::{Group, Profile, Selection, Weight};
use crate::stacks::{Level, Stack, StackFrame};

/// Folded stacks of a selection with their sample counts (see [`Profile::unit`]), sorted.
pub fn folded(profile: &Profile, selection: Selection, level: Level) -> Vec<(String, u64)> {
    let mut sums: BTreeMap<String, Weight> = BTreeMap::new();
    let mut attributor = Attributor::new(profile);
    for (group, weight) in profile.selected(selection) {
        sums.entry(fold(&mut attributor, group, level))
            .or_default()
            .add(weight);
    }
    sums.into_iter()
        .map(|(stack, weight)| (stack, weight.value))
        .filter(|(_, value)| *value > 0)
        .collect()
}

fn fold(attributor: &mut Attributor<'_>, group: &Group, level: Level) -> String {
    let mut parts = Vec::new();
    for frame in Stack::of(attributor, group, level).frames {
        parts.push(clean(&frame.name));
        parts.extend(location(&frame));
    }
    parts.join(";")
}

/// `file@Lline`, for frames that have one.
fn location(frame: &StackFrame) -> Option<String> {
    (frame.line > 0).then(|| clean(&format!("{}@L{}", frame.file, frame.line)))
}

/// A frame may hold neither the separator nor a line break.
fn clean(text: &str) -> String {
    text.replace(';', ",").replace(['\n', '\r', '\t'], " ")
}
