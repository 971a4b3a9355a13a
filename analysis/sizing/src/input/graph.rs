//! The stages that ran, and their dependencies.

use std::collections::HashMap;

use unfuse_eventlog::Stage as StageInfo;

use super::builder::{Attempt, Builder, Job};
use crate::{Stage, Times};

impl Builder {
    /// The stages that ran, in order of submission, with those that each waited for.
    pub(super) fn graph(&self) -> Vec<Stage> {
        let mut ran: Vec<(&(i32, i32), &Attempt)> = self
            .stages
            .iter()
            .filter(|(_, attempt)| !attempt.tasks.is_empty())
            .collect();
        let submitted = |attempt: &Attempt| {
            let said = attempt.info.as_ref().and_then(|info| info.submitted_ms);
            said.or_else(|| attempt.tasks.iter().map(|(launched, _)| *launched).min())
        };
        ran.sort_by_key(|(key, attempt)| (submitted(attempt), **key));
        let job_at = |index: usize| self.job_of.get(&ran[index].0.0);
        let mut last_of_job: HashMap<i64, usize> = HashMap::new();
        for index in 0..ran.len() {
            if let Some(job) = job_at(index) {
                last_of_job.insert(*job, index);
            }
        }
        let mut stages = Vec::with_capacity(ran.len());
        for (index, (key, attempt)) in ran.iter().enumerate() {
            let parents = attempt.info.iter().flat_map(|info| &info.parents);
            let earlier = |stage: i32| {
                let same = ran[..index].iter().rposition(|(other, _)| other.0 == stage);
                same.filter(|_| stage != key.0)
            };
            let mut after: Vec<usize> = parents.filter_map(|stage| earlier(*stage)).collect();
            if after.is_empty() {
                let jobs = job_at(index)
                    .map(|job| self.jobs_before(*job, &last_of_job))
                    .unwrap_or_default();
                let lasts = jobs.iter().filter_map(|job| last_of_job.get(job).copied());
                after.extend(lasts.filter(|last| *last < index));
            }
            after.sort_unstable();
            after.dedup();
            let mut tasks = attempt.tasks.clone();
            tasks.sort_by_key(|(launched, _)| *launched);
            let seconds: Vec<f64> = tasks.iter().map(|(_, seconds)| *seconds).collect();
            let (class, unit) = attempt.info.as_ref().map(names).unwrap_or_default();
            stages.push(Stage {
                class,
                unit,
                after,
                times: Times::from_seconds(&seconds),
            });
        }
        stages
    }

    /// The jobs that had ended when a job began, and that no other of them came after: a driver starts a job when it
    /// has all results that it needs.
    fn jobs_before(&self, job: i64, ran: &HashMap<i64, usize>) -> Vec<i64> {
        let Some(begun) = self.jobs.get(&job).map(|job| job.started_ms) else {
            return Vec::new();
        };
        let ended = |other: &Job| other.ended_ms.filter(|ended| *ended <= begun);
        let before = || {
            let others = self
                .jobs
                .iter()
                .filter(|(id, _)| **id < job && ran.contains_key(id));
            others.filter_map(|(id, other)| Some((*id, other.started_ms, ended(other)?)))
        };
        let latest = before().map(|(_, started, _)| started).max();
        before()
            .filter(|(_, _, ended)| latest.is_some_and(|latest| *ended > latest))
            .map(|(id, ..)| id)
            .collect()
    }
}

/// The identity of a stage across runs, and the last operation of its tasks.
fn names(info: &StageInfo) -> (String, String) {
    let (call, place) = info.name.split_once(" at ").unwrap_or((&info.name, ""));
    // Scripts may be elsewhere in another run.
    let place = place.rsplit('/').next().unwrap_or_default();
    let mut scopes: Vec<&str> = Vec::new();
    for rdd in &info.rdds {
        // `WholeStageCodegen (3)` counts stages of the plan, which differ with its other parts.
        let scope = rdd.scope.as_deref().unwrap_or(&rdd.name);
        let scope = scope.split(" (").next().unwrap_or(scope).trim();
        // Names of sources contain paths, which differ with the size.
        if !scope.is_empty() && !scope.contains('/') && scopes.last() != Some(&scope) {
            scopes.push(scope);
        }
    }
    let unit = scopes.first().copied().unwrap_or(call).to_owned();
    let mut class = format!("{call} at {place}: {}", scopes.join(" < "));
    if let Some((end, _)) = class.char_indices().nth(200) {
        class.truncate(end);
    }
    (class, unit)
}
