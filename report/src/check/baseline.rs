//! The last runs of queries, in a directory: one JSON file for each query of an application.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use unfuse_files::{Access, Directory};
use unfuse_postprocess::{Fingerprint, median};

use super::ProfileRuns;
use super::answer::{Answer, Query, Status};
use super::runs::QueryRuns;
use crate::ReportError;

/// The form of the files.
const FORMAT: u32 = 1;
/// How many of its last runs a query keeps.
const MOST_RUNS: usize = 20;
/// How many operators a run keeps, those with the most CPU time.
const MOST_OPERATORS: usize = 500;
/// The most bytes of a file.
const MOST_BYTES: u64 = 8 << 20;
/// The most files that are read.
const MOST_FILES: usize = 10_000;

/// A directory with the last runs of queries.
#[derive(Debug)]
pub struct Baseline {
    path: PathBuf,
    /// Of the applications of the profile that is checked.
    queries: Vec<QueryRuns>,
}

/// A file.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    unfuse_baseline: u32,
    /// Median of the runs, for readers of the file, s.
    median_wall_s: f64,
    /// The same of CPU time.
    median_cpu_s: f64,
    query: QueryRuns,
}

impl Baseline {
    /// Reads what a directory has about the applications of a profile. A directory that is not there has nothing if it is
    /// going to be made by an update.
    ///
    /// # Errors
    /// If the directory or a file cannot be read, or is not as [`update`](Self::update) writes it.
    pub fn read(path: &Path, now: &ProfileRuns, updates: bool) -> Result<Self, ReportError> {
        let mut baseline = Self {
            path: path.to_owned(),
            queries: Vec::new(),
        };
        let directory = match Directory::open(path) {
            Ok(directory) => directory,
            Err(e) if e.kind() == io::ErrorKind::NotFound && updates => return Ok(baseline),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(ReportError::Refused(format!(
                    "{}: there is no baseline; check a profile with --update first, which makes it",
                    path.display()
                )));
            }
            Err(e) => return Err(cannot("read", path, &e)),
        };
        let applications: BTreeSet<&str> = now
            .queries
            .iter()
            .map(|query| &*query.application)
            .collect();
        for application in applications {
            let begin = format!("{}-", Fingerprint::new(application, None));
            let is_wanted = |name: &OsStr| {
                name.to_str()
                    .is_some_and(|name| name.starts_with(&begin) && name.ends_with(".json"))
            };
            let mut names = directory
                .find(MOST_FILES, is_wanted)
                .map_err(|e| cannot("read", path, &e))?;
            if names.len() == MOST_FILES {
                let what = format!(
                    "{} has {MOST_FILES} files of an application; remove old ones",
                    path.display()
                );
                return Err(ReportError::Refused(what));
            }
            names.sort();
            for name in names.iter().filter_map(|name| name.to_str()) {
                let query =
                    read(&directory, name).map_err(|e| cannot("read", &path.join(name), &e))?;
                // The name has only a hash.
                if query.application == *application {
                    baseline.queries.push(query);
                }
            }
        }
        Ok(baseline)
    }

    /// The directory.
    pub(super) fn path(&self) -> &str {
        self.path.to_str().unwrap_or("the baseline")
    }

    /// The queries, without the runs of a profile that has been added.
    pub(super) fn queries(&self, profile: &ProfileRuns) -> Vec<QueryRuns> {
        let known = ids(&profile.queries);
        let without = |query: &QueryRuns| {
            let mut query = query.clone();
            query
                .runs
                .retain(|run| !known.contains(&(&*run.app, run.query)));
            query
        };
        let queries = self.queries.iter().map(without);
        queries.filter(|query| !query.runs.is_empty()).collect()
    }

    /// Adds the runs of a profile's queries, except of those that are slower than they may be or that failed; and makes the
    /// directory (mode 0700) if it is not there. Each file is written completely or not at all, with mode 0600. Returns the
    /// number of queries that got runs.
    ///
    /// # Errors
    /// If the directory cannot be made, others can write to it, or a file cannot be written.
    pub fn update(&self, now: &ProfileRuns, answer: &Answer) -> Result<usize, ReportError> {
        let refused: BTreeSet<(&str, &str)> = refused(answer)
            .map(|query| (&*query.application, &*query.fingerprint))
            .collect();
        let path = &self.path;
        let directory = Directory::create(path, Access::Readable)
            .map_err(|e| ReportError::Refused(format!("cannot update the baseline: {e}")))?;
        let mut updated = 0;
        for query in &now.queries {
            let key = (&*query.application, &*query.fingerprint);
            if refused.contains(&key) || query.good().next().is_none() {
                continue;
            }
            let known = self
                .queries
                .iter()
                .find(|known| (&*known.application, &*known.fingerprint) == key);
            let name = file_name(query);
            let bytes = serde_json::to_vec(&stored(known, query)).map_err(io::Error::from);
            bytes
                .and_then(|bytes| directory.write(&name, &bytes))
                .map_err(|e| cannot("write", &path.join(&name), &e))?;
            updated += 1;
        }
        // A query with another plan has a file of another name now.
        for query in &answer.queries {
            let is_replanned = query.fingerprint_before != query.fingerprint;
            if is_replanned && query.status > Status::Regression {
                let name = name_of(&query.application, &query.fingerprint_before);
                match directory.remove(&name) {
                    Err(e) if e.kind() != io::ErrorKind::NotFound => {
                        return Err(cannot("remove", &path.join(&name), &e));
                    }
                    _ => {}
                }
            }
        }
        Ok(updated)
    }

    /// The files of queries that get no runs because they are slower or failed.
    pub fn kept(&self, answer: &Answer) -> Vec<PathBuf> {
        let name = |query: &Query| name_of(&query.application, &query.fingerprint_before);
        refused(answer)
            .map(|query| self.path.join(name(query)))
            .collect()
    }
}

