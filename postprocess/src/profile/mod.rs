//! Reads a profile directory and joins its tables.

mod group;
mod joined;
mod names;
mod samples;
mod stacks;
mod texts;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use unfuse_format::{
    Bounds, CodegenRow, ExecutionId, ExecutionRow, FormatError, Frame, LiveMarker, PlanRow,
    Problem, ProcessRow, ProfileDir, SampleKind, SourceRow, StackId, StageAttempt, StageRow, Table,
    TaskRow, latest_processes,
};

pub(crate) use self::group::Slice;
pub use self::group::{Group, Period, Selection, Time, Weight};
pub use self::names::query_names;
pub(crate) use self::texts::TextTable;

use crate::generated::generated_hash;
use crate::landmarks::Landmarks;
use crate::plan::Plan;
use crate::query_name::{UNNAMED, query_name};
use crate::regions::RegionMap;
use crate::wait_reason::{StackWait, WaitReason};

/// A stage attempt, from what the driver and its tasks reported.
#[derive(Debug, Default)]
pub struct Stage {
    /// SQL execution it belongs to.
    pub execution: Option<i64>,
    /// Accumulators that its tasks updated.
    pub accumulators: HashSet<i64>,
    /// Accumulators with whole numbers, and their values.
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

/// A SQL execution, from what the driver reported.
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
    /// How long it ran, ms; `None` if it did not end.
    pub fn duration_ms(&self) -> Option<i64> {
        let (ended, started) = self.ended_ms.zip(self.started_ms)?;
        Some(ended.saturating_sub(started).max(0))
    }
}

/// Something of each stack. They are looked up for each group of samples.
pub type StackMap<T> = HashMap<StackId, T, ahash::RandomState>;

/// A profile in memory.
#[derive(Debug)]
pub struct Profile {
    dir: ProfileDir,
    /// What the user calls it; none if that is its directory.
    name: Option<PathBuf>,
    /// The period that was read.
    period: Period,
    /// Samples of threads that ran, by group.
    pub groups: Vec<(Group, Weight)>,
    /// Waits by group, without those of Spark's threads that had no task.
    pub waits: Vec<(Group, Weight)>,
    /// Frames of each stack, root first.
    pub stacks: StackMap<Vec<Arc<Frame>>>,
    /// Every stage attempt that the driver reported.
    pub stages: HashMap<StageAttempt, Stage>,
    /// The last plan of each execution.
    pub plans: HashMap<ExecutionId, Plan>,
    /// Plan nodes by region id, for each text an execution generated.
    pub generated: HashMap<ExecutionId, HashMap<String, Vec<usize>>>,
    /// What attribution looks at in each stack.
    pub(crate) landmarks: StackMap<Landmarks>,
    /// Regions of each generated text, by its hash.
    pub regions: HashMap<String, RegionMap>,
    /// Simple name of the class of each generated text, by its hash.
    pub classes: HashMap<String, String>,
    /// Text or call site of each execution.
    pub descriptions: HashMap<ExecutionId, String>,
    /// Every execution, with or without samples.
    pub executions: BTreeMap<ExecutionId, Execution>,
    /// Applications whose plans scan files of other machines.
    readers_of_other_machines: HashSet<String>,
    /// The last row of each profiled process.
    pub processes: Vec<ProcessRow>,
    /// Files that were left out.
    pub problems: Vec<Problem>,
    /// Failures of writers.
    pub failures: Vec<std::io::Error>,
}

impl Profile {
    /// Reads a profile. Segments that cannot be read are left out and listed in `problems`.
    ///
    /// # Errors
    /// If the directory is not a profile that this version reads, or a folder of it cannot be read.
    pub fn open(root: &Path) -> Result<Self, FormatError> {
        Self::open_selected(root, Selection::default())
    }

