//! Folded stacks: frames from root to leaf joined by `;`, a space, a count.
//!
//! The full level is the thesis's (chapter 4, "Aggregation"): the stage, then methods, each with its `file@Lline`, and
//! an operator frame wherever an operator's code begins. The operator level ("Simplification") keeps the stage and the
//! operators.

use std::collections::{BTreeMap, HashMap};

use crate::attribute::Attributor;
use crate::family::families;
use crate::operator::{Operator, OperatorKind};
use crate::profile::{Profile, Selection, Weight};
use crate::stacks::{FrameKind, Level, Nesting, Order, Stack, StackFrame};

/// The folded stacks of a selection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoldedStacks {
    /// Stacks and their weights (see [`Profile::unit`]), sorted.
    pub stacks: Vec<(String, Weight)>,
    /// Kinds of the operators in the stacks, by frame.
    pub kinds: BTreeMap<String, OperatorKind>,
}

/// Folds the stacks of a selection.
pub fn folded(profile: &Profile, selection: Selection, level: Level, order: Order) -> FoldedStacks {
    let mut sums: BTreeMap<String, Weight> = BTreeMap::new();
    let mut kinds = BTreeMap::new();
    let mut attributor = Attributor::new(profile);
    let mut families = match order {
        Order::Plan => families(profile),
        Order::Code => HashMap::new(),
    };
    if selection.query.is_some() {
        // The selection contains one run of each.
        families.values_mut().for_each(|family| family.runs = 1);
    }
    let nesting = match order {
        Order::Plan => Nesting::Plan(&families),
        Order::Code => Nesting::Code,
    };
    for (group, weight) in profile.selected(selection) {
        let mut parts = Vec::new();
        for frame in Stack::new(&mut attributor, group, level, nesting).frames {
            let name = clean(&frame.name);
            if frame.kind == FrameKind::Operator && !kinds.contains_key(&name) {
                kinds.insert(name.clone(), Operator::from_name(frame.operator).kind);
            }
            parts.push(name);
            parts.extend(location(&frame));
        }
        sums.entry(parts.join(";")).or_default().add(weight);
    }
    let stacks = sums.into_iter().filter(|(_, weight)| weight.value > 0);
    FoldedStacks {
        stacks: stacks.collect(),
        kinds,
    }
}

/// `file@Lline`, for frames that have one.
fn location(frame: &StackFrame) -> Option<String> {
    (frame.line > 0).then(|| clean(&format!("{}@L{}", frame.file, frame.line)))
}

/// Removes the separator and line breaks, which a frame must not contain.
fn clean(text: &str) -> String {
    text.replace(';', ",").replace(['\n', '\r', '\t'], " ")
}
