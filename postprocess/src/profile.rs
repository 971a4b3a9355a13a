//! A profile directory, read and joined.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use unfuse_format::{
    Accumulator, CodegenRow, ExecutionId, ExecutionRow, FormatError, Frame, LiveMarker, PlanRow,
    Problem, ProcessRow, ProfileDir, SampleKind, SampleRow, SourceRow, StackRow, StageAttempt,
    StageRow, Table, TaskRow, merge_executions, merge_stages,
};

use crate::attribute::is_mapped;
use crate::boundary::{self, Boundary};
use crate::heading;
use crate::plan::Plan;
use crate::regions::RegionMap;
use crate::wait_reason::WaitReason;

/// Whose time is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Time {
    /// Threads that run.
    #[default]
    Cpu,
    /// Threads that wait.
    OffCpu,
    /// Both.
    Wall,
}

impl Time {
    fn holds(self, kind: SampleKind) -> bool {
        match self {
            Self::Cpu => kind == SampleKind::Cpu,
            Self::OffCpu => kind == SampleKind::OffCpu,
            Self::Wall => true,
        }
    }
}

/// Samples that share everything that matters for attribution.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Group {
    /// Spark application id; empty outside Spark.
    pub app: String,
    /// SQL execution id.
    pub query: Option<i64>,
    /// Stage id.
    pub stage: Option<i32>,
    /// Stage attempt number.
    pub attempt: Option<i32>,
    /// Thread name.
    pub thread: String,
    /// Stack id.
    pub stack: i64,
    /// Whether the thread ran or waited.
    pub kind: SampleKind,
}

impl Group {
    fn of(row: SampleRow, stages: &HashMap<StageAttempt, Stage>) -> Self {
        let query = match (row.stage, row.stage_attempt) {
            (Some(stage), Some(attempt)) => stages
                .get(&StageAttempt::new(&row.app, stage, attempt))
                .and_then(|stage| stage.execution),
            _ => None,
        };
        Self {
            app: row.app,
            query,
            stage: row.stage,
            attempt: row.stage_attempt,
            thread: row.thread,
            stack: row.stack,
            kind: row.kind,
        }
    }
}

/// Samples or waits, and the time they stand for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weight {
    /// Number of samples, or of waits.
    pub samples: u64,
    /// CPU time, or time that was waited, ns.
    pub ns: u64,
    /// What shares are parts of: samples, or time in µs where samples stand for different times.
    pub value: u64,
}

impl Weight {
    fn of(row: &SampleRow, by_time: bool) -> Self {
        let by_time = by_time || row.kind == SampleKind::OffCpu;
        Self {
            samples: row.count,
            ns: row.weight_ns,
            value: if by_time {
                row.weight_ns / 1000
            } else {
                row.count
            },
        }
    }

    /// The same where shares are of time.
    pub(crate) fn by_time(self) -> Self {
        Self {
            value: self.ns / 1000,
            ..self
        }
    }

    /// Saturates: a damaged row may hold any number.
    pub fn add(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.ns = self.ns.saturating_add(other.ns);
        self.value = self.value.saturating_add(other.value);
    }
}

/// A thread of one profiled process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThreadKey {
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
}

/// Samples of a group in one thread and one time window.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) thread: ThreadKey,
    /// Time of the first sample, ns since the epoch.
    pub(crate) start_ns: i64,
    /// Time of the last sample, ns since the epoch.
    pub(crate) end_ns: i64,
    pub(crate) weight: Weight,
    pub(crate) group: Group,
}

/// Which part of a profile is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only this SQL execution.
    pub query: Option<i64>,
    /// Only this stage.
    pub stage: Option<i32>,
    /// The time of threads that run, that wait, or both.
    pub time: Time,
}

impl Selection {
    fn holds(self, group: &Group) -> bool {
        self.query.is_none_or(|query| group.query == Some(query))
            && self.stage.is_none_or(|stage| group.stage == Some(stage))
            && self.time.holds(group.kind)
    }
}

/// What is known of a stage attempt.
#[derive(Debug, Default)]
pub struct Stage {
    /// SQL execution it belongs to.
    pub execution: Option<i64>,
    /// Accumulators that its tasks updated.
    pub accumulators: HashSet<i64>,
    /// Those of them that are whole numbers, with their values.
    pub values: Vec<(i64, i64)>,
    /// Spark's name for it (the call site).
    pub name: String,
    /// Number of tasks.
    pub tasks: i32,
    /// Submission, ms since the epoch.
    pub submitted_ms: Option<i64>,
    /// Completion, ms since the epoch.
    pub completed_ms: Option<i64>,
    /// Why it failed.
    pub failure: Option<String>,
}

