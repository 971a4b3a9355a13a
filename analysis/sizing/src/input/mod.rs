//! Runs from event logs and profile directories.
//!
//! Neither has iterations and size. They come, in this order, from a table by the user, from the properties
//! `spark.unfuse.iterations` and `spark.unfuse.bytes` of the job, and else they are one iteration, and the bytes that
//! the job read.

mod builder;
mod given;
mod graph;
mod profile;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use unfuse_eventlog::{EventLog, is_event_log};
use unfuse_format::ProfileDir;

use self::builder::Builder;
pub use self::given::GivenValues;
use crate::{Run, SizingError};

/// Runs from logs and profiles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Logs {
    /// Successful runs.
    pub runs: Vec<Run>,
    /// Logs and profiles without a run.
    pub left_out: Vec<LeftOut>,
    /// Notes on the others.
    pub notes: Vec<String>,
}

/// A log or profile without a usable run.
#[derive(Clone, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct LeftOut {
    /// Its path.
    pub log: String,
    /// The reason.
    pub why: String,
}

/// A run, the id of its application, and notes; or the reason why there is none.
type RunResult = Result<(Run, Option<String>, Vec<String>), String>;

/// Reads event logs, profile directories, and those in directories. Runs that failed, were killed or still run are left
/// out.
///
/// # Errors
/// If a path does not exist, or a directory contains none.
pub fn read(paths: &[PathBuf], given: &GivenValues) -> Result<Logs, SizingError> {
    let mut logs = Logs::default();
    // Profiles contain the logs of the same applications.
    let mut seen: BTreeMap<String, (bool, String)> = BTreeMap::new();
    for path in paths {
        for source in sources_in(path)? {
            let is_profile = ProfileDir::is_at(&source);
            let found = match is_profile {
                true => read_profile(&source, given),
                false => vec![(source.clone(), read_log(&source, given))],
            };
            for (path, found) in found {
                let name = path.display().to_string();
                let fresh = found.and_then(|(run, id, notes)| {
                    let this = (is_profile, name.clone());
                    let first = id.map_or(&this, |id| seen.entry(id).or_insert(this.clone()));
                    match first.0 == is_profile {
                        true => Ok((run, notes)),
                        false => Err(format!(
                            "{} is from the same run, which counts once",
                            first.1
                        )),
                    }
                });
                match fresh {
                    Ok((run, notes)) => {
                        logs.runs.push(run);
                        logs.notes
                            .extend(notes.into_iter().map(|note| format!("{name}: {note}")));
                    }
                    Err(why) => logs.left_out.push(LeftOut { log: name, why }),
                }
            }
        }
    }
    sizes(&mut logs);
    Ok(logs)
}

/// A log or profile, or all in a directory.
fn sources_in(path: &Path) -> Result<Vec<PathBuf>, SizingError> {
    let failed = |why: String| SizingError::File {
        file: path.display().to_string(),
        why,
    };
    let is_source = |path: &Path| ProfileDir::is_at(path) || is_event_log(path);
    if is_source(path) {
        return Ok(vec![path.to_owned()]);
    }
    let unread = |error: std::io::Error| failed(format!("cannot be read ({error})"));
    let mut sources = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        let hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && is_source(&path) {
            sources.push(path);
        }
    }
    if sources.is_empty() {
        return Err(failed(
            "is a directory without event logs and profiles; submit jobs with spark.eventLog.enabled=true and give \
             spark.eventLog.dir, or with `unfuse run -o DIR` and give DIR"
                .into(),
        ));
    }
    sources.sort();
    Ok(sources)
}

/// The run of one log.
fn read_log(path: &Path, given: &GivenValues) -> RunResult {
    // The caller adds the path.
    let without_path = |error: String| error.replacen(&path.display().to_string(), "it", 1);
    let mut log = EventLog::open(path).map_err(|error| without_path(error.to_string()))?;
    let mut builder = Builder::default();
    for event in &mut log {
        builder.add(event);
    }
    let id = builder.id().cloned();
    let (run, mut notes) = builder.finish(path, given)?;
    notes.extend(log.damage().notes());
    Ok((run, id, notes))
}

/// The runs of a profile. A single run has the directory's name; several have those of their applications in it.
fn read_profile(root: &Path, given: &GivenValues) -> Vec<(PathBuf, RunResult)> {
    let applications = match profile::applications(root) {
        Ok(applications) => applications,
        Err(why) => return vec![(root.to_owned(), Err(why))],
    };
    let several = applications.len() > 1;
    let runs = applications.into_iter().map(|(id, application)| {
        let path = match several {
            true => root.join(&id),
            false => root.to_owned(),
        };
        let found = application.check().and_then(|()| {
            let (run, mut notes) = application.builder.finish(&path, given)?;
            notes.extend(application.notes);
            Ok((run, Some(id), notes))
        });
        (path, found)
    });
    runs.collect()
}

/// Sets unknown sizes to one byte, if all runs of an application have none; else drops these runs.
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
        why: "it read no input, unlike the others; give its size with --runs or spark.unfuse.bytes".into(),
    }));
    let mut unsized_applications = BTreeSet::new();
    for run in logs.runs.iter_mut().filter(|run| unknown(run)) {
        run.at.bytes = 1.0;
        unsized_applications.insert(run.application.clone());
    }
    logs.notes.extend(unsized_applications.into_iter().map(|application| {
        format!(
            "no run of {application} read any input, so all count as 1 byte; give other sizes with --runs or spark.unfuse.bytes"
        )
    }));
}
