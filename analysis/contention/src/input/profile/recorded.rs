//! What tasks did, as far as an answer needs it.

use unfuse_format::{Bounds, FormatError, IntervalRow, ProfileDir, Table, TaskRow};
use unfuse_postprocess::TaskInterval;

use super::index::{Needed, StageIndex};
use super::possible;

/// Rows as they were read.
pub(super) struct Recorded {
    pub(super) tasks: Vec<TaskRow>,
    pub(super) intervals: Vec<IntervalRow>,
    pub(super) sampled: Vec<TaskInterval>,
    pub(super) notes: Vec<String>,
}

impl Recorded {
    /// Reads them.
    pub(super) fn read(index: &StageIndex<'_>, needed: &Needed) -> Result<Self, FormatError> {
        let bounds = needed.bounds();
        let mut notes = index.notes.clone();
        let mut tasks: Vec<TaskRow> = read(&index.dir, &bounds, &mut notes)?;
        needed.retain(&mut tasks, TaskRow::stage_attempt);
        let mut intervals: Vec<IntervalRow> = read(&index.dir, &bounds, &mut notes)?;
        needed.retain(&mut intervals, IntervalRow::stage_attempt);
        let mut sampled = index.profile.task_intervals(&bounds)?;
        needed.retain(&mut sampled, TaskInterval::stage_attempt);
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