    /// Reads a profile, with only the samples of the selected query, stage and time; a few of other queries and stages
    /// may remain. Segments without any of them are not read, so damage in these is not noticed. Executions and stages
    /// of another time are left out.
    ///
    /// A row of samples spans a few seconds at most. The time of its begin decides.
    ///
    /// # Errors
    /// As for `open`.
    pub fn open_selected(root: &Path, selection: Selection) -> Result<Self, FormatError> {
        let dir = ProfileDir::open(root)?;
        let mut problems = Vec::new();
        let processes = latest_processes(rows::<ProcessRow>(&dir, &mut problems)?);
        let stages = joined::stages(rows::<StageRow>(&dir, &mut problems)?);
        let bounds = bounds(selection, &stages);
        let samples = samples::Source {
            dir: &dir,
            processes: &processes,
            stages: &stages,
            by_time: by_time(&processes),
        };
        let (samples, queries) = rayon::join(
            || {
                let groups = samples.groups(&bounds, &mut problems)?;
                let stacks = stacks::read(&dir, &mut problems)?;
                Ok::<_, FormatError>((groups, stacks))
            },
            || Queries::read(&dir),
        );
        let ((mut groups, stacks), queries) = (samples?, queries?);
        problems.extend(queries.problems);
        let is_wait = |(group, _): &mut (Group, Weight)| group.kind != SampleKind::Cpu;
        let waits = groups.extract_if(.., is_wait).collect();
        let landmarks = stacks
            .par_iter()
            .map(|(id, frames)| (*id, Landmarks::new(frames)));
        let mut profile = Self {
            groups,
            waits,
            landmarks: landmarks.collect(),
            stacks,
            stages,
            readers_of_other_machines: queries
                .plans
                .iter()
                .filter(|(_, plan)| plan.reads_other_machines())
                .map(|(id, _)| id.app.clone())
                .collect(),
            plans: queries.plans,
            generated: queries.generated,
            regions: HashMap::new(),
            classes: queries.classes,
            descriptions: queries
                .executions
                .iter()
                .filter(|(_, execution)| !execution.description.is_empty())
                .map(|(key, execution)| (key.clone(), execution.description.clone()))
                .collect(),
            executions: queries.executions,
            processes,
            problems,
            failures: LiveMarker::failures(&dir),
            dir,
            name: None,
            period: selection.period,
        };
        profile.keep_period();
        profile.read_regions();
        Ok(profile)
    }

    /// Drops everything that belongs to another application.
    pub fn keep_application(&mut self, app: &str) {
        self.groups.retain(|(group, _)| *group.app == *app);
        self.waits.retain(|(group, _)| *group.app == *app);
        self.stages.retain(|id, _| id.app == app);
        self.plans.retain(|id, _| id.app == app);
        self.generated.retain(|id, _| id.app == app);
        self.descriptions.retain(|id, _| id.app == app);
        self.executions.retain(|id, _| id.app == app);
        self.processes.retain(|process| process.app == app);
        let groups = self.groups_and_waits();
        let stacks: HashSet<StackId> = groups.map(|(group, _)| group.stack).collect();
        self.stacks.retain(|id, _| stacks.contains(id));
        self.landmarks.retain(|id, _| stacks.contains(id));
    }

    /// Whether samples stand for different shares of the tasks, so that shares are of CPU time.
    pub fn is_by_time(&self) -> bool {
        by_time(&self.processes)
    }

