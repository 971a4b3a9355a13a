//! Which rows of the large tables an answer needs.

use std::collections::BTreeSet;

use unfuse_format::{Bounds, FormatError, ProfileDir, StageAttempt, Table};

use super::recorded::read;

/// The rows that an answer needs.
pub(super) enum RowsNeeded {
    /// All.
    All,
    /// Those of these stages.
    Stages(BTreeSet<StageAttempt>),
}

impl RowsNeeded {
    /// Whether the rows of a stage are needed.
    pub(super) fn holds(&self, stage: &StageAttempt) -> bool {
        match self {
            Self::All => true,
            Self::Stages(stages) => stages.contains(stage),
        }
    }

    /// Whether the rows of an attempt of a stage are needed.
    pub(super) fn holds_any(&self, app: &str, stage: i32) -> bool {
        match self {
            Self::All => true,
            Self::Stages(stages) => {
                let mut attempts = stages.range(StageAttempt::new(app, stage, 0)..);
                attempts.next().is_some_and(|key| key.is_of(app, stage))
            }
        }
    }

    /// The needed rows of a table; says in `notes` which files had to be left out.
    pub(super) fn read<T: Table>(
        &self,
        dir: &ProfileDir,
        notes: &mut Vec<String>,
    ) -> Result<Vec<T>, FormatError> {
        if matches!(self, Self::All) {
            return read(dir, notes);
        }
        let columns = ["app", "stage", "attempt"];
        let read = dir.read_chosen::<T>(&columns, &self.bounds(), |rows| {
            let apps = rows.texts("app")?;
            let (stages, attempts) = (rows.i32s("stage")?, rows.i32s("attempt")?);
            let mut chooser = self.chooser();
            let needs = |row| {
                let (stage, attempt) = (stages.or_zero(row), attempts.or_zero(row));
                chooser.needs(apps.get(row), stage, attempt)
            };
            Ok((0..rows.rows()).map(needs).collect())
        })?;
        notes.extend(read.problems.iter().map(ToString::to_string));
        Ok(read.rows)
    }

    /// What tells which rows are needed, one after the other.
    pub(super) fn chooser(&self) -> Chooser<'_> {
        Chooser {
            needed: self,
            last: None,
        }
    }

    /// Bounds of the needed rows.
    pub(super) fn bounds(&self) -> Bounds {
        let Self::Stages(stages) = self else {
            return Bounds::ALL;
        };
        let ids = stages.iter().map(|stage| i64::from(stage.stage));
        let first = ids.clone().min().unwrap_or(0);
        Bounds::ALL.and("stage", first..=ids.max().unwrap_or(-1))
    }
}

/// Tells which rows are needed. Rows of a stage follow each other mostly.
pub(super) struct Chooser<'a> {
    needed: &'a RowsNeeded,
    last: Option<(StageAttempt, bool)>,
}

impl Chooser<'_> {
    /// Whether a row of a stage is needed.
    pub(super) fn needs(&mut self, app: &str, stage: i32, attempt: i32) -> bool {
        match &self.last {
            Some((known, needs)) if known.is_of(app, stage) && known.attempt == attempt => *needs,
            _ => {
                let stage = StageAttempt::new(app, stage, attempt);
                let needs = self.needed.holds(&stage);
                self.last = Some((stage, needs));
                needs
            }
        }
    }
}
