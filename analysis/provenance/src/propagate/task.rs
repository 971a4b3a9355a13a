//! Propagates records through one task attempt.

use std::collections::HashMap;

use unfuse_format::{RecordInRow, RecordOutRow, RecordSourceKind, RecordSourceRow};

use super::links::Upstream;
use crate::{RecordPath, RecordRef, SEVERAL, TaskTrace};

/// The records that a task read, each with the slowest path through this task.
pub(super) struct Records<'a> {
    sources: HashMap<i32, Source<'a>>,
    trace: &'a TaskTrace,
}

struct Source<'a> {
    row: &'a RecordSourceRow,
    /// By position: the path to it, if there is one, and its latency here.
    records: Vec<Record>,
    unlinked: u64,
}

struct Record {
    at: RecordRef,
    before: Option<RecordPath>,
    /// Time of functions, ns.
    ns: i64,
    /// Its part of the shuffle's latency, ns.
    shuffle_ns: i64,
}

impl Record {
    fn path(&self) -> RecordPath {
        self.path_with(self.ns, 1)
    }

    /// The path to one of `several` outputs of it, which took `ns`; they share the shuffle's latency.
    fn path_with(&self, ns: i64, several: i64) -> RecordPath {
        let own = ns.saturating_add(self.shuffle_ns / several.max(1));
        match &self.before {
            Some(before) => before.then(self.at, own),
            None => RecordPath::from_input(self.at, own),
        }
    }
}

/// A record that a task made.
pub(super) struct OutputRecord {
    pub(super) position: i64,
    pub(super) key: i64,
    pub(super) whole: i64,
    pub(super) path: RecordPath,
}

impl<'a> Records<'a> {
    pub(super) fn new(
        index: u32,
        trace: &'a TaskTrace,
        rows: &[RecordInRow],
        mut found: impl FnMut(i32) -> HashMap<i64, Upstream>,
    ) -> Self {
        let mut of_source: HashMap<i32, Vec<&RecordInRow>> = HashMap::new();
        for row in rows {
            of_source.entry(row.source).or_default().push(row);
        }
        let mut sources: HashMap<i32, Source> = HashMap::new();
        for row in &trace.sources {
            let rows = of_source.remove(&row.source).unwrap_or_default();
            let source = Source::new(index, row, &rows, &found(row.source));
            sources.insert(row.source, source);
        }
        Self { sources, trace }
    }

    fn into(&self, outputs: &[i32]) -> impl Iterator<Item = &Source<'a>> {
        self.sources
            .values()
            .filter(|source| outputs.contains(&self.trace.output_of(source.row)))
    }

    /// Number of the program's inputs that go into some outputs.
    pub(super) fn inputs(&self, outputs: &[i32]) -> u64 {
        let sources = self.into(outputs).filter(|s| s.row.links.is_empty());
        sources.map(Source::count).sum()
    }

    /// Number of records that go into some outputs.
    pub(super) fn read(&self, outputs: &[i32]) -> u64 {
        self.into(outputs).map(Source::count).sum()
    }

    pub(super) fn unlinked(&self, outputs: &[i32]) -> u64 {
        self.into(outputs).map(|source| source.unlinked).sum()
    }

    /// The records of an output.
    pub(super) fn made(&self, output: i32, rows: &[RecordOutRow]) -> Vec<OutputRecord> {
        let rows: Vec<&RecordOutRow> = rows.iter().filter(|row| row.output == output).collect();
        let mut made: Vec<OutputRecord> = Vec::new();
        // The last summed range of each source: outputs of many records share it.
        let mut known: HashMap<i32, (i64, i64, RecordPath)> = HashMap::new();
        let shared = shared(&rows);
        for row in &rows {
            let Some(source) = self.sources.get(&row.source) else {
                continue;
            };
            let several = shared.get(&(row.source, row.first));
            let path = match (known.get(&row.source), several) {
                (_, Some(several)) => source.one_of(row, *several),
                (Some((first, count, path)), None)
                    if (*first, *count) == (row.first, row.count) =>
                {
                    Some(*path)
                }
                _ => source.range(row),
            };
            let Some(path) = path else { continue };
            known.insert(row.source, (row.first, row.count, path));
            let path = match row.count {
                1 => path,
                _ => source.by_itself(&path, row.alone_ns.max(0)),
            };
            match made.last_mut() {
                Some(last) if last.position == row.position => {
                    last.path = last.path.or(&path);
                }
                _ => made.push(OutputRecord {
                    position: row.position,
                    key: row.key,
                    whole: row.whole,
                    path,
                }),
            }
        }
        made
    }
}