/// What is known of a SQL execution.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Execution {
    /// Text or call site.
    pub description: String,
    /// Start, ms since the epoch.
    pub started_ms: Option<i64>,
    /// End, ms since the epoch.
    pub ended_ms: Option<i64>,
    /// Why it failed.
    pub error: Option<String>,
}

impl Execution {
    /// How long it ran, ms; none where it did not end.
    pub fn duration_ms(&self) -> Option<i64> {
        let (ended, started) = self.ended_ms.zip(self.started_ms)?;
        Some(ended.saturating_sub(started).max(0))
    }
}

/// A frame at which an operator may begin: its index from the root, and the boundary it is; none for
/// generated code.
pub(crate) type Landmark = (usize, Option<&'static Boundary>);

/// A profile in memory.
#[derive(Debug)]
pub struct Profile {
    dir: ProfileDir,
    /// Samples of threads that ran, by group.
    pub groups: Vec<(Group, Weight)>,
    /// Waits by group; those of Spark's threads that had no task are not among them.
    pub waits: Vec<(Group, Weight)>,
    /// Frames of each stack, root first.
    pub stacks: HashMap<i64, Vec<Frame>>,
    /// What is known of each stage attempt.
    pub stages: HashMap<StageAttempt, Stage>,
    /// The last plan of each execution.
    pub plans: HashMap<ExecutionId, Plan>,
    /// Plan nodes by region id, for each text an execution generated.
    pub generated: HashMap<ExecutionId, HashMap<String, Vec<usize>>>,
    /// Frames of each stack where an operator may begin, see [`landmarks`].
    pub(crate) landmarks: HashMap<i64, Vec<Landmark>>,
    /// Regions of each generated text, by its hash.
    pub regions: HashMap<String, RegionMap>,
    /// Simple name of the class of each generated text, by its hash.
    pub classes: HashMap<String, String>,
    /// Text or call site of each execution.
    pub descriptions: HashMap<ExecutionId, String>,
    /// Every execution, with or without samples.
    pub executions: BTreeMap<ExecutionId, Execution>,
    /// The last word of each profiled process.
    pub processes: Vec<ProcessRow>,
    /// Files that had to be left out.
    pub problems: Vec<Problem>,
    /// Why writers could not write everything.
    pub failures: Vec<std::io::Error>,
}

impl Profile {
    /// Reads a profile. Segments that cannot be read are left out and listed in `problems`.
    pub fn open(root: &Path) -> Result<Self, FormatError> {
        let dir = ProfileDir::open(root)?;
        let mut problems = Vec::new();
        let processes = latest(rows::<ProcessRow>(&dir, &mut problems)?);
        let stages = stages(rows::<StageRow>(&dir, &mut problems)?);
        let by_time = by_time(&processes);
        let samples = dir.read_as(|rows| groups(rows, &processes, &stages, by_time))?;
        problems.extend(samples.problems);
        let (groups, waits) = merged(samples.rows)
            .into_iter()
            .partition(|(group, _)| group.kind == SampleKind::Cpu);
        let stacks = rows::<StackRow>(&dir, &mut problems)?;
        let plan_rows = rows::<PlanRow>(&dir, &mut problems)?;
        let codegen = rows::<CodegenRow>(&dir, &mut problems)?;
        let executions = self::executions(rows::<ExecutionRow>(&dir, &mut problems)?);
        let sources = rows::<SourceRow>(&dir, &mut problems)?;
        let mut plans = plans(plan_rows);
        let mut generated = generated(codegen, &mut plans);
        share_bodies(&sources, &mut generated);
        let stacks: HashMap<i64, Vec<Frame>> = stacks
            .into_iter()
            .map(|row| {
                let frames = row.frames.into_iter().map(Arc::unwrap_or_clone);
                (row.stack, frames.collect())
            })
            .collect();
        let mut profile = Self {
            groups,
            waits,
            landmarks: stacks
                .iter()
                .map(|(id, frames)| (*id, landmarks(frames)))
                .collect(),
            stacks,
            stages,
            plans,
            generated,
            regions: HashMap::new(),
            classes: sources
                .into_iter()
                .map(|row| (row.hash, row.class))
                .collect(),
            descriptions: executions
                .iter()
                .filter(|(_, execution)| !execution.description.is_empty())
                .map(|(key, execution)| (key.clone(), execution.description.clone()))
                .collect(),
            executions,
            processes,
            problems,
            failures: LiveMarker::failures(&dir),
            dir,
        };
        profile.read_regions();
        Ok(profile)
    }

    /// Forgets everything that is not of one application.
    pub fn keep_application(&mut self, app: &str) {
        self.groups.retain(|(group, _)| group.app == app);
        self.waits.retain(|(group, _)| group.app == app);
        self.stages.retain(|id, _| id.app == app);
        self.plans.retain(|id, _| id.app == app);
        self.generated.retain(|id, _| id.app == app);
        self.descriptions.retain(|id, _| id.app == app);
        self.executions.retain(|id, _| id.app == app);
        self.processes.retain(|process| process.app == app);
        let groups = self.groups_and_waits();
        let stacks: HashSet<i64> = groups.map(|(group, _)| group.stack).collect();
        self.stacks.retain(|id, _| stacks.contains(id));
        self.landmarks.retain(|id, _| stacks.contains(id));
    }

    /// Whether samples stand for different parts of the tasks, so that shares are of CPU time.
    pub fn is_by_time(&self) -> bool {
        by_time(&self.processes)
    }

    /// What the values of a selection's weights count.
    pub fn unit(&self, selection: Selection) -> &'static str {
        if self.is_by_time() || selection.time != Time::Cpu {
            "µs"
        } else {
            "samples"
        }
    }

    /// The text of a generated source.
    pub fn source(&self, hash: &str) -> Result<Option<String>, FormatError> {
        self.dir.source(hash)
    }

    /// The samples once more with what groups leave out, in order of threads and time.
    pub(crate) fn timeline(&self, selection: Selection) -> Result<Vec<Slice>, FormatError> {
        let rows = self.dir.read::<SampleRow>()?.rows;
        let mut slices: Vec<Slice> = rows
            .into_iter()
            .map(|row| Slice {
                thread: ThreadKey {
                    host: row.host.clone(),
                    pid: row.pid,
                    tid: row.tid,
                },
                start_ns: row.start_ns,
                end_ns: row.end_ns,
                weight: Weight::of(&row, self.is_by_time()),
                group: Group::of(row, &self.stages),
            })
            .filter(|slice| selection.holds(&slice.group))
            .collect();
        slices.sort_by(|a, b| {
            let key = |slice: &Slice| (slice.start_ns, slice.end_ns, slice.group.stack);
            a.thread.cmp(&b.thread).then_with(|| key(a).cmp(&key(b)))
        });
        Ok(slices)
    }

    /// Every finished task attempt. They are many and few questions need them, so they are read when
    /// asked for.
    pub fn tasks(&self) -> Result<Vec<TaskRow>, FormatError> {
        Ok(self.dir.read::<TaskRow>()?.rows)
    }

    /// The profile's directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Samples and waits of the selection.
    pub fn selected(&self, selection: Selection) -> impl Iterator<Item = (&Group, Weight)> {
        let by_time = selection.time == Time::Wall;
        self.groups_and_waits()
            .filter(move |(group, _)| selection.holds(group))
            .map(move |(group, weight)| {
                let weight = if by_time { weight.by_time() } else { *weight };
                (group, weight)
            })
    }

    fn groups_and_waits(&self) -> impl Iterator<Item = &(Group, Weight)> {
        self.groups.iter().chain(&self.waits)
    }

    /// What the threads of a group of waits wait for.
    pub fn waiting(&self, group: &Group) -> WaitReason {
        let frames = self.stacks.get(&group.stack);
        WaitReason::of_stack(frames.map_or(&[][..], Vec::as_slice))
    }

    /// Queries that have samples, ascending.
    pub fn queries(&self) -> Vec<i64> {
        sorted(self.groups_and_waits().filter_map(|(group, _)| group.query))
    }

    /// Stages that have samples, ascending.
    pub fn stage_ids(&self) -> Vec<i32> {
        sorted(self.groups_and_waits().filter_map(|(group, _)| group.stage))
    }

    /// Whether a Spark application was profiled.
    pub fn has_spark(&self) -> bool {
        self.groups_and_waits()
            .any(|(group, _)| group.stage.is_some())
    }

    /// Regions of every generated source that a stack refers to.
    fn read_regions(&mut self) {
        let hashes: HashSet<String> = self
            .stacks
            .values()
            .flatten()
            .filter_map(|frame| generated_hash(&frame.file))
            .map(str::to_owned)
            .collect();
        for hash in hashes {
            let reason = match self.dir.source(&hash) {
                Ok(Some(text)) => {
                    self.regions.insert(hash, RegionMap::parse(&text));
                    continue;
                }
                Ok(None) => "the generated source is missing".to_owned(),
                Err(FormatError::Io { source, .. }) => source.to_string(),
                Err(e) => e.to_string(),
            };
            let path = self.dir.path().join("sources").join(format!("{hash}.java"));
            let reason = format!("{reason}; its samples have no operators");
            self.problems.push(Problem { path, reason });
        }
    }
}

