//! Sums the samples of a profile column by column: memory grows with distinct groups, not with rows.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;
use unfuse_format::{
    Bounds, Columns, FormatError, Problem, ProcessRow, ProfileDir, SampleKind, SampleRow, StackId,
    StageAttempt,
};

use super::Stage;
use super::group::{Group, Slice, ThreadKey, Weight};
use super::texts::TextTable;

/// The columns of a group.
const OF_GROUPS: &[&str] = &[
    "app",
    "host",
    "pid",
    "thread",
    "stage",
    "stage_attempt",
    "start_ns",
    "kind",
    "stack",
    "count",
    "weight_ns",
];

/// A source of samples, and the context that they need.
pub(super) struct Source<'a> {
    pub(super) dir: &'a ProfileDir,
    pub(super) processes: &'a [ProcessRow],
    pub(super) stages: &'a HashMap<StageAttempt, Stage>,
    pub(super) by_time: bool,
}

impl Source<'_> {
    /// Sums the samples within bounds by group, sorted. Waits of Spark's threads without a task are left out: they wait
    /// for a task, which is nobody's time.
    pub(super) fn groups(
        &self,
        bounds: &Bounds,
        problems: &mut Vec<Problem>,
    ) -> Result<Vec<(Group, Weight)>, FormatError> {
        let read = self.dir.fold::<SampleRow, Sums>(
            OF_GROUPS,
            bounds,
            Sums::default,
            |sums, columns| {
                columns
                    .iter()
                    .try_for_each(|rows| sums.add(rows, self.processes))
            },
        )?;
        problems.extend(read.problems);
        let sums = read.rows.into_iter().reduce(Sums::merge);
        let mut groups = sums.map_or_else(Vec::new, |sums| self.named(sums));
        groups.par_sort_unstable_by(|(a, _), (b, _)| order(a, b));
        Ok(groups)
    }

    fn named(&self, sums: Sums) -> Vec<(Group, Weight)> {
        let texts = sums.texts.texts;
        let mut groups = Vec::with_capacity(sums.groups.iter().map(|(_, sums)| sums.len()).sum());
        for (key, by_stack) in sums.groups {
            let app = &texts[key.app as usize];
            let attempt = key.stage.zip(key.attempt);
            let query = attempt.and_then(|(stage, attempt)| self.query(app, stage, attempt));
            groups.extend(by_stack.into_iter().map(|(stack, sum)| {
                let group = Group {
                    app: Arc::clone(app),
                    query,
                    stage: key.stage,
                    attempt: key.attempt,
                    thread: Arc::clone(&texts[key.thread as usize]),
                    stack,
                    kind: key.kind,
                };
                (
                    group,
                    Weight::new(key.kind, sum.samples, sum.ns, self.by_time),
                )
            }));
        }
        groups
    }

    /// The query of a stage attempt.
    fn query(&self, app: &str, stage: i32, attempt: i32) -> Option<i64> {
        let stage = self.stages.get(&StageAttempt::new(app, stage, attempt))?;
        stage.execution
    }

    /// The samples within bounds, each with its thread and time.
    pub(super) fn slices(&self, bounds: &Bounds) -> Result<Vec<Slice>, FormatError> {
        let mut texts = TextTable::default();
        let rows = self.dir.read_within::<SampleRow>(bounds)?.rows;
        let slices = rows.into_iter().map(|row| {
            let app = texts.get(&row.app);
            let attempt = row.stage.zip(row.stage_attempt);
            Slice {
                thread: ThreadKey {
                    host: texts.get(&row.host),
                    pid: row.pid,
                    tid: row.tid,
                },
                start_ns: row.start_ns,
                end_ns: row.end_ns,
                weight: Weight::new(row.kind, row.count, row.weight_ns, self.by_time),
                group: Group {
                    query: attempt.and_then(|(stage, attempt)| self.query(&app, stage, attempt)),
                    app,
                    stage: row.stage,
                    attempt: row.stage_attempt,
                    thread: texts.get(&row.thread),
                    stack: row.stack,
                    kind: row.kind,
                },
            }
        });
        Ok(slices.collect())
    }
}

/// Compares numbers first: most pairs differ in them, and texts take longer.
fn order(a: &Group, b: &Group) -> Ordering {
    let key = |group: &Group| (group.query, group.stage, group.attempt);
    key(a).cmp(&key(b)).then_with(|| {
        (&a.app, &a.thread, a.stack, a.kind).cmp(&(&b.app, &b.thread, b.stack, b.kind))
    })
}

