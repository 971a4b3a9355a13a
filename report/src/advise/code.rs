//! Lines of generated code that do expensive work, and methods that the JVM does not compile.

use std::collections::BTreeMap;

use unfuse_format::{Frame, FrameKind};
use unfuse_postprocess::{Owner, PYTHON_THREAD, generated_hash, line_work, method_name};

use super::facts::{Facts, Stack, node_name, sum};
use super::found::Found;
use crate::what_if::Saving;
use unfuse_sizing::what_if::PartKind;

/// A method that is interpreted for less time may only wait for the compilers, s.
const LONG_INTERPRETED_S: f64 = 2.0;

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
    let mut work: BTreeMap<&'static str, Vec<Stack<'_>>> = BTreeMap::new();
    for line in by_line.into_values() {
        let whole: u64 = line.callees.values().sum();
        let callee = line.callees.iter().max_by_key(|(_, ns)| **ns);
        // As for the lines that `unfuse plan` shows: a method with less than half of them does not say what they do.
        let callee = callee.filter(|(_, ns)| **ns > whole / 2);
        let found = line_work(line.text, callee.map_or("", |(name, _)| name));
        if let Some(found) = found.filter(|found| words.iter().any(|word| word == found)) {
            work.entry(found).or_default().extend(line.stacks);
        }
    }
    let found = work.into_iter().filter_map(|(detail, own)| {
        let subject = node_name(facts.main_node(own.iter())?);
        let (stacks, seconds) = sum(own.into_iter());
        Some(Found {
            subject,
            detail: detail.to_owned(),
            seconds,
            saving: Saving {
                stacks,
                ..Saving::default()
            },
            ..Found::default()
        })
    });
    found.collect()
}

/// Methods of fused code that were only ever interpreted.
pub(super) fn interpreted(facts: &Facts<'_>) -> Vec<Found> {
    let mut methods: BTreeMap<(&str, &str), Vec<Stack<'_>>> = BTreeMap::new();
    for stack in facts.stacks() {
        let Some(at) = generated(stack.frames) else {
            continue;
        };
        let frame = &stack.frames[at];
        if frame.kind == FrameKind::Interpreted {
            let key = (frame.file.as_str(), frame.method.as_str());
            methods.entry(key).or_default().push(stack);
        }
    }
    let found = methods.into_iter().filter_map(|((file, method), own)| {
        let node = facts.main_node(own.iter())?;
        let (name, is_fused) = (node_name(node), node.codegen_stage.is_some());
        let (stacks, seconds) = sum(own.into_iter());
        // The compilers take less time than this to compile a method that is called often.
        let is_long = seconds >= LONG_INTERPRETED_S && is_fused;
        (is_long && !was_compiled(facts, file, method)).then(|| Found {
            subject: format!("the method {method} of {name}"),
            seconds,
            saving: Saving {
                stacks,
                ..Saving::default()
            },
            ..Found::default()
        })
    });
    found.collect()
}

/// Whether the profile has a sample in which a method was compiled.
fn was_compiled(facts: &Facts<'_>, file: &str, method: &str) -> bool {
    let mut frames = facts.profile.stacks.values().flatten();
    frames
        .any(|frame| frame.kind == FrameKind::Java && frame.method == method && frame.file == file)
}

/// Operators that call plain Python functions: all together, as they share the workers.
pub(super) fn python(facts: &Facts<'_>) -> Vec<Found> {
    let nodes = facts.plan.nodes.iter().enumerate();
    let plain = nodes.filter(|(_, node)| node.operator == "BatchEvalPython");
    let plain: Vec<usize> = plain.map(|(at, _)| at).collect();
    // The JVM's part; while the worker computes, the task waits for it.
    let own: Vec<Stack<'_>> = facts
        .stacks()
        .filter(|stack| stack.thread != PYTHON_THREAD)
        .filter(|stack| {
            matches!(stack.attribution.owner, Owner::Node(_, node) if plain.contains(&node))
        })
        .collect();
    let waited = plain
        .iter()
        .map(|at| facts.waited_s(PartKind::Python, Some(*at)));
    let waited_s: f64 = waited.sum();
    let most = facts
        .main_node(own.iter())
        .or_else(|| facts.plan.nodes.get(*plain.first()?));
    let Some(subject) = most.map(node_name) else {
        return Vec::new();
    };
    let (stacks, cpu_s) = sum(own.into_iter());
    vec![Found {
        subject,
        seconds: cpu_s + waited_s,
        saving: Saving {
            stacks,
            waits: vec![PartKind::Python],
            ..Saving::default()
        },
        ..Found::default()
    }]
}

/// The position of the innermost frame of generated code.
fn generated(frames: &[std::sync::Arc<Frame>]) -> Option<usize> {
    frames
        .iter()
        .rposition(|frame| generated_hash(&frame.file).is_some())
}
