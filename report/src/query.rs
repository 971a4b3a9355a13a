//! One query: the owners of its work and waits, by stage and by code.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use unfuse_format::{StackId, StageAttempt};

use crate::flame::{Key, Tree};
use crate::lines::{LineTexts, NodeLines};
use crate::model::{
    Cost, CostByStanding, Flame, FlameKind, Heading, HotLine, Node, QueryDetail, Range, Wait,
};
use crate::names::Names;
use crate::rows::{Rows, add_values, per_row};
use crate::sources::HotLines;
use crate::stages::{self, Attempt};
use crate::verdict::{Digest, NodeCost, SampledTime};
use crate::{Part, TasksByStage};
use unfuse_postprocess::{
    Attribution, Attributor, BoundaryKind, Evidence, Group, Operator, OperatorKind, Owner, Plan,
    PlanNode, Profile, Rule, WaitReason, Weight,
};

/// Samples of operators that ran one by one, and none of generated code, of which a codegen stage counts as dropped.
const DROPPED_SAMPLES: u64 = 10;

/// Whether all work of an operator is inline where it is fused.
fn is_inline(node: &PlanNode) -> bool {
    let Operator { kind, .. } = Operator::from_name(&node.operator);
    matches!(
        kind,
        OperatorKind::Filter | OperatorKind::Project | OperatorKind::Aggregate
    )
}

/// The cost of one owner.
#[derive(Default)]
pub(super) struct Share {
    pub(super) cost: Cost,
    /// The evidence for its part of the CPU time.
    evidence: Evidence,
    /// Waiting time by reason, ns.
    pub(super) waits: BTreeMap<WaitReason, u64>,
    pub(super) stages: BTreeSet<i32>,
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
    /// The sum of all.
    total: Cost,
    /// Cost by standing.
    placed: CostByStanding,
    /// CPU time and waits by kind.
    sampled: SampledTime,
    /// Every distinct stack of a stage attempt with its attribution.
    pub(super) stacks: Vec<(&'a Group, Attribution, Cost)>,
}

impl<'a> Costs<'a> {
    pub(super) fn new(profile: &'a Profile, part: &Part) -> Self {
        let plan = part.plan(profile);
        let mut costs = Self {
            nodes: Vec::new(),
            headings: BTreeMap::new(),
            total: Cost::default(),
            placed: CostByStanding::default(),
            sampled: SampledTime::default(),
            stacks: Vec::new(),
        };
        let nodes = plan.map_or(0, |plan| plan.nodes.len());
        costs.nodes.resize_with(nodes, Share::default);
        let mut attributor = Attributor::new(profile);
        for (group, weight) in merged(&profile.groups, &part.groups) {
            let attribution = attributor.attribute(group);
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
            costs
                .sampled
                .add_cpu(&attribution.owner, group, cost.cpu_ns);
            costs.stacks.push((group, attribution, cost));
        }
        for (group, weight) in merged(&profile.waits, &part.waits) {
            let owner = attributor.attribute(group).owner;
            let reason = profile.waiting(group);
            let share = costs.share(&owner, group);
            let ns = share.waits.entry(reason).or_default();
            *ns = ns.saturating_add(weight.ns);
            costs.sampled.add_wait(reason, group, weight.ns);
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

    /// The least and the most CPU time that an owner can have, ns: code between the lines of two operators is of either.
    pub(super) fn possible_ns(&self, share: &Share) -> [u64; 2] {
        let whole = self.total.cpu_ns;
        // Without the part by sampling, which vanishes with the number of samples.
        let (least, most) = share.evidence.bounds(whole, u64::MAX);
        [least, most].map(|part| (part * whole as f64) as u64)
    }

    /// The codegen stages of a plan that did not run as generated code: Spark drops code that is too large or does not
    /// compile, runs the operators one by one, and the plan does not show it.
    pub(super) fn dropped_codegen_stages(&self, plan: &Plan) -> BTreeSet<i32> {
        let mut samples: BTreeMap<i32, [u64; 2]> = BTreeMap::new();
        for (_, attribution, cost) in &self.stacks {
            let Owner::Node(_, node) = attribution.owner else {
                continue;
            };
            let Some(stage) = plan.nodes[node].codegen_stage else {
                continue;
            };
            let generated = match attribution.rule {
                Rule::Region | Rule::CallSite | Rule::BetweenLines | Rule::CodegenStage => true,
                // Fused, these operators have no class of their own on the stack.
                Rule::Boundary(BoundaryKind::Operator) | Rule::Metrics(BoundaryKind::Operator)
                    if is_inline(&plan.nodes[node]) =>
                {
                    false
                }
                _ => continue,
            };
            samples.entry(stage).or_default()[usize::from(generated)] += cost.samples;
        }
        let dropped = samples
            .into_iter()
            .filter(|(_, [plain, generated])| *generated == 0 && *plain >= DROPPED_SAMPLES);
        dropped.map(|(stage, _)| stage).collect()
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

/// Merges groups with the same stack in one stage attempt; the task thread does not matter.
fn merged<'a>(groups: &'a [(Group, Weight)], of: &[usize]) -> Vec<(&'a Group, Weight)> {
    type Place<'a> = (Option<i32>, Option<i32>, StackId, Option<&'a str>);
    let mut places: HashMap<Place<'a>, usize, ahash::RandomState> = HashMap::default();
    let mut merged: Vec<(&Group, Weight)> = Vec::new();
    for index in of {
        let (group, weight) = &groups[*index];
        let thread = group.stage.is_none().then_some(&*group.thread);
        let place = (group.stage, group.attempt, group.stack, thread);
        match places.get(&place) {
            Some(index) => merged[*index].1.add(*weight),
            None => {
                places.insert(place, merged.len());
                merged.push((group, *weight));
            }
        }
    }
    merged
}

/// The stage attempts of a query: those of its execution, and all others with its samples.
pub(super) fn attempts(profile: &Profile, part: &Part) -> Vec<Attempt> {
    let of = |(group, _): &(Group, Weight)| Some((group.stage?, group.attempt?));
    let ran = part.groups.iter().filter_map(|at| of(&profile.groups[*at]));
    let waited = part.waits.iter().filter_map(|at| of(&profile.waits[*at]));
    let mut attempts: Vec<Attempt> = part.stages.clone();
    for attempt in ran.chain(waited) {
        // Groups of an attempt follow each other mostly.
        if attempts.last() != Some(&attempt) {
            attempts.push(attempt);
        }
    }
    attempts.sort_unstable();
    attempts.dedup();
    attempts
}

/// The analysis of one query's samples.
pub(super) struct Analysis<'a> {
    costs: Costs<'a>,
    lines: NodeLines<'a>,
    attempts: Vec<Attempt>,
    rows: Rows,
}

impl<'a> Analysis<'a> {
    pub(super) fn new(profile: &'a Profile, part: &Part) -> Self {
        let costs = Costs::new(profile, part);
        let mut lines = NodeLines::default();
        for (group, attribution, cost) in &costs.stacks {
            lines.add(profile, group.stack, attribution, *cost);
        }
        Self {
            costs,
            lines,
            attempts: attempts(profile, part),
            rows: rows(profile, part),
        }
    }

