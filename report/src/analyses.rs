//! The parts of a report that take long, made side by side.

use std::collections::BTreeMap;
use std::io;

use crate::advise;
use crate::blame::contention;
use crate::skew::skew;
use crate::what_if;
use crate::{Block, Blocks, Details, Report, ReportError, Suggestions};

/// The parts of a report that take long.
#[derive(Debug)]
pub struct Analyses {
    /// Who slowed whom down; none where tasks did not report what they used.
    pub contention: Result<Option<Blocks>, ReportError>,
    /// Which tasks are slow, and why; none where no task has ended.
    pub skew: Result<Option<Blocks>, ReportError>,
    /// What to change; none for a part of the time.
    pub advice: Result<Option<Suggestions>, ReportError>,
    /// How long the largest queries would take with changes, by their positions in the list.
    pub what_if: Result<BTreeMap<usize, Block>, ReportError>,
    /// The details of all queries.
    pub details: io::Result<Details>,
}

impl Report<'_> {
    /// Analyses the profile, or one application of it. `progress` is called for each query that is done.
    pub fn analyses(&self, app: Option<&str>, progress: &(dyn Fn() + Sync)) -> Analyses {
        let summary = self.summary();
        let (details, ((contention, skew), (advice, what_if))) = rayon::join(
            || self.details(progress),
            || {
                rayon::join(
                    || {
                        rayon::join(
                            || contention(self.profile, summary),
                            || skew(self.profile.path(), app, summary),
                        )
                    },
                    || {
                        rayon::join(
                            || advise::suggestions(self, app),
                            || what_if::what_ifs(self),
                        )
                    },
                )
            },
        );
        Analyses {
            contention,
            skew,
            advice,
            what_if,
            details,
        }
    }
}