/// The hash in a generated class's source file name, `generated_HASH.java`.
pub fn generated_hash(file: &str) -> Option<&str> {
    file.strip_prefix("generated_")?.strip_suffix(".java")
}

fn rows<T: Table>(dir: &ProfileDir, problems: &mut Vec<Problem>) -> Result<Vec<T>, FormatError> {
    let read = dir.read::<T>()?;
    problems.extend(read.problems);
    Ok(read.rows)
}

fn stages(rows: Vec<StageRow>) -> HashMap<StageAttempt, Stage> {
    let merged = merge_stages(rows).into_iter();
    merged.map(|(id, row)| (id, Stage::from(row))).collect()
}

impl From<StageRow> for Stage {
    fn from(row: StageRow) -> Self {
        let number = |a: &Accumulator| Some((a.id, a.value.parse().ok()?));
        Self {
            execution: row.execution,
            accumulators: row.accumulators.iter().map(|a| a.id).collect(),
            values: row.accumulators.iter().filter_map(number).collect(),
            name: row.name,
            tasks: row.tasks,
            submitted_ms: row.submitted_ms,
            completed_ms: row.completed_ms,
            failure: row.failure,
        }
    }
}

fn executions(rows: Vec<ExecutionRow>) -> BTreeMap<ExecutionId, Execution> {
    let executions = merge_executions(rows).into_iter().map(|(id, row)| {
        let execution = Execution {
            description: row.description,
            started_ms: row.started_ms,
            ended_ms: row.ended_ms,
            error: row.error,
        };
        (id, execution)
    });
    executions.collect()
}

