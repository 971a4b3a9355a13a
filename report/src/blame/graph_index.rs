//! The contention graph with its paths and tasks by victim, and the summary of one victim.

use std::collections::{BTreeMap, BTreeSet};

use unfuse_contention::{
    Culprit, Explanation, Graph, Key, Kind, KnownProcess, QueryId, Span, StageId, Workload,
};

use super::Question;
use super::answer::Victim;
use super::names::{label, name_of};

/// A contention graph with its paths and tasks by victim.
pub struct GraphIndex<'a> {
    pub(super) workload: &'a Workload,
    pub(super) graph: &'a Graph,
    /// Paths by victim, strongest first.
    paths: BTreeMap<QueryId, Vec<Explanation>>,
    /// Stage and time of each task of the graph's victims.
    tasks: BTreeMap<QueryId, Vec<(StageId, Span)>>,
}

impl<'a> GraphIndex<'a> {
    /// Finds the culprits of the graph's victims.
    pub fn new(workload: &'a Workload, graph: &'a Graph) -> Self {
        let mut paths: BTreeMap<QueryId, Vec<Explanation>> = BTreeMap::new();
        for path in graph.explanations() {
            paths.entry(path.victim).or_default().push(path);
        }
        let mut tasks: BTreeMap<QueryId, Vec<(StageId, Span)>> = BTreeMap::new();
        let victims: BTreeSet<QueryId> = graph.victims().collect();
        let of_victims = workload.tasks_of_queries(&victims);
        for task in of_victims.filter(|task| task.runs) {
            let tasks = tasks.entry(task.stage.query).or_default();
            tasks.push((task.stage, task.span));
        }
        Self {
            workload,
            graph,
            paths,
            tasks,
        }
    }

    /// The paths that a question is about, to one victim or to all, strongest first.
    pub(super) fn paths(&self, question: &Question<'_>) -> Vec<Explanation> {
        let of = |victim| self.paths.get(victim).into_iter().flatten();
        let paths: Vec<&Explanation> = match &question.victim {
            Some(victim) => of(victim).collect(),
            None => self.paths.values().flatten().collect(),
        };
        let mut paths: Vec<Explanation> = paths
            .into_iter()
            .filter(|path| question.filter.accepts(self.workload, path))
            .cloned()
            .collect();
        paths.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        paths
    }
}

/// Summarizes a victim.
pub(super) fn victim(index: &GraphIndex<'_>, question: &Question<'_>, query: QueryId) -> Victim {
    let workload = index.workload;
    let stages: Vec<StageId> = question.options.stages.select(workload, query);
    let tasks = index.tasks.get(&query).into_iter().flatten();
    let tasks: Vec<f64> = tasks
        .filter(|(stage, _)| stages.contains(stage))
        .filter_map(|(_, span)| Some(span.within(question.options.within)?.seconds()))
        .collect();
    let mut culprits: BTreeMap<Culprit, f64> = BTreeMap::new();
    for path in index.paths.get(&query).into_iter().flatten() {
        *culprits.entry(path.culprit).or_default() += path.seconds;
    }
    let itself = culprits.remove(&Culprit::Query(query)).unwrap_or(0.0);
    let main = culprits.iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
    let main = main.map(|(culprit, _)| name_of(workload, *culprit));
    let blocked = index
        .graph
        .find(&Key::Victim(query))
        .and_then(|node| node.impact.get(&query))
        .map_or(0.0, |impact| impact.seconds);
    let counted = index.graph.counted.iter();
    let counted: BTreeMap<Culprit, f64> = counted
        .filter(|((victim, _), _)| *victim == query)
        .map(|((_, culprit), seconds)| (*culprit, *seconds))
        .collect();
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
        blocked_seconds: blocked,
        by_gc_seconds: take(Culprit::Known(KnownProcess::Gc)),
        by_jvm_seconds: take(Culprit::Known(KnownProcess::Jit))
            + take(Culprit::Known(KnownProcess::Jvm)),
        by_own_limit_seconds: take(Culprit::Known(KnownProcess::OwnLimit)),
        by_hypervisor_seconds: take(Culprit::Known(KnownProcess::Hypervisor)),
        by_unknown_seconds: take(Culprit::Unknown),
        queued_seconds: sum(run_queue(index.paths.get(&query).into_iter().flatten())),
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

/// Seconds of the run-queue waits among paths.
pub(super) fn run_queue<'a>(
    paths: impl IntoIterator<Item = &'a Explanation>,
) -> impl Iterator<Item = f64> {
    let paths = paths.into_iter();
    paths
        .filter(|path| path.kind == Kind::RunQueue)
        .map(|path| path.seconds)
}

/// The sum; 0 for no values, where `Iterator::sum` gives -0.
pub(super) fn sum(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, |sum, value| sum + value)
}
