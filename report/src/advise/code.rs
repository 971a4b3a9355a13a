//! Expensive operators, expensive methods that generated code calls, methods that the JVM does not compile, and Python.

use std::collections::BTreeMap;
use std::sync::Arc;

use unfuse_format::{Frame, FrameKind};
use unfuse_postprocess::{PYTHON_THREAD, PlanNode, generated_hash, line_name, python_line};

use super::facts::{Facts, Stack, node_name, sum};
use super::found::Found;
use super::rules::Rule;
use crate::calls::has_call;
use crate::what_if::{Remedy, Saving, columns};
use crate::words::count;
use unfuse_sizing::what_if::PartKind;

/// A method that is interpreted for less time may only wait for the compilers, s.
const LONG_INTERPRETED_S: f64 = 2.0;

/// Spark does not fuse operators of more columns than this by default.
const MOST_FUSED_COLUMNS: usize = 100;

/// Code that generated code calls, by how the names of its methods begin: all of it, by the operator with most of it.
pub(super) fn calls(facts: &Facts<'_>, names: &[String]) -> Vec<Found> {
    let own = facts.stacks().filter(|stack| {
        let from = generated(stack.frames);
        from.is_some_and(|at| has_call(&stack.frames[at + 1..], names))
    });
    work(facts, own.collect())
}

/// Methods that open files, by how their names begin: all of it, by the operator with most of it.
pub(super) fn opening(facts: &Facts<'_>, names: &[String]) -> Vec<Found> {
    let own = facts.stacks().filter(|stack| has_call(stack.frames, names));
    let mut found = work(facts, own.collect());
    // Not bytes: from Spark 4.1 on, those of vectored reads do not count as a task's input.
    let read: Vec<i64> = facts
        .stages
        .values()
        .flat_map(|tasks| tasks.iter().map(|task| task.input_records))
        .filter(|read| *read > 0)
        .collect();
    if let (Some(found), tasks @ 1..) = (found.first_mut(), read.len()) {
        let sum = read
            .iter()
            .fold(0i64, |sum, read| sum.saturating_add(*read));
        found.detail = format!(
            ", and {} read {} each on average",
            count(tasks, "task"),
            count(sum as usize / tasks, "row")
        );
    }
    found
}

/// Operators whose names begin so: all together, by the one with most CPU time.
pub(super) fn operators(facts: &Facts<'_>, names: &[String]) -> Vec<Found> {
    of_nodes(facts, |node| {
        names.iter().any(|name| node.operator.starts_with(name))
    })
}

/// The work of some nodes, by the one with most of it.
fn of_nodes(facts: &Facts<'_>, is_own: impl Fn(&PlanNode) -> bool) -> Vec<Found> {
    let nodes = facts.plan.nodes.iter().enumerate();
    let own: Vec<usize> = nodes
        .filter(|(_, node)| is_own(node))
        .map(|(at, _)| at)
        .collect();
    work(facts, facts.of_nodes(&own).collect())
}

/// The work of some stacks, by the operator with most of it.
fn work(facts: &Facts<'_>, own: Vec<Stack<'_>>) -> Vec<Found> {
    let Some(subject) = facts.main_node(own.iter()).map(node_name) else {
        return Vec::new();
    };
    let (stacks, cpu_s) = sum(own.into_iter());
    vec![Found {
        subject,
        seconds: facts.with_cpu_waits(cpu_s),
        remedy: Remedy::Saving(Saving {
            stacks,
            ..Saving::default()
        }),
        ..Found::default()
    }]
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
        let (stacks, cpu_s) = sum(own.into_iter());
        // The compilers take less time than this to compile a method that is called often.
        let is_long = cpu_s >= LONG_INTERPRETED_S && is_fused;
        (is_long && !was_compiled(facts, file, method)).then(|| Found {
            subject: format!("the method {method} of {name}"),
            seconds: facts.with_cpu_waits(cpu_s),
            remedy: Remedy::Saving(Saving {
                stacks,
                ..Saving::default()
            }),
            ..Found::default()
        })
    });
    found.collect()
}

/// Operators that Spark can fuse into generated loops, if it fused none of the query: all together, by the one with most CPU time. Rows
/// of many columns are a reason not to, and fusing them saved nothing where it was tried.
pub(super) fn not_fused(facts: &Facts<'_>, rule: &Rule) -> Vec<Found> {
    let is_wide = |node: &PlanNode| columns(&node.detail) > MOST_FUSED_COLUMNS;
    let mut nodes = facts.plan.nodes.iter();
    if nodes.any(|node| node.codegen_stage.is_some() || is_wide(node)) {
        return Vec::new();
    }
    of_nodes(facts, |node| is_about(rule, &node.operator, &node.detail))
}

/// Whether a rule is about an operator with this text in the plan.
pub(super) fn is_about(rule: &Rule, operator: &str, detail: &str) -> bool {
    rule.operators.iter().any(|name| name == operator)
        && !rule.without.iter().any(|text| detail.contains(text))
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
        .of_nodes(&plain)
        .filter(|stack| stack.thread != PYTHON_THREAD)
        .collect();
    let waited = plain.iter().map(|at| facts.waited_s(PartKind::Python, *at));
    let waited_s: f64 = waited.sum();
    let most = facts
        .main_node(own.iter())
        .or_else(|| facts.plan.nodes.get(*plain.first()?));
    let Some(subject) = most.map(node_name) else {
        return Vec::new();
    };
    let (stacks, cpu_s) = sum(own.into_iter());
    let detail = python_line_of(facts, &plain);
    vec![Found {
        subject,
        detail,
        seconds: facts.with_cpu_waits(cpu_s) + waited_s,
        remedy: Remedy::Saving(Saving {
            stacks,
            waits: vec![PartKind::Python],
            ..Saving::default()
        }),
        ..Found::default()
    }]
}

/// `; most of the workers' time is in clean(job.py:12)`; empty if no line has half of it.
fn python_line_of(facts: &Facts<'_>, nodes: &[usize]) -> String {
    let mut lines: BTreeMap<String, f64> = BTreeMap::new();
    let mut all = 0.0;
    for stack in facts.of_nodes(nodes) {
        if stack.thread != PYTHON_THREAD {
            continue;
        }
        all += stack.cost.cpu_ns as f64;
        if let Some(at) = python_line(stack.frames) {
            let line = line_name(&stack.frames[at]);
            *lines.entry(line).or_default() += stack.cost.cpu_ns as f64;
        }
    }
    let most = lines.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    match most {
        Some((line, ns)) if 2.0 * ns >= all => {
            format!("; most of the workers' time is in {line}")
        }
        _ => String::new(),
    }
}

/// The position of the innermost frame of generated code.
fn generated(frames: &[Arc<Frame>]) -> Option<usize> {
    frames
        .iter()
        .rposition(|frame| generated_hash(&frame.file).is_some())
}
