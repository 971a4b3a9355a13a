//! Where the wall time of one run of a query went.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use unfuse_format::{StageAttempt, TaskRow};
use unfuse_postprocess::{
    Group, Operator, OperatorKind, Owner, PYTHON_THREAD, PlanNode, Profile, WaitReason, Weight,
    line_name, normalised, python_line,
};

use super::metrics::{self, Basis};
use super::slots::{self, Executors};
use super::timeline::{Gaps, Part as StagePart, Span, divide};
use crate::calls::is_spill;
use crate::numbered::{Key, Numbered};
use crate::query::{self, Costs};
use crate::stages::{self, Attempt};
use crate::{Part, Report};

/// What took a part of the wall time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// No stage ran yet.
    Planning,
    /// No stage ran between two.
    BetweenStages,
    /// No stage ran any more.
    AfterStages,
    /// CPU time of an operator.
    Operator(Key),
    /// CPU time of tasks in no operator.
    Heading(&'static str),
    /// CPU time of the tasks of stages with these operators, by Spark's metrics.
    StageCpu(String),
    /// Tasks waited.
    Wait(WaitReason),
    /// Tasks spilled to disk, or read that back.
    Spill,
    /// Slots had tasks of other queries.
    TakenSlots,
    /// Slots had no task because the stage has too few.
    FewTasks,
    /// Slots had no task because the others of the stage were done.
    LastTasks,
    /// Tasks were launched and did not run yet, or had ended and the driver did not know.
    Scheduling,
    /// Tasks that failed.
    FailedTasks,
    /// Tasks ran, and what they did is not in the profile.
    Unknown,
    /// Tasks waited, and Spark's metrics do not say for what.
    UnknownWait,
}

impl Cause {
    /// Whether tasks occupied slots with it, so that it takes longer with fewer slots.
    pub(super) fn is_busy(&self) -> bool {
        matches!(
            self,
            Self::Operator(_)
                | Self::Heading(_)
                | Self::StageCpu(_)
                | Self::Wait(_)
                | Self::Spill
                | Self::FailedTasks
                | Self::Unknown
                | Self::UnknownWait
        )
    }
}

/// Seconds of wall time, with their variance as an estimate from samples, s².
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Amount {
    pub(super) s: f64,
    pub(super) variance: f64,
}

impl Amount {
    /// An amount that is no estimate.
    pub(super) fn exact(s: f64) -> Self {
        Self { s, variance: 0.0 }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.s += other.s;
        self.variance += other.variance;
    }
}

/// What is known of an operator of the plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct OperatorFacts {
    pub(super) id: i32,
    pub(super) name: String,
    pub(super) kind: OperatorKind,
    pub(super) passes: bool,
    /// Whether it is fused into a generated loop.
    pub(super) fused: bool,
    /// The generated loop in which it works: its own, or for a scan the one that takes its rows.
    pub(super) generated_loop: Option<i32>,
    /// Rows that it got, or else put out.
    pub(super) rows: Option<i64>,
    /// Rows that it put out.
    pub(super) kept: Option<i64>,
}

/// CPU time of lines of Python code, ns, by operator.
pub(super) type PythonLines = BTreeMap<Key, BTreeMap<String, f64>>;

/// A run of a query.
#[derive(Debug, Clone, Default)]
pub(crate) struct Run {
    pub(super) wall_s: f64,
    /// They add up to the wall time.
    pub(super) parts: BTreeMap<Cause, Amount>,
    pub(super) operators: BTreeMap<Key, OperatorFacts>,
    /// Lines in Python workers.
    pub(super) python: PythonLines,
    /// Slots when it began.
    pub(super) slots: f64,
    /// Number of its tasks.
    pub(super) tasks: usize,
    /// Bytes that tasks read of files.
    pub(super) read_bytes: i64,
    /// The largest heap of its JVMs, bytes; 0 if it is not known.
    pub(super) heap_bytes: u64,
    /// The part of its waits for CPUs that garbage collection caused, 0 to 1.
    pub(super) collected: f64,
    /// The other query that had most slots meanwhile.
    pub(super) beside: Option<String>,
}

/// CPU time or waits, ns, and on how many samples they rest; waits are measured one by one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sampled {
    pub(super) ns: f64,
    pub(super) samples: f64,
}

