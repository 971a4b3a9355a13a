//! The rows of a profile that an answer needs.

use std::collections::BTreeMap;

use unfuse_format::{
    Bounds, FormatError, IntervalRow, ProfileDir, StageAttempt, StageRow, Table, TaskRow,
};
use unfuse_postprocess::TaskInterval;

use super::index::{Needed, StageIndex};
use super::possible;

/// Rows as they were read.
pub(super) struct Recorded<'a> {
    /// Stages that the driver reported.
    pub(super) stages: BTreeMap<&'a StageAttempt, &'a StageRow>,
    pub(super) tasks: Vec<TaskRow>,
    pub(super) intervals: Vec<IntervalRow>,
    pub(super) sampled: Vec<TaskInterval>,
    pub(super) notes: Vec<String>,
}

impl<'a> Recorded<'a> {
    /// Reads them.
    pub(super) fn read(index: &'a StageIndex<'_>, needed: &Needed) -> Result<Self, FormatError> {
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
        // A cache may have been filled long before; its blocks are still in the way.
        let fills_a_cache = |stage: &StageAttempt| {
            let mut cached = index.cached.iter();
            cached.any(|row| row.stage.is_some_and(|id| stage.is_of(&row.app, id)))
        };
        let stages = index.stages.iter();
        Ok(Self {
            stages: stages
                .filter(|(stage, _)| needed.holds(stage) || fills_a_cache(stage))
                .collect(),
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
