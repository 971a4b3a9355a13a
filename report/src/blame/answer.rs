//! The answer as data, which `--json` prints and the text is made from.

use std::collections::BTreeMap;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;
use ts_rs::TS;
use unfuse_contention::{
    Blame, Culprit, Explainer, Explanation, Input, Options, QueryId, VictimStages, Workload,
    strongest,
};
use unfuse_sizing::what_if::Estimate;

use super::Question;
use super::advice::advice_on;
use super::names::{CulpritKind, name_of};
use super::notes::notes;
use super::ranking::Ranking;
use super::simple::Simple;
use super::victim_paths::{VictimPaths, sum};

/// A part that is most of something.
const MOST: f64 = 0.8;
/// Victims whose paths are ranked together. A ranking takes about as much memory as the paths to ten victims.
const VICTIMS_OF_A_GROUP: usize = 64;

/// The whole answer.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Answer {
    /// The victim, or all queries, those with the most blocked time first.
    pub(super) victims: Vec<Victim>,
    /// Whether the question is about one victim.
    pub(super) one_victim: bool,
    /// The ranking, highest first.
    pub(super) ranked: Vec<Row>,
    /// Paths from culprits to victims, strongest first.
    pub(super) explanations: Vec<Path>,
    /// Suggestions.
    pub(super) suggestions: Vec<Advice>,
    /// The results of simpler methods for the victim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) baselines: Option<Baselines>,
    /// Whether data is missing or doubtful; the notes give details.
    pub(super) partial: bool,
    pub(super) notes: Vec<String>,
    /// Whether the profile has any data on how long tasks waited.
    #[serde(skip)]
    pub(super) waits_known: bool,
    #[serde(skip)]
    pub(super) scope: Scope,
}

/// The scope of the question, which the sentences about numbers mention.
#[derive(Debug)]
pub(super) struct Scope {
    /// Whether all stages of a victim count.
    pub(super) all_stages: bool,
    /// Whether it is about a part of the time.
    pub(super) window: bool,
    /// Only waits for these; all if empty.
    pub(super) resources: Vec<&'static str>,
    /// Only waits on these; all if empty.
    pub(super) hosts: Vec<String>,
}

