//! Propagates records from the inputs of the program to its results, through one level of shuffles and caches after the
//! other.

mod links;
mod task;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use unfuse_format::{ProfileDir, RecordInRow, RecordOutRow, TaskKey};

use crate::buckets::{Buckets, bucket_of};
use crate::record_path::MergedPath;
use crate::stream::Segments;
use crate::traces::LinkNumbers;
use crate::{ProvenanceError, RecordPath, RecordRef, TaskTraces};
use links::{Links, Lookup, Match, Upstream};
use task::{OutputRecord, Records};

/// What to propagate, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// Number of slowest outputs to find.
    pub top: usize,
    /// Records to look up in addition to those of the slowest outputs.
    pub records: Vec<RecordRef>,
    /// Approximate memory for intermediate results, bytes; more goes to files.
    pub memory: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            top: 10,
            records: Vec::new(),
            memory: 256 << 20,
        }
    }
}

/// One record of the program's results.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowOutput {
    /// The task attempt that made it, as an index in [`TaskTraces`].
    pub trace: u32,
    /// The output of the task.
    pub output: i32,
    /// Its position in the output.
    pub position: i64,
    /// The slowest path to it.
    pub path: RecordPath,
}

/// A record as recorded by the task that read it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InputRecord {
    /// Its id; in text files the offset of its line, bytes.
    pub id: i64,
    /// Time of the task's code for it, ns.
    pub ns: i64,
}

/// The slowest outputs of a run and their inputs.
#[derive(Debug, Default, PartialEq)]
pub struct Outcome {
    /// The slowest outputs, the slowest first.
    pub slowest: Vec<SlowOutput>,
    /// Number of records in all results.
    pub results: u64,
    /// Number of records in the program's inputs.
    pub inputs: u64,
    /// Number of records after a shuffle or a cache whose task is unknown.
    pub unlinked: u64,
    /// Number of records that tasks read and that are not in the tables.
    pub missing: u64,
    /// The requested records, and those of the slowest outputs.
    pub records: BTreeMap<RecordRef, InputRecord>,
    /// Number of segments that could not be read.
    pub damaged: usize,
}

impl Outcome {
    /// The records to look up, without data.
    pub(crate) fn wanted(
        slowest: &[SlowOutput],
        options: &Options,
    ) -> BTreeMap<RecordRef, InputRecord> {
        let named = slowest
            .iter()
            .flat_map(|slow| [slow.path.root, slow.path.peak]);
        let wanted = named.chain(options.records.iter().copied());
        wanted
            .map(|record| (record, InputRecord::default()))
            .collect()
    }
}

/// Approximate number of rows in one bucket or group.
const ROWS: usize = 300_000;
/// Each can be an open file.
const MOST_BUCKETS: usize = 128;

/// Propagates records from inputs to results.
///
/// # Errors
/// If the profile cannot be read, or there is no space for intermediate results.
pub fn propagate(
    dir: &ProfileDir,
    traces: &TaskTraces,
    options: &Options,
) -> Result<Outcome, ProvenanceError> {
    let levels = traces.levels();
    let last = levels.iter().flatten().max().copied().unwrap_or(0);
    let rows: i64 = traces
        .all
        .iter()
        .flat_map(|trace| &trace.targets)
        .fold(0, |sum: i64, row| sum.saturating_add(row.count.max(0)));
    let buckets = (usize::try_from(rows).unwrap_or(0) / ROWS + 1).min(MOST_BUCKETS);
    let inputs = Segments::new(dir, &traces.order)?;
    let outputs = Segments::new(dir, &traces.order)?;
    let mut run = Run {
        inputs: &inputs,
        outputs: &outputs,
        options,
        numbers: LinkNumbers::new(traces),
        links: Links::new(buckets, options.memory / 3),
        heap: BinaryHeap::new(),
        outcome: Outcome::default(),
        read: 0,
        traces,
    };
    for level in 0..=last {
        run.level(&levels, level)?;
    }
    let mut outcome = run.outcome;
    let mut slowest: Vec<BySlowness> = run.heap.into_iter().map(|Reverse(slow)| slow).collect();
    slowest.sort_by(|a, b| b.cmp(a));
    outcome.slowest = slowest.into_iter().map(|slow| slow.0).collect();
    outcome.records = Outcome::wanted(&outcome.slowest, options);
    look_up(&inputs, traces, &mut outcome.records);
    outcome.damaged = inputs.damaged() + outputs.damaged();
    outcome.missing = traces.records().saturating_sub(run.read);
    Ok(outcome)
}

