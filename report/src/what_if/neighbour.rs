//! The waits of a query's tasks that a neighbour caused, as `unfuse blame` attributes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use unfuse_contention::{
    Blame, BlockedTime, Culprit, Explanation, Input, Kind, Options, QueryId, Resource, Split,
    StageId, StageIndex, TaskId, TaskWaits, VictimStages, Workload,
};
use unfuse_format::{ExecutionId, TaskRow};
use unfuse_sizing::what_if::{Application, Estimate, Group, Model, Part, PartKind};

use super::driver::{Driver, used_cpus};
use super::profile::{Source, SpanMs, ms_within, ran_s};
use super::warning;
use crate::{Report, ReportError, stages};

/// The span of what is always there.
const ALWAYS: SpanMs = (i64::MIN, i64::MAX);

/// The least and the most that the wall time becomes shorter for each second that is attributed to a neighbour: waits are shared
/// out by use, and without one neighbour others use more (docs/contention.md, *Seconds of the victim*).
pub(crate) const DIVISION: (f64, f64) = (0.6, 1.5);

/// What a neighbour costs the tasks of a query.
pub(crate) struct Neighbour {
    /// A query or the jobs outside SQL of the same application, or another one.
    kind: PartKind,
    /// While it ran, and always: what it holds lasts longer than itself.
    spans: [SpanMs; 2],
    /// Whether its slots would be of use to the victim: CPUs were idle, or it used them itself.
    frees_slots: bool,
    /// Waits of each stage because of it, for each of these spans, without those in `tasks`.
    stages: BTreeMap<Place, [CausedWaits; 2]>,
    /// Waits of single tasks because of it, s, by Spark's id of the task.
    tasks: BTreeMap<(Place, i64), f64>,
    /// The share of the driver's time that it costs.
    driver: f64,
    /// CPUs that it used, on average, while the victim ran.
    cpus: f64,
    /// Of all queries beside the victim, see [`VictimWaits`].
    runnable: Arc<Runnable>,
}

/// The share of their tasks' time in which queries of an application had or waited for a CPU, by SQL execution; none is for jobs
/// outside SQL.
type Runnable = BTreeMap<Option<i64>, f64>;

/// Number and attempt of a stage of the victim.
type Place = (i32, i32);

/// Waits of a stage because of a neighbour.
#[derive(Clone, Copy, Default)]
struct CausedWaits {
    /// Blocked time, s.
    blocked: f64,
    /// Time that the stage's tasks ran beside the neighbour, s.
    beside: f64,
}

impl Neighbour {
    /// Asks who made a query's tasks wait.
    ///
    /// # Errors
    /// If there is no such neighbour, it did not run beside the query, or contention cannot be analysed.
    pub(super) fn new(
        report: &Report<'_>,
        app: &str,
        victim: i64,
        query: i64,
    ) -> Result<Self, ReportError> {
        let refused = |text: String| Err(ReportError::Refused(text));
        let profile = report.profile;
        if query == victim {
            return refused(format!("query {query} cannot be without itself"));
        }
        let Some(span) = span_of(report, app, query) else {
            return refused(format!(
                "the application of query {victim} has no query {query}"
            ));
        };
        let own = span_of(report, app, victim).unwrap_or(ALWAYS);
        if span.0 >= own.1 || span.1 <= own.0 {
            return refused(format!(
                "query {query} did not run at the same time as query {victim}"
            ));
        }
        let mut index = StageIndex::read(profile)?;
        let names = [victim, query].map(|query| index.query(&query.to_string()));
        let [Some(of_victim), Some(of_query)] = names else {
            return refused(format!("query {query} or query {victim} has no stages"));
        };
        let mut input = index.input(BlockedTime::Measured, Some(&BTreeSet::from([of_victim])))?;
        if !input.waits_known {
            return refused(
                "the profile has no waits, so who made a query wait is not known".to_owned(),
            );
        }
        let workload = Workload::new(std::mem::take(&mut input.tables))?;
        let asked = (of_victim, Split::default());
        let victim = VictimWaits::new(report, app, &workload, &input, asked)?;
        let culprit = Culprit::Query(of_query);
        let kind = PartKind::Query(query);
        Ok(Self::from_waits(report, &victim, culprit, kind))
    }