    /// What its owners cost.
    pub(super) fn costs(&self) -> &Costs<'a> {
        &self.costs
    }

    /// Its digest for the verdict.
    pub(super) fn digest(&self, profile: &Profile, part: &Part) -> Digest {
        let nodes = part.plan(profile).map_or(&[][..], |plan| &plan.nodes);
        let costs = nodes.iter().zip(&self.costs.nodes).enumerate();
        let node = |(index, (node, share)): (usize, (&PlanNode, &Share))| NodeCost {
            index,
            id: node.id,
            operator: node.operator.clone(),
            cost: share.cost,
            evidence: share.evidence,
            rows: self.rows.out[index],
            rows_in: self.rows.got[index],
            hot_lines: self.lines.hottest(index, 0, &LineTexts::default()),
        };
        Digest {
            sampled: self.costs.sampled.clone(),
            nodes: costs.map(node).collect(),
        }
    }
}

/// Everything about one query.
pub(super) fn detail(
    profile: &Profile,
    part: &Part,
    analysis: &Analysis<'_>,
    tasks: &TasksByStage,
    names: &Names,
    texts: &LineTexts,
) -> QueryDetail {
    let Analysis {
        costs,
        lines,
        attempts,
        rows,
    } = analysis;
    let headings = costs.headings();
    let mut by_stage: HashMap<Attempt, Cost> = HashMap::new();
    let (mut operators_by_code, mut frames) = (Tree::default(), Tree::default());
    let mut hot = HotLines::default();
    for (group, attribution, cost) in &costs.stacks {
        let attempt = group.stage.zip(group.attempt);
        let stage = attempt.and_then(|attempt| {
            by_stage.entry(attempt).or_default().add(*cost);
            attempts.binary_search(&attempt).ok()
        });
        let mut base: Vec<Key> = Vec::new();
        base.extend(stage.map(|index| (FlameKind::Stage, index as u32)));
        if let Owner::Heading(name) = attribution.owner {
            let index = headings.iter().position(|heading| heading.name == name);
            base.extend(index.map(|index| (FlameKind::Heading, index as u32)));
        }
        let by_code = attribution.by_code().into_iter().map(operator);
        operators_by_code.add(base.iter().copied().chain(by_code), *cost);
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
    let operators = by_plan(profile, part, costs, &headings);
    // Lines with less than 1% of the query are not worth showing.
    let least = costs.total.cpu_ns / 100;
    QueryDetail {
        nodes: nodes(profile, part, costs, rows, |node| {
            lines.hottest(node, least, texts)
        }),
        headings,
        placed: costs.placed,
        stages: attempts.iter().map(stage).collect(),
        tasks: stages::columns(attempts.iter().map(task_rows).enumerate()),
        waiting_ns: (!profile.waits.is_empty()).then(|| {
            let shares = costs.nodes.iter().chain(costs.headings.values());
            shares.fold(0u64, |sum, share| sum.saturating_add(share.waiting_ns()))
        }),
        operators,
        operators_by_code: operators_by_code.into_flame(),
        frames: frames.into_flame(),
        sources: hot.into_sources(profile, part.execution.as_ref()),
    }
}

/// Operators below those that take their rows, and headings.
fn by_plan(profile: &Profile, part: &Part, costs: &Costs<'_>, headings: &[Heading]) -> Flame {
    let mut tree = Tree::default();
    let shares = costs.nodes.iter().enumerate();
    for (node, share) in shares.filter(|(_, share)| share.cost != Cost::default()) {
        let path = part.plan(profile).map(|plan| plan.path(node));
        tree.add(path.into_iter().flatten().map(operator), share.cost);
    }
    for (index, heading) in headings.iter().enumerate() {
        if heading.cost != Cost::default() {
            tree.add(
                std::iter::once((FlameKind::Heading, index as u32)),
                heading.cost,
            );
        }
    }
    tree.into_flame()
}

fn operator(node: usize) -> Key {
    (FlameKind::Operator, node as u32)
}

/// The frames of a stack, each followed by the operators that begin at it.
fn with_operators(frames: &[u32], begins: &[(usize, usize)]) -> Vec<Key> {
    let mut begins = begins.iter().peekable();
    let mut stack = Vec::with_capacity(frames.len() + begins.len());
    for (index, frame) in frames.iter().enumerate() {
        stack.push((FlameKind::Frame, *frame));
        while let Some((_, node)) = begins.next_if(|(begin, _)| *begin <= index) {
            stack.push(operator(*node));
        }
    }
    stack
}

fn nodes(
    profile: &Profile,
    part: &Part,
    costs: &Costs<'_>,
    rows: &Rows,
    hot_lines: impl Fn(usize) -> Vec<HotLine>,
) -> Vec<Node> {
    let Some(plan) = part.plan(profile) else {
        return Vec::new();
    };
    let total = |share: &Share| (share.cost, share.waiting_ns());
    let mut totals: Vec<(Cost, u64)> = costs.nodes.iter().map(total).collect();
    // Children come after their parent.
    for index in (0..totals.len()).rev() {
        if let Some(parent) = plan.nodes[index].parent {
            let (cost, waiting_ns) = totals[index];
            let total = &mut totals[parent];
            total.0.add(cost);
            total.1 = total.1.saturating_add(waiting_ns);
        }
    }
    let node = |(index, node): (usize, &PlanNode)| {
        let (share, range) = (&costs.nodes[index], costs.range(&costs.nodes[index]));
        let Operator { kind, passes, .. } = Operator::from_name(&node.operator);
        let per_row = |rows: Option<i64>| {
            let rows = rows.filter(|_| !passes);
            per_row(share.cost, range, costs.total, rows)
        };
        Node {
            id: node.id,
            parent: node.parent,
            operator: node.operator.clone(),
            kind,
            passes,
            detail: node.detail.clone(),
            codegen_stage: node.codegen_stage,
            replanned: index >= plan.planned,
            own: share.cost,
            own_range: range,
            total: totals[index].0,
            waits: share.waits(),
            total_waiting_ns: totals[index].1,
            stages: share.stages.iter().copied().collect(),
            rows: rows.out[index],
            rows_in: rows.got[index],
            ns_per_row_out: per_row(rows.out[index]),
            ns_per_row_in: per_row(rows.got[index]),
            hot_lines: hot_lines(index),
        }
    };
    plan.nodes.iter().enumerate().map(node).collect()
}

/// Rows of the query's operators.
pub(super) fn rows(profile: &Profile, part: &Part) -> Rows {
    let values = values(profile, part, &attempts(profile, part));
    let rows = part
        .plan(profile)
        .map(|plan| Rows::from_plan(plan, &values));
    rows.unwrap_or_default()
}

/// The accumulators of the query's stages. They only grow, so the greatest value is the last one.
fn values(profile: &Profile, part: &Part, attempts: &[Attempt]) -> HashMap<i64, i64> {
    let mut values: HashMap<i64, i64> = HashMap::new();
    for (stage, attempt) in attempts {
        let stage = profile
            .stages
            .get(&StageAttempt::new(&part.app, *stage, *attempt));
        if let Some(stage) = stage {
            add_values(&mut values, stage);
        }
    }
    values
}
