//! The paths from culprits to one victim, and the summary of the victim.

use std::collections::{BTreeMap, HashMap};

use unfuse_contention::{
    Blame, Culprit, Explainer, Explanation, Kind, KnownProcess, QueryId, Span, StageId, Workload,
};

use super::Question;
use super::answer::Victim;
use super::names::{label, name_of};

/// A victim query with the paths to it.
pub(super) struct VictimPaths<'a> {
    pub(super) workload: &'a Workload,
    blame: &'a Blame,
    pub(super) query: QueryId,
    /// By stage, kind of wait, host and source.
    paths: Vec<Explanation>,
}

impl<'a> VictimPaths<'a> {
    /// Finds the culprits of a query. `paths` is memory that is used again.
    pub(super) fn new(
        (workload, blame): (&'a Workload, &'a Blame),
        explainer: &mut Explainer<'_>,
        query: QueryId,
        mut paths: Vec<Explanation>,
    ) -> Self {
        explainer.explain(query, &mut paths);
        Self {
            workload,
            blame,
            query,
            paths,
        }
    }

    /// All paths.
    pub(super) fn paths(&self) -> &[Explanation] {
        &self.paths
    }

    /// The paths that a question is about.
    pub(super) fn accepted(mut self, question: &Question<'_>) -> Vec<Explanation> {
        let workload = self.workload;
        self.paths
            .retain(|path| question.filter.accepts(workload, path));
        self.paths
    }

    /// Stages that count and time of its tasks that ran.
    fn tasks(&self, question: &Question<'_>, stages: &[StageId]) -> Vec<f64> {
        let tasks = self.workload.tasks_of_queries(&[self.query].into());
        let ran = |span: Span| Some(span.within(question.options.within)?.seconds());
        tasks
            .filter(|task| task.runs && stages.contains(&task.stage))
            .filter_map(|task| ran(task.span))
            .collect()
    }

    /// Summarizes the victim.
    pub(super) fn summary(&self, question: &Question<'_>) -> Victim {
        let (workload, query) = (self.workload, self.query);
        let stages: Vec<StageId> = question.options.stages.select(workload, query);
        let tasks = self.tasks(question, &stages);
        let mut culprits: HashMap<Culprit, f64, ahash::RandomState> = HashMap::default();
        for path in &self.paths {
            *culprits.entry(path.culprit).or_default() += path.seconds;
        }
        let mut culprits: BTreeMap<Culprit, f64> = culprits.into_iter().collect();
        let itself = culprits.remove(&Culprit::Query(query)).unwrap_or(0.0);
        let main = culprits.iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
        let main = main.map(|(culprit, _)| name_of(workload, *culprit));
        let counted: BTreeMap<Culprit, f64> = self.blame.counted_of(query).collect();
        let mut take = |culprit| culprits.remove(&culprit).unwrap_or(0.0);
        let victim = Victim {
            query: query.0,
            name: workload
                .query(query)
                .map_or_else(String::new, |query| query.name.clone()),
            label: label(workload, query),
            ran_seconds: workload.span_of(query).map_or(0.0, |span| span.seconds()),
            stages: stages.iter().map(|stage| stage.number()).collect(),
            tasks: tasks.len(),
            task_seconds: sum(tasks),
            blocked_seconds: self.blame.seconds(query),
            by_gc_seconds: take(Culprit::Known(KnownProcess::Gc)),
            by_jvm_seconds: take(Culprit::Known(KnownProcess::Jit))
                + take(Culprit::Known(KnownProcess::Jvm)),
            by_own_limit_seconds: take(Culprit::Known(KnownProcess::OwnLimit)),
            by_hypervisor_seconds: take(Culprit::Known(KnownProcess::Hypervisor)),
            by_unknown_seconds: take(Culprit::Unknown),
            queued_seconds: sum(run_queue(&self.paths)),
            counted_seconds: sum(counted.values().copied()),
            by_itself_seconds: itself,
            by_others_seconds: 0.0,
            main_culprit: main,
            main_other: None,
            application: workload
                .query(query)
                .map_or_else(String::new, |query| query.application.clone()),
            execution: None,
        };
        let others = culprits.iter();
        let main = others.max_by(|(_, a), (_, b)| a.total_cmp(b));
        Victim {
            main_other: main.map(|(culprit, seconds)| {
                let counted = counted.get(culprit).copied().unwrap_or(0.0);
                (name_of(workload, *culprit), *seconds, counted)
            }),
            by_others_seconds: sum(culprits.into_values()),
            ..victim
        }
    }
}

/// Seconds of the run-queue waits among paths.
fn run_queue<'a>(paths: impl IntoIterator<Item = &'a Explanation>) -> impl Iterator<Item = f64> {
    let paths = paths.into_iter();
    paths
        .filter(|path| path.kind == Kind::RunQueue)
        .map(|path| path.seconds)
}

/// The sum; 0 for no values, where `Iterator::sum` gives -0.
pub(super) fn sum(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, |sum, value| sum + value)
}
