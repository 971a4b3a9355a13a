//! Which stages ran, and what each had to wait for.

use std::collections::HashMap;

use unfuse_eventlog::Stage as StageInfo;

use super::builder::{Attempt, Builder, Job};
use crate::{Stage, Times};

impl Builder {
    /// The stages that ran, by submission, with what each had to wait for.
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
        let job_at = |at: usize| self.job_of.get(&ran[at].0.0);
        let mut last_of_job: HashMap<i64, usize> = HashMap::new();
        for at in 0..ran.len() {
            if let Some(job) = job_at(at) {
                last_of_job.insert(*job, at);
            }
        }
        let mut stages = Vec::with_capacity(ran.len());
        for (at, (key, attempt)) in ran.iter().enumerate() {
            let parents = attempt.info.iter().flat_map(|info| &info.parents);
            let earlier = |stage: i32| {
                let same = ran[..at].iter().rposition(|(other, _)| other.0 == stage);
                same.filter(|_| stage != key.0)
            };
            let mut after: Vec<usize> = parents.filter_map(|stage| earlier(*stage)).collect();
            if after.is_empty() {
                let jobs = job_at(at)
                    .map(|job| self.jobs_before(*job, &last_of_job))
                    .unwrap_or_default();
                let lasts = jobs.iter().filter_map(|job| last_of_job.get(job).copied());
                after.extend(lasts.filter(|last| *last < at));
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

    /// The jobs that had ended when a job began, and that no other of them came after: a driver starts a job when it has
    /// what it needs.
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

/// What makes a stage the same in another run, and the operation that its tasks end with.
fn names(info: &StageInfo) -> (String, String) {
    let (call, place) = info.name.split_once(" at ").unwrap_or((&info.name, ""));
    // Scripts may lie elsewhere in another run.
    let place = place.rsplit('/').next().unwrap_or_default();
    let mut scopes: Vec<&str> = Vec::new();
    for rdd in &info.rdds {
        // `WholeStageCodegen (3)` counts the plan's stages, which differ with its other parts.
        let scope = rdd.scope.as_deref().unwrap_or(&rdd.name);
        let scope = scope.split(" (").next().unwrap_or(scope).trim();
        // Names of sources have paths in them, which differ with the size.
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
