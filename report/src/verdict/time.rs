//! Where the time went: parts that add up to the time of the slots and the CPU time outside them.

use std::collections::BTreeMap;

use unfuse_format::{ApplicationRow, ExecutorRow, FormatError, GARBAGE_COLLECTION, TaskRow};
use unfuse_postprocess::{Group, Owner, Profile, WaitReason};

use crate::model::{Application, PartKind, VerdictPart};
use crate::{TasksByStage, stages};

/// CPU time under headings, ns.
type Headings = BTreeMap<&'static str, u64>;

/// CPU time and waits, from samples.
#[derive(Debug, Clone, Default)]
pub(crate) struct SampledTime {
    /// CPU time of tasks in operators, ns.
    pub(crate) operators: u64,
    /// Other CPU time of tasks, ns.
    pub(crate) tasks: Headings,
    /// CPU time of threads without a task, ns.
    pub(crate) beside: Headings,
    /// Waiting time of tasks, ns.
    pub(crate) waits: BTreeMap<WaitReason, u64>,
}

impl SampledTime {
    /// Adds the CPU time of a group of samples.
    pub(crate) fn add_cpu(&mut self, owner: &Owner, group: &Group, ns: u64) {
        let sum = match owner {
            Owner::Node(_, _) => &mut self.operators,
            Owner::Heading(heading) if group.stage.is_some() => {
                self.tasks.entry(heading).or_default()
            }
            Owner::Heading(heading) => self.beside.entry(heading).or_default(),
        };
        add(sum, ns);
    }

    /// Adds a group of waits, if tasks waited.
    pub(crate) fn add_wait(&mut self, reason: WaitReason, group: &Group, ns: u64) {
        if group.stage.is_some() {
            add(self.waits.entry(reason).or_default(), ns);
        }
    }

    /// Adds the times of another one.
    pub(crate) fn add(&mut self, other: &Self) {
        add(&mut self.operators, other.operators);
        for (own, other) in [
            (&mut self.tasks, &other.tasks),
            (&mut self.beside, &other.beside),
        ] {
            for (heading, ns) in other {
                add(own.entry(heading).or_default(), *ns);
            }
        }
        for (reason, ns) in &other.waits {
            add(self.waits.entry(*reason).or_default(), *ns);
        }
    }

    /// The time of all tasks, ns.
    fn task_ns(&self) -> u64 {
        let parts = self.tasks.values().chain(self.waits.values());
        parts.fold(self.operators, |sum, ns| sum.saturating_add(*ns))
    }
}

pub(super) fn add(sum: &mut u64, ns: u64) {
    *sum = sum.saturating_add(ns);
}

/// Times and sizes from Spark's metrics.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Slots {
    /// Sum of the running times of the applications, ms.
    pub(super) duration_ms: u64,
    /// Time of all slots, ns; none where no executor with cores is known.
    pub(super) slot_ns: Option<u64>,
    /// From launch to end of all task attempts, ns.
    pub(super) task_ns: u64,
    /// Part of `task_ns` before the attempts ran and after, ns.
    pub(super) delay_ns: u64,
    /// CPU time of tasks, ns.
    pub(super) cpu_ns: u64,
    /// Part of `task_ns` in pauses of the JVM for garbage collection, ns.
    pub(super) gc_ns: u64,
    /// Part of `task_ns` in attempts that failed, ns.
    pub(super) failed_ns: u64,
    /// Bytes that tasks spilled to disk.
    pub(super) spilled_bytes: u64,
    /// Bytes that tasks read from files and shuffles.
    pub(super) read_bytes: u64,
}

