//! The answer as data: what `--json` prints and the text is made of.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use unfuse_contention::baseline::{self, Overlaps};
use unfuse_contention::{
    By, CapacityBasis, Culprit, Entity, Explanation, Filter, Graph, Input, Key, KnownProcess, Note,
    Options, Query, QueryId, Resource, Source, Span, StageId, Suggestion, Thresholds, VictimStages,
    Workload, suggestions, top,
};

use super::{Question, Rank};
use crate::text::list;

/// Parts that are less are not worth their room.
const LEAST: f64 = 0.01;

/// Everything that is said.
#[derive(Debug, Serialize)]
pub struct Answer {
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
    #[serde(skip)]
    pub(super) asked: Asked,
}

/// What the sentences about numbers depend on.
#[derive(Debug)]
pub(super) struct Asked {
    /// Whether all stages of a victim count.
    pub(super) all_stages: bool,
    /// Whether it was of a part of the time.
    pub(super) window: bool,
    /// Only these, if any.
    pub(super) resources: Vec<&'static str>,
    /// Only on these, if any.
    pub(super) hosts: Vec<String>,
}

impl Asked {
    fn of(workload: &Workload, options: &Options) -> Self {
        let hosts = options.hosts.iter();
        Self {
            all_stages: options.stages == VictimStages::All,
            window: options.within.is_some(),
            resources: options.resources.iter().map(|r| r.name()).collect(),
            hosts: hosts.map(|h| workload.host_name(*h).to_owned()).collect(),
        }
    }
}

/// A query that was slowed down.
#[derive(Debug, Serialize)]
pub(super) struct Victim {
    /// Its number; made up where a name of a CSV file is none.
    pub(super) query: u64,
    /// What `--victim` takes.
    pub(super) name: String,
    pub(super) label: String,
    /// From its first stage to its last, s.
    pub(super) ran_seconds: f64,
    /// The stages that count, `7.1` for the second attempt of stage 7.
    pub(super) stages: Vec<String>,
    /// How many tasks they had.
    pub(super) tasks: usize,
    /// Time of these tasks, s.
    pub(super) task_seconds: f64,
    /// Of it, and of tasks that waited for a slot, the time in which they could not go on, s.
    pub(super) blocked_seconds: f64,
    /// Of it, what other queries and processes outside Spark account for, s. This and the next four add up to it.
    pub(super) by_others_seconds: f64,
    /// What its own other tasks account for, s.
    pub(super) by_itself_seconds: f64,
    /// What garbage collection accounts for, s.
    pub(super) by_gc_seconds: f64,
    /// What else the JVMs did outside tasks, s.
    pub(super) by_jvm_seconds: f64,
    /// What nobody known accounts for, s.
    pub(super) by_unknown_seconds: f64,
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
    pub(super) victim_attempt: u32,
    pub(super) resource: &'static str,
    pub(super) kind: &'static str,
    pub(super) host: String,
    pub(super) culprit: String,
    pub(super) culprit_query: Option<u64>,
    pub(super) culprit_stage: Option<u32>,
    pub(super) culprit_attempt: Option<u32>,
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
pub struct Found<'a> {
    pub(super) workload: &'a Workload,
    graph: &'a Graph,
    /// Paths by victim, strongest first.
    paths: BTreeMap<QueryId, Vec<Explanation>>,
    /// Stage and time of each task.
    tasks: BTreeMap<QueryId, Vec<(StageId, Span)>>,
}

impl<'a> Found<'a> {
    /// Looks for culprits of the graph's victims.
    pub fn of(workload: &'a Workload, graph: &'a Graph) -> Self {
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
}

impl Answer {
    /// The answer to a question.
    pub fn of(found: &Found<'_>, question: &Question<'_>, input: &Input) -> Self {
        let workload = found.workload;
        let notes = notes(workload, found.graph, input);
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
            asked: Asked::of(workload, question.options),
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
    let itself = culprits.remove(&Culprit::Query(query)).unwrap_or(0.0);
    let main = culprits.iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
    let main = main.map(|(culprit, _)| name_of(workload, *culprit));
    let blocked = found
        .graph
        .find(&Key::Victim(query))
        .and_then(|node| node.impact.get(&query))
        .map_or(0.0, |impact| impact.seconds);
    let mut take = |culprit| culprits.remove(&culprit).unwrap_or(0.0);
    Victim {
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
        by_jvm_seconds: take(Culprit::Known(KnownProcess::Jvm)),
        by_unknown_seconds: take(Culprit::Unknown),
        by_itself_seconds: itself,
        by_others_seconds: sum(culprits.into_values()),
        main_culprit: main,
    }
}

/// The sum; that of nothing is 0, where `Iterator::sum` says -0.
fn sum(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, |sum, value| sum + value)
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
                "{operator} in {} of {}",
                stage.name(),
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
            format!("{} of {}", stage.name(), label(workload, stage.query))
        }
        Entity::Source(source) => name_of(workload, source.culprit()),
    }
}

