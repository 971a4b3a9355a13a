//! Which tasks are slower than the others of their stage, and why: the answer of `unfuse skew` as data ([`Answer`]), as
//! text ([`render`]) and in the report's page ([`skew`]).

mod advice;
mod answer;
mod page;
mod records;
mod records_text;
mod text;

use std::path::Path;

use rayon::prelude::*;
use unfuse_provenance::{Outcome, TaskTraces};
use unfuse_skew::{Finding, Options, Run, Stage, detect};

use crate::ReportError;
use records::records;

pub use answer::Answer;
#[cfg(test)]
pub(crate) use page::declare;
pub use page::skew;
pub use records::{RecordFilter, Records};
pub use text::render;

/// Propagates records elsewhere, if there are too many for this machine.
pub type Propagate<'a> =
    dyn Fn(&TaskTraces, &unfuse_provenance::Options) -> Result<Outcome, ReportError> + 'a;

/// The run of a profile, or one application's part of it, and the analysis of its records if they were traced.
///
/// # Errors
/// Those of `job`, if there is one; other failures become notes.
pub fn with_records(
    mut run: Run,
    root: &Path,
    filter: &RecordFilter,
    job: Option<&Propagate<'_>>,
) -> Result<(Run, Option<Records>), ReportError> {
    run.stages
        .retain(|stage| filter.app.is_none_or(|app| *stage.app == *app));
    let records = match records(root, filter, &run, job) {
        Ok(Some((records, notes))) => {
            run.notes.extend(notes);
            Some(records)
        }
        Ok(None) => None,
        // A user who starts a job must see its error.
        Err(error) if job.is_some() => return Err(error),
        // Tasks can be shown without records.
        Err(error) => {
            let note = format!("records are not shown: {error}");
            run.notes.push(note);
            None
        }
    };
    Ok((run, records))
}

/// Judges some stages. Findings are sorted with the largest saving first; a stage that waits for a running task counts
/// with its waiting time so far.
pub fn judge(run: &Run, which: impl Fn(&Stage) -> bool + Sync) -> Vec<Finding> {
    let stages = run.stages.par_iter().filter(|stage| which(stage));
    let mut findings: Vec<Finding> = stages
        .map(|stage| detect(stage, &Options::default()))
        .collect();
    let costs = |finding: &Finding| {
        let longest = finding.hanging.first();
        let waited = longest.map_or(0.0, |task| task.running_ms - finding.typical_ms);
        finding.saved_ms.max(waited)
    };
    findings.sort_by(|a, b| costs(b).total_cmp(&costs(a)));
    findings
}
