//! The time of a plan node, or of some stacks, in each task.

use std::collections::HashMap;

use unfuse_format::{ExecutionId, SampleKind, StackId, TaskRow};
use unfuse_postprocess::{
    Attributor, Operator, OperatorKind, Owner, Plan, TaskInterval, WaitReason,
};
use unfuse_sizing::what_if::{Part, PartKind};

use super::cache::CachedScan;
use crate::text::{list, shorten};
use crate::{Report, ReportError};

/// A task with fewer samples of CPU time than this has its stage's share.
const FEWEST_SAMPLES: u64 = 30;
/// The least that a second less of a fused operator saves: it worked while others of its loop waited for their results
/// (docs/accuracy.md, *Which question a share answers*).
const LEAST_OF_FUSED: f64 = 0.5;

/// What a stack says of the node.
#[derive(Clone, Copy, Default)]
struct Claim {
    owns: bool,
    /// Another node may own it, or this one if another does.
    is_doubtful: bool,
}

/// A stack of a stage attempt.
pub(crate) type StackOfStage = (i32, i32, StackId);

/// CPU time, ns.
#[derive(Clone, Copy, Default)]
struct Cpu {
    own_ns: u64,
    all_ns: u64,
    samples: u64,
}

/// The time of a plan node, or of some stacks, in the tasks of a query.
#[derive(Default)]
pub(super) struct OperatorTime {
    node: i32,
    is_fused: bool,
    claims: HashMap<StackOfStage, Claim>,
    tasks: HashMap<i64, Cpu>,
    stages: HashMap<(i32, i32), Cpu>,
    /// Samples of the node in each stage.
    own_samples: HashMap<(i32, i32), u64>,
    /// Waits for what the node gets from elsewhere, ns: for Python workers, of a node that calls Python, or for files.
    waits: HashMap<i64, u64>,
    /// The reasons of these waits.
    reasons: &'static [WaitReason],
    /// How much less of its time there is if it is a scan that reads cached rows.
    cached: Option<CachedScan>,
    own_ns: u64,
    doubtful_ns: u64,
    possible_ns: u64,
}

