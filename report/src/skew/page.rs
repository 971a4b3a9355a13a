//! Skew in the report's page: the answer of `--json`, for all queries and for each.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;
use ts_rs::TS;
use unfuse_skew::{Finding, SlowTask, Stage, from_profile};

use super::answer::Answer;
use super::records::{RecordFilter, Records};
use super::{judge, with_records};
use crate::{Block, Blocks, QuerySummary, ReportError, Summary};

/// Maximum number of skewed stages in the list for all queries.
const STAGES: usize = 200;
/// Maximum number of slow records and results of the profile.
const RECORDS: usize = 50;
/// Number of columns for the tasks of a stage; if there are more tasks, several share a column.
const COLUMNS: usize = 120;

/// Application and stage, or application and query.
type Key<'a, T> = (&'a str, T);

/// Times of a stage's tasks, in the order of their numbers: an entry for each column, which is the slowest of its
/// tasks.
#[derive(Debug, Serialize, TS, JsonSchema)]
#[ts(rename = "TaskTimes")]
pub(super) struct Times {
    /// Number of tasks in a column; the last column may have fewer.
    of: usize,
    /// The task's number.
    index: Vec<i32>,
    /// Its duration, ms.
    ms: Vec<f64>,
    /// Its time beyond a typical task's, ms; 0 for tasks that are not slow.
    slower_ms: Vec<f64>,
}

impl Times {
    fn new(stage: &Stage, finding: &Finding) -> Self {
        let mut tasks = stage.tasks();
        tasks.sort_by_key(|task| (task.number(), task.task));
        let slow: HashMap<i64, &SlowTask> =
            finding.tasks.iter().map(|slow| (slow.task, slow)).collect();
        let mut times = Self {
            of: tasks.len().div_ceil(COLUMNS).max(1),
            index: Vec::new(),
            ms: Vec::new(),
            slower_ms: Vec::new(),
        };
        for column in tasks.chunks(times.of) {
            let slowest = column
                .iter()
                .max_by(|a, b| a.duration_ms().total_cmp(&b.duration_ms()));
            let Some(task) = slowest else { continue };
            times.index.push(task.number());
            times.ms.push(task.duration_ms());
            times
                .slower_ms
                .push(slow.get(&task.task).map_or(0.0, |slow| slow.slower_ms));
        }
        times
    }
}

/// The skew blocks of the page for one application, or for all; `None` if no task has ended.
///
/// # Errors
/// If the profile's tables cannot be read.
pub fn skew(
    root: &Path,
    app: Option<&str>,
    summary: &Summary,
) -> Result<Option<Blocks>, ReportError> {
    let filter = RecordFilter {
        app,
        stage: None,
        top: RECORDS,
    };
    let (run, records) = with_records(from_profile(root)?, root, &filter, None)?;
    if run.stages.is_empty() {
        return Ok(None);
    }
    let findings = judge(&run, |_| true);
    let stages: HashMap<Key<i32>, &Stage> = run
        .stages
        .iter()
        .map(|stage| ((&*stage.app, stage.stage), stage))
        .collect();
    let places = places(summary);
    let place = |stage: &Stage| places.get(&(&*stage.app, stage.sql)).copied();

    let mut of_queries: BTreeMap<usize, Vec<Finding>> = BTreeMap::new();
    for finding in &findings {
        if let Some(position) = places.get(&(finding.app.as_str(), finding.sql)) {
            of_queries
                .entry(*position)
                .or_default()
                .push(finding.clone());
        }
    }
    let block = |(position, findings): (usize, Vec<Finding>)| {
        let its =
            |app: &str, stage| stages.get(&(app, stage)).and_then(|of| place(of)) == Some(position);
        let records = records.as_ref().map(|records| records.of_stages(its));
        let mut answer = Answer::new(findings, records, usize::MAX, false, Vec::new());
        if answer.findings.is_empty() && answer.records.as_ref().is_none_or(Records::is_empty) {
            return Ok(None);
        }
        for skewed in &mut answer.findings {
            let key = (skewed.finding.app.as_str(), skewed.finding.stage);
            skewed.times = stages
                .get(&key)
                .map(|stage| Times::new(stage, &skewed.finding));
        }
        Ok::<_, ReportError>(Some((position, Block::new(&answer)?)))
    };
    let queries: Vec<Option<(usize, Block)>> = of_queries
        .into_par_iter()
        .map(block)
        .collect::<Result<_, _>>()?;

    let mut all = Answer::new(findings, records.clone(), STAGES, false, run.notes.clone());
    for skewed in &mut all.findings {
        // The block of each query has these.
        skewed.finding.tasks.clear();
        skewed.next = None;
    }
    Ok(Some(Blocks {
        all: Block::new(&all)?,
        queries: queries.into_iter().flatten().collect(),
    }))
}

/// Positions in the list by application and query.
fn places(summary: &Summary) -> HashMap<Key<'_, Option<i64>>, usize> {
    let app = |query: &QuerySummary| summary.applications.get(query.app);
    let queries = summary.queries.iter().enumerate();
    queries
        .filter_map(|(position, query)| Some(((app(query)?.id.as_str(), query.query), position)))
        .collect()
}

/// Declares the types of the page's blocks.
#[cfg(test)]
pub(crate) fn declare(types: &mut crate::typescript::Declarations) {
    types.add::<Answer>();
}