fn label(workload: &Workload, query: QueryId) -> String {
    workload
        .query(query)
        .map_or_else(String::new, |query| query.label.clone())
}

/// What a query is called in a sentence.
pub(super) fn title(workload: &Workload, query: QueryId) -> &str {
    workload.query(query).map_or("", Query::title)
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
        victim_attempt: path.stage.attempt,
        resource: path.resource.name(),
        kind: path.kind.name(),
        host: workload.host_name(path.host).to_owned(),
        culprit: name_of(workload, path.culprit),
        culprit_query: match path.culprit {
            Culprit::Query(query) => Some(query.0),
            _ => None,
        },
        culprit_stage: path.culprit_stage.map(|stage| stage.stage),
        culprit_attempt: path.culprit_stage.map(|stage| stage.attempt),
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
    let victim = title(workload, evidence.victim);
    let (action, text) = match suggestion {
        Suggestion::Move { culprit, host, .. } => (
            "move",
            format!(
                "keep {} or {victim} away from {}: most of the harm is done there",
                title(workload, *culprit),
                workload.host_name(*host)
            ),
        ),
        Suggestion::Delay { stage, until, .. } => ("delay", delay(workload, *stage, until, victim)),
        Suggestion::Reprioritise {
            culprit, weight, ..
        } => (
            "reprioritise",
            format!(
                "give {}, in which {victim} runs, a weight above {weight} (fairscheduler.xml, with spark.scheduler.mode=FAIR): \
                 {} in {} has as much right to resources and uses it all along",
                pool_of(workload, evidence.victim),
                title(workload, *culprit),
                pool_of(workload, *culprit)
            ),
        ),
        Suggestion::ChangePool { culprit, pool, .. } => (
            "change-pool",
            format!(
                "give {} a pool of its own (spark.scheduler.pool, with spark.scheduler.mode=FAIR): it shares {} with {victim}",
                title(workload, *culprit),
                pool_name(pool)
            ),
        ),
        Suggestion::LookOutside { process, .. } => {
            ("look-outside", format!("{victim}: {}", outside(*process)))
        }
    };
    Advice {
        action,
        text,
        responsibility: evidence.responsibility,
        seconds: evidence.seconds,
    }
}

fn delay(workload: &Workload, stage: StageId, until: &BTreeSet<StageId>, victim: &str) -> String {
    let culprit = title(workload, stage.query);
    let application = |id: &StageId| workload.query(id.query).map(|query| &query.application);
    // A program that runs both can have stages wait for each other; two programs can only be started one after the other.
    if until.first().and_then(application) != application(&stage) {
        return format!("run {culprit} after {victim}");
    }
    let until: Vec<String> = until.iter().map(|stage| stage.number()).collect();
    format!(
        "run {culprit} after {victim}, or at least its {} after {} {} of {victim}",
        stage.name(),
        if until.len() == 1 { "stage" } else { "stages" },
        list(&until)
    )
}

fn pool_of(workload: &Workload, query: QueryId) -> String {
    pool_name(workload.query(query).map_or("", |query| &query.pool))
}

fn pool_name(pool: &str) -> String {
    match pool {
        "" => "the default pool".to_owned(),
        pool => format!("pool {pool}"),
    }
}

fn outside(process: KnownProcess) -> &'static str {
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
            blocked_io_network: sum(blocked.flat_map(BTreeMap::values).copied()),
        }
    }
}

/// What has to be said of the numbers.
pub fn notes(workload: &Workload, graph: &Graph, input: &Input) -> Vec<String> {
    let capacities = graph.notes.iter();
    let capacities = capacities.filter_map(|note| capacity_note(workload, note));
    input.notes.iter().cloned().chain(capacities).collect()
}

/// What is said of a capacity that is not known, or cannot be right.
fn capacity_note(workload: &Workload, note: &Note) -> Option<String> {
    let what = note.resource.name();
    let host = workload.host_name(note.host);
    match note.basis {
        // Disks never say theirs, and slots are counted.
        CapacityBasis::Unknown if matches!(note.resource, Resource::Io | Resource::Slots) => None,
        CapacityBasis::Unknown => Some(format!(
            "what {what} of {host} can do is not known; what was used counts as its capacity"
        )),
        CapacityBasis::Exceeded => {
            let times =
                note.highest / workload.capacity(note.host, note.executor, note.resource)?;
            // Counters are not read at one moment; so little shifts no blame.
            (times > 1.005).then(|| format!(
                "in {} more {what} of {host} was used than its capacity, up to {} times as much; there what was used counts as \
                 the capacity",
                match note.windows {
                    1 => "1 window".to_owned(),
                    windows => format!("{windows} windows"),
                },
                match times {
                    ..10.0 => format!("{times:.2}"),
                    _ => format!("{times:.0}"),
                }
            ))
        }
        CapacityBasis::Nominal => None,
    }
}
