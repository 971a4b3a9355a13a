//! The answer as data: what `--json` prints and the text is made of.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use unfuse_contention::baseline::{self, Overlaps};
use unfuse_contention::{
    By, CapacityBasis, Culprit, Entity, Explanation, Filter, Graph, Input, Key, QueryId, Resource,
    Source, Span, StageId, Suggestion, Thresholds, Workload, suggestions, top,
};

use super::{Question, Rank};

/// Parts that are less are not worth their room.
const LEAST: f64 = 0.01;

/// Everything that is said.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    /// The victim, or all queries, those with the most blocked time first.
    pub(super) victims: Vec<Victim>,
    /// Whether one victim was asked for.
    pub(super) one_victim: bool,
    /// What was asked to be ranked, highest first.
    pub(super) ranked: Vec<Row>,
    /// Paths from culprits to victims, strongest first.
    pub(super) explanations: Vec<Path>,
    /// What could be done.
    pub(super) suggestions: Vec<Advice>,
    /// What simpler methods say of the one victim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) baselines: Option<Baselines>,
    /// Whether anything is missing or doubtful; the notes say what.
    pub(super) partial: bool,
    pub(super) notes: Vec<String>,
    /// Whether anything tells how long tasks waited.
    #[serde(skip)]
    pub(super) waits_known: bool,
}

/// A query that was slowed down.
#[derive(Debug, Serialize)]
pub(super) struct Victim {
    pub(super) query: u64,
    pub(super) label: String,
    /// From its first stage to its last, s.
    pub(super) ran_seconds: f64,
    /// The stages that count.
    pub(super) stages: Vec<u32>,
    /// How many tasks they had.
    pub(super) tasks: usize,
    /// Time of these tasks, s.
    pub(super) task_seconds: f64,
    /// Of it, and of tasks that waited for a slot, the time in which they could not go on, s.
    pub(super) blocked_seconds: f64,
    /// Of it, what others than the query itself account for, s.
    pub(super) by_others_seconds: f64,
    /// Who most of it is put down to, other than itself.
    pub(super) main_culprit: Option<String>,
}

/// One line of a ranking.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    /// Degree of responsibility: the part of the victims' blocked time, 0 to 1 for each.
    pub(super) responsibility: f64,
    pub(super) seconds: f64,
    /// How its victims waited, strongest first.
    pub(super) how: Vec<String>,
    /// Its operators by their part of the CPU time, where they are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) operators: Vec<(String, f64)>,
}

/// One path from a culprit to a victim.
#[derive(Debug, Serialize)]
pub(super) struct Path {
    pub(super) victim: u64,
    pub(super) victim_stage: u32,
    pub(super) resource: &'static str,
    pub(super) kind: &'static str,
    pub(super) host: String,
    pub(super) culprit: String,
    pub(super) culprit_query: Option<u64>,
    pub(super) culprit_stage: Option<u32>,
    pub(super) operator: Option<String>,
    /// The part of the victim's blocked time, 0 to 1.
    pub(super) weight: f64,
    pub(super) seconds: f64,
}

/// A suggestion.
#[derive(Debug, Serialize)]
pub(super) struct Advice {
    /// `move`, `delay`, `reprioritise`, `change-pool` or `look-outside`.
    pub(super) action: &'static str,
    pub(super) text: String,
    pub(super) responsibility: f64,
    pub(super) seconds: f64,
}

/// What simpler methods say.
#[derive(Debug, Serialize)]
pub(super) struct Baselines {
    /// Naive-Overlap: seconds that each query ran at the same time.
    pub(super) naive_overlap: Vec<(String, f64)>,
    /// Deep-Overlap: seconds of overlap of all pairs of tasks on a host.
    pub(super) deep_overlap: Vec<(String, f64)>,
    /// Blocked-time analysis: seconds the victim was blocked on IO and network, whoever caused it.
    pub(super) blocked_io_network: f64,
}

/// What there is to answer from.
pub(super) struct Found<'a> {
    pub(super) workload: &'a Workload,
    graph: &'a Graph,
    /// Paths by victim, strongest first.
    paths: BTreeMap<QueryId, Vec<Explanation>>,
    /// Stage and time of each task.
    tasks: BTreeMap<QueryId, Vec<(StageId, Span)>>,
}

