//! The measures of the rules in `rules/verdict.toml`.

use serde::Deserialize;
use unfuse_format::{GARBAGE_COLLECTION, JIT_COMPILATION};
use unfuse_postprocess::{Profile, WaitReason, wilson};

use super::operators::OperatorCost;
use super::time::Slots;
use crate::model::{Evidence, PartKind, Summary, VerdictPart};
use crate::wait::WaitFacts;
use crate::words;

/// A query needs this many runs before one of them can be called slow.
const FEWEST_RUNS: usize = 3;
/// A slow run takes at least this part of the time of all queries more than the median.
const LEAST_EXTRA: f64 = 0.02;

/// What a rule measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Measure {
    /// Half the width of the 95% interval of a share of one half, by the number of samples: 0 to 1.
    #[serde(rename = "uncertainty")]
    Uncertainty,
    /// 1 without any sample.
    #[serde(rename = "without samples")]
    WithoutSamples,
    /// Part of the samples that the kernel dropped, 0 to 1.
    #[serde(rename = "lost samples")]
    LostSamples,
    /// Files that could not be read.
    #[serde(rename = "unreadable files")]
    UnreadableFiles,
    /// Part of the whole in which tasks had their slot, without samples, 0 to 1.
    #[serde(rename = "unsampled")]
    Unsampled,
    /// Queries that failed.
    #[serde(rename = "failed queries")]
    FailedQueries,
    /// Part of the tasks' time in attempts that failed, 0 to 1.
    #[serde(rename = "failed tasks")]
    FailedTasks,
    /// Queries with tasks or records that are slower than others of their kind.
    #[serde(rename = "slow tasks")]
    SlowTasks,
    /// Part of the whole: CPU time of the collector and the waits of tasks for it.
    #[serde(rename = "garbage collection")]
    GarbageCollection,
    /// Part of the whole: the longest wait of tasks, other than for garbage collection.
    #[serde(rename = "longest wait")]
    LongestWait,
    /// Bytes spilled to disk divided by bytes read.
    #[serde(rename = "spill")]
    Spill,
    /// Rows output divided by rows got, of a named operator.
    #[serde(rename = "row growth")]
    RowGrowth,
    /// Longest run of a query divided by its median run, if it has at least three.
    #[serde(rename = "spread")]
    Spread,
    /// Part of the whole, 0 to 1.
    #[serde(rename = "JIT compilation")]
    JitCompilation,
    /// Part of the whole, lower bound: CPU time of tasks for deserialization and for compiling generated code.
    #[serde(rename = "task loading")]
    TaskLoading,
    /// Part of the whole: between a task's launch and its run, and after its run.
    #[serde(rename = "scheduling")]
    Scheduling,
    /// Part of the whole: slots without a task.
    #[serde(rename = "idle")]
    Idle,
}

/// The result of a measure.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Measurement {
    /// The value that is compared with the rule's limit.
    pub(super) value: f64,
    /// The value in a sentence.
    pub(super) shown: String,
    /// The value as a part of its whole, 0 to 1.
    pub(super) part: f64,
    /// The value as a time, ns.
    pub(super) ns: u64,
    /// The subject in words.
    pub(super) subject: String,
    /// The place in the page that shows it.
    pub(super) evidence: Option<Evidence>,
}

/// The data that measures need.
pub(super) struct Measures<'a> {
    pub(super) profile: &'a Profile,
    pub(super) summary: &'a Summary,
    pub(super) slots: &'a Slots,
    pub(super) parts: &'a [VerdictPart],
    pub(super) whole_ns: u64,
    /// The operators that the verdict names.
    pub(super) named: &'a [OperatorCost],
}