/// What the samples of a thread in a stage share, with numbers in place of texts.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    app: u32,
    thread: u32,
    stage: Option<i32>,
    attempt: Option<i32>,
    kind: SampleKind,
}

/// Sums by stack. Rows of a stage mostly follow each other, so its stacks stay in the processor's cache.
type ByStack = HashMap<StackId, Sum, ahash::RandomState>;

#[derive(Default)]
struct Sum {
    samples: u64,
    ns: u64,
}

impl Sum {
    /// Saturates: a damaged row may contain any number.
    fn add(&mut self, samples: u64, ns: u64) {
        self.samples = self.samples.saturating_add(samples);
        self.ns = self.ns.saturating_add(ns);
    }
}

/// Sums of some segments.
#[derive(Default)]
struct Sums {
    texts: TextTable,
    numbers: HashMap<Key, usize, ahash::RandomState>,
    groups: Vec<(Key, ByStack)>,
}

impl Sums {
    fn add(&mut self, rows: &Columns, processes: &[ProcessRow]) -> Result<(), String> {
        let (apps, threads, kinds) = (
            rows.texts("app")?,
            rows.texts("thread")?,
            rows.texts("kind")?,
        );
        let (stages, attempts) = (rows.i32s("stage")?, rows.i32s("stage_attempt")?);
        let stacks = rows.i64s("stack")?;
        let (counts, weights) = (rows.u64s("count")?, rows.u64s("weight_ns")?);
        let hosts = rows.texts("host")?;
        let (pids, starts) = (rows.u32s("pid")?, rows.i64s("start_ns")?);
        let (mut app, mut thread, mut kind) = (0, 0, SampleKind::Cpu);
        let mut last: Option<(Key, usize)> = None;
        for row in 0..rows.rows() {
            let name = apps.get(row);
            if name.is_empty() {
                let host = hosts.get(row);
                let known = application(processes, host, pids.or_zero(row), starts.or_zero(row));
                app = self.texts.number(known);
            } else if !apps.repeats(row) {
                app = self.texts.number(name);
            }
            if !threads.repeats(row) {
                thread = self.texts.number(threads.get(row));
            }
            if !kinds.repeats(row) {
                kind = SampleKind::from(kinds.get(row));
            }
            let stage = stages.get(row);
            let spark = !self.texts.texts[app as usize].is_empty();
            if stage.is_none() && spark && kind == SampleKind::OffCpu {
                continue;
            }
            let key = Key {
                app,
                thread,
                stage,
                attempt: attempts.get(row),
                kind,
            };
            let group = match last {
                Some((known, group)) if known == key => group,
                _ => self.group(key),
            };
            last = Some((key, group));
            let sums = &mut self.groups[group].1;
            let sum = sums.entry(StackId(stacks.or_zero(row))).or_default();
            sum.add(counts.or_zero(row), weights.or_zero(row));
        }
        Ok(())
    }

    /// The index of a key's sums.
    fn group(&mut self, key: Key) -> usize {
        let next = self.groups.len();
        let group = *self.numbers.entry(key).or_insert(next);
        if group == next {
            self.groups.push((key, ByStack::default()));
        }
        group
    }

    fn merge(mut self, other: Self) -> Self {
        let texts = other.texts.texts.iter();
        let numbers: Vec<u32> = texts.map(|text| self.texts.number(text)).collect();
        for (key, sums) in other.groups {
            let group = self.group(Key {
                app: numbers[key.app as usize],
                thread: numbers[key.thread as usize],
                ..key
            });
            let known = &mut self.groups[group].1;
            if known.is_empty() {
                *known = sums;
                continue;
            }
            for (stack, sum) in sums {
                known.entry(stack).or_default().add(sum.samples, sum.ns);
            }
        }
        self
    }
}

/// The application of a process. Samples taken before the JVM knew its id belong to it as well.
fn application<'a>(processes: &'a [ProcessRow], host: &str, pid: u32, start_ns: i64) -> &'a str {
    let process = processes.iter().find(|process| {
        (process.pid, process.host.as_str()) == (pid, host)
            && (process.start_ns..=process.end_ns).contains(&start_ns)
    });
    process.map_or("", |process| &process.app)
}
