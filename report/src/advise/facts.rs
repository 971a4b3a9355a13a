//! What rules look at: one query, its stacks with their owners, and its tasks.

use std::collections::BTreeMap;
use std::sync::Arc;

use unfuse_format::{Frame, StageAttempt, TaskRow};
use unfuse_postprocess::{Attribution, Owner, Plan, PlanNode, Profile, WaitReason, generated_hash};

use crate::model::Cost;
use crate::query::{self, Costs};
use crate::rows::add_values;
use crate::stages::{Attempt, duration_ms};
use crate::wait::WaitFacts;
use crate::what_if::StackOfStage;
use crate::{Part, Report};
use unfuse_sizing::what_if::PartKind;

/// One query.
pub(super) struct Facts<'a> {
    pub(super) profile: &'a Profile,
    pub(super) plan: &'a Plan,
    costs: Costs<'a>,
    /// Finished tasks of its stage attempts.
    pub(super) stages: BTreeMap<Attempt, &'a [TaskRow]>,
    /// Last values of its accumulators.
    values: std::collections::HashMap<i64, i64>,
    /// From launch to end of all its tasks, s.
    pub(super) task_s: f64,
    /// Task slots of the application.
    pub(super) slots: usize,
    report: &'a Report<'a>,
    part: &'a Part,
}

/// A stack of a stage with CPU samples.
pub(super) struct Stack<'a> {
    pub(super) place: StackOfStage,
    /// Its frames, from root to leaf.
    pub(super) frames: &'a [Arc<Frame>],
    pub(super) attribution: &'a Attribution,
    pub(super) cost: Cost,
}

impl<'a> Facts<'a> {
    /// The facts on a query; none without a plan.
    pub(super) fn new(report: &'a Report<'a>, part: &'a Part, slots: usize) -> Option<Self> {
        let profile = report.profile;
        let plan = part.plan(profile)?;
        let attempts = query::attempts(profile, part);
        let mut values = std::collections::HashMap::new();
        let mut stages = BTreeMap::new();
        for (stage, attempt) in attempts {
            let id = StageAttempt::new(&part.app, stage, attempt);
            if let Some(known) = profile.stages.get(&id) {
                add_values(&mut values, known);
            }
            if let Some(tasks) = report.tasks.get(&id).filter(|tasks| !tasks.is_empty()) {
                stages.insert((stage, attempt), tasks.as_slice());
            }
        }
        let tasks = stages.values().flat_map(|tasks| tasks.iter());
        Some(Self {
            profile,
            plan,
            costs: Costs::new(profile, part),
            task_s: tasks.map(task_s).sum(),
            stages,
            values,
            slots,
            report,
            part,
        })
    }