impl<'a> Found<'a> {
    pub(super) fn of(workload: &'a Workload, graph: &'a Graph) -> Self {
        let mut paths: BTreeMap<QueryId, Vec<Explanation>> = BTreeMap::new();
        for path in graph.explanations() {
            paths.entry(path.victim).or_default().push(path);
        }
        let mut tasks: BTreeMap<QueryId, Vec<(StageId, Span)>> = BTreeMap::new();
        for task in workload.tables().tasks.iter().filter(|task| task.runs) {
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

    /// The paths to a victim, or to all, strongest first, that a question is about.
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

    /// What has to be said of the numbers.
    pub(super) fn notes(&self, input: &[String]) -> Vec<String> {
        let mut notes = input.to_vec();
        notes.extend(capacity_notes(self.workload, self.graph));
        notes
    }
}

impl Answer {
    pub(super) fn of(found: &Found<'_>, question: &Question<'_>, input: &Input) -> Self {
        let workload = found.workload;
        let notes = found.notes(&input.notes);
        let paths = found.paths(question);
        let mut victims: Vec<Victim> = found
            .graph
            .victims()
            .filter(|query| question.victim.is_none_or(|victim| victim == *query))
            .map(|query| victim(found, question, query))
            .collect();
        victims.sort_by(|a, b| b.blocked_seconds.total_cmp(&a.blocked_seconds));
        Self {
            one_victim: question.victim.is_some(),
            ranked: ranked(workload, &paths, question, question.by),
            explanations: paths
                .iter()
                .take(question.top)
                .map(|path| self::path(workload, path))
                .collect(),
            suggestions: advice_on(workload, &paths, question.top),
            baselines: question.victim.map(|victim| {
                let simple = Simple::of(workload, &[victim].into(), question.options.within);
                simple.about(workload, victim)
            }),
            victims,
            partial: !notes.is_empty(),
            notes,
            waits_known: input.waits_known,
        }
    }
}

pub(super) fn victim(found: &Found<'_>, question: &Question<'_>, query: QueryId) -> Victim {
    let workload = found.workload;
    let stages: Vec<StageId> = question.options.stages.of(workload, query);
    let tasks = found.tasks.get(&query).into_iter().flatten();
    let tasks: Vec<f64> = tasks
        .filter(|(stage, _)| stages.contains(stage))
        .filter_map(|(_, span)| Some(span.within(question.options.within)?.seconds()))
        .collect();
    let mut culprits: BTreeMap<Culprit, f64> = BTreeMap::new();
    for path in found.paths.get(&query).into_iter().flatten() {
        *culprits.entry(path.culprit).or_default() += path.seconds;
    }
    let own = culprits.remove(&Culprit::Query(query)).unwrap_or(0.0);
    let blocked = found
        .graph
        .find(&Key::Victim(query))
        .and_then(|node| node.impact.get(&query))
        .map_or(0.0, |impact| impact.seconds);
    let main = culprits.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
    Victim {
        query: query.0,
        label: label(workload, query),
        ran_seconds: workload.span_of(query).map_or(0.0, |span| span.seconds()),
        stages: stages.iter().map(|stage| stage.stage).collect(),
        tasks: tasks.len(),
        task_seconds: tasks.iter().sum(),
        blocked_seconds: blocked,
        by_others_seconds: (blocked - own).max(0.0),
        main_culprit: main.map(|(culprit, _)| name_of(workload, culprit)),
    }
}

/// The first rows of a ranking of paths that the question has let through.
pub(super) fn ranked(
    workload: &Workload,
    paths: &[Explanation],
    question: &Question<'_>,
    by: Rank,
) -> Vec<Row> {
    let k = question.top;
    let by = match by {
        Rank::Operator => return operators(workload, paths, k),
        Rank::Culprit => By::Culprit,
        Rank::Stage => By::CulpritStage,
        Rank::Resource => By::Resource,
        Rank::Kind => By::Kind,
        Rank::Host => By::Host,
    };
    let rows = top(workload, paths, &Filter::default(), by, k).into_iter();
    rows.map(|row| {
        let of = |path: &&Explanation| match row.entity {
            Entity::Resource(resource) => path.resource == resource,
            Entity::Kind(kind) => path.kind == kind,
            Entity::Host(host) => path.host == host,
            Entity::Culprit(culprit) => path.culprit == culprit,
            Entity::Source(Source::Stage(stage)) => path.culprit_stage == Some(stage),
            Entity::Source(source) => {
                path.culprit_stage.is_none() && path.culprit == source.culprit()
            }
        };
        let paths: Vec<&Explanation> = paths.iter().filter(of).collect();
        let operators = match row.entity {
            Entity::Culprit(Culprit::Query(_)) | Entity::Source(Source::Stage(_)) => {
                shares(&paths, |path| path.operator.clone())
            }
            _ => Vec::new(),
        };
        let how = |path: &Explanation| {
            Some(format!(
                "{} on {}",
                path.kind.name(),
                workload.host_name(path.host)
            ))
        };
        let how = match row.entity {
            Entity::Resource(_) | Entity::Kind(_) | Entity::Host(_) => {
                shares(&paths, |path| Some(name_of(workload, path.culprit)))
            }
            _ => shares(&paths, how),
        };
        Row {
            name: entity(workload, row.entity),
            responsibility: row.responsibility,
            seconds: row.seconds,
            how: how
                .into_iter()
                .map(|(what, share)| format!("{what} {:.0} %", 100.0 * share))
                .collect(),
            operators,
        }
    })
    .collect()
}

/// Operators of culprit stages, by what they account for.
fn operators(workload: &Workload, paths: &[Explanation], k: usize) -> Vec<Row> {
    let mut sums: BTreeMap<(StageId, &str), (f64, f64)> = BTreeMap::new();
    for path in paths {
        if let Some((stage, operator)) = path.culprit_stage.zip(path.operator.as_deref()) {
            let (responsibility, seconds) = sums.entry((stage, operator)).or_default();
            *responsibility += path.weight;
            *seconds += path.seconds;
        }
    }
    let mut rows: Vec<Row> = sums
        .into_iter()
        .map(|((stage, operator), (responsibility, seconds))| Row {
            name: format!(
                "{operator} in stage {} of {}",
                stage.stage,
                label(workload, stage.query)
            ),
            responsibility,
            seconds,
            how: Vec::new(),
            operators: Vec::new(),
        })
        .collect();
    rows.sort_by(|a, b| b.responsibility.total_cmp(&a.responsibility));
    rows.truncate(k);
    rows
}

/// The three largest names by the seconds of their paths, with their parts of the seconds of all that have one.
fn shares(
    paths: &[&Explanation],
    name: impl Fn(&Explanation) -> Option<String>,
) -> Vec<(String, f64)> {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for path in paths {
        if let Some(name) = name(path) {
            *sums.entry(name).or_default() += path.seconds;
        }
    }
    let whole: f64 = sums.values().sum();
    let mut sums: Vec<(String, f64)> = sums
        .into_iter()
        .map(|(name, seconds)| (name, if whole > 0.0 { seconds / whole } else { 0.0 }))
        .filter(|(_, share)| *share >= LEAST)
        .collect();
    sums.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    sums.truncate(3);
    sums
}

fn entity(workload: &Workload, entity: Entity) -> String {
    match entity {
        Entity::Resource(resource) => resource.name().to_owned(),
        Entity::Kind(kind) => kind.name().to_owned(),
        Entity::Host(host) => workload.host_name(host).to_owned(),
        Entity::Culprit(culprit) => name_of(workload, culprit),
        Entity::Source(Source::Stage(stage)) => {
            format!("stage {} of {}", stage.stage, label(workload, stage.query))
        }
        Entity::Source(source) => name_of(workload, source.culprit()),
    }
}

fn label(workload: &Workload, query: QueryId) -> String {
    workload
        .query(query)
        .map_or_else(String::new, |query| query.label.clone())
}

pub(super) fn name_of(workload: &Workload, culprit: Culprit) -> String {
    match culprit {
        Culprit::Query(query) => label(workload, query),
        Culprit::Known(process) => process.name().to_owned(),
        Culprit::Unknown => "Unknown".to_owned(),
    }
}

fn path(workload: &Workload, path: &Explanation) -> Path {
    Path {
        victim: path.victim.0,
        victim_stage: path.stage.stage,
        resource: path.resource.name(),
        kind: path.kind.name(),
        host: workload.host_name(path.host).to_owned(),
        culprit: name_of(workload, path.culprit),
        culprit_query: match path.culprit {
            Culprit::Query(query) => Some(query.0),
            _ => None,
        },
        culprit_stage: path.culprit_stage.map(|stage| stage.stage),
        operator: path.operator.clone(),
        weight: path.weight,
        seconds: path.seconds,
    }
}

/// The first suggestions that paths give rise to.
pub(super) fn advice_on(workload: &Workload, paths: &[Explanation], k: usize) -> Vec<Advice> {
    let suggestions = suggestions(workload, paths, &Thresholds::default());
    let first = suggestions.iter().take(k);
    first
        .map(|suggestion| advice(workload, suggestion))
        .collect()
}

fn advice(workload: &Workload, suggestion: &Suggestion) -> Advice {
    let evidence = suggestion.evidence();
    let victim = evidence.victim.0;
    let (action, text) = match suggestion {
        Suggestion::Move { culprit, host, .. } => (
            "move",
            format!(
                "keep query {} or query {victim} away from {}: most of the harm is done there",
                culprit.0,
                workload.host_name(*host)
            ),
        ),
        Suggestion::Delay { stage, until, .. } => {
            let until: Vec<String> = until.iter().map(|stage| stage.stage.to_string()).collect();
            (
                "delay",
                format!(
                    "run query {} after query {victim}, or at least its stage {} after stages {} of query {victim}",
                    stage.query.0,
                    stage.stage,
                    until.join(", ")
                ),
            )
        }
        Suggestion::Reprioritise {
            culprit, weight, ..
        } => (
            "reprioritise",
            format!(
                "give query {} a weight below {weight}: it has as much right to resources as query {victim} and uses it \
                 all along",
                culprit.0
            ),
        ),
        Suggestion::ChangePool { culprit, pool, .. } => (
            "change-pool",
            format!(
                "give query {} a pool of its own (spark.scheduler.pool, with spark.scheduler.mode=FAIR): it shares {} with \
                 query {victim}",
                culprit.0,
                if pool.is_empty() {
                    "the default pool".to_owned()
                } else {
                    format!("pool {pool}")
                }
            ),
        ),
        Suggestion::LookOutside { process, .. } => (
            "look-outside",
            format!("query {victim}: {}", outside(*process)),
        ),
    };
    Advice {
        action,
        text,
        responsibility: evidence.responsibility,
        seconds: evidence.seconds,
    }
}

fn outside(process: unfuse_contention::KnownProcess) -> &'static str {
    use unfuse_contention::KnownProcess;
    match process {
        KnownProcess::Gc => {
            "garbage collection stops the tasks: more heap or fewer objects help, scheduling of queries does not"
        }
        KnownProcess::Jvm => {
            "the JVM's own work (JIT compilation, scheduling, the driver) takes the resource: it is less in a JVM that has \
             run for a while"
        }
        KnownProcess::ExternalCpu => "processes outside Spark use the CPUs: see `top` on the host",
        KnownProcess::ExternalIo => {
            "processes outside Spark use the disks: see `iotop` on the host"
        }
        KnownProcess::ExternalNetwork => {
            "network traffic other than shuffles: remote files, broadcasts, or processes outside Spark (see `nethogs` on the host)"
        }
    }
}

/// What simpler methods say of victims.
pub(super) struct Simple {
    naive: Overlaps,
    deep: Overlaps,
    blocked: BTreeMap<QueryId, BTreeMap<Resource, f64>>,
}

impl Simple {
    pub(super) fn of(
        workload: &Workload,
        victims: &BTreeSet<QueryId>,
        within: Option<Span>,
    ) -> Self {
        Self {
            naive: baseline::naive_overlap(workload, victims, within),
            deep: baseline::deep_overlap(workload, victims, within),
            blocked: baseline::blocked_time(workload, victims, within),
        }
    }

