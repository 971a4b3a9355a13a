//! Sums.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use unfuse_format::Frame;

use crate::attribute::{Attribution, Owner};
use crate::profile::{Group, Profile, Selection, Weight, generated_hash};

/// What to sum by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Plan node, in each stage.
    Operator,
    /// Source line of the innermost Java frame.
    Line,
    /// Method, native function or stub of the leaf.
    Method,
    /// Stage.
    Stage,
    /// SQL execution.
    Query,
    /// Thread name.
    Thread,
}

/// One row of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Total {
    /// Spark application id; empty outside Spark.
    pub app: String,
    /// SQL execution id.
    pub query: Option<i64>,
    /// Stage id.
    pub stage: Option<i32>,
    /// Plan node; none for a heading and where the sum is not by operator.
    pub node_id: Option<i32>,
    /// Operator name, heading, or what the sum is by.
    pub operator: String,
    /// The operator as the plan prints it.
    pub detail: String,
    /// Whether this is a heading for work that no operator does.
    pub heading: bool,
    /// Number of samples.
    pub samples: u64,
    /// CPU time, s.
    pub cpu_seconds: f64,
    /// Part of all samples of the selection, 0 to 1; of all CPU time where only a part of the tasks was profiled.
    pub share: f64,
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
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    app: String,
    query: Option<i64>,
    stage: Option<i32>,
    owner: Option<Owner>,
    name: String,
    detail: String,
}

impl Totals {
    /// Sums a selection.
    pub fn of(profile: &Profile, selection: Selection, by: By) -> Self {
        let mut sums: BTreeMap<Key, Weight> = BTreeMap::new();
        let mut all = Weight::default();
        let mut stages = BTreeSet::new();
        for (group, weight) in profile.selected(selection) {
            all.add(*weight);
            if group.stage.is_some() {
                stages.insert((group.app.clone(), group.query, group.stage));
            }
            sums.entry(key(profile, group, by))
                .or_default()
                .add(*weight);
        }
        if by == By::Operator {
            // A stage without unattributed samples says so.
            for (app, query, stage) in stages {
                let owner = Some(Owner::Heading("unattributed"));
                let key = Key {
                    app,
                    query,
                    stage,
                    owner,
                    name: String::new(),
                    detail: String::new(),
                };
                sums.entry(key).or_default();
            }
        }
        let mut rows: Vec<(u64, Total)> = sums
            .into_iter()
            .map(|(key, weight)| (weight.value, total(profile, key, weight, all.value)))
            .collect();
        rows.sort_by_key(|(value, _)| std::cmp::Reverse(*value));
        Self {
            rows: rows.into_iter().map(|(_, row)| row).collect(),
            samples: all.samples,
            cpu_seconds: all.ns as f64 / 1e9,
        }
    }
}

fn key(profile: &Profile, group: &Group, by: By) -> Key {
    let mut key = Key {
        app: group.app.clone(),
        query: group.query,
        stage: group.stage,
        owner: None,
        name: String::new(),
        detail: String::new(),
    };
    let frames = profile
        .stacks
        .get(&group.stack)
        .map_or(&[][..], Vec::as_slice);
    match by {
        By::Operator => key.owner = Some(Attribution::of(profile, group).owner),
        By::Line => {
            let innermost = frames.iter().rev().find(|frame| !frame.class.is_empty());
            (key.query, key.stage) = (None, None);
            key.name = innermost.map_or_else(|| "[no Java frame]".to_owned(), line_name);
        }
        By::Method => {
            (key.query, key.stage) = (None, None);
            key.name = frames
                .last()
                .map_or_else(|| "[no frame]".to_owned(), method_name);
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
                let description = profile.descriptions.get(&(group.app.clone(), query));
                key.detail = description.cloned().unwrap_or_default();
            }
        }
        By::Thread => {
            (key.query, key.stage) = (None, None);
            key.name.clone_from(&group.thread);
        }
    }
    key
}

fn total(profile: &Profile, key: Key, weight: Weight, all: u64) -> Total {
    let (node_id, operator, detail, heading) = match key.owner {
        Some(Owner::Node(execution, at)) => {
            let node = &profile.plans[&execution].nodes[at];
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
        app: key.app,
        query: key.query,
        stage: key.stage,
        node_id,
        operator,
        detail,
        heading,
        samples: weight.samples,
        cpu_seconds: weight.ns as f64 / 1e9,
        share: if all == 0 {
            0.0
        } else {
            weight.value as f64 / all as f64
        },
    }
}

/// `java.util.HashMap.get`, or the name of whatever else it is.
pub(crate) fn method_name(frame: &Frame) -> String {
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

/// `java.util.HashMap.get(HashMap.java:556)`.
fn line_name(frame: &Frame) -> String {
    format!("{}({}:{})", method_name(frame), frame.file, frame.line)
}