    /// From what a victim's tasks waited for. `kind` is [`PartKind::Query`] or [`PartKind::Jobs`] if the culprit is one of the same
    /// application, else [`PartKind::Other`]; all but queries count as being there all the time.
    pub(crate) fn from_waits(
        report: &Report<'_>,
        victim: &VictimWaits<'_>,
        culprit: Culprit,
        kind: PartKind,
    ) -> Self {
        let app = victim.app;
        let span = match kind {
            PartKind::Query(query) => span_of(report, app, query),
            _ => None,
        };
        let mut neighbour = Self {
            kind,
            spans: [span.unwrap_or(ALWAYS), ALWAYS],
            frees_slots: victim.frees_slots(culprit),
            stages: BTreeMap::new(),
            tasks: victim.tasks.get(&culprit).cloned().unwrap_or_default(),
            driver: victim.driver.share(culprit),
            cpus: victim.cpus.get(&culprit).copied().unwrap_or(0.0),
            runnable: Arc::clone(&victim.runnable),
        };
        let mut lengthened: BTreeMap<Place, Lengthened> = BTreeMap::new();
        for path in victim.paths.get(&culprit).into_iter().flatten() {
            let lasts = path.resource == Resource::Memory || path.kind == Kind::Pause;
            let waits = neighbour.stages.entry(place_of(path.stage)).or_default();
            waits[usize::from(lasts)].blocked += path.seconds;
            lengthened
                .entry(place_of(path.stage))
                .or_default()
                .add(path);
        }
        for ((place, _), own) in &neighbour.tasks {
            let waits = neighbour.stages.entry(*place).or_default();
            waits[0].blocked = (waits[0].blocked - own).max(0.0);
        }
        for (place, own) in lengthened {
            let all = victim.stages.get(&place).copied().unwrap_or_default();
            let waits = neighbour.stages.entry(place).or_default();
            waits[0].blocked += all.lengthened_by(own);
        }
        for (id, tasks) in report.tasks.iter().filter(|(id, _)| id.app == app) {
            let Some(waits) = neighbour.stages.get_mut(&(id.stage, id.attempt)) else {
                continue;
            };
            for (waits, span) in waits.iter_mut().zip(neighbour.spans) {
                waits.beside = tasks.iter().map(|task| beside_s(span, task)).sum();
            }
            let [during, always] = waits;
            if during.beside <= 0.0 {
                always.blocked += std::mem::take(&mut during.blocked);
            }
        }
        neighbour
    }

    /// How long a task waited because of it, s: the task's own waits, and its part of the stage's, in proportion to how long it
    /// ran beside the neighbour.
    pub(super) fn seconds(&self, place: Place, task: &TaskRow) -> f64 {
        let own = self.tasks.get(&(place, task.task)).copied().unwrap_or(0.0);
        let waits = self.stages.get(&place).copied().unwrap_or_default();
        let seconds = waits.iter().zip(self.spans);
        let seconds = seconds.filter(|(waits, _)| waits.beside > 0.0);
        let seconds =
            seconds.map(|(waits, span)| waits.blocked * beside_s(span, task) / waits.beside);
        (own + seconds.sum::<f64>()).min(ran_s(task))
    }

    /// The part of the tasks' times.
    pub(super) fn part(&self) -> Part {
        Part {
            range: DIVISION,
            frees_slots: self.frees_slots,
            driver: self.driver,
            cpus: self.cpus,
            ..Part::new(self.kind)
        }
    }
}

/// What a victim's tasks waited for, whoever caused it.
pub(crate) struct VictimWaits<'a> {
    app: &'a str,
    /// The paths to its waits, by culprit.
    paths: BTreeMap<Culprit, Vec<Explanation>>,
    stages: BTreeMap<Place, Lengthened>,
    /// Waits of single tasks whose cause is known, s, by Spark's id of the task.
    tasks: BTreeMap<Culprit, BTreeMap<(Place, i64), f64>>,
    driver: Driver,
    /// CPUs that each culprit used, on average.
    cpus: BTreeMap<Culprit, f64>,
    slots_help: bool,
    demands: BTreeMap<QueryId, CpuDemand>,
    runnable: Arc<Runnable>,
}