/// Looks up the data of records.
fn look_up(
    inputs: &Segments<RecordInRow>,
    traces: &TaskTraces,
    records: &mut BTreeMap<RecordRef, InputRecord>,
) {
    let mut tasks: Vec<(usize, TaskKey, u32)> = records
        .keys()
        .filter_map(|record| {
            let key = traces.key(*record)?;
            Some((*traces.order.get(&key)?, key, record.trace))
        })
        .collect();
    tasks.sort_unstable();
    tasks.dedup();
    let mut inputs = inputs.groups();
    for (_, key, trace) in tasks {
        for row in inputs.take(key) {
            let record = RecordRef::new(trace, row.source, row.position);
            if let Some(noted) = records.get_mut(&record) {
                *noted = InputRecord {
                    id: row.id,
                    ns: row.ns,
                };
            }
        }
    }
}

struct Run<'a> {
    inputs: &'a Segments<'a, RecordInRow>,
    outputs: &'a Segments<'a, RecordOutRow>,
    options: &'a Options,
    numbers: LinkNumbers,
    links: Links,
    heap: BinaryHeap<Reverse<BySlowness>>,
    outcome: Outcome,
    /// Number of records read by the processed tasks.
    read: u64,
    traces: &'a TaskTraces,
}

/// Ordered by latency.
#[derive(PartialEq)]
struct BySlowness(SlowOutput);

impl Eq for BySlowness {}

impl Ord for BySlowness {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |slow: &SlowOutput| {
            (
                slow.path.ns(),
                Reverse((slow.trace, slow.output, slow.position)),
            )
        };
        key(&self.0).cmp(&key(&other.0))
    }
}

impl PartialOrd for BySlowness {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// A task attempt with outputs at this level.
struct DueTask {
    /// Its index in [`TaskTraces`].
    trace: u32,
    key: TaskKey,
    outputs: Vec<i32>,
    /// Tasks of one group are processed together.
    group: usize,
}

impl Run<'_> {
    fn level(&mut self, levels: &[Vec<u32>], level: u32) -> Result<(), ProvenanceError> {
        let (due, groups) = self.due(levels, level);
        let mut found = self.find(&due, groups)?;
        let mut inputs = self.inputs.groups();
        let mut outputs = self.outputs.groups();
        let mut group = (
            usize::MAX,
            HashMap::<(u32, i32), HashMap<i64, Upstream>>::new(),
        );
        for due in &due {
            if group.0 != due.group {
                group = (due.group, HashMap::new());
                for row in found.rows(due.group)? {
                    let row: Match = row?;
                    let of_source = group.1.entry((row.trace, row.source)).or_default();
                    // A source after several shuffles can have matches in each.
                    of_source
                        .entry(row.position)
                        .and_modify(|before| *before = before.or(row.linked))
                        .or_insert(row.linked);
                }
            }
            let rows = inputs.take(due.key);
            let made = outputs.take(due.key);
            let found = |source| group.1.remove(&(due.trace, source)).unwrap_or_default();
            self.task(due, &rows, &made, found)?;
        }
        Ok(())
    }

    /// Task attempts with outputs at a level, in the order of the tables.
    fn due(&self, levels: &[Vec<u32>], level: u32) -> (Vec<DueTask>, usize) {
        let mut due: Vec<DueTask> = Vec::new();
        for (index, (trace, levels)) in (0..).zip(self.traces.all.iter().zip(levels)) {
            let targets = trace.targets.iter().zip(levels);
            let outputs: Vec<i32> = targets
                .filter(|(_, other)| **other == level)
                .map(|(target, _)| target.output)
                .collect();
            if let Some(target) = trace.targets.first().filter(|_| !outputs.is_empty()) {
                due.push(DueTask {
                    trace: index,
                    key: target.task_key,
                    outputs,
                    group: 0,
                });
            }
        }
        due.sort_by_key(|due| self.traces.order.get(&due.key).copied());
        let read = |due: &DueTask| {
            let sources = &self.traces.all[due.trace as usize].sources;
            let counts = sources.iter().map(|source| source.count.max(0));
            counts.fold(0, i64::saturating_add)
        };
        let all = due.iter().map(read).fold(0, i64::saturating_add);
        let most = (ROWS as i64).max(all / MOST_BUCKETS as i64);
        let (mut group, mut rows) = (0, 0_i64);
        for due in &mut due {
            rows = rows.saturating_add(read(due));
            due.group = group;
            if rows > most {
                (group, rows) = (group + 1, 0);
            }
        }
        (due, group + 1)
    }

