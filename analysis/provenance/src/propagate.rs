//! From the inputs of the program to its results, one level of shuffles and caches after the other.

mod links;
mod task;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use unfuse_format::{ProfileDir, RecordInRow, RecordOutRow};

use crate::buckets::{Buckets, bucket_of};
use crate::reach::Merging;
use crate::stream::Segments;
use crate::taps::LinkNumbers;
use crate::{ProvenanceError, Reach, RecordRef, Taps};
use links::{Found, Linked, Links, Wanted};
use task::{Made, Records};

/// What to look for, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many of the slowest outputs to tell.
    pub top: usize,
    /// Records to look up besides those that the slowest outputs name.
    pub records: Vec<RecordRef>,
    /// Bytes that intermediate results may have in memory, about; more go to files.
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
    /// The task attempt that made it, by its place in [`Taps`].
    pub tap: u32,
    /// The output of the task.
    pub output: i32,
    /// Its position there.
    pub position: i64,
    /// The slowest way to it.
    pub reach: Reach,
}

/// What a task noted of a record as it read it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Noted {
    /// What it is told by; of text files the offset of its line, bytes.
    pub id: i64,
    /// Time of the task's code because of it, ns.
    pub ns: i64,
}

/// What came of it.
#[derive(Debug, Default, PartialEq)]
pub struct Outcome {
    /// The slowest outputs, the slowest first.
    pub slowest: Vec<SlowOutput>,
    /// Records of all results.
    pub results: u64,
    /// Records that inputs of the program had.
    pub inputs: u64,
    /// Records behind a shuffle or a cache of which it is not known who made them.
    pub unlinked: u64,
    /// Records that tasks read and that are not in the tables.
    pub missing: u64,
    /// The records that were asked for, and those that the slowest outputs name.
    pub records: BTreeMap<RecordRef, Noted>,
    /// Segments that could not be read.
    pub damaged: usize,
}

impl Outcome {
    /// The records to look up, nothing noted yet.
    pub(crate) fn wanted(slowest: &[SlowOutput], options: &Options) -> BTreeMap<RecordRef, Noted> {
        let named = slowest
            .iter()
            .flat_map(|slow| [slow.reach.root, slow.reach.peak]);
        let wanted = named.chain(options.records.iter().copied());
        wanted.map(|at| (at, Noted::default())).collect()
    }
}

/// Rows of one bucket or group, about.
const ROWS: usize = 300_000;
/// Each is an open file where there is much.
const MOST_BUCKETS: usize = 128;

/// Follows records from inputs to results.
///
/// # Errors
/// If the profile cannot be read, or there is no room for intermediate results.
pub fn propagate(
    dir: &ProfileDir,
    taps: &Taps,
    options: &Options,
) -> Result<Outcome, ProvenanceError> {
    let levels = taps.levels();
    let last = levels.iter().flatten().max().copied().unwrap_or(0);
    let rows: i64 = taps
        .all
        .iter()
        .flat_map(|tap| &tap.targets)
        .fold(0, |sum: i64, row| sum.saturating_add(row.count.max(0)));
    let buckets = (usize::try_from(rows).unwrap_or(0) / ROWS + 1).min(MOST_BUCKETS);
    let inputs = Segments::of(dir, &taps.order)?;
    let outputs = Segments::of(dir, &taps.order)?;
    let mut run = Run {
        inputs: &inputs,
        outputs: &outputs,
        options,
        numbers: LinkNumbers::of(taps),
        links: Links::new(buckets, options.memory / 3),
        heap: BinaryHeap::new(),
        outcome: Outcome::default(),
        read: 0,
        taps,
    };
    for level in 0..=last {
        run.level(&levels, level)?;
    }
    let mut outcome = run.outcome;
    let mut slowest: Vec<BySlowness> = run.heap.into_iter().map(|Reverse(slow)| slow).collect();
    slowest.sort_by(|a, b| b.cmp(a));
    outcome.slowest = slowest.into_iter().map(|slow| slow.0).collect();
    outcome.records = Outcome::wanted(&outcome.slowest, options);
    look_up(&inputs, taps, &mut outcome.records);
    outcome.damaged = inputs.damaged() + outputs.damaged();
    outcome.missing = taps.records().saturating_sub(run.read);
    Ok(outcome)
}