impl OperatorTime {
    /// The node of a query's plan, without its samples yet.
    ///
    /// # Errors
    /// If the plan has no such node, or the profile has no samples of it.
    pub(super) fn new(
        report: &Report<'_>,
        app: &str,
        query: i64,
        node: i32,
        cached: Option<CachedScan>,
    ) -> Result<Self, ReportError> {
        let refused = |text: String| Err(ReportError::Refused(text));
        let profile = report.profile;
        let Some((plan, part)) = plan_and_part(report, app, query) else {
            return refused(format!(
                "query {query} has no plan in the profile, so no operator {node}"
            ));
        };
        let Some(at) = plan.nodes.iter().position(|known| known.id == node) else {
            let known = plan
                .nodes
                .iter()
                .map(|node| format!("{} {}", node.id, node.operator));
            let known: Vec<String> = known.map(|text| shorten(&text, 40)).collect();
            return refused(format!(
                "the plan of query {query} has no node {node}; it has {}",
                list(&known)
            ));
        };
        let known = &plan.nodes[at];
        let mut attributor = Attributor::new(profile);
        let mut claims: HashMap<StackOfStage, Claim> = HashMap::new();
        let groups = part.groups.iter().map(|at| &profile.groups[*at].0);
        let reasons: &'static [WaitReason] = match cached {
            Some(_) => &[WaitReason::DiskRead, WaitReason::Network],
            None if Operator::from_name(&known.operator).kind == OperatorKind::Python => {
                &[WaitReason::Python]
            }
            None => &[],
        };
        let waits = part.waits.iter().map(|at| &profile.waits[*at].0);
        let waits = waits.filter(|group| reasons.contains(&profile.waiting(group)));
        for group in groups.chain(waits) {
            let (Some(stage), Some(attempt)) = (group.stage, group.attempt) else {
                continue;
            };
            let found = attributor.attribute(group);
            let owns = matches!(found.owner, Owner::Node(_, owner) if owner == at);
            let claim = Claim {
                owns,
                is_doubtful: if owns {
                    !found.also.is_empty()
                } else {
                    found.also.contains(&at)
                },
            };
            let is_cpu = group.kind == SampleKind::Cpu;
            if owns || (is_cpu && claim.is_doubtful) {
                claims.insert((stage, attempt, group.stack), claim);
            }
        }
        if !claims.values().any(|claim| claim.owns) {
            return refused(format!(
                "operator {node} ({}) of query {query} has no samples, so its time is not known",
                known.operator
            ));
        }
        Ok(Self {
            node,
            is_fused: known.codegen_stage.is_some(),
            claims,
            reasons,
            cached,
            ..Self::default()
        })
    }

    /// Some stacks of a query, without their samples yet.
    pub(super) fn from_stacks(stacks: impl IntoIterator<Item = StackOfStage>) -> Self {
        let claim = Claim {
            owns: true,
            is_doubtful: false,
        };
        Self {
            claims: stacks.into_iter().map(|stack| (stack, claim)).collect(),
            ..Self::default()
        }
    }

    /// Adds what a task did in an interval.
    pub(super) fn add(&mut self, interval: &TaskInterval) {
        if interval.in_python {
            return;
        }
        let place = (interval.stage, interval.attempt);
        let claim = self.claims.get(&(place.0, place.1, interval.stack));
        let claim = claim.copied().unwrap_or_default();
        if let Some(reason) = interval.waiting {
            if claim.owns && self.reasons.contains(&reason) {
                add(self.waits.entry(interval.task).or_default(), interval.ns);
            }
            return;
        }
        for cpu in [
            self.tasks.entry(interval.task).or_default(),
            self.stages.entry(place).or_default(),
        ] {
            add(&mut cpu.all_ns, interval.ns);
            add(&mut cpu.samples, interval.samples);
            if claim.owns {
                add(&mut cpu.own_ns, interval.ns);
            }
        }
        if claim.owns {
            add(&mut self.own_ns, interval.ns);
            add(self.own_samples.entry(place).or_default(), interval.samples);
        }
        match (claim.owns, claim.is_doubtful) {
            (true, true) => add(&mut self.doubtful_ns, interval.ns),
            (false, true) => add(&mut self.possible_ns, interval.ns),
            _ => {}
        }
    }

    /// The node's time in a task, s.
    pub(super) fn seconds(&self, place: (i32, i32), task: &TaskRow, by_stage: bool) -> f64 {
        // Those of a scan are a part of their own.
        let waits = match self.cached {
            Some(_) => 0.0,
            None => self.wait(task),
        };
        let own = self.tasks.get(&task.task).filter(|_| !by_stage);
        let ns = match own.filter(|cpu| cpu.samples >= FEWEST_SAMPLES) {
            Some(cpu) => cpu.own_ns as f64,
            None => {
                let share = self.stages.get(&place).map_or(0.0, Cpu::share);
                share * task.cpu_ns.max(0) as f64
            }
        };
        ns / 1e9 + waits
    }

    /// How long a task waited for what the node gets from elsewhere, s.
    fn wait(&self, task: &TaskRow) -> f64 {
        self.waits.get(&task.task).copied().unwrap_or(0) as f64 / 1e9
    }

    /// The node's times in a task, in the order of [`Self::parts`], s.
    pub(super) fn all_seconds(
        &self,
        place: (i32, i32),
        task: &TaskRow,
        by_stage: bool,
        cpu_wait: f64,
    ) -> Vec<f64> {
        let mut all = vec![
            self.seconds(place, task, by_stage),
            self.cpu_wait(place, task, by_stage, cpu_wait),
        ];
        all.extend(self.cached.map(|_| self.wait(task)));
        all
    }

    /// What a task that waited `cpu_wait` for a CPU would have waited less without the node, s: it waited while it had work,
    /// whichever node's.
    pub(super) fn cpu_wait(
        &self,
        place: (i32, i32),
        task: &TaskRow,
        by_stage: bool,
        cpu_wait: f64,
    ) -> f64 {
        let own = self.tasks.get(&task.task).filter(|_| !by_stage);
        let own = own.filter(|cpu| cpu.samples >= FEWEST_SAMPLES);
        let cpu = own.or_else(|| self.stages.get(&place));
        cpu_wait * cpu.map_or(0.0, Cpu::share)
    }

    /// The number of its samples in each of some stages.
    pub(super) fn samples(&self, stages: &[(i32, i32)]) -> Vec<u64> {
        let own = stages.iter().map(|place| self.own_samples.get(place));
        own.map(|samples| samples.copied().unwrap_or(0)).collect()
    }

    /// How well the node's time, and its waits for a CPU, are known in the stages of an application.
    pub(super) fn parts(&self, stages: &[(i32, i32)]) -> Vec<Part> {
        let own = self.own_ns.max(1) as f64;
        let least = 1.0 - (self.doubtful_ns as f64 / own).min(1.0);
        let fused = if self.is_fused { LEAST_OF_FUSED } else { 1.0 };
        let most = 1.0 + self.possible_ns as f64 / own;
        let range = self.cached.map_or((least * fused, most), |scan| {
            scan.range(least * fused, most)
        });
        let part = |kind| Part {
            range,
            samples: self.samples(stages),
            ..Part::new(kind)
        };
        let mut parts = vec![
            part(PartKind::Operator(self.node)),
            part(PartKind::OperatorCpuWait(self.node)),
        ];
        parts.extend(
            self.cached
                .map(|_| Part::new(PartKind::ScanWait(self.node))),
        );
        parts
    }
}

impl Cpu {
    fn share(&self) -> f64 {
        self.own_ns as f64 / self.all_ns.max(1) as f64
    }
}

fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// The plan of a query, and where its data is.
pub(super) fn plan_and_part<'a>(
    report: &'a Report<'_>,
    app: &str,
    query: i64,
) -> Option<(&'a Plan, &'a crate::Part)> {
    let execution = ExecutionId::new(app, query);
    let mut parts = report.parts.iter();
    let part = parts.find(|part| part.execution.as_ref() == Some(&execution))?;
    Some((part.plan(report.profile)?, part))
}

/// CPU time of each node of a plan in tasks, ns.
pub(super) fn cpu_of_nodes(report: &Report<'_>, plan: &Plan, part: &crate::Part) -> Vec<u64> {
    let mut nodes = vec![0u64; plan.nodes.len()];
    let mut attributor = Attributor::new(report.profile);
    for (group, weight) in part.groups.iter().map(|at| &report.profile.groups[*at]) {
        if let Owner::Node(_, node) = attributor.attribute(group).owner
            && group.stage.is_some()
            && let Some(ns) = nodes.get_mut(node)
        {
            add(ns, weight.ns);
        }
    }
    nodes
}

/// The nodes of a query's plan with the most CPU time in tasks, by their numbers.
pub(super) fn largest(report: &Report<'_>, app: &str, query: i64, count: usize) -> Vec<i32> {
    let Some((plan, part)) = plan_and_part(report, app, query) else {
        return Vec::new();
    };
    let nodes = cpu_of_nodes(report, plan, part);
    let mut used: Vec<usize> = (0..nodes.len()).filter(|node| nodes[*node] > 0).collect();
    used.sort_by_key(|node| (std::cmp::Reverse(nodes[*node]), *node));
    used.truncate(count);
    used.into_iter().map(|node| plan.nodes[node].id).collect()
}
