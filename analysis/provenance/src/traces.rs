//! The task attempts whose records were traced, and the order of their dependencies.

use std::collections::{BTreeMap, HashMap};

use unfuse_format::{ProfileDir, RecordSourceRow, RecordTargetRow, TaskKey};

use crate::{ProvenanceError, RecordRef};

/// A task: application, stage and partition.
type Task = (String, i32, i32);
/// Stage attempt and task attempt.
type Rank = (i32, i64);

/// A task attempt.
#[derive(Debug, Clone, Default)]
pub struct TaskTrace {
    /// Its sources, by their keys.
    pub sources: Vec<RecordSourceRow>,
    /// Its outputs, by their keys.
    pub targets: Vec<RecordTargetRow>,
}

impl TaskTrace {
    /// Its key in the tables.
    fn key(&self) -> Option<TaskKey> {
        let of_target = self.targets.first().map(|row| row.task_key);
        of_target.or(self.sources.first().map(|row| row.task_key))
    }

    /// The output that gets the records of a source.
    pub(crate) fn output_of(&self, source: &RecordSourceRow) -> i32 {
        match source.output {
            -1 => i32::try_from(self.targets.len()).unwrap_or(0) - 1,
            output => output,
        }
    }

    fn app(&self) -> Option<&str> {
        let of_target = self.targets.first().map(|row| row.app.as_str());
        of_target.or(self.sources.first().map(|row| row.app.as_str()))
    }

    /// The task of the attempt.
    fn task(&self) -> Option<Task> {
        let of_target = self.targets.first();
        let of_source = self.sources.first();
        of_target
            .map(|row| (row.app.clone(), row.stage, row.partition))
            .or(of_source.map(|row| (row.app.clone(), row.stage, row.partition)))
    }

    /// The rank among the attempts of a task: later ones win.
    fn rank(&self) -> Rank {
        let (attempt, task) = (
            self.targets.first().map(|row| (row.attempt, row.task)),
            self.sources.first().map(|row| (row.attempt, row.task)),
        );
        attempt.or(task).unwrap_or_default()
    }
}

/// The task attempts that count: of several for the same task (speculative or repeated ones) the last.
#[derive(Debug, Default)]
pub struct TaskTraces {
    /// Ordered by their keys.
    pub all: Vec<TaskTrace>,
    /// Number of attempts left out for others.
    pub repeated: usize,
    /// Number of segments that could not be read.
    pub damaged: usize,
    /// The index of each key in the order of writing, which is the same in all tables.
    pub(crate) order: HashMap<TaskKey, usize>,
}

impl TaskTraces {
    /// Reads the attempts of an application, or of all.
    ///
    /// # Errors
    /// If there are none, or the profile cannot be read.
    pub fn read(dir: &ProfileDir, app: Option<&str>) -> Result<Self, ProvenanceError> {
        let sources = dir.read::<RecordSourceRow>()?;
        let targets = dir.read::<RecordTargetRow>()?;
        let mut found: BTreeMap<TaskKey, TaskTrace> = BTreeMap::new();
        let mut order = HashMap::new();
        for row in sources.rows {
            let next = order.len();
            order.entry(row.task_key).or_insert(next);
            found.entry(row.task_key).or_default().sources.push(row);
        }
        for row in targets.rows {
            found.entry(row.task_key).or_default().targets.push(row);
        }
        if let Some(app) = app {
            found.retain(|_, trace| trace.app() == Some(app));
        }
        let mut last: BTreeMap<Task, (TaskKey, Rank)> = BTreeMap::new();
        for (key, trace) in &mut found {
            trace.sources.sort_by_key(|row| row.source);
            trace.targets.sort_by_key(|row| row.output);
            let Some(task) = trace.task() else { continue };
            let rank = trace.rank();
            let best = last.entry(task).or_insert((*key, rank));
            if rank > best.1 {
                *best = (*key, rank);
            }
        }
        let of_tasks = found.len();
        let mut traces = Self {
            damaged: sources.problems.len() + targets.problems.len(),
            order,
            ..Self::default()
        };
        let mut keys: Vec<TaskKey> = last.into_values().map(|(key, _)| key).collect();
        keys.sort_unstable();
        for key in keys {
            if let Some(trace) = found.remove(&key) {
                traces.all.push(trace);
            }
        }
        traces.repeated = of_tasks - traces.all.len();
        if traces.all.is_empty() {
            return Err(ProvenanceError::NoRecords(dir.path().display().to_string()));
        }
        Ok(traces)
    }

