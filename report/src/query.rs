//! One query: who does its work and who waits, in which stages, where in the code.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use unfuse_format::StageAttempt;

use crate::flame::{Key, Tree};
use crate::model::{Cost, FlameKind, Heading, Node, Placed, QueryDetail, Range, Wait};
use crate::names::Names;
use crate::sources::HotLines;
use crate::stages::{self, Attempt};
use crate::{Part, TasksByStage};
use unfuse_postprocess::Evidence;
use unfuse_postprocess::Plan;
use unfuse_postprocess::WaitReason;
use unfuse_postprocess::{Attribution, Attributor, Owner};
use unfuse_postprocess::{Group, Profile, Weight};

/// What one owner costs.
#[derive(Default)]
pub(super) struct Share {
    pub(super) cost: Cost,
    /// What is known of its part of the CPU time.
    evidence: Evidence,
    /// How long it waited and for what, ns.
    waits: BTreeMap<WaitReason, u64>,
    stages: BTreeSet<i32>,
}

impl Share {
    fn waiting_ns(&self) -> u64 {
        self.waits
            .values()
            .fold(0, |sum, ns| sum.saturating_add(*ns))
    }

    fn waits(&self) -> Vec<Wait> {
        let wait = |(waiting, ns): (&WaitReason, &u64)| Wait {
            what: waiting.name(),
            ns: *ns,
        };
        let mut waits: Vec<Wait> = self.waits.iter().map(wait).collect();
        waits.sort_by_key(|wait| std::cmp::Reverse(wait.ns));
        waits
    }
}

/// Costs by owner.
pub(super) struct Costs<'a> {
    /// By node.
    pub(super) nodes: Vec<Share>,
    /// By heading.
    pub(super) headings: BTreeMap<&'static str, Share>,
    /// All of it.
    total: Cost,
    /// By what the rules are worth.
    placed: Placed,
    /// Every distinct stack of a stage attempt with its attribution.
    pub(super) stacks: Vec<(&'a Group, Attribution, Cost)>,
}

impl<'a> Costs<'a> {
    pub(super) fn of(profile: &'a Profile, part: &Part) -> Self {
        let plan = part
            .execution
            .as_ref()
            .and_then(|key| profile.plans.get(key));
        let mut costs = Self {
            nodes: Vec::new(),
            headings: BTreeMap::new(),
            total: Cost::default(),
            placed: Placed::default(),
            stacks: Vec::new(),
        };
        let nodes = plan.map_or(0, |plan| plan.nodes.len());
        costs.nodes.resize_with(nodes, Share::default);
        let mut attributor = Attributor::new(profile);
        for (group, weight) in merged(&profile.groups, &part.groups) {
            let attribution = attributor.of(group);
            let cost = Cost::from(weight);
            costs.total.add(cost);
            for other in &attribution.also {
                costs.nodes[*other].evidence.add_possible(cost.cpu_ns);
            }
            let share = costs.share(&attribution.owner, group);
            share.cost.add(cost);
            let is_doubtful = !attribution.also.is_empty();
            share.evidence.add(cost.cpu_ns, is_doubtful);
            costs.placed.add(attribution.rule.standing(), cost);
            costs.stacks.push((group, attribution, cost));
        }
        for (group, weight) in merged(&profile.waits, &part.waits) {
            let owner = attributor.of(group).owner;
            let share = costs.share(&owner, group);
            let ns = share.waits.entry(profile.waiting(group)).or_default();
            *ns = ns.saturating_add(weight.ns);
        }
        costs
    }

    fn share(&mut self, owner: &Owner, group: &Group) -> &mut Share {
        let share = match owner {
            Owner::Node(_, node) => &mut self.nodes[*node],
            Owner::Heading(heading) => self.headings.entry(heading).or_default(),
        };
        share.stages.extend(group.stage);
        share
    }

    fn range(&self, share: &Share) -> Range {
        let Cost { cpu_ns, samples } = self.total;
        share.evidence.bounds(cpu_ns, samples).into()
    }