impl<'a> VictimWaits<'a> {
    /// Of a query of an application.
    ///
    /// # Errors
    /// If it would take too long.
    pub(crate) fn new(
        report: &Report<'_>,
        app: &'a str,
        workload: &Workload,
        input: &Input,
        (victim, split): (QueryId, Split),
    ) -> Result<Self, ReportError> {
        let (all, of_tasks) = caused_waits(workload, victim, split)?;
        let mut stages: BTreeMap<Place, Lengthened> = BTreeMap::new();
        let mut paths: BTreeMap<Culprit, Vec<Explanation>> = BTreeMap::new();
        for path in all {
            stages.entry(place_of(path.stage)).or_default().add(&path);
            paths.entry(path.culprit).or_default().push(path);
        }
        let mut tasks: BTreeMap<Culprit, BTreeMap<(Place, i64), f64>> = BTreeMap::new();
        for ((task, culprit), seconds) in of_tasks {
            if let (Some(row), Some(number)) = (workload.task(task), input.spark_tasks.get(&task)) {
                let its = tasks.entry(culprit).or_default();
                *its.entry((place_of(row.stage), *number)).or_default() += seconds;
            }
        }
        for (id, tasks) in report.tasks.iter().filter(|(id, _)| id.app == app) {
            if let Some(waits) = stages.get_mut(&(id.stage, id.attempt)) {
                waits.ran = tasks
                    .iter()
                    .map(|task| stages::cpu_ns(task) as f64 / 1e9)
                    .sum();
            }
        }
        let demands = cpu_demands(workload);
        let executions = input.executions.iter();
        let runnable = executions.filter_map(|((of, execution), query)| {
            let demand = demands.get(query).filter(|_| of == app)?;
            Some((*execution, demand.runnable()))
        });
        Ok(Self {
            app,
            runnable: Arc::new(runnable.collect()),
            demands,
            paths,
            stages,
            tasks,
            driver: Driver::new(workload, victim),
            cpus: used_cpus(workload, victim),
            slots_help: slots_help(workload, victim),
        })
    }

    /// Whether a culprit caused any of them.
    pub(crate) fn are_caused_by(&self, culprit: Culprit) -> bool {
        self.paths.contains_key(&culprit)
    }

    /// Whether a culprit's slots would be of use: CPUs were idle while the victim waited for slots, or the culprit computes, so that
    /// its CPUs come with its slots.
    pub(crate) fn frees_slots(&self, culprit: Culprit) -> bool {
        let demand = match culprit {
            Culprit::Query(query) => self.demands.get(&query),
            _ => None,
        };
        self.slots_help || demand.is_some_and(CpuDemand::computes)
    }
}

/// Waits of a stage's tasks that last longer while a neighbour uses the CPUs, s.
#[derive(Clone, Copy, Default)]
struct Lengthened {
    /// For a CPU.
    run_queue: f64,
    /// For other threads of the JVM: locks, memory that other tasks have, garbage collection. These threads wait for CPUs too.
    threads: f64,
    /// CPU time.
    ran: f64,
}

impl Lengthened {
    fn add(&mut self, path: &Explanation) {
        match path.kind {
            Kind::RunQueue => self.run_queue += path.seconds,
            Kind::Lock | Kind::ExecutionMemory | Kind::Pause => self.threads += path.seconds,
            _ => {}
        }
    }

    /// How much longer waits for other threads last because of a neighbour that caused `own`: as much as what those threads do.
    /// They are taken to wait for CPUs as the stage's tasks do.
    fn lengthened_by(self, own: Self) -> f64 {
        let busy = self.ran + self.run_queue;
        let others = (self.threads - own.threads).max(0.0);
        if busy > 0.0 {
            others * (own.run_queue / busy).min(1.0)
        } else {
            0.0
        }
    }
}

fn place_of(stage: StageId) -> Place {
    (stage.stage.cast_signed(), stage.attempt.cast_signed())
}

/// The paths to the waits of a victim's tasks while they ran, and the waits of single tasks whose cause is known. Waits for slots
/// are not among them: the replay gives out slots again.
///
/// # Errors
/// If it would take too long.
fn caused_waits(
    workload: &Workload,
    victim: QueryId,
    split: Split,
) -> Result<(Vec<Explanation>, TaskWaits), ReportError> {
    let options = Options {
        victims: BTreeSet::from([victim]),
        stages: VictimStages::All,
        resources: [
            Resource::Cpu,
            Resource::Memory,
            Resource::Io,
            Resource::Network,
        ]
        .into(),
        split,
        ..Options::default()
    };
    options.check(workload)?;
    let (blame, of_tasks) = Blame::with_task_waits(workload, &options);
    let mut paths = blame.explanations(workload);
    paths.retain(|path| !path.kind.is_for_slots());
    Ok((paths, of_tasks))
}

/// Whether the victim's tasks would have run sooner on more slots: not if the CPUs were busy for most of the time in which they
/// waited for slots.
fn slots_help(workload: &Workload, victim: QueryId) -> bool {
    let tasks = workload.tasks_of_queries(&BTreeSet::from([victim]));
    let tasks: BTreeSet<TaskId> = tasks.map(|task| task.id).collect();
    let waited_ns = |kind: Kind| -> f64 {
        let its = workload.tables().intervals.iter();
        let its = its.filter(|row| row.kind == kind && tasks.contains(&row.task));
        its.map(|row| row.blocked_ns as f64).sum()
    };
    waited_ns(Kind::SlotOnBusyCpu) <= waited_ns(Kind::Slot)
}

