//! The parts of a report that take long, made side by side.

use std::io;

use crate::advise;
use crate::blame::contention;
use crate::skew::skew;
use crate::{Blocks, Details, Report, ReportError, Suggestions};

/// The parts of a report that take long.
#[derive(Debug)]
pub struct Analyses {
    /// Who slowed whom down; none where tasks did not report what they used.
    pub contention: Result<Option<Blocks>, ReportError>,
    /// Which tasks are slow, and why; none where no task has ended.
    pub skew: Result<Option<Blocks>, ReportError>,
    /// What to change; none for a part of the time.
    pub advice: Result<Option<Suggestions>, ReportError>,
    /// The details of all queries.
    pub details: io::Result<Details>,
}

impl Report<'_> {
    /// Analyses the profile, or one application of it. `progress` is called for each query that is done.
    pub fn analyses(&self, app: Option<&str>, progress: &(dyn Fn() + Sync)) -> Analyses {
        let summary = self.summary();
        let (details, ((contention, skew), advice)) = rayon::join(
            || self.details(progress),
            || {
                rayon::join(
                    || {
                        rayon::join(
                            || contention(self.profile, summary),
                            || skew(self.profile.path(), app, summary),
                        )
                    },
                    || advise::suggestions(self, app),
                )
            },
        );
        Analyses {
            contention,
            skew,
            advice,
            details,
        }
    }
}
