//! The waits of a query's tasks that another query caused, as `unfuse blame` attributes them.

use std::collections::{BTreeMap, BTreeSet};

use unfuse_contention::{
    BlockedTime, Culprit, Graph, Options, Resource, StageIndex, VictimStages, Workload,
};
use unfuse_format::{ExecutionId, TaskRow};
use unfuse_sizing::what_if::{Part, PartKind};

use super::profile::ran_s;
use crate::{Report, ReportError};

/// What a neighbour costs the tasks of a query.
pub(super) struct Neighbour {
    query: i64,
    /// When it ran, ms since the epoch.
    span: (i64, i64),
    /// Blocked time that each stage has because of it, and the time that the stage's tasks ran beside it, s.
    stages: BTreeMap<(i32, i32), (f64, f64)>,
}

impl Neighbour {
    /// Asks who made a query's tasks wait.
    ///
    /// # Errors
    /// If there is no such neighbour, it did not run beside the query, or contention cannot be analysed.
    pub(super) fn new(
        report: &Report<'_>,
        app: &str,
        victim: i64,
        query: i64,
    ) -> Result<Self, ReportError> {
        let refused = |text: String| Err(ReportError::Refused(text));
        let profile = report.profile;
        if query == victim {
            return refused(format!("query {query} cannot be without itself"));
        }
        let span_of = |query| {
            let known = profile.executions.get(&ExecutionId::new(app, query))?;
            Some((known.started_ms?, known.ended_ms.unwrap_or(i64::MAX)))
        };
        let Some(span) = span_of(query) else {
            return refused(format!(
                "the application of query {victim} has no query {query}"
            ));
        };
        let own = span_of(victim).unwrap_or((i64::MIN, i64::MAX));
        if span.0 >= own.1 || span.1 <= own.0 {
            return refused(format!(
                "query {query} did not run at the same time as query {victim}"
            ));
        }
        let mut index = StageIndex::read(profile)?;
        let names = [victim, query].map(|query| index.query(&query.to_string()));
        let [Some(of_victim), Some(of_query)] = names else {
            return refused(format!("query {query} or query {victim} has no stages"));
        };
        let input = index.input(BlockedTime::Measured, Some(&BTreeSet::from([of_victim])))?;
        if !input.waits_known {
            return refused(
                "the profile has no waits, so who made a query wait is not known".to_owned(),
            );
        }
        let workload = Workload::new(input.tables)?;
        let options = Options {
            victims: BTreeSet::from([of_victim]),
            stages: VictimStages::All,
            // Slots are given to the tasks again.
            resources: [
                Resource::Cpu,
                Resource::Memory,
                Resource::Io,
                Resource::Network,
            ]
            .into(),
            ..Options::default()
        };
        options.check(&workload)?;
        let graph = Graph::build(&workload, &options);
        let mut stages: BTreeMap<(i32, i32), (f64, f64)> = BTreeMap::new();
        for path in graph.explanations() {
            if path.culprit == Culprit::Query(of_query) {
                let place = (
                    path.stage.stage.cast_signed(),
                    path.stage.attempt.cast_signed(),
                );
                stages.entry(place).or_default().0 += path.seconds;
            }
        }
        let mut neighbour = Self {
            query,
            span,
            stages,
        };
        for (id, tasks) in report.tasks.iter().filter(|(id, _)| id.app == app) {
            let beside: f64 = tasks.iter().map(|task| beside_s(span, task)).sum();
            if let Some((_, sum)) = neighbour.stages.get_mut(&(id.stage, id.attempt)) {
                *sum += beside;
            }
        }
        Ok(neighbour)
    }

    /// What a task waited because of it, s: the stage's blocked time, in proportion to how long the task ran beside it.
    pub(super) fn seconds(&self, place: (i32, i32), task: &TaskRow) -> f64 {
        let Some((blocked, beside)) = self.stages.get(&place).filter(|(_, beside)| *beside > 0.0)
        else {
            return 0.0;
        };
        (blocked * beside_s(self.span, task) / beside).min(ran_s(task))
    }

    /// The part of the tasks' times.
    pub(super) fn part(&self) -> Part {
        Part::new(PartKind::Query(self.query))
    }
}

/// How long a task ran beside it, s.
fn beside_s((from, to): (i64, i64), task: &TaskRow) -> f64 {
    let both = task
        .finished_ms
        .min(to)
        .saturating_sub(task.launched_ms.max(from));
    both.max(0) as f64 / 1e3
}
