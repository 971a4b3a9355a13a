//! Reads a run from a profile directory.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use unfuse_format::{
    Bounds, ExecutionId, FormatError, ProfileDir, Table, TaskRow, merge_executions, merge_stages,
};

use super::retries::Sizes;
use crate::{Run, Stage, Task};

/// The stages of a profile, of all its applications. Missing tables become notes.
///
/// # Errors
/// A [`FormatError`] if the directory is not a profile or cannot be read.
pub fn from_profile(root: &Path) -> Result<Run, FormatError> {
    let dir = ProfileDir::open(root)?;
    let mut run = Run::default();
    let mut stages: BTreeMap<(String, i32), Stage> = BTreeMap::new();
    let executions = merge_executions(read(&dir, &mut run.notes)?);
    let mut completed: HashMap<(String, i32), Option<i64>> = HashMap::new();
    let mut sizes = Sizes::default();
    // A later attempt comes after an earlier one.
    for (id, row) in merge_stages(read(&dir, &mut run.notes)?) {
        let key = (id.app, id.stage);
        sizes.take(key.clone(), id.attempt, row.tasks.into());
        completed.insert(key.clone(), row.completed_ms);
        let stage = stages.entry(key).or_default();
        stage.sql = stage.sql.or(row.execution);
        stage.submitted_ms = match (stage.submitted_ms, row.submitted_ms) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if stage.name.is_empty() {
            stage.name = row.name;
        }
    }
    let tasks = dir.read_as::<TaskRow, _>(&Bounds::ALL, |rows| {
        let mut names = Names::default();
        let of = |row: TaskRow| (names.intern(&row.app), row.stage, task(row, &mut names));
        rows.into_iter().map(of).collect()
    })?;
    run.notes
        .extend(tasks.problems.iter().map(ToString::to_string));
    for (app, number, task) in tasks.rows {
        let stage = stages.entry((app.to_string(), number)).or_default();
        stage.attempts.push(task);
    }
    let mut names = Names::default();
    let mut now: HashMap<String, i64> = HashMap::new();
    for ((app, _), stage) in &stages {
        let last = stage.attempts.iter().map(|task| task.finished_ms).max();
        let now = now.entry(app.clone()).or_default();
        *now = (*now).max(last.unwrap_or(0));
    }
    for ((app, number), mut stage) in stages {
        stage.completed_ms = completed.get(&(app.clone(), number)).copied().flatten();
        let description = stage
            .sql
            .and_then(|sql| executions.get(&ExecutionId::new(&app, sql)));
        stage.description = description
            .map(|row| row.description.clone())
            .unwrap_or_default();
        stage.now_ms = now.get(&app).copied().unwrap_or(0);
        stage.app = names.intern(&app);
        stage.stage = number;
        stage.mark_first();
        if !stage.attempts.is_empty() {
            run.stages.push(stage);
        }
    }
    sizes.settle(&mut run, |stage| (stage.app.to_string(), stage.stage));
    Ok(run)
}

fn read<T: Table>(dir: &ProfileDir, notes: &mut Vec<String>) -> Result<Vec<T>, FormatError> {
    let read = dir.read::<T>()?;
    notes.extend(read.problems.iter().map(ToString::to_string));
    Ok(read.rows)
}

/// Executors and hosts, each kept once.
#[derive(Default)]
struct Names(HashMap<String, Arc<str>>);

impl Names {
    fn intern(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return Arc::clone(known);
        }
        let new: Arc<str> = name.into();
        self.0.insert(name.to_owned(), Arc::clone(&new));
        new
    }
}

fn task(row: TaskRow, names: &mut Names) -> Task {
    let amount = |number: i64| number.max(0).unsigned_abs();
    let sum = |a: i64, b: i64| amount(a).saturating_add(amount(b));
    Task {
        stage_attempt: row.attempt,
        index: row.index,
        partition: None,
        task: row.task,
        executor: names.intern(&row.executor),
        host: names.intern(&row.host),
        locality: names.intern(""),
        first: false,
        succeeded: row.status == "SUCCESS",
        launched_ms: row.launched_ms,
        finished_ms: row.finished_ms,
        run_ms: amount(row.run_ms),
        cpu_ns: amount(row.cpu_ns),
        gc_ms: amount(row.gc_ms),
        fetch_wait_ms: amount(row.shuffle_fetch_wait_ms),
        shuffle_write_ns: amount(row.shuffle_write_ns),
        read_bytes: sum(row.input_bytes, row.shuffle_read_bytes),
        read_records: sum(row.input_records, row.shuffle_read_records),
        written_bytes: sum(row.output_bytes, row.shuffle_write_bytes),
        written_records: sum(row.output_records, row.shuffle_write_records),
        spilled_bytes: amount(row.disk_spilled_bytes),
    }
}