impl Measures<'_> {
    /// The value of a measure; `None` if there is nothing to measure.
    pub(super) fn evaluate(&self, measure: Measure) -> Option<Measurement> {
        match measure {
            Measure::Uncertainty => self.uncertainty(),
            Measure::WithoutSamples => (self.summary.total.samples == 0).then(|| Measurement {
                value: 1.0,
                ..Measurement::default()
            }),
            Measure::LostSamples => self.lost_samples(),
            Measure::UnreadableFiles => {
                let files = self.profile.problems.len();
                Some(count(files, words::count(files, "file"), None))
            }
            Measure::Unsampled => self.part(PartKind::Unknown, ""),
            Measure::FailedQueries => self.queries("query", |query| query.error.is_some(), "plan"),
            Measure::FailedTasks => ratio(self.slots.failed_ns, self.slots.task_ns),
            Measure::SlowTasks => self.queries("query", |query| query.skew, "skew"),
            Measure::GarbageCollection => self.garbage_collection(),
            Measure::LongestWait => self.longest_wait(),
            Measure::Spill => {
                let (spilled, read) = (self.slots.spilled_bytes, self.slots.read_bytes);
                let subject = words::bytes(spilled);
                ratio(spilled, read).map(|found| Measurement { subject, ..found })
            }
            Measure::RowGrowth => self.row_growth(),
            Measure::Spread => self.spread(),
            Measure::JitCompilation => self.part(PartKind::Beside, JIT_COMPILATION),
            Measure::TaskLoading => self.task_loading(),
            Measure::Scheduling => self.part(PartKind::Scheduling, ""),
            Measure::Idle => self.part(PartKind::Idle, ""),
        }
    }

    /// Parts of a kind, with one name or any if it is empty, as a part of the whole.
    fn part(&self, kind: PartKind, name: &str) -> Option<Measurement> {
        let parts = self.parts.iter();
        let parts =
            parts.filter(|part| part.kind == kind && (name.is_empty() || part.name == name));
        ratio(
            parts.map(|part| part.ns).reduce(u64::saturating_add)?,
            self.whole_ns,
        )
    }

    fn uncertainty(&self) -> Option<Measurement> {
        let samples = self.summary.total.samples;
        if samples == 0 {
            return None;
        }
        let (low, high) = wilson(0.5, samples as f64);
        let half = (high - low) / 2.0;
        Some(Measurement {
            value: half,
            shown: format!("{:.0}", 100.0 * half),
            subject: format!("only {}", words::count(samples as usize, "CPU sample")),
            ..Measurement::default()
        })
    }

    fn lost_samples(&self) -> Option<Measurement> {
        let sum = |count: fn(&unfuse_format::ProcessRow) -> u64| {
            let processes = self.profile.processes.iter();
            processes.fold(0u64, |sum, process| sum.saturating_add(count(process)))
        };
        let lost = sum(|process| process.lost_samples);
        ratio(lost, sum(|process| process.samples).saturating_add(lost))
    }

    fn queries(
        &self,
        one: &str,
        is: impl Fn(&crate::model::QuerySummary) -> bool,
        tab: &str,
    ) -> Option<Measurement> {
        let queries = self.summary.queries.iter().enumerate();
        let found: Vec<usize> = queries
            .filter(|(_, query)| is(query))
            .map(|(index, _)| index)
            .collect();
        let first = found.first().copied()?;
        let subject = match found[..] {
            [only] => format!(
                "The {one} “{}”",
                words::name(&self.summary.queries[only].name)
            ),
            _ => words::count(found.len(), one),
        };
        let evidence = Evidence {
            query: Some(first),
            tab: tab.to_owned(),
            node: None,
        };
        Some(count(found.len(), subject, Some(evidence)))
    }

    fn garbage_collection(&self) -> Option<Measurement> {
        let is_gc = |part: &&VerdictPart| is_gc(part);
        let ns = self.parts.iter().filter(is_gc).map(|part| part.ns);
        ratio(ns.reduce(u64::saturating_add)?, self.whole_ns)
    }

    fn longest_wait(&self) -> Option<Measurement> {
        let waits = self
            .parts
            .iter()
            .filter(|part| part.kind == PartKind::Waiting);
        let known = waits.filter_map(|part| {
            let facts = WaitFacts::from_reason(WaitReason::from_name(&part.name)?);
            (facts.is_known && !is_gc(part)).then_some((part, facts))
        });
        let (longest, facts) = known.max_by_key(|(part, _)| part.ns)?;
        let found = ratio(longest.ns, self.whole_ns)?;
        let subject = facts.words.to_owned();
        Some(Measurement { subject, ..found })
    }

    fn row_growth(&self) -> Option<Measurement> {
        let growth = |operator: &&OperatorCost| {
            let (got, put) = (operator.rows_in?, operator.rows?);
            (got > 0).then(|| put as f64 / got as f64)
        };
        let named = self
            .named
            .iter()
            .filter_map(|operator| Some((growth(&operator)?, operator)));
        let (value, operator) = named.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        Some(Measurement {
            value,
            shown: words::number(value),
            subject: format!("{} (node {})", operator.operator, operator.id),
            evidence: Some(operator.evidence_link()),
            ..Measurement::default()
        })
    }

    fn spread(&self) -> Option<Measurement> {
        let durations = self.summary.queries.iter();
        let all_ms: f64 = durations
            .filter_map(|query| query.duration_ms)
            .map(|ms| ms as f64)
            .sum();
        let families = self.summary.families.iter();
        let several = families.filter(|family| family.runs.len() >= FEWEST_RUNS);
        let spread = several.filter_map(|family| {
            let [_, median, most] = family.duration_ms?;
            let matters = (most - median) as f64 >= LEAST_EXTRA * all_ms;
            (median > 0 && matters).then(|| (most as f64 / median as f64, family))
        });
        let (value, family) = spread.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        let slowest = family
            .runs
            .iter()
            .copied()
            .max_by_key(|index| self.summary.queries[*index].duration_ms)?;
        Some(Measurement {
            value,
            shown: words::number(value),
            subject: format!("“{}”", words::name(&family.name)),
            evidence: Some(Evidence {
                query: Some(slowest),
                tab: "stages".to_owned(),
                node: None,
            }),
            ..Measurement::default()
        })
    }

    fn task_loading(&self) -> Option<Measurement> {
        let names = ["deserialization", "compiling generated code"];
        let parts = self
            .parts
            .iter()
            .filter(|part| part.kind == PartKind::Tasks);
        let parts = parts.filter(|part| names.contains(&part.name.as_str()));
        let ns = parts.map(|part| part.ns).reduce(u64::saturating_add)?;
        let total = self.summary.total;
        let share = ns as f64 / total.cpu_ns.max(1) as f64;
        let (low, _) = wilson(share.min(1.0), total.samples as f64);
        let value = low * total.cpu_ns as f64 / self.whole_ns.max(1) as f64;
        ratio(ns, self.whole_ns).map(|found| Measurement { value, ..found })
    }
}

fn is_gc(part: &VerdictPart) -> bool {
    part.name == GARBAGE_COLLECTION || part.name == WaitReason::Safepoint.name()
}

fn ratio(part: u64, whole: u64) -> Option<Measurement> {
    (whole > 0).then(|| Measurement {
        value: part as f64 / whole as f64,
        part: part as f64 / whole as f64,
        ns: part,
        ..Measurement::default()
    })
}

fn count(number: usize, subject: String, evidence: Option<Evidence>) -> Measurement {
    Measurement {
        value: number as f64,
        subject,
        evidence,
        ..Measurement::default()
    }
}