/// What was noted of records.
fn look_up(inputs: &Segments<RecordInRow>, taps: &Taps, records: &mut BTreeMap<RecordRef, Noted>) {
    let mut numbers: Vec<(usize, i64, u32)> = records
        .keys()
        .filter_map(|at| {
            let number = taps.number(*at)?;
            Some((*taps.order.get(&number)?, number, at.tap))
        })
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut inputs = inputs.groups();
    for (_, number, tap) in numbers {
        for row in inputs.take(number) {
            let at = RecordRef::new(tap, row.source, row.position);
            if let Some(noted) = records.get_mut(&at) {
                *noted = Noted {
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
    /// Records of tasks that were looked at.
    read: u64,
    taps: &'a Taps,
}

/// Ordered by how slow it is.
#[derive(PartialEq)]
struct BySlowness(SlowOutput);

impl Eq for BySlowness {}

impl Ord for BySlowness {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |slow: &SlowOutput| {
            (
                slow.reach.ns(),
                Reverse((slow.tap, slow.output, slow.position)),
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

/// A task attempt, and which of its outputs are made at this level.
struct Due {
    place: u32,
    number: i64,
    outputs: Vec<i32>,
    /// Tasks of one group are looked at together.
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
            HashMap::<(u32, i32), HashMap<i64, Linked>>::new(),
        );
        for due in &due {
            if group.0 != due.group {
                group = (due.group, HashMap::new());
                for row in found.rows(due.group)? {
                    let row: Found = row?;
                    let of_source = group.1.entry((row.place, row.source)).or_default();
                    // Of a source of several shuffles, each may have something.
                    of_source
                        .entry(row.position)
                        .and_modify(|before| *before = before.or(row.linked))
                        .or_insert(row.linked);
                }
            }
            let rows = inputs.take(due.number);
            let made = outputs.take(due.number);
            let found = |source| group.1.remove(&(due.place, source)).unwrap_or_default();
            self.task(due, &rows, &made, found)?;
        }
        Ok(())
    }

    /// Task attempts with outputs at a level, in the order of the tables.
    fn due(&self, levels: &[Vec<u32>], level: u32) -> (Vec<Due>, usize) {
        let mut due: Vec<Due> = Vec::new();
        for (place, (tap, levels)) in (0..).zip(self.taps.all.iter().zip(levels)) {
            let targets = tap.targets.iter().zip(levels);
            let outputs: Vec<i32> = targets
                .filter(|(_, at)| **at == level)
                .map(|(target, _)| target.output)
                .collect();
            if let Some(target) = tap.targets.first().filter(|_| !outputs.is_empty()) {
                due.push(Due {
                    place,
                    number: target.tap,
                    outputs,
                    group: 0,
                });
            }
        }
        due.sort_by_key(|due| self.taps.order.get(&due.number).copied());
        let read = |due: &Due| {
            let sources = &self.taps.all[due.place as usize].sources;
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

    /// What was made at lower levels and is read at this one.
    fn find(&mut self, due: &[Due], groups: usize) -> Result<Buckets<Found>, ProvenanceError> {
        let third = self.options.memory / 3;
        let mut found = Buckets::new(groups, third);
        let mut wanted = Buckets::new(self.links.buckets(), third);
        let mut any = false;
        let mut inputs = self.inputs.groups();
        for due in due {
            let tap = &self.taps.all[due.place as usize];
            let linked = |source: &&unfuse_format::RecordSourceRow| {
                !source.links.is_empty() && due.outputs.contains(&tap.output_of(source))
            };
            if !tap.sources.iter().any(|source| linked(&source)) {
                continue;
            }
            for row in inputs.take(due.number) {
                let source = tap
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
                    let row = Wanted {
                        link,
                        id: row.id,
                        group: due.group,
                        place: due.place,
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
        due: &Due,
        rows: &[RecordInRow],
        made: &[RecordOutRow],
        found: impl FnMut(i32) -> HashMap<i64, Linked>,
    ) -> Result<(), ProvenanceError> {
        let tap = &self.taps.all[due.place as usize];
        let records = Records::of(due.place, tap, rows, found);
        self.outcome.inputs += records.inputs(&due.outputs);
        self.outcome.unlinked += records.unlinked(&due.outputs);
        self.read += records.read(&due.outputs);
        for target in &tap.targets {
            if !due.outputs.contains(&target.output) {
                continue;
            }
            let link = self.numbers.get(&target.app, &target.link);
            let mut merged: BTreeMap<i64, Merging> = BTreeMap::new();
            for record in records.made(target.output, made) {
                let Made {
                    position,
                    key,
                    whole,
                    reach,
                } = record;
                match link {
                    None => self.result(SlowOutput {
                        tap: due.place,
                        output: target.output,
                        position,
                        reach,
                    }),
                    Some(_) if target.combined => {
                        merged
                            .entry(key)
                            .and_modify(|values| values.add(&reach))
                            .or_insert_with(|| Merging::of(reach));
                    }
                    Some(link) => {
                        for id in [key, whole].into_iter().filter(|id| *id != 0) {
                            self.links.put(link, id, &reach)?;
                        }
                    }
                }
            }
            if let Some(link) = link {
                for (key, values) in merged {
                    self.links.put(link, key, &values.reach())?;
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
    pub(crate) fn new(tap: u32, source: i32, position: i64) -> Self {
        Self {
            tap,
            source,
            position,
        }
    }
}