fn refused(answer: &Answer) -> impl Iterator<Item = &Query> {
    answer
        .queries
        .iter()
        .filter(|query| query.status <= Status::Regression)
}

/// Application and id of each run.
fn ids(queries: &[QueryRuns]) -> BTreeSet<(&str, i64)> {
    let runs = queries.iter().flat_map(|query| &query.runs);
    runs.map(|run| (&*run.app, run.query)).collect()
}

/// The file of a query with the runs of another profile.
fn stored(known: Option<&QueryRuns>, now: &QueryRuns) -> Stored {
    let mut query = QueryRuns {
        runs: now.good().cloned().collect(),
        ..now.clone()
    };
    let new = ids(std::slice::from_ref(now));
    let old = known.into_iter().flat_map(|known| &known.runs);
    let old = old.filter(|run| !new.contains(&(&*run.app, run.query)));
    query.runs.splice(0..0, old.cloned());
    let surplus = query.runs.len().saturating_sub(MOST_RUNS);
    query.runs.drain(..surplus);
    for run in &mut query.runs {
        run.operators
            .sort_by_key(|operator| std::cmp::Reverse(operator.cpu_ns));
        run.operators.truncate(MOST_OPERATORS);
    }
    let mut wall: Vec<f64> = query
        .runs
        .iter()
        .map(|run| run.wall_ms as f64 / 1e3)
        .collect();
    let mut cpu: Vec<f64> = query
        .runs
        .iter()
        .map(|run| run.cpu_ns as f64 / 1e9)
        .collect();
    Stored {
        unfuse_baseline: FORMAT,
        median_wall_s: median(&mut wall),
        median_cpu_s: median(&mut cpu),
        query,
    }
}

fn read(directory: &Directory, name: &str) -> io::Result<QueryRuns> {
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let bytes = directory.read(name, MOST_BYTES)?;
    let stored: Stored = serde_json::from_slice(&bytes)
        .map_err(|e| invalid(format!("it is no file of `unfuse check` ({e}); remove it")))?;
    if stored.unfuse_baseline > FORMAT {
        return Err(invalid(
            "a newer unfuse wrote it; update unfuse to read it".to_owned(),
        ));
    }
    let mut query = stored.query;
    query.application_key = Some(query.application.clone());
    Ok(query)
}

fn file_name(query: &QueryRuns) -> String {
    name_of(&query.application, &query.fingerprint)
}

fn name_of(application: &str, fingerprint: &str) -> String {
    format!("{}-{fingerprint}.json", Fingerprint::new(application, None))
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> ReportError {
    ReportError::Refused(format!("cannot {what} {}: {error}", path.display()))
}