impl Scope {
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
#[derive(Debug, Serialize, TS, JsonSchema)]
pub(super) struct Victim {
    /// Its number; invented if its name in a CSV file is not a number.
    pub(super) query: u64,
    /// The value for `--victim`.
    pub(super) name: String,
    pub(super) label: String,
    /// From its first stage to its last, s.
    pub(super) ran_seconds: f64,
    /// The stages that count; `7.1` is the second attempt of stage 7.
    pub(super) stages: Vec<String>,
    /// Number of their tasks.
    pub(super) tasks: usize,
    /// Time of these tasks, s.
    pub(super) task_seconds: f64,
    /// Time in which these tasks were blocked or waited for a slot, s.
    pub(super) blocked_seconds: f64,
    /// Blocked time caused by other queries and processes outside Spark, s. The following six add up to
    /// `blocked_seconds` with it.
    pub(super) by_others_seconds: f64,
    /// Blocked time caused by its own other tasks, s.
    pub(super) by_itself_seconds: f64,
    /// Blocked time caused by garbage collection, s.
    pub(super) by_gc_seconds: f64,
    /// Blocked time caused by other work of the JVMs outside tasks, s.
    pub(super) by_jvm_seconds: f64,
    /// Blocked time caused by the CPU limit of the JVM's own control group, s.
    pub(super) by_own_limit_seconds: f64,
    /// Blocked time caused by the hypervisor, s.
    pub(super) by_hypervisor_seconds: f64,
    /// Blocked time with an unknown cause, s.
    pub(super) by_unknown_seconds: f64,
    /// Run-queue waits among the blocked time, s.
    pub(super) queued_seconds: f64,
    /// The part of them whose causes the kernel recorded, s; the others are shared out by use.
    pub(super) counted_seconds: f64,
    /// The culprit with the largest part, other than the query itself.
    pub(super) main_culprit: Option<String>,
    /// The same among other queries and processes outside Spark, with the blocked time that it caused and the part of it that
    /// the kernel counted, s.
    #[serde(skip)]
    #[ts(skip)]
    pub(super) main_other: Option<(String, f64, f64)>,
    /// Its application; empty for CSV files.
    #[serde(skip)]
    #[ts(skip)]
    pub(super) application: String,
    /// The id of its Spark SQL execution.
    #[serde(skip)]
    #[ts(skip)]
    pub(super) execution: Option<i64>,
}

/// How much sooner the one victim would end without a culprit.
#[derive(Debug, Clone, Copy, Default, Serialize, TS, JsonSchema)]
pub(super) struct Sooner {
    /// How much sooner the one victim would end without the culprit, s, by a replay of its tasks; unknown if there are several
    /// victims, or only a part of the waits counts. Those of several culprits do not add up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    victim_seconds: Option<f64>,
    /// Lower end of its 95% interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    victim_seconds_low: Option<f64>,
    /// Upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    victim_seconds_high: Option<f64>,
}

impl From<&Estimate> for Sooner {
    fn from(estimate: &Estimate) -> Self {
        // Nobody runs longer because a neighbour is absent.
        let seconds = |seconds: f64| Some(seconds.max(0.0));
        Self {
            victim_seconds: seconds(estimate.saves_s),
            victim_seconds_low: seconds(estimate.saves_low_s),
            victim_seconds_high: seconds(estimate.saves_high_s),
        }
    }
}

impl Sooner {
    /// The seconds with the ends of their interval, if they are known.
    pub(super) fn known(self) -> Option<[f64; 3]> {
        Some([
            self.victim_seconds?,
            self.victim_seconds_low?,
            self.victim_seconds_high?,
        ])
    }
}

/// One line of a ranking.
#[derive(Debug, Serialize, TS, JsonSchema)]
#[ts(rename = "Blame")]
pub(super) struct Row {
    pub(super) name: String,
    /// What the culprit is; nothing if the row is not a culprit's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub(super) kind: Option<CulpritKind>,
    /// Degree of responsibility: the part of the victims' blocked time, 0 to 1 for each victim.
    pub(super) responsibility: f64,
    pub(super) seconds: f64,
    #[serde(flatten)]
    #[ts(flatten)]
    pub(super) sooner: Sooner,
    /// Whether most of it is waits for a CPU, and for most of these the kernel recorded who ran meanwhile. If not, waits are shared
    /// out by use.
    pub(super) exact: bool,
    /// Run-queue waits among `seconds`.
    #[serde(skip)]
    #[ts(skip)]
    pub(super) queued_seconds: f64,
    /// The culprit, if the row is one's.
    #[serde(skip)]
    #[ts(skip)]
    pub(super) culprit: Option<Culprit>,
    /// The kinds of waits of its victims, strongest first.
    pub(super) how: Vec<String>,
    /// Its operators with their part of the CPU time, 0 to 1; empty if unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<(String, f64)>>", optional)]
    pub(super) operators: Vec<(String, f64)>,
}

/// One path from a culprit to a victim.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Path {
    pub(super) victim: u64,
    pub(super) victim_stage: u32,
    pub(super) victim_attempt: u32,
    pub(super) resource: &'static str,
    pub(super) kind: &'static str,
    pub(super) host: String,
    pub(super) culprit: String,
    pub(super) culprit_kind: CulpritKind,
    pub(super) culprit_query: Option<u64>,
    pub(super) culprit_stage: Option<u32>,
    pub(super) culprit_attempt: Option<u32>,
    pub(super) operator: Option<String>,
    /// The part of the victim's blocked time, 0 to 1.
    pub(super) weight: f64,
    pub(super) seconds: f64,
}

/// A suggestion.
#[derive(Debug, Serialize, TS, JsonSchema)]
pub(super) struct Advice {
    /// `move`, `delay`, `reprioritise`, `change-pool` or `look-outside`.
    pub(super) action: &'static str,
    pub(super) text: String,
    pub(super) responsibility: f64,
    pub(super) seconds: f64,
    /// The most that can be expected.
    #[serde(flatten)]
    #[ts(flatten)]
    pub(super) sooner: Sooner,
    #[serde(skip)]
    #[ts(skip)]
    pub(super) culprit: Option<Culprit>,
}

/// The results of simpler methods.
#[derive(Debug, Serialize, TS, JsonSchema)]
pub(super) struct Baselines {
    /// Naive-Overlap: seconds that each query ran at the same time.
    pub(super) naive_overlap: Vec<(String, f64)>,
    /// Deep-Overlap: seconds of overlap of all pairs of tasks on a host.
    pub(super) deep_overlap: Vec<(String, f64)>,
    /// Blocked-time analysis: seconds for which the victim was blocked on IO and network, whoever caused it.
    pub(super) blocked_io_network: f64,
}

