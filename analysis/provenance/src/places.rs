//! Where records are, their contents, and the code that processed them.

mod samples;

use std::collections::{BTreeMap, HashMap};

use unfuse_format::{
    Bounds, FormatError, ProfileDir, RecordSourceKind, RecordSourceRow, RecordTextRow,
};

use crate::{InputRecord, RecordRef, SlowOutput, TaskTraces};

/// A record that a task read, with its place for users.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordPlace {
    /// Application id.
    pub app: String,
    /// Stage id.
    pub stage: i32,
    /// Task attempt id.
    pub task: i64,
    /// Partition of the stage.
    pub partition: i32,
    /// `file`, `other`, `shuffle` or `cached`.
    pub kind: RecordSourceKind,
    /// Spark's name of the RDD from which it was read.
    pub rdd: String,
    /// Position in that partition, from 0.
    pub position: i64,
    /// Its file.
    pub file: Option<String>,
    /// Offset of its line in the file, bytes; known for text files.
    pub offset: Option<i64>,
    /// Its row, from 0, after `file_start`; known for other files.
    pub row: Option<i64>,
    /// Offset in the file at which the task began to read, bytes.
    pub file_start: i64,
    /// Time of the task's code for it, ns.
    pub ns: i64,
    /// Its content or the begin of it; kept, if wanted, for the slowest records of a task.
    pub text: Option<String>,
    /// Whether the content was cut.
    pub cut: bool,
    /// When the task processed it, ns since the epoch; known if its content was kept.
    pub busy: Option<(i64, i64)>,
    /// Lines of code that ran meanwhile, each with its share of the samples, the hottest first.
    pub lines: Vec<(String, f64)>,
}

/// Places of records.
#[derive(Debug, Default)]
pub struct Places {
    /// The place of each requested record.
    pub of: BTreeMap<RecordRef, RecordPlace>,
    /// Number of tasks with a Python process.
    pub in_python: usize,
}

/// Kept contents of slow records, read once.
pub struct Texts<'a> {
    dir: &'a ProfileDir,
    traces: &'a TaskTraces,
    /// Rows with the index of their task attempt in `traces`; only for attempts that count.
    rows: Vec<(u32, RecordTextRow)>,
}

impl<'a> Texts<'a> {
    /// Reads the contents.
    ///
    /// # Errors
    /// If the profile cannot be read.
    pub fn read(dir: &'a ProfileDir, traces: &'a TaskTraces) -> Result<Self, FormatError> {
        let indices = traces.indices();
        let rows = dir.read_as::<RecordTextRow, _>(&Bounds::ALL, |rows| {
            let known = |row: RecordTextRow| Some((*indices.get(&row.task_key)?, row));
            rows.into_iter().filter_map(known).collect()
        })?;
        let rows = rows.rows;
        Ok(Self { dir, traces, rows })
    }

    /// The slowest records by their time in the task that read them, the slowest first.
    pub fn slowest(&self, top: usize) -> Vec<RecordRef> {
        let mut slowest: Vec<(i64, RecordRef)> = self
            .rows
            .iter()
            .filter_map(|(trace, text)| {
                let record = RecordRef::new(*trace, text.source, text.position);
                // Records read by another thread have no times.
                self.traces.source(record).filter(|source| source.timed)?;
                Some((text.ns, record))
            })
            .collect();
        slowest.sort_by_key(|(ns, record)| (std::cmp::Reverse(*ns), *record));
        slowest.truncate(top);
        slowest.into_iter().map(|(_, record)| record).collect()
    }

    /// The contents of outputs or their begins, each with whether it was cut. Contents are kept for outputs that took
    /// longest after they were made.
    pub fn contents(&self, of: &[SlowOutput]) -> Vec<Option<(String, bool)>> {
        let mut texts = HashMap::new();
        for (trace, text) in &self.rows {
            if let Some(content) = &text.text {
                texts.insert((*trace, text.output, text.position), (content, text.cut));
            }
        }
        let content = |output: &SlowOutput| {
            let (content, cut) = texts.get(&(output.trace, output.output, output.position))?;
            Some(((*content).clone(), *cut))
        };
        of.iter().map(content).collect()
    }

    /// The places of records.
    ///
    /// # Errors
    /// If the profile cannot be read.
    pub fn places(&self, of: &BTreeMap<RecordRef, InputRecord>) -> Result<Places, FormatError> {
        let mut places: BTreeMap<RecordRef, RecordPlace> = BTreeMap::new();
        for (record, noted) in of {
            if let Some(source) = self.traces.source(*record) {
                places.insert(*record, place(source, *record, *noted));
            }
        }
        for (trace, text) in &self.rows {
            let record = RecordRef::new(*trace, text.source, text.position);
            if let Some(place) = places.get_mut(&record) {
                place.text = text.text.clone();
                place.cut = text.cut;
                place.busy = Some((text.began_ns, text.ended_ns));
            }
        }
        let in_python = samples::look(self.dir, self.traces, &mut places)?;
        Ok(Places {
            of: places,
            in_python,
        })
    }
}

fn place(source: &RecordSourceRow, record: RecordRef, noted: InputRecord) -> RecordPlace {
    let parts = source
        .file_positions
        .iter()
        .take_while(|first| **first <= record.position);
    let part = parts.count().checked_sub(1);
    let first = part.map(|part| source.file_positions[part]);
    let mut place = RecordPlace {
        app: source.app.clone(),
        stage: source.stage,
        task: source.task,
        partition: source.partition,
        kind: source.kind,
        rdd: source.name.clone(),
        position: record.position,
        file: part.and_then(|part| source.files.get(part).cloned()),
        file_start: part
            .and_then(|part| source.file_starts.get(part).copied())
            .unwrap_or(0),
        row: first.map(|first| record.position - first),
        ns: noted.ns,
        ..RecordPlace::default()
    };
    // Offset 0 is the first line of a text file, or unknown; other lines of it have a known offset.
    let begins_line = noted.id > 0 || (place.row == Some(0) && place.file_start == 0);
    let is_text = begins_line && source.lines != Some(false);
    if place.kind == RecordSourceKind::File && is_text && place.rdd.contains("HadoopRDD") {
        place.offset = Some(noted.id);
        place.row = None;
    }
    place
}