/// How much the tasks of a query want a CPU.
#[derive(Clone, Copy, Default)]
struct CpuDemand {
    /// Time of its tasks, s.
    ran: f64,
    /// CPU time, s.
    used: f64,
    /// Waits for a CPU, s.
    waited: f64,
}

impl CpuDemand {
    /// Whether the tasks use a CPU for most of the time in which they do not wait for one.
    fn computes(&self) -> bool {
        self.used > 0.5 * (self.ran - self.waited)
    }

    /// The share of the tasks' time in which they have or wait for a CPU, 0 to 1.
    fn runnable(&self) -> f64 {
        ((self.used + self.waited) / self.ran.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
    }
}

fn cpu_demands(workload: &Workload) -> BTreeMap<QueryId, CpuDemand> {
    let mut demands: BTreeMap<QueryId, CpuDemand> = BTreeMap::new();
    let tables = workload.tables();
    for task in tables.tasks.iter().filter(|task| task.runs) {
        demands.entry(task.stage.query).or_default().ran += task.span.seconds();
    }
    for row in tables
        .intervals
        .iter()
        .filter(|row| row.kind == Kind::RunQueue)
    {
        if let Some(task) = workload.task(row.task) {
            let demand = demands.entry(task.stage.query).or_default();
            demand.waited += row.blocked_ns as f64 / 1e9;
            demand.used += row.units;
        }
    }
    demands
}

/// How long a query takes without each of some neighbours, and a warning if that is not reliable.
///
/// # Errors
/// If the profile cannot be read, or the query has no tasks or did not end well.
pub(crate) fn without_each(
    report: &Report<'_>,
    app: &str,
    query: i64,
    neighbours: &[Neighbour],
) -> Result<(Vec<Estimate>, Option<String>), ReportError> {
    let application = Source::new(report, app, Some(query)).beside(neighbours)?;
    let (recorded, _) = application
        .recorded(Some(query))
        .map_err(ReportError::Refused)?;
    let model = Model::new(&recorded);
    let parts = 0..neighbours.len();
    let each = parts.map(|part| model.estimate(&model.without(part)));
    Ok((each.collect(), warning(model.error())))
}

/// Sets how much the stages of an application want a CPU, as is known from the neighbours.
pub(super) fn set_runnable(application: &mut Application, neighbours: &[Neighbour]) {
    let Some(known) = neighbours.first().map(|one| &one.runnable) else {
        return;
    };
    for stage in &mut application.stages {
        let query = match stage.group {
            Group::Query(query) => Some(query),
            Group::Job(_) | Group::Unknown => None,
        };
        stage.runnable = known.get(&query).copied();
    }
}

fn span_of(report: &Report<'_>, app: &str, query: i64) -> Option<SpanMs> {
    let known = report
        .profile
        .executions
        .get(&ExecutionId::new(app, query))?;
    Some((known.started_ms?, known.ended_ms.unwrap_or(i64::MAX)))
}

/// How long a task ran beside it, s.
fn beside_s(span: SpanMs, task: &TaskRow) -> f64 {
    ms_within(span, task) as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_for_other_threads_are_longer_by_as_much_as_their_work() {
        let all = Lengthened {
            run_queue: 9.0,
            threads: 4.0,
            ran: 1.0,
        };
        let by = |run_queue, threads| {
            let own = Lengthened {
                run_queue,
                threads,
                ran: 0.0,
            };
            all.lengthened_by(own)
        };
        assert!((by(5.0, 0.0) - 2.0).abs() < 1e-9);
        // What it caused itself counts by itself.
        assert!((by(5.0, 1.0) - 1.5).abs() < 1e-9);
        assert!(by(0.0, 0.0) == 0.0 && by(5.0, 4.0) == 0.0);
        assert!(Lengthened::default().lengthened_by(all) == 0.0);
    }

    #[test]
    fn tasks_that_wait_for_a_cpu_need_one() {
        // Of 10 s they had a CPU for 2 s, and waited for one for 6 s.
        let demand = |used, waited| CpuDemand {
            ran: 10.0,
            used,
            waited,
        };
        assert!((demand(2.0, 6.0).runnable() - 0.8).abs() < 1e-9);
        assert!(!demand(2.0, 6.0).computes() && demand(2.5, 6.0).computes());
        assert!(demand(8.0, 6.0).runnable() <= 1.0);
        assert!(CpuDemand::default().runnable() == 0.0);
    }
}