impl Answer {
    /// Answers a question about the victims of `blame`.
    pub fn new(workload: &Workload, blame: &Blame, question: &Question<'_>, input: &Input) -> Self {
        let notes = notes(workload, blame, input);
        let executions: BTreeMap<QueryId, Option<i64>> = input
            .executions
            .iter()
            .map(|((_, execution), query)| (*query, *execution))
            .collect();
        let Victims {
            mut victims,
            ranking,
            paths,
            suggestions,
        } = Victims::new(workload, blame, question);
        for victim in &mut victims {
            victim.execution = executions.get(&QueryId(victim.query)).copied().flatten();
        }
        victims.sort_by(|a, b| b.blocked_seconds.total_cmp(&a.blocked_seconds));
        let mut ranked = ranking.rows(workload, question.top);
        for row in &mut ranked {
            row.exact = is_exact(row, blame, question);
        }
        Self {
            one_victim: question.victim.is_some(),
            ranked,
            explanations: paths
                .iter()
                .map(|path| self::path(workload, path))
                .collect(),
            suggestions,
            baselines: question.victim.map(|victim| {
                let simple = Simple::new(workload, &[victim].into(), question.options.within);
                simple.about(workload, victim)
            }),
            victims,
            partial: !notes.is_empty(),
            notes,
            waits_known: input.waits_known,
            scope: Scope::new(workload, question.options),
        }
    }
}

/// Whether the kernel recorded what ran for most of what a culprit's victims waited for.
fn is_exact(row: &Row, blame: &Blame, question: &Question<'_>) -> bool {
    let Some(culprit) = row.culprit else {
        return false;
    };
    let victims = blame.victims().iter();
    let victims = victims.filter(|victim| question.is_about(**victim, culprit));
    let counted = sum(victims.filter_map(|victim| blame.counted.get(&(*victim, culprit)).copied()));
    row.queued_seconds > MOST * row.seconds && counted > MOST * row.queued_seconds
}

/// What an answer says of several victims.
struct Victims {
    victims: Vec<Victim>,
    ranking: Ranking,
    /// The strongest paths, strongest first.
    paths: Vec<Explanation>,
    suggestions: Vec<Advice>,
}

impl Victims {
    /// The victims of a question. Memory holds the paths to only a few of them at a time.
    fn new(workload: &Workload, blame: &Blame, question: &Question<'_>) -> Self {
        let victims = blame.victims().iter().copied();
        let victims: Vec<QueryId> = victims
            .filter(|query| question.victim.is_none_or(|victim| victim == *query))
            .collect();
        let mut all = Self::none(question);
        let groups: Vec<&[QueryId]> = victims.chunks(VICTIMS_OF_A_GROUP).collect();
        for some in groups.chunks(rayon::current_num_threads()) {
            // Sums do not depend on which thread is first.
            let groups: Vec<Self> = some
                .par_iter()
                .map(|group| Self::of_group(workload, blame, question, group))
                .collect();
            for group in groups {
                all.add(group, question);
            }
        }
        all
    }

    fn none(question: &Question<'_>) -> Self {
        Self {
            victims: Vec::new(),
            ranking: Ranking::new(question.by, question.victim),
            paths: Vec::new(),
            suggestions: Vec::new(),
        }
    }

    fn of_group(
        workload: &Workload,
        blame: &Blame,
        question: &Question<'_>,
        group: &[QueryId],
    ) -> Self {
        let mut all = Self::none(question);
        let mut explainer = Explainer::new(workload, blame);
        let mut paths = Vec::new();
        for query in group {
            let of = VictimPaths::new((workload, blame), &mut explainer, *query, paths);
            all.victims.push(of.summary(question));
            paths = of.accepted(question);
            all.ranking.add(&paths);
            let suggestions = advice_on(workload, &paths, question.top);
            all.suggestions.extend(suggestions);
            all.paths.append(&mut strongest(&paths, question.top));
        }
        all.keep_first(question);
        all
    }

    fn add(&mut self, mut group: Self, question: &Question<'_>) {
        self.victims.append(&mut group.victims);
        self.ranking.merge(group.ranking);
        self.paths.append(&mut group.paths);
        self.suggestions.append(&mut group.suggestions);
        self.keep_first(question);
    }

    fn keep_first(&mut self, question: &Question<'_>) {
        self.paths.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        self.paths.truncate(question.top);
        let by_part = |a: &Advice, b: &Advice| b.responsibility.total_cmp(&a.responsibility);
        self.suggestions.sort_by(by_part);
        self.suggestions.truncate(question.top);
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
        culprit_kind: CulpritKind::new(path.culprit, Some(path.victim)),
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