    /// Its stacks in tasks.
    pub(super) fn stacks(&self) -> impl Iterator<Item = Stack<'_>> {
        let stacks = self.costs.stacks.iter();
        stacks.filter_map(|(group, attribution, cost)| {
            let frames = self.profile.stacks.get(&group.stack);
            Some(Stack {
                place: (group.stage?, group.attempt?, group.stack),
                frames: frames.map_or(&[][..], Vec::as_slice),
                attribution,
                cost: *cost,
            })
        })
    }

    /// The stacks of some nodes, by their positions in the plan, and their CPU time, s.
    pub(super) fn of_nodes(&self, nodes: &[usize]) -> (Vec<StackOfStage>, f64) {
        let own = self.stacks().filter(
            |stack| matches!(stack.attribution.owner, Owner::Node(_, node) if nodes.contains(&node)),
        );
        sum(own)
    }

    /// The operator that owns most of some stacks.
    pub(super) fn main_node<'s>(
        &self,
        stacks: impl Iterator<Item = &'s Stack<'s>>,
    ) -> Option<&PlanNode> {
        let mut nodes: BTreeMap<usize, u64> = BTreeMap::new();
        for stack in stacks {
            if let Owner::Node(_, node) = stack.attribution.owner {
                let ns = nodes.entry(node).or_default();
                *ns = ns.saturating_add(stack.cost.cpu_ns);
            }
        }
        let main = nodes.into_iter().max_by_key(|(_, ns)| *ns);
        main.and_then(|(node, _)| self.plan.nodes.get(node))
    }

    /// The value of a node's SQL metric.
    pub(super) fn metric(&self, node: &PlanNode, name: &str) -> Option<i64> {
        let mut ids = node.metrics.iter().filter(|(_, known)| known == name);
        ids.find_map(|(id, _)| self.values.get(id).copied())
    }

    /// How long its tasks waited for reasons of a kind, s. A wait that belongs to another operator than those given does not
    /// count, if any are given.
    pub(super) fn waited_s(&self, kind: PartKind, nodes: &[usize]) -> f64 {
        let is_own = |owner: &Owner| match owner {
            Owner::Node(_, node) => nodes.is_empty() || nodes.contains(node),
            Owner::Heading(_) => nodes.is_empty(),
        };
        let waits = self.part.waits.iter().map(|at| &self.profile.waits[*at]);
        let mut attributor = unfuse_postprocess::Attributor::new(self.profile);
        let mut ns = 0u64;
        for (group, weight) in waits.filter(|(group, _)| group.stage.is_some()) {
            let reason: WaitReason = self.profile.waiting(group);
            if WaitFacts::from_reason(reason).part == Some(kind)
                && is_own(&attributor.attribute(group).owner)
            {
                ns = ns.saturating_add(weight.ns);
            }
        }
        ns as f64 / 1e9
    }

    /// CPU time of operators in a stage attempt, s.
    pub(super) fn operators_s(&self, (stage, attempt): Attempt) -> f64 {
        let own = self.stacks().filter(|stack| {
            (stack.place.0, stack.place.1) == (stage, attempt)
                && matches!(stack.attribution.owner, Owner::Node(..))
        });
        sum(own).1
    }

    /// The text of a line of generated code.
    pub(super) fn line(&self, frame: &Frame) -> &str {
        let hash = generated_hash(&frame.file);
        hash.map_or("", |hash| self.report.line_texts().text(hash, frame.line))
    }

    /// The nodes of the plan with samples in a stage, by their positions.
    pub(super) fn nodes_in(&self, (stage, _): Attempt) -> impl Iterator<Item = usize> {
        let nodes = self.costs.nodes.iter().enumerate();
        nodes.filter_map(move |(at, share)| share.stages.contains(&stage).then_some(at))
    }

    /// The positions of a node's children.
    pub(super) fn children(&self, node: usize) -> impl Iterator<Item = usize> {
        let nodes = self.plan.nodes[..self.plan.planned.min(self.plan.nodes.len())].iter();
        let nodes = nodes.enumerate();
        nodes.filter_map(move |(at, child)| (child.parent == Some(node)).then_some(at))
    }
}

/// The stacks by their places, and their CPU time, s.
pub(super) fn sum<'s>(stacks: impl Iterator<Item = Stack<'s>>) -> (Vec<StackOfStage>, f64) {
    let mut ns = 0u64;
    let places = stacks.map(|stack| {
        ns = ns.saturating_add(stack.cost.cpu_ns);
        stack.place
    });
    let places: Vec<StackOfStage> = places.collect();
    (places, ns as f64 / 1e9)
}

/// From launch to end, s.
pub(super) fn task_s(task: &TaskRow) -> f64 {
    duration_ms(task) as f64 / 1e3
}

/// `stage 7`.
pub(super) fn stage_name((stage, _): Attempt) -> String {
    format!("stage {stage}")
}

/// An operator with its number, as `unfuse plan` shows it.
pub(super) fn node_name(node: &PlanNode) -> String {
    format!("{} ({})", crate::words::name(&node.operator), node.id)
}