    /// Joins the outputs of lower levels with the inputs of this one.
    fn find(&mut self, due: &[DueTask], groups: usize) -> Result<Buckets<Match>, ProvenanceError> {
        let third = self.options.memory / 3;
        let mut found = Buckets::new(groups, third);
        let mut wanted = Buckets::new(self.links.buckets(), third);
        let mut any = false;
        let mut inputs = self.inputs.groups();
        for due in due {
            let trace = &self.traces.all[due.trace as usize];
            let linked = |source: &&unfuse_format::RecordSourceRow| {
                !source.links.is_empty() && due.outputs.contains(&trace.output_of(source))
            };
            if !trace.sources.iter().any(|source| linked(&source)) {
                continue;
            }
            for row in inputs.take(due.key) {
                let source = trace
                    .sources
                    .iter()
                    .find(|source| source.source == row.source);
                let Some(source) = source.filter(linked).filter(|_| row.id != 0) else {
                    continue;
                };
                any = true;
                for link in &source.links {
                    let Some(link) = self.numbers.get(&source.app, link) else {
                        continue;
                    };
                    let row = Lookup {
                        link,
                        id: row.id,
                        group: due.group,
                        trace: due.trace,
                        source: row.source,
                        position: row.position,
                    };
                    wanted.put(bucket_of(row.id, self.links.buckets()), &row)?;
                }
            }
        }
        if any {
            self.links.meet(&mut wanted, &mut found)?;
        }
        Ok(found)
    }

    fn task(
        &mut self,
        due: &DueTask,
        rows: &[RecordInRow],
        made: &[RecordOutRow],
        found: impl FnMut(i32) -> HashMap<i64, Upstream>,
    ) -> Result<(), ProvenanceError> {
        let trace = &self.traces.all[due.trace as usize];
        let records = Records::new(due.trace, trace, rows, found);
        self.outcome.inputs += records.inputs(&due.outputs);
        self.outcome.unlinked += records.unlinked(&due.outputs);
        self.read += records.read(&due.outputs);
        for target in &trace.targets {
            if !due.outputs.contains(&target.output) {
                continue;
            }
            let link = self.numbers.get(&target.app, &target.link);
            let mut merged: BTreeMap<i64, MergedPath> = BTreeMap::new();
            for record in records.made(target.output, made) {
                let OutputRecord {
                    position,
                    key,
                    whole,
                    path,
                } = record;
                match link {
                    None => self.result(SlowOutput {
                        trace: due.trace,
                        output: target.output,
                        position,
                        path,
                    }),
                    Some(_) if target.combined => {
                        merged
                            .entry(key)
                            .and_modify(|values| values.add(&path))
                            .or_insert_with(|| MergedPath::new(path));
                    }
                    Some(link) => {
                        for id in [key, whole].into_iter().filter(|id| *id != 0) {
                            self.links.put(link, id, &path)?;
                        }
                    }
                }
            }
            if let Some(link) = link {
                for (key, values) in merged {
                    self.links.put(link, key, &values.path())?;
                }
            }
        }
        Ok(())
    }

    fn result(&mut self, output: SlowOutput) {
        self.outcome.results += 1;
        self.heap.push(Reverse(BySlowness(output)));
        if self.heap.len() > self.options.top {
            self.heap.pop();
        }
    }
}

impl RecordRef {
    pub(crate) fn new(trace: u32, source: i32, position: i64) -> Self {
        Self {
            trace,
            source,
            position,
        }
    }
}