    /// The unit of a selection's weights.
    pub fn unit(&self, selection: Selection) -> &'static str {
        if self.is_by_time() || selection.time != Time::Cpu {
            "µs"
        } else {
            "samples"
        }
    }

    /// The text of a generated source; `None` if the profile does not have it.
    pub fn source(&self, hash: &str) -> Result<Option<String>, FormatError> {
        self.dir.source(hash)
    }

    /// Reads the samples again, with the threads and times that groups do not have, in the order of threads and time.
    pub(crate) fn timeline(&self, selection: Selection) -> Result<Vec<Slice>, FormatError> {
        let samples = samples::Source {
            dir: &self.dir,
            processes: &[],
            stages: &self.stages,
            by_time: self.is_by_time(),
        };
        let mut slices = samples.slices(&bounds(selection, &self.stages))?;
        slices.retain(|slice| selection.holds(&slice.group));
        slices.sort_by(|a, b| {
            let key = |slice: &Slice| (slice.start_ns, slice.end_ns, slice.group.stack);
            a.thread.cmp(&b.thread).then_with(|| key(a).cmp(&key(b)))
        });
        Ok(slices)
    }

    /// Reads the rows of a table that few questions need.
    ///
    /// # Errors
    /// If the table's folder cannot be read. Segments that cannot be read are left out.
    pub fn rows<T: Table>(&self) -> Result<Vec<T>, FormatError> {
        Ok(self.dir.read::<T>()?.rows)
    }

    /// Reads every finished task attempt of the profile's period. There are many of them and few questions need them,
    /// so they are not kept.
    ///
    /// # Errors
    /// If the tasks cannot be read.
    pub fn tasks(&self) -> Result<Vec<TaskRow>, FormatError> {
        let mut tasks = self.dir.read::<TaskRow>()?.rows;
        if self.period != Period::ALL {
            tasks.retain(|task| {
                let (start, end) = (task.launched_ms, task.finished_ms);
                self.period.overlaps_ms(Some(start), Some(end))
            });
        }
        Ok(tasks)
    }

    /// The period that was read.
    pub fn period(&self) -> Period {
        self.period
    }

    /// Drops executions and stages outside the period that was read.
    fn keep_period(&mut self) {
        let period = self.period;
        if period == Period::ALL {
            return;
        }
        self.executions
            .retain(|_, run| period.overlaps_ms(run.started_ms, run.ended_ms));
        self.stages
            .retain(|_, run| period.overlaps_ms(run.submitted_ms, run.completed_ms));
        let executions = &self.executions;
        self.plans.retain(|id, _| executions.contains_key(id));
        self.generated.retain(|id, _| executions.contains_key(id));
        self.descriptions
            .retain(|id, _| executions.contains_key(id));
    }

    /// The profile's directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The same under the name that the user gave: a URI or an event log, of which the directory is a copy.
    /// Without the secret that a URI can have: `s3a://KEY:SECRET@bucket`.
    pub fn named(mut self, name: &Path) -> Self {
        let text = name.to_string_lossy();
        let secret = text.split_once("://").and_then(|(scheme, rest)| {
            let (user, place) = rest.split_once('@')?;
            (user.contains(':') && !user.contains('/')).then(|| format!("{scheme}://{place}"))
        });
        self.name = Some(secret.map_or_else(|| name.to_owned(), PathBuf::from));
        self
    }

    /// What the user calls it.
    pub fn name(&self) -> &Path {
        self.name.as_deref().unwrap_or(self.path())
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

    /// The name of a query, see [`query_name`].
    pub fn query_name(&self, id: &ExecutionId) -> String {
        let known = self.executions.get(id);
        let description = known.map_or("", |execution| execution.description.as_str());
        query_name(description, self.plans.get(id))
    }

    /// The same; none where nothing says it.
    pub fn known_query_name(&self, id: &ExecutionId) -> Option<String> {
        let name = self.query_name(id);
        (name != UNNAMED).then_some(name)
    }

    /// What the threads of a group of waits wait for.
    pub fn waiting(&self, group: &Group) -> WaitReason {
        self.reason(&group.app, self.stack_wait(group.stack))
    }

    /// Whether the threads of a group of waits wait for another thread that reads a file for them.
    pub fn is_read_by_another_thread(&self, group: &Group) -> bool {
        self.stack_wait(group.stack).by_another_thread
    }

    /// The wait of a stack.
    pub(crate) fn stack_wait(&self, stack: StackId) -> StackWait {
        let frames = self.stacks.get(&stack);
        StackWait::from_stack(frames.map_or(&[][..], Vec::as_slice))
    }

    /// The reason of a wait in an application.
    pub(crate) fn reason(&self, app: &str, wait: StackWait) -> WaitReason {
        wait.reason(|| self.readers_of_other_machines.contains(app))
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
        let frames = self.stacks.values().flatten();
        let hashes: BTreeSet<&str> = frames
            .filter_map(|frame| generated_hash(&frame.file))
            .collect();
        let hashes: Vec<String> = hashes.into_iter().map(str::to_owned).collect();
        let dir = &self.dir;
        let read = hashes
            .into_par_iter()
            .map(|hash| (regions_of(dir, &hash), hash));
        let read: Vec<_> = read.collect();
        for (regions, hash) in read {
            match regions {
                Ok(regions) => {
                    self.regions.insert(hash, regions);
                }
                Err(reason) => {
                    let path = self.dir.path().join("sources").join(format!("{hash}.java"));
                    let reason = format!("{reason}; its samples have no operators");
                    self.problems.push(Problem { path, reason });
                }
            }
        }
    }
}

