//! Where records are, what is in them, and which code processed them.

mod samples;

use std::collections::{BTreeMap, HashMap};

use unfuse_format::{
    Bounds, FormatError, ProfileDir, RecordSourceKind, RecordSourceRow, RecordTextRow,
};

use crate::{InputRecord, RecordRef, SlowOutput, TaskTraces};

/// A record that a task read, as a person finds it again.
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
    /// How Spark prints the RDD it was read from.
    pub rdd: String,
    /// Position in that partition, from 0.
    pub position: i64,
    /// The file it is in.
    pub file: Option<String>,
    /// Where in the file its line begins, bytes; known of text files.
    pub offset: Option<i64>,
    /// Which row it is, from 0, behind `file_start`; known of other files.
    pub row: Option<i64>,
    /// Where in the file the task began to read, bytes.
    pub file_start: i64,
    /// Time of the task's code because of it, ns.
    pub ns: i64,
    /// Its content, or the beginning; kept, unless that was not wanted, of the slowest ones of a task.
    pub text: Option<String>,
    /// Whether there is more content.
    pub cut: bool,
    /// When the task was busy with it, ns since the epoch; known of those whose content was kept.
    pub busy: Option<(i64, i64)>,
    /// Lines of code that ran meanwhile, each with its share of the samples, the hottest first.
    pub lines: Vec<(String, f64)>,
}

/// What is known of some records.
#[derive(Debug, Default)]
pub struct Places {
    /// Each record that was asked for.
    pub of: BTreeMap<RecordRef, RecordPlace>,
    /// Tasks that had a Python process work for them.
    pub in_python: usize,
}

/// What was kept of slow records, read once.
pub struct Texts<'a> {
    dir: &'a ProfileDir,
    traces: &'a TaskTraces,
    /// Each with the index of its task attempt in `traces`; only those of attempts that count.
    rows: Vec<(u32, RecordTextRow)>,
}

impl<'a> Texts<'a> {
    /// Reads them.
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

    /// The slowest records that tasks read, by the time they took there, the slowest first.
    pub fn slowest(&self, top: usize) -> Vec<RecordRef> {
        let mut slowest: Vec<(i64, RecordRef)> = self
            .rows
            .iter()
            .filter_map(|(trace, text)| {
                let at = RecordRef::new(*trace, text.source, text.position);
                // What another thread read has no times.
                self.traces.source(at).filter(|source| source.timed)?;
                Some((text.ns, at))
            })
            .collect();
        slowest.sort_by_key(|(ns, at)| (std::cmp::Reverse(*ns), *at));
        slowest.truncate(top);
        slowest.into_iter().map(|(_, at)| at).collect()
    }

    /// The content of outputs, or the beginning, each with whether there is more; kept of those that took longest after they were made.
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

    /// What is known of some records.
    ///
    /// # Errors
    /// If the profile cannot be read.
    pub fn places(&self, of: &BTreeMap<RecordRef, InputRecord>) -> Result<Places, FormatError> {
        let mut places: BTreeMap<RecordRef, RecordPlace> = BTreeMap::new();
        for (at, noted) in of {
            if let Some(source) = self.traces.source(*at) {
                places.insert(*at, place(source, *at, *noted));
            }
        }
        for (trace, text) in &self.rows {
            let at = RecordRef::new(*trace, text.source, text.position);
            if let Some(place) = places.get_mut(&at) {
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

fn place(source: &RecordSourceRow, at: RecordRef, noted: InputRecord) -> RecordPlace {
    let parts = source
        .file_positions
        .iter()
        .take_while(|first| **first <= at.position);
    let part = parts.count().checked_sub(1);
    let first = part.map(|part| source.file_positions[part]);
    let mut place = RecordPlace {
        app: source.app.clone(),
        stage: source.stage,
        task: source.task,
        partition: source.partition,
        kind: source.kind,
        rdd: source.name.clone(),
        position: at.position,
        file: part.and_then(|part| source.files.get(part).cloned()),
        file_start: part
            .and_then(|part| source.file_starts.get(part).copied())
            .unwrap_or(0),
        row: first.map(|first| at.position - first),
        ns: noted.ns,
        ..RecordPlace::default()
    };
    // The first line of a file is at 0, as what is not known; others of it are not.
    let begins_line = noted.id > 0 || (place.row == Some(0) && place.file_start == 0);
    let is_text = begins_line && source.lines != Some(false);
    if place.kind == RecordSourceKind::File && is_text && place.rdd.contains("HadoopRDD") {
        place.offset = Some(noted.id);
        place.row = None;
    }
    place
}
