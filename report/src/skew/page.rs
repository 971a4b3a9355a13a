//! Skew in the report's page: the answer of `--json`, of all queries and of each.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use rayon::prelude::*;
use serde::Serialize;
use ts_rs::TS;
use unfuse_skew::{Finding, SlowTask, Stage, from_profile};

use super::answer::Answer;
use super::records::{Records, Wanted};
use super::{judge, with_records};
use crate::{Block, Blocks, QuerySummary, ReportError, Summary};

/// Skewed stages in the list of all.
const STAGES: usize = 200;
/// Slow records and results of the profile.
const RECORDS: usize = 50;
/// Columns that a stage's tasks are shown in; of more tasks, several share one.
const COLUMNS: usize = 120;

/// Application and stage, or application and query.
type Key<'a, T> = (&'a str, T);

/// What the tasks of a stage took, in the order of their numbers: a position for each column, which is the slowest of the tasks in it.
#[derive(Debug, Serialize, TS)]
#[ts(rename = "TaskTimes")]
pub(super) struct Times {
    /// Tasks in a column; the last may have fewer.
    of: usize,
    /// The task's number.
    index: Vec<i32>,
    /// What it took, ms.
    ms: Vec<f64>,
    /// Of it, what is beyond a typical task, ms; 0 of tasks that are not slow.
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

/// What the page says of the skew of an application, or of all; nothing where no task has ended.
///
/// # Errors
/// If the profile's tables cannot be read.
pub fn skew(
    root: &Path,
    app: Option<&str>,
    summary: &Summary,
) -> Result<Option<Blocks>, ReportError> {
    let wanted = Wanted {
        app,
        stage: None,
        top: RECORDS,
    };
    let (run, records) = with_records(from_profile(root)?, root, &wanted, None)?;
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
        if let Some(at) = places.get(&(finding.app.as_str(), finding.sql)) {
            of_queries.entry(*at).or_default().push(finding.clone());
        }
    }
    let block = |(at, findings): (usize, Vec<Finding>)| {
        let its = |app: &str, stage| stages.get(&(app, stage)).and_then(|of| place(of)) == Some(at);
        let records = records.as_ref().map(|records| records.of_stages(its));
        let mut answer = Answer::new(findings, records, usize::MAX, false, Vec::new());
        if answer.findings.is_empty() && answer.records.as_ref().is_none_or(Records::is_empty) {
            return Ok(None);
        }
        for told in &mut answer.findings {
            let key = (told.finding.app.as_str(), told.finding.stage);
            told.times = stages
                .get(&key)
                .map(|stage| Times::new(stage, &told.finding));
        }
        Ok::<_, ReportError>(Some((at, Block::new(&answer)?)))
    };
    let queries: Vec<Option<(usize, Block)>> = of_queries
        .into_par_iter()
        .map(block)
        .collect::<Result<_, _>>()?;

    let mut all = Answer::new(findings, records.clone(), STAGES, false, run.notes.clone());
    for told in &mut all.findings {
        // Each is told with its query.
        told.finding.tasks.clear();
        told.next = None;
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
        .filter_map(|(at, query)| Some(((app(query)?.id.as_str(), query.query), at)))
        .collect()
}

/// Adds the types of its blocks.
#[cfg(test)]
pub(crate) fn declare(types: &mut crate::typescript::Declarations) {
    types.add::<Answer>();
}
