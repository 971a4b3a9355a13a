//! Lines of generated code that do expensive work, and methods that the JVM does not compile.

use std::collections::{BTreeMap, HashSet};

use unfuse_format::{Frame, FrameKind};
use unfuse_postprocess::{Operator, OperatorKind, generated_hash, line_work, method_name};

use super::facts::{Facts, Stack, node_name, sum};
use super::found::Found;
use crate::what_if::Saving;
use unfuse_sizing::what_if::PartKind;

/// A line of generated code.
#[derive(Default)]
struct Line<'a> {
    text: &'a str,
    /// CPU time by the innermost method, ns.
    callees: BTreeMap<String, u64>,
    stacks: Vec<Stack<'a>>,
}

/// Lines whose work is one of those in `words`: all of them together, by the operator with most of them.
pub(super) fn lines(facts: &Facts<'_>, words: &[String]) -> Vec<Found> {
    // A line's work is that of the method with most of its time, so lines are summed first.
    let mut by_line: BTreeMap<(&str, u32), Line<'_>> = BTreeMap::new();
    for stack in facts.stacks() {
        let Some(at) = generated(stack.frames) else {
            continue;
        };
        let frame = &stack.frames[at];
        let line = by_line.entry((&frame.file, frame.line)).or_default();
        line.text = facts.line(frame);
        let callees = &stack.frames[at + 1..];
        let callee = callees.iter().rfind(|frame| !frame.class.is_empty());
        let ns = line
            .callees
            .entry(callee.map_or_else(String::new, |frame| method_name(frame)))
            .or_default();
        *ns = ns.saturating_add(stack.cost.cpu_ns);
        line.stacks.push(stack);
    }
    let mut work: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut own: Vec<Stack<'_>> = Vec::new();
    for line in by_line.into_values() {
        let callee = line.callees.iter().max_by_key(|(_, ns)| **ns);
        let callee = callee.map_or("", |(name, _)| name);
        let found = line_work(line.text, callee);
        if let Some(found) = found.filter(|found| words.iter().any(|word| word == found)) {
            let ns = work.entry(found).or_default();
            *ns = ns.saturating_add(line.callees.values().sum());
            own.extend(line.stacks);
        }
    }
    let main = work.into_iter().max_by_key(|(_, ns)| *ns);
    let node = facts.main_node(own.iter());
    let Some(((detail, _), node)) = main.zip(node) else {
        return Vec::new();
    };
    let (subject, detail) = (node_name(node), detail.to_owned());
    let (stacks, seconds) = sum(own.into_iter());
    vec![Found {
        subject,
        detail,
        seconds,
        saving: Saving {
            stacks,
            ..Saving::default()
        },
        ..Found::default()
    }]
}

/// Methods of generated code that were only ever interpreted.
pub(super) fn interpreted(facts: &Facts<'_>) -> Vec<Found> {
    fn method(frame: &Frame) -> (&str, &str) {
        (&frame.file, &frame.method)
    }
    // A method that was compiled at last was only new.
    let all = facts.profile.stacks.values().flatten();
    let compiled: HashSet<(&str, &str)> = all
        .filter(|frame| frame.kind == FrameKind::Java && generated_hash(&frame.file).is_some())
        .map(|frame| method(frame))
        .collect();
    let mut methods: BTreeMap<(&str, &str), Vec<Stack<'_>>> = BTreeMap::new();
    for stack in facts.stacks() {
        let Some(at) = generated(stack.frames) else {
            continue;
        };
        let frame = &stack.frames[at];
        if frame.kind == FrameKind::Interpreted && !compiled.contains(&method(frame)) {
            let key = (frame.file.as_str(), frame.method.as_str());
            methods.entry(key).or_default().push(stack);
        }
    }
    let found = methods.into_iter().map(|((_, method), own)| {
        let detail = facts.main_node(own.iter()).map(node_name);
        let (stacks, seconds) = sum(own.into_iter());
        Found {
            subject: format!("the method {method}"),
            detail: detail.unwrap_or_default(),
            seconds,
            saving: Saving {
                stacks,
                ..Saving::default()
            },
            ..Found::default()
        }
    });
    found.collect()
}

/// Operators that call plain Python functions.
pub(super) fn python(facts: &Facts<'_>) -> Vec<Found> {
    let nodes = facts.plan.nodes.iter().enumerate();
    let plain = nodes.filter(|(_, node)| {
        node.operator == "BatchEvalPython"
            && Operator::from_name(&node.operator).kind == OperatorKind::Python
    });
    let found = plain.filter_map(|(at, node)| {
        let (stacks, cpu_s) = facts.of_nodes(&[at]);
        let waited_s = facts.waited_s(PartKind::Python, &[at]);
        (cpu_s + waited_s > 0.0).then(|| Found {
            subject: node_name(node),
            seconds: cpu_s + waited_s,
            saving: Saving {
                stacks,
                waits: vec![PartKind::Python],
                ..Saving::default()
            },
            ..Found::default()
        })
    });
    found.collect()
}

/// The position of the innermost frame of generated code.
fn generated(frames: &[std::sync::Arc<Frame>]) -> Option<usize> {
    frames
        .iter()
        .rposition(|frame| generated_hash(&frame.file).is_some())
}
