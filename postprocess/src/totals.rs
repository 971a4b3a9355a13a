//! Sums of samples.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use unfuse_format::{ExecutionId, Frame, SampleKind};

use crate::attribute::{Attributor, Owner};
use crate::generated::generated_hash;
use crate::heading::UNATTRIBUTED;
use crate::profile::{Group, Profile, Selection, Time, Weight};
use crate::python::{is_python, python_file, python_line};
use crate::rule::{Rule, Standing};
use crate::uncertainty::Evidence;
use crate::wait_reason::WaitReason;

/// The key of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Plan node, in each stage.
    Operator,
    /// Source line of the innermost Java frame, or in a Python worker that of the user's code.
    Line,
    /// Method, native function or stub of the leaf.
    Method,
    /// Stage.
    Stage,
    /// SQL execution.
    Query,
    /// Thread name.
    Thread,
    /// The rule that attributed the samples, see [`crate::Rule`].
    Rule,
}

/// One row of a table.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Total {
    /// Spark application id; empty outside Spark.
    pub app: String,
    /// SQL execution id.
    pub query: Option<i64>,
    /// Stage id.
    pub stage: Option<i32>,
    /// Plan node; none for a heading and where the sum is not by operator.
    pub node_id: Option<i32>,
    /// Operator name, heading, or the value of another key.
    pub operator: String,
    /// The operator as the plan prints it.
    pub detail: String,
    /// Whether this is a heading for work that no operator does.
    pub heading: bool,
    /// What the rule proves ([`Standing::name`]), where the sum is by rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing: Option<&'static str>,
    /// The reason of the wait, if only waits are selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<&'static str>,
    /// Number of samples.
    pub samples: u64,
    /// CPU time, s.
    pub cpu_seconds: f64,
    /// Number of waits.
    pub waits: u64,
    /// Time that was waited, s.
    pub waiting_seconds: f64,
    /// Part of the time that is asked for, 0 to 1.
    pub share: f64,
    /// Lower bound of the share, if only CPU time is selected. With 95% certainty it covers the error of sampling; if
    /// the sum is by operator, also the gaps in the compiler's descriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_low: Option<f64>,
    /// Upper bound, as [`Self::share_low`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_high: Option<f64>,
    /// The evidence for the share of CPU time.
    #[serde(skip)]
    pub evidence: Evidence,
}

/// A table, largest share first.
#[derive(Debug, Clone, PartialEq)]
pub struct Totals {
    /// The rows.
    pub rows: Vec<Total>,
    /// All samples of the selection.
    pub samples: u64,
    /// All CPU time of the selection, s.
    pub cpu_seconds: f64,
    /// All waits of the selection.
    pub waits: u64,
    /// Time of all waits of the selection, s.
    pub waiting_seconds: f64,
    /// What shares are parts of, ns.
    pub whole: u64,
}

impl Totals {
    /// How certain the attribution of tasks is: the share of each standing, 0 to 1, without [`Standing::OutsideTasks`].
    /// All 0 if the rows are not by rule.
    pub fn standings(&self) -> [(Standing, f64); 4] {
        let shares = [
            Standing::Proved,
            Standing::Guessed,
            Standing::Heading,
            Standing::Unattributed,
        ]
        .map(|standing| {
            let of = |row: &&Total| row.standing == Some(standing.name());
            let shares = self.rows.iter().filter(of).map(|row| row.share);
            // The sum of nothing is -0.
            (standing, shares.fold(0.0, |sum, share| sum + share))
        });
        let all: f64 = shares.iter().map(|(_, share)| share).sum();
        let whole = if all > 0.0 { all } else { 1.0 };
        shares.map(|(standing, share)| (standing, share / whole))
    }
}

/// The sum of a row.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    cpu: Weight,
    waits: Weight,
    /// For the CPU time.
    evidence: Evidence,
}

