//! Runs from event logs.
//!
//! Iterations and size are not in a log. They are read, in this order, from a table that the person wrote, from the
//! properties `spark.unfuse.iterations` and `spark.unfuse.bytes` that the job was submitted with, and else they are
//! one iteration, and what the job read.

mod builder;
mod given;
mod graph;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use unfuse_eventlog::{EventLog, is_event_log};

use self::builder::Builder;
pub use self::given::Given;
use crate::{Run, SizingError};

/// What logs were good for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Logs {
    /// Runs that ended well.
    pub runs: Vec<Run>,
    /// Logs that no run could be taken from.
    pub left_out: Vec<LeftOut>,
    /// What is to be said of the others.
    pub notes: Vec<String>,
}

/// A log without a run to fit.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct LeftOut {
    /// Its path.
    pub log: String,
    /// Why.
    pub why: String,
}

/// Reads event logs, and those in directories. Logs of runs that failed, were killed or still run are left out.
///
/// # Errors
/// If a path is not there, or a directory holds no event log.
pub fn read(paths: &[PathBuf], given: &Given) -> Result<Logs, SizingError> {
    let mut logs = Logs::default();
    for path in paths {
        for log in logs_in(path)? {
            let name = log.display().to_string();
            match one(&log, given) {
                Ok((run, notes)) => {
                    logs.runs.push(run);
                    logs.notes
                        .extend(notes.into_iter().map(|note| format!("{name}: {note}")));
                }
                Err(why) => logs.left_out.push(LeftOut { log: name, why }),
            }
        }
    }
    sizes(&mut logs);
    Ok(logs)
}

/// A log, or all logs of a directory.
fn logs_in(path: &Path) -> Result<Vec<PathBuf>, SizingError> {
    let failed = |why: String| SizingError::File {
        file: path.display().to_string(),
        why,
    };
    if is_event_log(path) {
        return Ok(vec![path.to_owned()]);
    }
    let unread = |error: std::io::Error| failed(format!("cannot be read ({error})"));
    let mut logs = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        let hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && is_event_log(&path) {
            logs.push(path);
        }
    }
    if logs.is_empty() {
        return Err(failed(
            "is a directory without event logs; submit jobs with spark.eventLog.enabled=true and give spark.eventLog.dir".into(),
        ));
    }
    logs.sort();
    Ok(logs)
}

/// The run of one log with notes, or why there is none.
fn one(path: &Path, given: &Given) -> Result<(Run, Vec<String>), String> {
    // Whoever tells it says the path.
    let without_path = |error: String| error.replacen(&path.display().to_string(), "it", 1);
    let mut log = EventLog::open(path).map_err(|error| without_path(error.to_string()))?;
    let mut builder = Builder::default();
    for event in &mut log {
        builder.add(event);
    }
    let (run, mut notes) = builder.finish(path, given)?;
    notes.extend(log.damage().notes());
    Ok((run, notes))
}

/// A size of which nothing is known counts as one byte in all runs of an application, or not at all.
fn sizes(logs: &mut Logs) {
    let unknown = |run: &Run| run.at.bytes <= 0.0;
    let sized: BTreeSet<String> = logs
        .runs
        .iter()
        .filter(|run| !unknown(run))
        .map(|run| run.application.clone())
        .collect();
    let (mut without, with): (Vec<Run>, Vec<Run>) = std::mem::take(&mut logs.runs)
        .into_iter()
        .partition(|run| unknown(run) && sized.contains(&run.application));
    logs.runs = with;
    logs.left_out.extend(without.drain(..).map(|run| LeftOut {
        log: run.log,
        why: "it read no input, as the others did; say its size with --runs or spark.unfuse.bytes".into(),
    }));
    let mut unsized_applications = BTreeSet::new();
    for run in logs.runs.iter_mut().filter(|run| unknown(run)) {
        run.at.bytes = 1.0;
        unsized_applications.insert(run.application.clone());
    }
    logs.notes.extend(unsized_applications.into_iter().map(|application| {
        format!(
            "no run of {application} read any input, so all count as of one size (1 byte); say other sizes with --runs or spark.unfuse.bytes"
        )
    }));
}