/// For each record that became several, their number.
fn shared(rows: &[&RecordOutRow]) -> HashMap<(i32, i64), i64> {
    let mut shared = HashMap::new();
    for pair in rows.windows(2) {
        if let [a, b] = pair
            && (a.count, b.count) == (1, 1)
            && (a.source, a.first) == (b.source, b.first)
        {
            *shared.entry((a.source, a.first)).or_insert(1) += 1;
        }
    }
    shared
}

impl<'a> Source<'a> {
    fn new(
        trace: u32,
        row: &'a RecordSourceRow,
        rows: &[&RecordInRow],
        found: &HashMap<i64, Upstream>,
    ) -> Self {
        let mut records: Vec<Record> = Vec::new();
        let (mut unlinked, mut read) = (0, 0);
        let mut counts = Vec::new();
        for record in rows {
            let linked = found.get(&record.position);
            if linked.is_none() && !row.links.is_empty() {
                unlinked += 1;
            }
            let count = linked.map_or(1, |linked| linked.count);
            counts.push(count);
            read += count;
            records.push(Record {
                at: RecordRef::new(trace, row.source, record.position),
                before: linked.map(|linked| linked.path),
                ns: record.ns.max(0),
                shuffle_ns: 0,
            });
        }
        if row.kind == RecordSourceKind::Shuffle && read > 0 {
            for (record, count) in records.iter_mut().zip(counts) {
                let part = row.read_ns.max(0) as f64 * count as f64 / read as f64;
                record.shuffle_ns = part.round() as i64;
            }
        }
        Self {
            row,
            records,
            unlinked,
        }
    }

    fn count(&self) -> u64 {
        self.records.len() as u64
    }

    /// One of several outputs of the same records, with its own time.
    fn by_itself(&self, of_range: &RecordPath, ns: i64) -> RecordPath {
        let record = RecordRef {
            position: SEVERAL,
            ..self.records[0].at
        };
        of_range.by_itself(record, ns)
    }

    /// One of several outputs of a record: its time is that since the previous one.
    fn one_of(&self, row: &RecordOutRow, several: i64) -> Option<RecordPath> {
        let [record] = self.in_range(row)? else {
            return None;
        };
        Some(record.path_with(row.ns.max(0), several))
    }

    /// The records of a range, if all exist; damaged profiles have gaps.
    fn in_range(&self, row: &RecordOutRow) -> Option<&[Record]> {
        let end = row.first.checked_add(row.count)?;
        let before = |position: i64| {
            self.records
                .partition_point(|record| record.at.position < position)
        };
        let range = self.records.get(before(row.first)..before(end))?;
        (range.len() as i64 == row.count).then_some(range)
    }

    /// The slowest path through the records of a range. Reading them has no time of an output of all of them: it would
    /// count once for each of these outputs.
    fn range(&self, row: &RecordOutRow) -> Option<RecordPath> {
        match self.in_range(row)? {
            [one] => Some(one.path()),
            records => {
                let slowest = records.iter().map(Record::path).reduce(|a, b| a.or(&b))?;
                Some(RecordPath {
                    base_ns: slowest.ns(),
                    own_ns: 0,
                    ..slowest
                })
            }
        }
    }
}