impl Sums {
    fn add(&mut self, kind: SampleKind, weight: Weight, doubtful: bool) {
        match kind {
            SampleKind::Cpu => {
                self.cpu.add(weight);
                self.evidence.add(weight.value, doubtful);
            }
            SampleKind::OffCpu => self.waits.add(weight),
        }
    }

    /// The value of which shares are computed.
    fn value(&self, time: Time) -> u64 {
        match time {
            Time::Cpu => self.cpu.value,
            Time::OffCpu => self.waits.value,
            Time::Wall => self.cpu.value.saturating_add(self.waits.value),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    app: Arc<str>,
    query: Option<i64>,
    stage: Option<i32>,
    owner: Option<Owner>,
    name: String,
    detail: String,
    rule: Option<Rule>,
    waiting: Option<WaitReason>,
}

impl Totals {
    /// Sums a selection.
    pub fn new(profile: &Profile, selection: Selection, by: By) -> Self {
        let mut sums: BTreeMap<Key, Sums> = BTreeMap::new();
        let mut all = Sums::default();
        let mut stages = BTreeSet::new();
        // Waits are shown beside the selected CPU time.
        let time = match selection.time {
            Time::Cpu if !profile.waits.is_empty() => Time::Wall,
            time => time,
        };
        let mut attributor = Attributor::new(profile);
        for (group, weight) in profile.selected(Selection { time, ..selection }) {
            // Shares are of time, as those of the report are.
            let value = weight.ns;
            let weight = Weight { value, ..weight };
            all.add(group.kind, weight, false);
            if group.stage.is_some() {
                stages.insert((Arc::clone(&group.app), group.query, group.stage));
            }
            let (mut key, others) = key(profile, &mut attributor, group, by);
            if selection.time == Time::OffCpu {
                key.waiting = Some(profile.waiting(group));
            }
            for other in others.iter().filter(|_| group.kind == SampleKind::Cpu) {
                let key = Key {
                    owner: Some(other.clone()),
                    ..key.clone()
                };
                let sums = sums.entry(key).or_default();
                sums.evidence.add_possible(weight.value);
            }
            let sums = sums.entry(key).or_default();
            sums.add(group.kind, weight, !others.is_empty());
        }
        if by == By::Operator && selection.time == Time::Cpu {
            // A stage without unattributed samples gets a row that says so.
            for (app, query, stage) in stages {
                let owner = Some(Owner::Heading(UNATTRIBUTED));
                let key = Key {
                    app,
                    query,
                    stage,
                    owner,
                    name: String::new(),
                    detail: String::new(),
                    rule: None,
                    waiting: None,
                };
                sums.entry(key).or_default();
            }
        }
        let whole = all.value(selection.time);
        let mut rows: Vec<(u64, Total)> = sums
            .into_iter()
            .map(|(key, sums)| {
                let value = sums.value(selection.time);
                let mut row = total(profile, key, &sums, share(value, whole));
                if selection.time == Time::Cpu {
                    let (low, high) = sums.evidence.bounds(whole, all.cpu.samples);
                    (row.share_low, row.share_high) = (Some(low), Some(high));
                }
                (value, row)
            })
            .collect();
        rows.sort_by_key(|(value, _)| std::cmp::Reverse(*value));
        Self {
            rows: rows.into_iter().map(|(_, row)| row).collect(),
            samples: all.cpu.samples,
            cpu_seconds: seconds(all.cpu),
            waits: all.waits.samples,
            waiting_seconds: seconds(all.waits),
            whole,
        }
    }
}

fn share(value: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        value as f64 / whole as f64
    }
}

fn seconds(weight: Weight) -> f64 {
    weight.ns as f64 / 1e9
}

/// The key of a group, and the other owners that it may have.
fn key(
    profile: &Profile,
    attributor: &mut Attributor<'_>,
    group: &Group,
    by: By,
) -> (Key, Vec<Owner>) {
    let mut others = Vec::new();
    let mut key = Key {
        app: Arc::clone(&group.app),
        query: group.query,
        stage: group.stage,
        owner: None,
        name: String::new(),
        detail: String::new(),
        rule: None,
        waiting: None,
    };
    let frames = profile
        .stacks
        .get(&group.stack)
        .map_or(&[][..], Vec::as_slice);
    match by {
        By::Operator => {
            let attribution = attributor.attribute(group);
            if let Some(execution) = &attribution.execution {
                let node = |index: &usize| Owner::Node(execution.clone(), *index);
                others = attribution.also.iter().map(node).collect();
            }
            key.owner = Some(attribution.owner);
        }
        By::Line => {
            let java = || frames.iter().rposition(|frame| !frame.class.is_empty());
            let innermost = python_line(frames).or_else(java).map(|at| &frames[at]);
            (key.query, key.stage) = (None, None);
            key.name =
                innermost.map_or_else(|| "[no Java frame]".to_owned(), |frame| line_name(frame));
        }
        By::Method => {
            (key.query, key.stage) = (None, None);
            // In waits, the last native function is always one of the same few.
            let java = frames.iter().rev().find(|frame| !frame.class.is_empty());
            let waits = java.filter(|_| group.kind == SampleKind::OffCpu);
            key.name = waits
                .or(frames.last())
                .map_or_else(|| "[no frame]".to_owned(), |frame| method_name(frame));
        }
        By::Stage => {
            key.name = group
                .stage
                .map_or_else(|| "outside tasks".to_owned(), |s| format!("stage {s}"))
        }
        By::Query => {
            key.stage = None;
            key.name = group
                .query
                .map_or_else(|| "no query".to_owned(), |q| format!("query {q}"));
            if let Some(query) = group.query {
                key.detail = profile.query_name(&ExecutionId::new(&*group.app, query));
            }
        }
        By::Thread => {
            (key.query, key.stage) = (None, None);
            key.name = group.thread.to_string();
        }
        By::Rule => {
            (key.query, key.stage) = (None, None);
            let rule = attributor.attribute(group).rule;
            key.name = rule.to_string();
            key.rule = Some(rule);
        }
    }
    (key, others)
}

fn total(profile: &Profile, key: Key, sums: &Sums, share: f64) -> Total {
    let (node_id, operator, detail, heading) = match key.owner {
        Some(Owner::Node(execution, index)) => {
            let node = &profile.plans[&execution].nodes[index];
            (
                Some(node.id),
                node.operator.clone(),
                node.detail.clone(),
                false,
            )
        }
        Some(Owner::Heading(heading)) => (None, heading.to_owned(), String::new(), true),
        None => (None, key.name, key.detail, false),
    };
    Total {
        app: key.app.to_string(),
        query: key.query,
        stage: key.stage,
        node_id,
        operator,
        detail,
        heading,
        standing: key.rule.map(|rule| rule.standing().name()),
        waiting_for: key.waiting.map(WaitReason::name),
        samples: sums.cpu.samples,
        cpu_seconds: seconds(sums.cpu),
        waits: sums.waits.samples,
        waiting_seconds: seconds(sums.waits),
        share,
        share_low: None,
        share_high: None,
        evidence: sums.evidence,
    }
}

/// `java.util.HashMap.get`, or the name of a frame that is not Java's.
pub fn method_name(frame: &Frame) -> String {
    match (frame.class.as_str(), frame.method.as_str()) {
        ("", "Interpreter") => "[interpreter]".to_owned(),
        ("", method) => method.to_owned(),
        // Janino turns private methods that an inner class may call into `name$`.
        (class, method) if generated_hash(&frame.file).is_some() => {
            format!("{class}.{}", method.trim_end_matches('$'))
        }
        (class, method) => format!("{class}.{method}"),
    }
}

/// `java.util.HashMap.get(HashMap.java:556)`, `clean(job.py:12)`.
pub fn line_name(frame: &Frame) -> String {
    let file = match is_python(frame) {
        true => python_file(&frame.file),
        false => &frame.file,
    };
    format!("{}({file}:{})", method_name(frame), frame.line)
}