    fn headings(&self) -> Vec<Heading> {
        let heading = |(name, share): (&&str, &Share)| Heading {
            name: (*name).to_owned(),
            cost: share.cost,
            range: self.range(share),
            waits: share.waits(),
            stages: share.stages.iter().copied().collect(),
        };
        let mut headings: Vec<_> = self.headings.iter().map(heading).collect();
        headings.sort_by_key(|heading| std::cmp::Reverse(heading.cost.cpu_ns));
        headings
    }
}

/// Groups of one stack in one stage attempt put together: which task thread it was makes no difference.
fn merged<'a>(groups: &'a [(Group, Weight)], of: &[usize]) -> Vec<(&'a Group, Weight)> {
    type Place<'a> = (Option<i32>, Option<i32>, i64, Option<&'a str>);
    let mut places: HashMap<Place<'a>, usize> = HashMap::new();
    let mut merged: Vec<(&Group, Weight)> = Vec::new();
    for at in of {
        let (group, weight) = &groups[*at];
        let thread = group.stage.is_none().then_some(&*group.thread);
        let place = (group.stage, group.attempt, group.stack, thread);
        match places.get(&place) {
            Some(at) => merged[*at].1.add(*weight),
            None => {
                places.insert(place, merged.len());
                merged.push((group, *weight));
            }
        }
    }
    merged
}

/// The stage attempts of a query: those of its execution, and any other with its samples.
pub(super) fn attempts(profile: &Profile, part: &Part) -> Vec<Attempt> {
    let of = |(group, _): &(Group, Weight)| Some((group.stage?, group.attempt?));
    let ran = part.groups.iter().filter_map(|at| of(&profile.groups[*at]));
    let waited = part.waits.iter().filter_map(|at| of(&profile.waits[*at]));
    let all: BTreeSet<Attempt> = ran
        .chain(waited)
        .chain(part.stages.iter().copied())
        .collect();
    all.into_iter().collect()
}

/// Everything about one query.
pub(super) fn detail(
    profile: &Profile,
    part: &Part,
    tasks: &TasksByStage,
    names: &Names,
) -> QueryDetail {
    let costs = Costs::of(profile, part);
    let attempts = attempts(profile, part);
    let headings = costs.headings();
    let mut by_stage: HashMap<Attempt, Cost> = HashMap::new();
    let (mut operators, mut frames) = (Tree::default(), Tree::default());
    let mut hot = HotLines::default();
    for (group, attribution, cost) in &costs.stacks {
        let attempt = group.stage.zip(group.attempt);
        let stage = attempt.and_then(|attempt| {
            by_stage.entry(attempt).or_default().add(*cost);
            attempts.binary_search(&attempt).ok()
        });
        let mut base: Vec<Key> = Vec::new();
        base.extend(stage.map(|at| (FlameKind::Stage, at as u32)));
        if let Owner::Heading(name) = attribution.owner {
            let at = headings.iter().position(|heading| heading.name == name);
            base.extend(at.map(|at| (FlameKind::Heading, at as u32)));
        }
        let nested = nested(&attribution.begins).into_iter().map(operator);
        operators.add(base.iter().copied().chain(nested), *cost);
        let stack = with_operators(names.stack(group.stack), &attribution.begins);
        frames.add(base.into_iter().chain(stack), *cost);
        hot.add(profile, group.stack, *cost);
    }
    let task_rows = |attempt: &Attempt| {
        let key = StageAttempt::new(&part.app, attempt.0, attempt.1);
        tasks.get(&key).map_or(&[][..], Vec::as_slice)
    };
    let stage = |attempt: &Attempt| {
        let known = profile
            .stages
            .get(&StageAttempt::new(&part.app, attempt.0, attempt.1));
        let cost = by_stage.get(attempt).copied().unwrap_or_default();
        stages::stage(*attempt, known, task_rows(attempt), cost)
    };
    QueryDetail {
        nodes: nodes(profile, part, &costs, &attempts),
        headings,
        placed: costs.placed,
        stages: attempts.iter().map(stage).collect(),
        tasks: stages::columns(attempts.iter().map(task_rows).enumerate()),
        waiting_ns: (!profile.waits.is_empty()).then(|| {
            let shares = costs.nodes.iter().chain(costs.headings.values());
            shares.fold(0u64, |sum, share| sum.saturating_add(share.waiting_ns()))
        }),
        operators: operators.into_flame(),
        frames: frames.into_flame(),
        sources: hot.into_sources(profile, part.execution.as_ref()),
    }
}