/// The regions of a generated source, or why they are not known.
fn regions_of(dir: &ProfileDir, hash: &str) -> Result<RegionMap, String> {
    match dir.source(hash) {
        Ok(Some(text)) => Ok(RegionMap::parse(&text)),
        Ok(None) => Err("the generated source is missing".to_owned()),
        Err(FormatError::Io { source, .. }) => Err(source.to_string()),
        Err(e) => Err(e.to_string()),
    }
}

/// Executions with their plans and generated classes.
struct Queries {
    plans: HashMap<ExecutionId, Plan>,
    generated: HashMap<ExecutionId, HashMap<String, Vec<usize>>>,
    classes: HashMap<String, String>,
    executions: BTreeMap<ExecutionId, Execution>,
    problems: Vec<Problem>,
}

impl Queries {
    fn read(dir: &ProfileDir) -> Result<Self, FormatError> {
        let mut problems = Vec::new();
        let plan_rows = rows::<PlanRow>(dir, &mut problems)?;
        let codegen = rows::<CodegenRow>(dir, &mut problems)?;
        let executions = joined::executions(rows::<ExecutionRow>(dir, &mut problems)?);
        let sources = rows::<SourceRow>(dir, &mut problems)?;
        let mut plans = joined::plans(plan_rows);
        let mut generated = joined::generated(codegen, &mut plans);
        joined::share_bodies(&sources, &mut generated);
        let sources = sources.into_iter();
        Ok(Self {
            plans,
            generated,
            classes: sources.map(|row| (row.hash, row.class)).collect(),
            executions,
            problems,
        })
    }
}

/// Bounds that all samples of a selection are within.
fn bounds(selection: Selection, stages: &HashMap<StageAttempt, Stage>) -> Bounds {
    let mut bounds = Bounds::ALL;
    let period = selection.period;
    if period != Period::ALL {
        bounds = bounds.and(
            "start_ns",
            period.start_ns..=period.end_ns.saturating_sub(1),
        );
    }
    if let Some(query) = selection.query {
        let of_query = stages
            .iter()
            .filter(|(_, stage)| stage.execution == Some(query));
        let ids = of_query.map(|(id, _)| i64::from(id.stage));
        let range = ids.fold(None, |range: Option<(i64, i64)>, id| {
            let (low, high) = range.unwrap_or((id, id));
            Some((low.min(id), high.max(id)))
        });
        // Without a stage there is no number.
        let (low, high) = range.unwrap_or((1, 0));
        bounds = bounds.and("stage", low..=high);
    }
    if let Some(stage) = selection.stage.map(i64::from) {
        bounds = bounds.and("stage", stage..=stage);
    }
    bounds
}

fn rows<T: Table>(dir: &ProfileDir, problems: &mut Vec<Problem>) -> Result<Vec<T>, FormatError> {
    let read = dir.read::<T>()?;
    problems.extend(read.problems);
    Ok(read.rows)
}

fn by_time(processes: &[ProcessRow]) -> bool {
    let partial = |process: &ProcessRow| process.task_fraction.is_some();
    processes.iter().any(partial)
}

fn sorted<T: Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.collect();
    values.sort();
    values.dedup();
    values
}
