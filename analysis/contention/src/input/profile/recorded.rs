//! What tasks did, as far as an answer needs it.

use std::collections::{HashMap, HashSet};

use unfuse_format::{Bounds, FormatError, IntervalRow, ProfileDir, Table, TaskRow};
use unfuse_postprocess::TaskInterval;

use super::index::{RowsNeeded, StageIndex};
use super::possible;

/// Rows as they were read.
pub(super) struct RecordedRows {
    pub(super) tasks: Vec<TaskRow>,
    pub(super) intervals: Vec<IntervalRow>,
    pub(super) sampled: Vec<TaskInterval>,
    pub(super) notes: Vec<String>,
}

impl RecordedRows {
    /// Reads them.
    pub(super) fn read(index: &StageIndex<'_>, needed: &RowsNeeded) -> Result<Self, FormatError> {
        let bounds = needed.bounds();
        let mut notes = index.notes.clone();
        let mut tasks: Vec<TaskRow> = read(&index.dir, &bounds, &mut notes)?;
        needed.retain(&mut tasks, |row| (&row.app, row.stage, row.attempt));
        let mut intervals: Vec<IntervalRow> = read(&index.dir, &bounds, &mut notes)?;
        needed.retain(&mut intervals, |row| (&row.app, row.stage, row.attempt));
        let mut metered: HashMap<&str, HashSet<i64>> = HashMap::new();
        for row in intervals.iter().filter(|row| possible::interval(row)) {
            metered.entry(&row.app).or_default().insert(row.task);
        }
        let is_metered =
            |app: &str, task: i64| metered.get(app).is_some_and(|tasks| tasks.contains(&task));
        let profile = index.profile;
        let mut sampled = profile.task_intervals(&bounds, &index.meanings, &is_metered)?;
        needed.retain(&mut sampled, |row| (&row.app, row.stage, row.attempt));
        let impossible = possible::keep_large(&mut tasks, &mut intervals, &mut sampled);
        notes.extend(possible::note(index.impossible + impossible));
        Ok(Self {
            tasks,
            intervals,
            sampled,
            notes,
        })
    }
}

/// The rows of a table within bounds; says in `notes` which files had to be left out.
pub(super) fn read<T: Table>(
    dir: &ProfileDir,
    bounds: &Bounds,
    notes: &mut Vec<String>,
) -> Result<Vec<T>, FormatError> {
    let read = dir.read_within::<T>(bounds)?;
    notes.extend(read.problems.iter().map(ToString::to_string));
    Ok(read.rows)
}
