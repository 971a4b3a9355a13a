//! The answer as data: what `--json` prints and the text is made of.

use serde::Serialize;
use ts_rs::TS;
use unfuse_contention::{Culprit, Explanation, Input, Options, VictimStages, Workload};

use super::Question;
use super::advice::advice_on;
use super::found::{Found, victim};
use super::names::name_of;
use super::notes::notes;
use super::ranking::ranked;
use super::simple::Simple;

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
    fn new(workload: &Workload, options: &Options) -> Self {
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
#[derive(Debug, Serialize, TS)]
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
#[derive(Debug, Serialize, TS)]
#[ts(rename = "Blame")]
pub(super) struct Row {
    pub(super) name: String,
    /// Degree of responsibility: the part of the victims' blocked time, 0 to 1 for each.
    pub(super) responsibility: f64,
    pub(super) seconds: f64,
    /// How its victims waited, strongest first.
    pub(super) how: Vec<String>,
    /// Its operators by their part of the CPU time, where they are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<(String, f64)>>", optional)]
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
#[derive(Debug, Serialize, TS)]
pub(super) struct Advice {
    /// `move`, `delay`, `reprioritise`, `change-pool` or `look-outside`.
    pub(super) action: &'static str,
    pub(super) text: String,
    pub(super) responsibility: f64,
    pub(super) seconds: f64,
}

/// What simpler methods say.
#[derive(Debug, Serialize, TS)]
pub(super) struct Baselines {
    /// Naive-Overlap: seconds that each query ran at the same time.
    pub(super) naive_overlap: Vec<(String, f64)>,
    /// Deep-Overlap: seconds of overlap of all pairs of tasks on a host.
    pub(super) deep_overlap: Vec<(String, f64)>,
    /// Blocked-time analysis: seconds the victim was blocked on IO and network, whoever caused it.
    pub(super) blocked_io_network: f64,
}

impl Answer {
    /// The answer to a question.
    pub fn new(found: &Found<'_>, question: &Question<'_>, input: &Input) -> Self {
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
                let simple = Simple::new(workload, &[victim].into(), question.options.within);
                simple.about(workload, victim)
            }),
            victims,
            partial: !notes.is_empty(),
            notes,
            waits_known: input.waits_known,
            asked: Asked::new(workload, question.options),
        }
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
        operator: path.operator.as_deref().map(str::to_owned),
        weight: path.weight,
        seconds: path.seconds,
    }
}
