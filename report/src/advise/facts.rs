//! What rules look at: one query, its stacks with their owners, and its tasks.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use unfuse_format::{Frame, StageAttempt, TaskRow};
use unfuse_postprocess::{Attribution, Owner, Plan, PlanNode, Profile, is_exchange};

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
    /// Waits of its tasks for a CPU, as a part of their CPU time.
    cpu_waits: f64,
    /// Finished tasks of its stage attempts.
    pub(super) stages: BTreeMap<Attempt, &'a [TaskRow]>,
    /// Last values of its accumulators.
    values: HashMap<i64, i64>,
    /// From launch to end of all its tasks, s.
    pub(super) task_s: f64,
    /// Task slots of the application.
    pub(super) slots: usize,
    report: &'a Report<'a>,
    part: &'a Part,
}

/// A stack of a stage with CPU samples.
pub(super) struct Stack<'a> {
    pub(super) thread: &'a str,
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
        let mut values = HashMap::new();
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
        let costs = Costs::new(profile, part);
        Some(Self {
            profile,
            plan,
            cpu_waits: cpu_waits(&costs),
            costs,
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
                thread: &group.thread,
                place: (group.stage?, group.attempt?, group.stack),
                frames: frames.map_or(&[][..], Vec::as_slice),
                attribution,
                cost: *cost,
            })
        })
    }

    /// CPU time of its tasks with the waits for a CPU that belong to it, s. A task waits for a CPU while it has work,
    /// whichever operator's.
    pub(super) fn with_cpu_waits(&self, cpu_s: f64) -> f64 {
        cpu_s * (1.0 + self.cpu_waits)
    }

    /// The stacks of some nodes, by their positions in the plan.
    pub(super) fn of_nodes(&self, nodes: &[usize]) -> impl Iterator<Item = Stack<'_>> {
        self.stacks().filter(
            |stack| matches!(stack.attribution.owner, Owner::Node(_, node) if nodes.contains(&node)),
        )
    }

    /// CPU time of operators in the tasks of a stage, s, with the waits for a CPU that belong to it; none if the stage has no samples.
    /// Exchanges do not count: most of what they take in tiny tasks is for blocks, not for records.
    pub(super) fn operators_s(&self, (stage, attempt): Attempt) -> Option<f64> {
        let of_stage = |stack: &Stack<'_>| (stack.place.0, stack.place.1) == (stage, attempt);
        let mut own = self.stacks().filter(of_stage).peekable();
        own.peek()?;
        let computes = |node: usize| !is_exchange(&self.plan.nodes[node].operator);
        let own = own.filter(
            |stack| matches!(stack.attribution.owner, Owner::Node(_, node) if computes(node)),
        );
        let ns: f64 = own.map(|stack| stack.cost.cpu_ns as f64).sum();
        Some(self.with_cpu_waits(ns / 1e9))
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

    /// The executor of each of its tasks.
    pub(super) fn executors(&self) -> impl Iterator<Item = &str> {
        let tasks = self.stages.values().flat_map(|tasks| tasks.iter());
        tasks.map(|task| task.executor.as_str())
    }

    /// The value of a node's SQL metric.
    pub(super) fn metric(&self, node: &PlanNode, name: &str) -> Option<i64> {
        let mut ids = node.metrics.iter().filter(|(_, known)| known == name);
        ids.find_map(|(id, _)| self.values.get(id).copied())
    }

    /// How long its tasks waited in a node for reasons of a kind, s.
    pub(super) fn waited_s(&self, kind: PartKind, node: usize) -> f64 {
        waited_ns(kind, self.costs.nodes.get(node)) / 1e9
    }

    /// The same in all nodes and outside, s.
    pub(super) fn waited_in_all_s(&self, kind: PartKind) -> f64 {
        waited_ns(kind, all_shares(&self.costs)) / 1e9
    }

    /// How many tasks of other stages of the application ran beside those of a stage, on average.
    pub(super) fn busy_beside(&self, (stage, attempt): Attempt, tasks: &[TaskRow]) -> f64 {
        let from = tasks.iter().map(|task| task.launched_ms).min().unwrap_or(0);
        let to = tasks.iter().map(|task| task.finished_ms).max().unwrap_or(0);
        let own = StageAttempt::new(&self.part.app, stage, attempt);
        let others = self.report.tasks.iter();
        let others = others.filter(|(id, _)| id.app == self.part.app && **id != own);
        let beside = others.flat_map(|(_, tasks)| tasks).map(|task| {
            let both = task
                .finished_ms
                .min(to)
                .saturating_sub(task.launched_ms.max(from));
            both.max(0) as f64
        });
        beside.sum::<f64>() / to.saturating_sub(from).max(1) as f64
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

/// How long tasks waited for reasons of a kind, ns.
fn waited_ns<'s>(kind: PartKind, shares: impl IntoIterator<Item = &'s query::Share>) -> f64 {
    let waits = shares.into_iter().flat_map(|share| &share.waits);
    let own = waits.filter(|(reason, _)| WaitFacts::from_reason(**reason).part == Some(kind));
    own.fold(0u64, |sum, (_, ns)| sum.saturating_add(*ns)) as f64
}

/// What all nodes took, and all headings.
fn all_shares<'s>(costs: &'s Costs<'_>) -> impl Iterator<Item = &'s query::Share> {
    costs.nodes.iter().chain(costs.headings.values())
}

/// Waits of tasks for a CPU, as a part of their CPU time.
fn cpu_waits(costs: &Costs<'_>) -> f64 {
    let in_tasks = costs
        .stacks
        .iter()
        .filter(|(group, ..)| group.stage.is_some());
    let cpu_ns: f64 = in_tasks.map(|(.., cost)| cost.cpu_ns as f64).sum();
    waited_ns(PartKind::CpuWait, all_shares(costs)) / cpu_ns.max(1.0)
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