impl Slots {
    /// Computes them for the applications of a profile.
    pub(super) fn from_profile(
        profile: &Profile,
        applications: &[Application],
        tasks: &TasksByStage,
    ) -> Result<Self, FormatError> {
        let rows = profile.rows::<ApplicationRow>()?;
        let executors = profile.rows::<ExecutorRow>()?;
        let mut slots = Self::default();
        for app in applications {
            let is_of = |id: &str| id == app.id;
            let tasks = tasks.iter().filter(|(stage, _)| is_of(&stage.app));
            let tasks: Vec<&TaskRow> = tasks.flat_map(|(_, rows)| rows).collect();
            let span = span(app, rows.iter().filter(|row| is_of(&row.app)), &tasks);
            add(
                &mut slots.duration_ms,
                span.1.saturating_sub(span.0).max(0).unsigned_abs(),
            );
            tasks.iter().for_each(|task| slots.task(task));
            let cpus = cpus_of_a_task(rows.iter().filter(|row| is_of(&row.app)));
            let executors = executors.iter().filter(|row| is_of(&row.app));
            if let Some(ns) = slot_ns(executors, span, cpus) {
                add(slots.slot_ns.get_or_insert(0), ns);
            }
        }
        Ok(slots)
    }

    fn task(&mut self, task: &TaskRow) {
        let duration = stages::duration_ms(task);
        add(&mut self.task_ns, ns(duration));
        add(&mut self.delay_ns, ns(stages::delay_ms(task)));
        add(&mut self.gc_ns, ns(task.gc_ms));
        add(&mut self.cpu_ns, stages::cpu_ns(task));
        if stages::has_failed(task) {
            add(&mut self.failed_ns, ns(duration));
        }
        let bytes = |bytes: i64| bytes.max(0).unsigned_abs();
        add(&mut self.spilled_bytes, bytes(task.disk_spilled_bytes));
        add(&mut self.read_bytes, bytes(task.input_bytes));
        add(&mut self.read_bytes, bytes(task.shuffle_read_bytes));
    }

    /// Average number of slots; `None` if unknown.
    pub(super) fn count(&self) -> Option<f64> {
        let ns = self.slot_ns.filter(|_| self.duration_ms > 0)?;
        Some(ns as f64 / 1e6 / self.duration_ms as f64)
    }
}

/// Start and end of an application, ms since the epoch: from Spark's events or, without them, from its tasks or
/// processes.
fn span<'a>(
    app: &Application,
    rows: impl Iterator<Item = &'a ApplicationRow>,
    tasks: &[&TaskRow],
) -> (i64, i64) {
    let (mut started, mut ended) = (None, None);
    for row in rows {
        started = [started, row.started_ms].into_iter().flatten().min();
        ended = ended.max(row.ended_ms);
    }
    let launched = tasks.iter().map(|task| task.launched_ms).min();
    let from = started.or(launched).unwrap_or(app.started_ms);
    let to = ended.unwrap_or(app.ended_ms);
    (from, to.max(from))
}

/// Number of CPUs for each task.
fn cpus_of_a_task<'a>(rows: impl Iterator<Item = &'a ApplicationRow>) -> u32 {
    let mut settings = rows.flat_map(|row| &row.settings);
    let cpus = settings.find(|setting| setting.name == "spark.task.cpus");
    cpus.and_then(|setting| setting.value.trim().parse().ok())
        .unwrap_or(1)
        .max(1)
}

/// Slots of an application's executors at a time, ms since the epoch; none where no executor with cores is known then.
pub(crate) fn slots_at<'a>(
    executors: impl Iterator<Item = &'a ExecutorRow>,
    applications: impl Iterator<Item = &'a ApplicationRow>,
    time: i64,
) -> Option<f64> {
    let cpus = cpus_of_a_task(applications);
    let ns = slot_ns(executors, (time, time.saturating_add(1)), cpus)?;
    Some(ns as f64 / 1e6).filter(|slots| *slots > 0.0)
}

fn slot_ns<'a>(
    executors: impl Iterator<Item = &'a ExecutorRow>,
    (from, to): (i64, i64),
    cpus: u32,
) -> Option<u64> {
    // An executor has a row for its start, and another one for its end.
    let mut known: BTreeMap<&str, (u32, Option<i64>, Option<i64>)> = BTreeMap::new();
    for row in executors {
        let (cores, added, removed) = known.entry(&row.executor).or_default();
        *cores = row.cores.max(*cores);
        *added = row.added_ms.or(*added);
        *removed = row.removed_ms.or(*removed);
    }
    let slots = known.values().filter(|(cores, _, _)| *cores >= cpus);
    let times = slots.map(|(cores, added, removed)| {
        let begin = added.unwrap_or(from).max(from);
        let end = removed.unwrap_or(to).min(to);
        ns(end.saturating_sub(begin)).saturating_mul(u64::from(cores / cpus))
    });
    times.reduce(u64::saturating_add)
}

