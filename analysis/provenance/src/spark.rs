//! Propagation on Spark, for tables that are too large for one machine.
//!
//! Data that grows with tasks stays here: which attempts count, what each of them read and made, and at which level.
//! The job ([`JOB`]) reads it as a [`Plan`] and processes the data that grows with records. It writes an [`Answer`],
//! which is an [`Outcome`] with other names for records.

use std::collections::HashMap;
use unfuse_format::{RecordSourceKind, TaskKey};

use serde::{Deserialize, Serialize};

use crate::traces::LinkNumbers;
use crate::{InputRecord, Options, Outcome, RecordPath, RecordRef, SlowOutput, TaskTraces};

/// The job in Python, for `spark-submit`. Its arguments are the profile's URI, the file with the [`Plan`] and the one
/// for the [`Answer`], both JSON.
pub const JOB: &str = include_str!("spark/job.py");

/// The tables that the job reads.
pub const TABLES: [&str; 2] = ["records_in", "records_out"];

/// The input of the job.
#[derive(Debug, Serialize)]
pub struct Plan {
    top: usize,
    /// Approximate number of records read and made.
    rows: i64,
    sources: Vec<Source>,
    targets: Vec<Target>,
    records: Vec<RecordKey>,
}

/// A source of a task attempt that counts.
#[derive(Debug, Serialize)]
struct Source {
    task_key: TaskKey,
    source: i32,
    level: u32,
    /// Shuffle latency of all its records, ns; 0 if it is not a shuffle.
    shuffle_ns: i64,
    /// Whether tasks made its records.
    linked: bool,
    links: Vec<u32>,
}

/// An output of it.
#[derive(Debug, Serialize)]
struct Target {
    task_key: TaskKey,
    output: i32,
    level: u32,
    /// None for results.
    link: Option<u32>,
    combined: bool,
}

/// A record, with the key of the task attempt that read it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct RecordKey {
    task_key: TaskKey,
    source: i32,
    position: i64,
}

impl Plan {
    /// The plan for the task attempts of a profile.
    pub fn new(traces: &TaskTraces, options: &Options) -> Self {
        let numbers = LinkNumbers::new(traces);
        let mut plan = Self {
            top: options.top,
            rows: 0,
            sources: Vec::new(),
            targets: Vec::new(),
            records: Vec::new(),
        };
        for (trace, levels) in traces.all.iter().zip(traces.levels()) {
            let levels: HashMap<i32, u32> = trace
                .targets
                .iter()
                .map(|target| target.output)
                .zip(levels)
                .collect();
            for source in &trace.sources {
                // A source without an output has no effect.
                let Some(level) = levels.get(&trace.output_of(source)) else {
                    continue;
                };
                let links = source.links.iter();
                plan.rows = plan.rows.saturating_add(source.count.max(0));
                plan.sources.push(Source {
                    task_key: source.task_key,
                    source: source.source,
                    level: *level,
                    shuffle_ns: match source.kind {
                        RecordSourceKind::Shuffle => source.read_ns.max(0),
                        _ => 0,
                    },
                    linked: !source.links.is_empty(),
                    links: links
                        .filter_map(|link| numbers.get(&source.app, link))
                        .collect(),
                });
            }
            for target in &trace.targets {
                plan.rows = plan.rows.saturating_add(target.count.max(0));
                plan.targets.push(Target {
                    task_key: target.task_key,
                    output: target.output,
                    level: levels.get(&target.output).copied().unwrap_or(0),
                    link: numbers.get(&target.app, &target.link),
                    combined: target.combined,
                });
            }
        }
        let records = options.records.iter().filter_map(|record| {
            Some(RecordKey {
                task_key: traces.key(*record)?,
                source: record.source,
                position: record.position,
            })
        });
        plan.records = records.collect();
        plan
    }
}

/// The output of the job.
#[derive(Debug, Deserialize)]
pub struct Answer {
    results: u64,
    inputs: u64,
    unlinked: u64,
    /// Number of records processed.
    read: Option<u64>,
    damaged: usize,
    slowest: Vec<Slow>,
    records: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Slow {
    task_key: TaskKey,
    output: i32,
    position: i64,
    base_ns: i64,
    own_ns: i64,
    root: RecordKey,
    root_ns: i64,
    peak: RecordKey,
    peak_ns: i64,
    lineage: u64,
}

#[derive(Debug, Deserialize)]
struct Row {
    #[serde(flatten)]
    at: RecordKey,
    id: i64,
    ns: i64,
}

impl Answer {
    /// The outcome, with records as in [`TaskTraces`]. Records of tasks outside the plan are left out.
    pub fn outcome(&self, traces: &TaskTraces, options: &Options) -> Outcome {
        let indices = traces.indices();
        let record_of = |named: RecordKey| {
            let trace = *indices.get(&named.task_key)?;
            Some(RecordRef::new(trace, named.source, named.position))
        };
        let slowest = self.slowest.iter().filter_map(|slow| {
            Some(SlowOutput {
                trace: *indices.get(&slow.task_key)?,
                output: slow.output,
                position: slow.position,
                path: RecordPath {
                    base_ns: slow.base_ns,
                    own_ns: slow.own_ns,
                    root: record_of(slow.root)?,
                    root_ns: slow.root_ns,
                    peak: record_of(slow.peak)?,
                    peak_ns: slow.peak_ns,
                    lineage: slow.lineage,
                },
            })
        });
        let slowest: Vec<SlowOutput> = slowest.collect();
        let mut records = Outcome::wanted(&slowest, options);
        for row in &self.records {
            let noted = InputRecord {
                id: row.id,
                ns: row.ns,
            };
            if let Some(slot) = record_of(row.at).and_then(|record| records.get_mut(&record)) {
                *slot = noted;
            }
        }
        Outcome {
            slowest,
            results: self.results,
            inputs: self.inputs,
            unlinked: self.unlinked,
            missing: self
                .read
                .map_or(0, |read| traces.records().saturating_sub(read)),
            records,
            damaged: self.damaged,
        }
    }
}