impl Run {
    /// The run at a position of a report's list; none where its start or end is not known.
    pub(super) fn from_samples(
        report: &Report<'_>,
        at: usize,
        executors: &Executors,
        basis: Basis,
    ) -> Option<Self> {
        let costs = Costs::new(report.profile, &report.parts[at]);
        Self::new(report, at, executors, &costs, basis)
    }

    /// The same from the costs of the run.
    pub(crate) fn new(
        report: &Report<'_>,
        at: usize,
        executors: &Executors,
        costs: &Costs<'_>,
        basis: Basis,
    ) -> Option<Self> {
        let (profile, part) = (report.profile, &report.parts[at]);
        let summary = &report.summary.queries[at];
        let (from, duration) = summary.started_ms.zip(summary.duration_ms)?;
        let to = from.saturating_add(duration);
        let attempts = query::attempts(profile, part);
        let tasks = |attempt: &Attempt| {
            let key = StageAttempt::new(&part.app, attempt.0, attempt.1);
            report.tasks.get(&key).map_or(&[][..], Vec::as_slice)
        };
        let spans: Vec<Span> = attempts
            .iter()
            .map(|attempt| span(profile, part, *attempt, tasks(attempt)))
            .collect();
        let slots = executors
            .slots(&part.app, from)
            .unwrap_or_else(|| most_at_once(&spans));
        let others = executors.others(&part.app, summary.query, (from, to));
        let times: Vec<(i64, i64)> = others.iter().map(|other| other.span).collect();
        let (stages, gaps) = divide((from, to), &spans, &times, slots);
        let (operators, keys) = operators(profile, part, costs);
        let sampled = if basis == Basis::Samples {
            sampled(profile, part, costs, &keys)
        } else {
            let updated = metrics::Updated::new(part.plan(profile));
            let causes = |attempt: &Attempt| {
                let key = StageAttempt::new(&part.app, attempt.0, attempt.1);
                let stage = profile.stages.get(&key).map(|stage| &stage.accumulators);
                let operators = updated.operators(stage);
                (*attempt, metrics::causes(&operators, tasks(attempt)))
            };
            attempts.iter().map(causes).collect()
        };
        let mut run = Self {
            wall_s: duration as f64 / 1e3,
            operators,
            python: python_lines(profile, costs, &keys),
            slots,
            heap_bytes: executors.heap_bytes(&part.app, (from, to)),
            beside: slots::main_query(profile, &part.app, &others, (from, to)),
            ..Self::default()
        };
        run.add_gaps(gaps);
        for (attempt, stage) in attempts.iter().zip(stages) {
            let nothing = BTreeMap::new();
            let sampled = sampled.get(attempt).unwrap_or(&nothing);
            run.add_stage(stage, tasks(attempt), sampled, basis);
        }
        Some(run)
    }

    fn add(&mut self, cause: Cause, amount: Amount) {
        if amount.s > 0.0 {
            self.parts.entry(cause).or_default().add(amount);
        }
    }

    fn add_gaps(&mut self, gaps: Gaps) {
        for (cause, ms) in [
            (Cause::Planning, gaps.before),
            (Cause::BetweenStages, gaps.between),
            (Cause::AfterStages, gaps.after),
        ] {
            self.add(cause, Amount::exact(ms / 1e3));
        }
    }