    /// The index of each task attempt in `all`, by its key.
    pub(crate) fn indices(&self) -> HashMap<TaskKey, u32> {
        let keys = self.all.iter().map(TaskTrace::key).zip(0..);
        keys.filter_map(|(key, index)| Some((key?, index)))
            .collect()
    }

    /// Number of records that were read for an output.
    pub(crate) fn records(&self) -> u64 {
        let of_trace = |trace: &TaskTrace| {
            let has = |output: i32| trace.targets.iter().any(|row| row.output == output);
            let sources = trace.sources.iter().filter(|row| has(trace.output_of(row)));
            sources.fold(0, |sum: u64, row| {
                sum.saturating_add(u64::try_from(row.count).unwrap_or(0))
            })
        };
        self.all.iter().map(of_trace).fold(0, u64::saturating_add)
    }

    /// The key of the task attempt that read a record.
    pub(crate) fn key(&self, record: RecordRef) -> Option<TaskKey> {
        self.all.get(usize::try_from(record.trace).ok()?)?.key()
    }

    /// The source that a record was read from.
    pub fn source(&self, record: RecordRef) -> Option<&RecordSourceRow> {
        let trace = self.all.get(usize::try_from(record.trace).ok()?)?;
        trace.sources.iter().find(|row| row.source == record.source)
    }

    /// For each task attempt and output, the number of links before it. Each link belongs to one application.
    pub(crate) fn levels(&self) -> Vec<Vec<u32>> {
        let mut of_link: HashMap<(String, String), u32> = HashMap::new();
        let mut levels: Vec<Vec<u32>> = self
            .all
            .iter()
            .map(|trace| vec![0; trace.targets.len()])
            .collect();
        // As many rounds as there can be links in a chain; damaged data may contain cycles.
        for _ in 0..=LinkNumbers::new(self).0.len() {
            let mut changed = false;
            for (trace, levels) in self.all.iter().zip(&mut levels) {
                for (target, level) in trace.targets.iter().zip(levels.iter_mut()) {
                    let sources = trace.sources.iter();
                    let own = sources.filter(|source| trace.output_of(source) == target.output);
                    let before = own
                        .flat_map(|source| source.links.iter().map(|link| (&source.app, link)))
                        .filter_map(|(app, link)| of_link.get(&(app.clone(), link.clone())))
                        .max();
                    let now = before.map_or(0, |before| before + 1);
                    let key = (target.app.clone(), target.link.clone());
                    // Its reader may have come before.
                    changed |= now > *level || of_link.get(&key).is_none_or(|link| now > *link);
                    let link = of_link.entry(key).or_insert(now);
                    *level = now.max(*level);
                    *link = now.max(*link);
                }
            }
            if !changed {
                break;
            }
        }
        levels
    }
}

/// Numbers of the shuffles and caches that records were written to; each belongs to one application.
pub(crate) struct LinkNumbers(HashMap<(String, String), u32>);

impl LinkNumbers {
    pub(crate) fn new(traces: &TaskTraces) -> Self {
        let mut keys = HashMap::new();
        for target in traces.all.iter().flat_map(|trace| &trace.targets) {
            if target.link != "result" {
                let next = keys.len() as u32;
                let key = (target.app.clone(), target.link.clone());
                keys.entry(key).or_insert(next);
            }
        }
        Self(keys)
    }

    /// The number; `None` for results, and for links that no task wrote to.
    pub(crate) fn get(&self, app: &str, link: &str) -> Option<u32> {
        let key = (app.to_owned(), link.to_owned());
        self.0.get(&key).copied()
    }
}