fn operator(node: usize) -> Key {
    (FlameKind::Operator, node as u32)
}

/// The operators of a stack. Generated methods that call each other are in the same pipeline: one that
/// begins again where an outer one began takes its place.
fn nested(begins: &[(usize, usize)]) -> Vec<usize> {
    let mut stack: Vec<usize> = Vec::new();
    for chain in begins.chunk_by(|(a, _), (b, _)| a == b) {
        if let Some(at) = stack.iter().rposition(|node| *node == chain[0].1) {
            stack.truncate(at);
        }
        stack.extend(chain.iter().map(|(_, node)| *node));
    }
    stack
}

/// The frames of a stack, each followed by the operators that begin at it.
fn with_operators(frames: &[u32], begins: &[(usize, usize)]) -> Vec<Key> {
    let mut begins = begins.iter().peekable();
    let mut stack = Vec::with_capacity(frames.len() + begins.len());
    for (index, frame) in frames.iter().enumerate() {
        stack.push((FlameKind::Frame, *frame));
        while let Some((_, node)) = begins.next_if(|(at, _)| *at <= index) {
            stack.push(operator(*node));
        }
    }
    stack
}

fn nodes(profile: &Profile, part: &Part, costs: &Costs<'_>, attempts: &[Attempt]) -> Vec<Node> {
    let Some(plan) = part
        .execution
        .as_ref()
        .and_then(|key| profile.plans.get(key))
    else {
        return Vec::new();
    };
    let total = |share: &Share| (share.cost, share.waiting_ns());
    let mut totals: Vec<(Cost, u64)> = costs.nodes.iter().map(total).collect();
    // Children come after their parent.
    for at in (0..totals.len()).rev() {
        if let Some(parent) = plan.nodes[at].parent {
            let (cost, waiting_ns) = totals[at];
            let total = &mut totals[parent];
            total.0.add(cost);
            total.1 = total.1.saturating_add(waiting_ns);
        }
    }
    let values = values(profile, part, attempts);
    let node = |(at, node): (usize, &unfuse_postprocess::PlanNode)| Node {
        id: node.id,
        parent: node.parent,
        operator: node.operator.clone(),
        detail: node.detail.clone(),
        codegen_stage: node.codegen_stage,
        replanned: at >= plan.planned,
        own: costs.nodes[at].cost,
        own_range: costs.range(&costs.nodes[at]),
        total: totals[at].0,
        waits: costs.nodes[at].waits(),
        total_waiting_ns: totals[at].1,
        stages: costs.nodes[at].stages.iter().copied().collect(),
        rows: rows(plan, at, &values),
    };
    plan.nodes.iter().enumerate().map(node).collect()
}

/// The accumulators of the query's stages. They only grow, so the greatest value is the last.
fn values(profile: &Profile, part: &Part, attempts: &[Attempt]) -> HashMap<i64, i64> {
    let mut values: HashMap<i64, i64> = HashMap::new();
    for (stage, attempt) in attempts {
        let stage = profile
            .stages
            .get(&StageAttempt::new(&part.app, *stage, *attempt));
        for (id, value) in stage.map_or(&[][..], |stage| &stage.values) {
            let known = values.entry(*id).or_insert(*value);
            *known = (*known).max(*value);
        }
    }
    values
}

fn rows(plan: &Plan, at: usize, values: &HashMap<i64, i64>) -> Option<i64> {
    let metrics = plan.nodes[at].metrics.iter();
    let mut rows = metrics.filter(|(_, name)| name == "number of output rows");
    rows.find_map(|(id, _)| values.get(id).copied())
}

#[cfg(test)]
mod tests {
    use super::nested;

    #[test]
    fn a_pipeline_is_there_once() {
        assert_eq!(
            nested(&[(1, 8), (2, 5), (2, 4), (3, 5), (3, 4), (3, 2)]),
            [8, 5, 4, 2]
        );
        assert_eq!(nested(&[(1, 8), (2, 5), (4, 9)]), [8, 5, 9]);
    }
}