    /// Divides a stage's part of the wall time in proportion to what its slots did.
    fn add_stage(
        &mut self,
        stage: StagePart,
        tasks: &[TaskRow],
        sampled: &BTreeMap<Cause, Sampled>,
        basis: Basis,
    ) {
        let times = TaskTimes::new(tasks);
        self.read_bytes += times.read_bytes;
        self.tasks += tasks.len();
        let sampled_ms = sampled.values().map(|sampled| sampled.ns).sum::<f64>() / 1e6;
        // Without the driver's word on tasks, what was sampled in them is all there is.
        let busy = if tasks.is_empty() {
            sampled_ms
        } else {
            times.all
        };
        let whole = busy + stage.idle;
        if whole <= 0.0 {
            return self.add(Cause::Unknown, Amount::exact(stage.wall / 1e3));
        }
        let seconds = stage.wall / whole / 1e3;
        // On slots of its own, the stage would still need as long as its longest task, and as its tasks on all slots.
        let least = times.longest.max(busy / self.slots.max(1.0));
        let most_taken = self.slots * (stage.wall - least).max(0.0);
        let taken = stage.taken.min(most_taken);
        self.add(Cause::TakenSlots, Amount::exact(taken * seconds));
        let idle = (stage.idle - taken).max(0.0);
        // Slots that no task of the stage could have used, however long the others took.
        let few = (self.slots - tasks.len() as f64).max(0.0) * stage.wall;
        let few = few.min(idle);
        self.add(Cause::FewTasks, Amount::exact(few * seconds));
        self.add(Cause::LastTasks, Amount::exact((idle - few) * seconds));
        self.add(Cause::Scheduling, Amount::exact(times.delay * seconds));
        self.add(Cause::FailedTasks, Amount::exact(times.failed * seconds));
        // Samples of tasks that failed are among the others.
        let ran = (busy - times.delay - times.failed).max(0.0);
        let scale = if sampled_ms > ran {
            ran / sampled_ms
        } else {
            1.0
        };
        for (cause, Sampled { ns, samples }) in sampled {
            let s = ns / 1e6 * scale * seconds;
            let variance = if *samples > 0.0 { s * s / samples } else { 0.0 };
            self.add(cause.clone(), Amount { s, variance });
        }
        let rest = match basis {
            Basis::Samples => Cause::Unknown,
            Basis::Metrics => Cause::UnknownWait,
        };
        self.add(rest, Amount::exact((ran - sampled_ms * scale) * seconds));
    }
}

/// Sums over the tasks of a stage, slot-ms.
#[derive(Default)]
struct TaskTimes {
    all: f64,
    longest: f64,
    /// Of tasks that did not fail: before they ran and after.
    delay: f64,
    failed: f64,
    read_bytes: i64,
}

impl TaskTimes {
    fn new(tasks: &[TaskRow]) -> Self {
        let mut times = Self::default();
        for task in tasks {
            let all = stages::duration_ms(task) as f64;
            times.all += all;
            times.longest = times.longest.max(all);
            if stages::has_failed(task) {
                times.failed += all;
                continue;
            }
            times.delay += stages::delay_ms(task) as f64;
            times.read_bytes = times.read_bytes.saturating_add(task.input_bytes.max(0));
        }
        times
    }
}

/// When a stage attempt ran: as the driver says, or else as its tasks do.
fn span(profile: &Profile, part: &Part, attempt: Attempt, tasks: &[TaskRow]) -> Span {
    let known = profile
        .stages
        .get(&StageAttempt::new(&part.app, attempt.0, attempt.1));
    let launched = tasks.iter().map(|task| task.launched_ms).min();
    let finished = tasks.iter().map(|task| task.finished_ms).max();
    let from = known.and_then(|known| known.submitted_ms).or(launched);
    let to = known.and_then(|known| known.completed_ms).or(finished);
    let (from, to) = from.zip(to).unwrap_or_default();
    Span {
        from,
        to: to.max(from),
        tasks: tasks
            .iter()
            .map(|task| (task.launched_ms, task.finished_ms))
            .collect(),
    }
}

/// The most tasks that ran at one time; at least 1.
fn most_at_once(spans: &[Span]) -> f64 {
    let mut changes: Vec<(i64, i32)> = Vec::new();
    for (launched, finished) in spans.iter().flat_map(|span| &span.tasks) {
        changes.extend([(*launched, 1), (*finished, -1)]);
    }
    changes.sort_unstable();
    let (mut now, mut most) = (0, 1);
    for (_, change) in changes {
        now += change;
        most = most.max(now);
    }
    f64::from(most)
}

/// The operators of the plan, and the key of each node.
fn operators(
    profile: &Profile,
    part: &Part,
    costs: &Costs<'_>,
) -> (BTreeMap<Key, OperatorFacts>, Vec<Key>) {
    let plan = part.plan(profile);
    let nodes = plan.map_or(&[][..], |plan| &plan.nodes);
    let dropped = plan.map_or_else(BTreeSet::new, |plan| costs.dropped_codegen_stages(plan));
    let rows = query::rows(profile, part);
    let (mut facts, mut keys) = (BTreeMap::new(), Vec::new());
    let mut numbered = Numbered::default();
    for (at, node) in nodes.iter().enumerate() {
        let Operator { kind, passes, .. } = Operator::from_name(&node.operator);
        let key = numbered.key(key_text(node, kind));
        let count = |of: &[Option<i64>]| of.get(at).copied().flatten();
        let in_loop = |node: &PlanNode| node.codegen_stage.filter(|stage| !dropped.contains(stage));
        let above = node.parent.and_then(|parent| nodes.get(parent));
        let feeds = above.filter(|_| kind == OperatorKind::Scan);
        let of = OperatorFacts {
            id: node.id,
            name: node.operator.clone(),
            kind,
            passes,
            fused: in_loop(node).is_some(),
            generated_loop: in_loop(node).or_else(|| feeds.and_then(in_loop)),
            rows: count(&rows.got).or_else(|| count(&rows.out)),
            kept: count(&rows.out),
        };
        facts.insert(key.clone(), of);
        keys.push(key);
    }
    (facts, keys)
}