fn plans(rows: Vec<PlanRow>) -> HashMap<ExecutionId, Plan> {
    let mut by_execution: HashMap<ExecutionId, Vec<PlanRow>> = HashMap::new();
    for row in rows {
        by_execution
            .entry(ExecutionId::new(&row.app, row.execution))
            .or_default()
            .push(row);
    }
    by_execution
        .into_iter()
        .map(|(key, rows)| (key, Plan::from_rows(rows)))
        .collect()
}

fn generated(
    rows: Vec<CodegenRow>,
    plans: &mut HashMap<ExecutionId, Plan>,
) -> HashMap<ExecutionId, HashMap<String, Vec<usize>>> {
    let mut generated: HashMap<ExecutionId, HashMap<String, Vec<usize>>> = HashMap::new();
    for row in rows {
        let Some(execution) = row.execution else {
            continue;
        };
        let key = ExecutionId::new(row.app, execution);
        let texts = generated.entry(key.clone()).or_default();
        texts.entry(row.hash).or_insert_with(|| {
            plans
                .entry(key)
                .or_default()
                .nodes_of(row.codegen_stage, &row.nodes)
        });
    }
    generated
}

/// Gives texts that the other compiler made of a body the operators of that body: the driver reports these under its hash only. There are two
/// compilers, so a body has one other text.
fn share_bodies(
    sources: &[SourceRow],
    generated: &mut HashMap<ExecutionId, HashMap<String, Vec<usize>>>,
) {
    let others: HashMap<(&str, &str), &str> = sources
        .iter()
        .filter(|row| !row.body.is_empty())
        .map(|row| ((row.app.as_str(), row.body.as_str()), row.hash.as_str()))
        .collect();
    if others.is_empty() {
        return;
    }
    for (ExecutionId { app, .. }, texts) in generated {
        let shared: Vec<(String, Vec<usize>)> = texts
            .iter()
            .filter_map(|(body, nodes)| {
                let other = others.get(&(app.as_str(), body.as_str()))?;
                Some(((*other).to_owned(), nodes.clone()))
            })
            .collect();
        texts.extend(shared);
    }
}

