//! The rows of tasks that an answer needs.

use std::collections::{HashMap, HashSet};

use unfuse_format::{
    CpuWaitRow, FormatError, IntervalRow, LockWaitRow, ProfileDir, Table, TaskRow,
};
use unfuse_postprocess::TaskInterval;

use super::index::StageIndex;
use super::needed::RowsNeeded;
use super::possible;

/// Rows of tasks.
pub(super) struct RecordedRows {
    pub(super) tasks: Vec<TaskRow>,
    pub(super) intervals: Vec<IntervalRow>,
    pub(super) sampled: Vec<TaskInterval>,
    /// Who had a CPU while a task waited for it.
    pub(super) queued: Vec<CpuWaitRow>,
    /// Who held a lock while a task waited for it.
    pub(super) held: Vec<LockWaitRow>,
    pub(super) notes: Vec<String>,
}

impl RecordedRows {
    /// Reads the needed rows.
    pub(super) fn read(index: &StageIndex<'_>, needed: &RowsNeeded) -> Result<Self, FormatError> {
        let mut notes = index.notes.clone();
        let mut tasks: Vec<TaskRow> = needed.read(&index.dir, &mut notes)?;
        let mut intervals: Vec<IntervalRow> = needed.read(&index.dir, &mut notes)?;
        let mut queued: Vec<CpuWaitRow> = needed.read(&index.dir, &mut notes)?;
        let mut held: Vec<LockWaitRow> = needed.read(&index.dir, &mut notes)?;
        let mut metered: HashMap<&str, HashSet<i64>> = HashMap::new();
        for row in intervals.iter().filter(|row| possible::interval(row)) {
            metered.entry(&row.app).or_default().insert(row.task);
        }
        let is_metered =
            |app: &str, task: i64| metered.get(app).is_some_and(|tasks| tasks.contains(&task));
        let needs = || {
            let mut chooser = needed.chooser();
            move |app: &str, stage, attempt| chooser.needs(app, stage, attempt)
        };
        let mut sampled =
            index
                .profile
                .task_intervals(&needed.bounds(), &index.meanings, &needs, &is_metered)?;
        let impossible = possible::keep_large(
            &mut tasks,
            &mut intervals,
            &mut sampled,
            &mut queued,
            &mut held,
        );
        notes.extend(possible::note(index.impossible + impossible));
        Ok(Self {
            tasks,
            intervals,
            sampled,
            queued,
            held,
            notes,
        })
    }
}

/// The rows of a table; says in `notes` which files had to be left out.
pub(super) fn read<T: Table>(
    dir: &ProfileDir,
    notes: &mut Vec<String>,
) -> Result<Vec<T>, FormatError> {
    let read = dir.read::<T>()?;
    notes.extend(read.problems.iter().map(ToString::to_string));
    Ok(read.rows)
}