/// What an operator does, without what differs from run to run. Of a scan the columns count, and whether filters are pushed down to
/// it: the rest of its text says where the data is, and is cut.
fn key_text(node: &PlanNode, kind: OperatorKind) -> String {
    if kind != OperatorKind::Scan {
        return normalised(&format!("{}\n{}", node.operator, node.detail));
    }
    let columns = node
        .detail
        .split_once(']')
        .map_or(&*node.detail, |(before, _)| before);
    let pushes = |what: &str| !node.detail.contains(&format!("{what}: []"));
    let filters = (pushes("PartitionFilters"), pushes("PushedFilters"));
    normalised(&format!("{}\n{columns} {filters:?}", node.operator))
}

/// The lines of Python code that the workers of operators ran.
fn python_lines(profile: &Profile, costs: &Costs<'_>, keys: &[Key]) -> PythonLines {
    let mut lines = PythonLines::new();
    for (group, attribution, cost) in &costs.stacks {
        let Owner::Node(_, node) = attribution.owner else {
            continue;
        };
        let frames = profile.stacks.get(&group.stack).map_or(&[][..], |f| f);
        if let Some(at) = python_line(frames) {
            let of = lines.entry(keys[node].clone()).or_default();
            *of.entry(line_name(&frames[at])).or_default() += cost.cpu_ns as f64;
        }
    }
    lines
}

/// What a sum of samples or waits is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Sum {
    /// A node of the plan.
    Node(usize),
    Heading(&'static str),
    Wait(WaitReason),
    Spill,
}

/// What was sampled in the tasks of each stage attempt.
fn sampled(
    profile: &Profile,
    part: &Part,
    costs: &Costs<'_>,
    keys: &[Key],
) -> HashMap<Attempt, BTreeMap<Cause, Sampled>> {
    // First by the plain numbers of owners: an operator's key is a long text.
    let mut sums: HashMap<(Attempt, Sum), Sampled, ahash::RandomState> = HashMap::default();
    let mut add = |group: &Group, of: Sum, ns: u64, samples: u64| {
        if let Some(attempt) = group.stage.zip(group.attempt) {
            let sum = sums.entry((attempt, of)).or_default();
            sum.ns += ns as f64;
            sum.samples += samples as f64;
        }
    };
    let spills = |group: &Group| {
        let frames = profile.stacks.get(&group.stack);
        frames.is_some_and(|frames| is_spill(frames))
    };
    // While a Python worker computes, the task waits for it, or has work of its own.
    let in_jvm = costs.stacks.iter();
    let in_jvm = in_jvm.filter(|(group, ..)| &*group.thread != PYTHON_THREAD);
    for (group, attribution, cost) in in_jvm {
        let of = match attribution.owner {
            Owner::Node(..) if spills(group) => Sum::Spill,
            Owner::Node(_, node) => Sum::Node(node),
            Owner::Heading(heading) => Sum::Heading(heading),
        };
        add(group, of, cost.cpu_ns, cost.samples);
    }
    for (group, Weight { ns, .. }) in part.waits.iter().map(|at| &profile.waits[*at]) {
        let of = match profile.waiting(group) {
            WaitReason::DiskRead | WaitReason::DiskWrite if spills(group) => Sum::Spill,
            reason => Sum::Wait(reason),
        };
        add(group, of, *ns, 0);
    }
    let mut sampled: HashMap<Attempt, BTreeMap<Cause, Sampled>> = HashMap::new();
    for ((attempt, of), sum) in sums {
        let cause = match of {
            Sum::Node(node) => Cause::Operator(keys[node].clone()),
            Sum::Heading(heading) => Cause::Heading(heading),
            Sum::Wait(reason) => Cause::Wait(reason),
            Sum::Spill => Cause::Spill,
        };
        sampled.entry(attempt).or_default().insert(cause, sum);
    }
    sampled
}