    pub(super) fn about(&self, workload: &Workload, victim: QueryId) -> Baselines {
        let by_query = |overlaps: &Overlaps| {
            let rows = overlaps.get(&victim).into_iter().flatten();
            let mut rows: Vec<(String, f64)> = rows
                .filter(|(_, seconds)| **seconds > 0.0)
                .map(|(query, seconds)| (label(workload, *query), *seconds))
                .collect();
            rows.sort_by(|(_, a), (_, b)| b.total_cmp(a));
            rows
        };
        let blocked = self.blocked.get(&victim).into_iter();
        Baselines {
            naive_overlap: by_query(&self.naive),
            deep_overlap: by_query(&self.deep),
            blocked_io_network: blocked.flat_map(BTreeMap::values).sum(),
        }
    }
}

/// Capacities that the numbers rest on without being known. Disks never say theirs, and slots are counted.
fn capacity_notes(workload: &Workload, graph: &Graph) -> Vec<String> {
    graph
        .notes
        .iter()
        .filter(|note| !matches!(note.resource, Resource::Io | Resource::Slots))
        .filter(|note| note.basis == CapacityBasis::Unknown)
        .map(|note| {
            format!(
                "what {} of {} can do is not known; what was used counts as its capacity",
                note.resource.name(),
                workload.host_name(note.host)
            )
        })
        .collect()
}