/// Samples of before a JVM knew its application belong to it too.
fn name_applications(samples: &mut [SampleRow], processes: &[ProcessRow]) {
    for sample in samples.iter_mut().filter(|sample| sample.app.is_empty()) {
        let process = processes.iter().find(|process| {
            (process.pid, &process.host) == (sample.pid, &sample.host)
                && (process.start_ns..=process.end_ns).contains(&sample.start_ns)
        });
        if let Some(process) = process {
            sample.app.clone_from(&process.app);
        }
    }
}

/// Groups of the samples of one segment.
fn groups(
    mut rows: Vec<SampleRow>,
    processes: &[ProcessRow],
    stages: &HashMap<StageAttempt, Stage>,
    by_time: bool,
) -> Vec<(Group, Weight)> {
    name_applications(&mut rows, processes);
    // Spark's threads without a task wait for one: that is nobody's time.
    let idle = |row: &SampleRow| {
        row.stage.is_none() && !row.app.is_empty() && row.kind == SampleKind::OffCpu
    };
    let group = |row: SampleRow| {
        let weight = Weight::of(&row, by_time);
        (Group::of(row, stages), weight)
    };
    let rows = rows.into_iter().filter(|row| !idle(row));
    merged(rows.map(group).collect())
}

/// Sorted, each group once.
fn merged(mut groups: Vec<(Group, Weight)>) -> Vec<(Group, Weight)> {
    groups.par_sort_by(|(a, _), (b, _)| {
        // Numbers first: they differ mostly, and texts take longer to compare.
        let key = |group: &Group| (group.query, group.stage, group.attempt);
        (key(a), &a.app, &a.thread, a.stack, a.kind).cmp(&(
            key(b),
            &b.app,
            &b.thread,
            b.stack,
            b.kind,
        ))
    });
    groups.dedup_by(|(group, weight), (first, sum)| {
        let same = group == first;
        if same {
            sum.add(*weight);
        }
        same
    });
    groups
}

/// Which frames matter for attribution: few do, and stacks are looked at once for each execution.
fn landmarks(frames: &[Frame]) -> Vec<Landmark> {
    let landmark = |(index, frame): (usize, &Frame)| match generated_hash(&frame.file) {
        Some(_) => Some((index, None)),
        None => {
            let boundary = boundary::find(&frame.class)?;
            let counts = *boundary != Boundary::Mapped || is_mapped(frames, index);
            counts.then_some((index, Some(boundary)))
        }
    };
    let found: Vec<Landmark> = frames.iter().enumerate().filter_map(landmark).collect();
    match found.first() {
        Some((first, _)) if heading::is_beside_operators(&frames[..*first]) => Vec::new(),
        _ => found,
    }
}

fn by_time(processes: &[ProcessRow]) -> bool {
    let partial = |process: &ProcessRow| process.task_fraction.is_some();
    processes.iter().any(partial)
}

fn latest(rows: Vec<ProcessRow>) -> Vec<ProcessRow> {
    let mut by_process: HashMap<(String, u32, i64), ProcessRow> = HashMap::new();
    for row in rows {
        let known = by_process
            .entry((row.host.clone(), row.pid, row.start_ns))
            .or_default();
        if row.end_ns >= known.end_ns {
            *known = row;
        }
    }
    let mut processes: Vec<_> = by_process.into_values().collect();
    processes.sort_by_key(|process| process.start_ns);
    processes
}

fn sorted<T: Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.collect();
    values.sort();
    values.dedup();
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_the_other_compiler_has_the_operators_of_its_body() {
        let source = |app: &str, hash: &str, body: &str| SourceRow {
            app: app.to_owned(),
            hash: hash.to_owned(),
            body: body.to_owned(),
            ..SourceRow::default()
        };
        let texts = HashMap::from([("b0d1".to_owned(), vec![3, 1])]);
        let execution = |app: &str| ExecutionId::new(app, 7);
        let mut generated = HashMap::from([
            (execution("app"), texts.clone()),
            (execution("other"), texts),
        ]);
        let sources = [source("app", "b0d1", ""), source("app", "0123", "b0d1")];
        share_bodies(&sources, &mut generated);
        let of = |app: &str| generated[&execution(app)].get("0123").cloned();
        assert_eq!(of("app"), Some(vec![3, 1]));
        assert_eq!(of("other"), None, "of another application");
    }
}