fn ns(ms: i64) -> u64 {
    ms.max(0).unsigned_abs().saturating_mul(1_000_000)
}

/// The heading or reason without words that the kind of the part implies.
fn short(heading: &str) -> String {
    let name = heading.split_once(": ").map_or(heading, |(_, name)| name);
    name.to_owned()
}

/// The parts. They add up to the time of the slots or, if unknown, of the tasks, and the CPU time outside them.
pub(super) fn parts(
    sampled: &SampledTime,
    slots: &Slots,
    waits_recorded: bool,
) -> Vec<VerdictPart> {
    let mut parts = Vec::new();
    let mut part = |kind, name: String, ns: u64| {
        if ns > 0 {
            parts.push(VerdictPart { name, kind, ns });
        }
    };
    let ran = sampled.task_ns();
    // Python workers run while a task waits for them, so tasks can use more time than they last.
    let taken = slots.task_ns.max(ran);
    let mut rest = taken - ran;
    let mut take = |most: u64| {
        let ns = rest.min(most);
        rest -= ns;
        ns
    };
    let delay = take(slots.delay_ns);
    // Without samples, Spark's metrics have the CPU time of tasks.
    let is_sampled = sampled.operators > 0 || !sampled.tasks.is_empty();
    let cpu = take(if is_sampled { 0 } else { slots.cpu_ns });
    let gc = take(if waits_recorded { 0 } else { slots.gc_ns });
    let unknown = take(u64::MAX);
    part(
        PartKind::Operators,
        "operators".to_owned(),
        sampled.operators,
    );
    part(
        PartKind::Tasks,
        "operators and all else, by Spark's metrics".to_owned(),
        cpu,
    );
    for (heading, ns) in &sampled.tasks {
        part(PartKind::Tasks, short(heading), *ns);
    }
    for (reason, ns) in &sampled.waits {
        part(PartKind::Waiting, reason.name().to_owned(), *ns);
    }
    part(PartKind::Waiting, GARBAGE_COLLECTION.to_owned(), gc);
    if waits_recorded {
        part(
            PartKind::Unknown,
            "time without samples".to_owned(),
            unknown,
        );
    } else {
        part(PartKind::Waiting, "unknown reasons".to_owned(), unknown);
    }
    part(
        PartKind::Scheduling,
        "starting tasks and fetching results".to_owned(),
        delay,
    );
    for (heading, ns) in &sampled.beside {
        part(PartKind::Beside, short(heading), *ns);
    }
    let idle = slots.slot_ns.map_or(0, |ns| ns.saturating_sub(taken));
    part(PartKind::Idle, "idle slots".to_owned(), idle);
    with_small_ones_together(parts)
}

/// Merges parts of less than 0.5% with others of their kind, and sorts by kind and time.
fn with_small_ones_together(parts: Vec<VerdictPart>) -> Vec<VerdictPart> {
    let whole = parts
        .iter()
        .fold(0u64, |sum, part| sum.saturating_add(part.ns));
    let mut together: BTreeMap<(PartKind, String), u64> = BTreeMap::new();
    for part in parts {
        let is_small = part.ns < whole / 200;
        let several = [PartKind::Tasks, PartKind::Waiting, PartKind::Beside];
        let name = if is_small && several.contains(&part.kind) {
            "other".to_owned()
        } else {
            part.name
        };
        add(together.entry((part.kind, name)).or_default(), part.ns);
    }
    let parts = together.into_iter();
    let mut parts: Vec<VerdictPart> = parts
        .map(|((kind, name), ns)| VerdictPart { name, kind, ns })
        .collect();
    parts.sort_by_key(|part| (part.kind, part.name == "other", std::cmp::Reverse(part.ns)));
    parts
}
