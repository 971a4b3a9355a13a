//! Where records are, what is in them, and which code was busy with them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use unfuse_format::{
    FormatError, Frame, ProfileDir, RecordInRow, RecordSourceRow, RecordTextRow, SampleRow,
    StackRow,
};

use crate::stream::Groups;
use crate::{RecordRef, SlowOutput, Taps};

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
    pub kind: String,
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

/// What was kept of slow records, read once.
pub struct Texts<'a> {
    dir: &'a ProfileDir,
    taps: &'a Taps,
    /// With the place of the task attempt; only of those that count.
    rows: Vec<(u32, RecordTextRow)>,
}

impl<'a> Texts<'a> {
    /// Reads them.
    ///
    /// # Errors
    /// If the profile cannot be read.
    pub fn read(dir: &'a ProfileDir, taps: &'a Taps) -> Result<Self, FormatError> {
        let places = taps.places();
        let rows = dir.read_as::<RecordTextRow, _>(|rows| {
            let known = |row: RecordTextRow| Some((*places.get(&row.tap)?, row));
            rows.into_iter().filter_map(known).collect()
        })?;
        let rows = rows.rows;
        Ok(Self { dir, taps, rows })
    }

    /// The slowest records that tasks read, by the time they took there, the slowest first.
    pub fn slowest(&self, top: usize) -> Vec<RecordRef> {
        let mut slowest: Vec<(i64, RecordRef)> = self
            .rows
            .iter()
            .filter_map(|(tap, text)| {
                let at = RecordRef::new(*tap, text.source, text.position);
                // What another thread read has no times.
                self.taps.source(at).filter(|source| source.timed)?;
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
        for (tap, text) in &self.rows {
            if let Some(content) = &text.text {
                texts.insert((*tap, text.output, text.position), (content, text.cut));
            }
        }
        let content = |output: &SlowOutput| {
            let (content, cut) = texts.get(&(output.tap, output.output, output.position))?;
            Some(((*content).clone(), *cut))
        };
        of.iter().map(content).collect()
    }

    /// What is known of some records.
    ///
    /// # Errors
    /// If the profile cannot be read.
    pub fn places(
        &self,
        of: &BTreeSet<RecordRef>,
    ) -> Result<BTreeMap<RecordRef, RecordPlace>, FormatError> {
        let mut places: BTreeMap<RecordRef, RecordPlace> = BTreeMap::new();
        for at in of {
            if let Some(source) = self.taps.source(*at) {
                places.insert(*at, place(source, *at));
            }
        }
        rows(self.dir, self.taps, &mut places)?;
        for (tap, text) in &self.rows {
            let at = RecordRef::new(*tap, text.source, text.position);
            if let Some(place) = places.get_mut(&at) {
                place.text = text.text.clone();
                place.cut = text.cut;
                place.busy = Some((text.began_ns, text.ended_ns));
            }
        }
        lines(self.dir, &mut places)?;
        Ok(places)
    }
}

fn place(source: &RecordSourceRow, at: RecordRef) -> RecordPlace {
    let parts = source
        .file_positions
        .iter()
        .take_while(|first| **first <= at.position);
    let part = parts.count().checked_sub(1);
    let first = part.map(|part| source.file_positions[part]);
    RecordPlace {
        app: source.app.clone(),
        stage: source.stage,
        task: source.task,
        partition: source.partition,
        kind: source.kind.clone(),
        rdd: source.name.clone(),
        position: at.position,
        file: part.and_then(|part| source.files.get(part).cloned()),
        file_start: part
            .and_then(|part| source.file_starts.get(part).copied())
            .unwrap_or(0),
        row: first.map(|first| at.position - first),
        ..RecordPlace::default()
    }
}

/// Times, and offsets in text files.
fn rows(
    dir: &ProfileDir,
    taps: &Taps,
    places: &mut BTreeMap<RecordRef, RecordPlace>,
) -> Result<(), FormatError> {
    let mut numbers: Vec<(usize, i64, u32)> = places
        .keys()
        .filter_map(|at| {
            let number = taps.source(*at)?.tap;
            Some((*taps.order.get(&number)?, number, at.tap))
        })
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut inputs = Groups::<RecordInRow>::of(dir, &taps.order)?;
    for (_, number, tap) in numbers {
        for row in inputs.take(number) {
            let at = RecordRef::new(tap, row.source, row.position);
            let Some(place) = places.get_mut(&at) else {
                continue;
            };
            place.ns = row.ns;
            // The first line of a file is at 0, as what is not known; others of it are not.
            let is_text = row.id > 0 || (place.row == Some(0) && place.file_start == 0);
            if place.kind == "file" && is_text && place.rdd.contains("HadoopRDD") {
                place.offset = Some(row.id);
                place.row = None;
            }
        }
    }
    Ok(())
}

/// Lines that a task's samples were at while it was busy with a record.
fn lines(
    dir: &ProfileDir,
    places: &mut BTreeMap<RecordRef, RecordPlace>,
) -> Result<(), FormatError> {
    let tasks: HashSet<i64> = places
        .values()
        .filter(|place| place.busy.is_some())
        .map(|place| place.task)
        .collect();
    let samples = dir.read_as::<SampleRow, _>(|rows| {
        let of_tasks = |row: &SampleRow| {
            row.kind == "cpu" && row.task.is_some_and(|task| tasks.contains(&task))
        };
        rows.into_iter().filter(of_tasks).collect()
    })?;
    let stacks: HashSet<i64> = samples.rows.iter().map(|row| row.stack).collect();
    let names = dir.read_as::<StackRow, _>(|rows| {
        let wanted = rows.into_iter().filter(|row| stacks.contains(&row.stack));
        wanted
            .map(|row| (row.stack, hot_line(&row.frames)))
            .collect()
    })?;
    let names: HashMap<i64, Option<String>> = names.rows.into_iter().collect();
    for place in places.values_mut() {
        let Some((from, to)) = place.busy else {
            continue;
        };
        let mut weights: BTreeMap<&str, f64> = BTreeMap::new();
        for row in samples
            .rows
            .iter()
            .filter(|row| row.task == Some(place.task) && row.app == place.app)
        {
            // Samples with one stack are summed up over a window.
            let window = (row.end_ns - row.start_ns).max(1) as f64;
            let both = row.end_ns.max(row.start_ns + 1).min(to) - row.start_ns.max(from);
            if let (true, Some(Some(name))) = (both > 0, names.get(&row.stack)) {
                let weight = row.weight_ns as f64 * both as f64 / window;
                *weights.entry(name).or_default() += weight;
            }
        }
        let all: f64 = weights.values().sum();
        let mut lines: Vec<(String, f64)> = weights
            .into_iter()
            .map(|(name, weight)| (name.to_owned(), weight / all))
            .collect();
        lines.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        place.lines = lines;
    }
    Ok(())
}

/// Whose code a person would look at: that of the innermost frame which is neither the JDK's nor Scala's nor Spark's nor ours, or, where there is
/// none, the innermost.
fn hot_line(frames: &[Arc<Frame>]) -> Option<String> {
    const LIBRARIES: [&str; 8] = [
        "io.unfuse.",
        "java.",
        "javax.",
        "jdk.",
        "sun.",
        "scala.",
        "org.apache.spark.",
        "com.sun.",
    ];
    let is_theirs = |frame: &&Arc<Frame>| {
        !frame.class.is_empty()
            && !LIBRARIES
                .iter()
                .any(|library| frame.class.starts_with(library))
    };
    let innermost = frames.iter().rev();
    let frame = innermost
        .clone()
        .find(is_theirs)
        .or(innermost.clone().next())?;
    let name = match frame.class.as_str() {
        "" => frame.method.clone(),
        class => format!("{class}.{}", frame.method),
    };
    Some(match (frame.file.as_str(), frame.line) {
        ("", _) => name,
        (file, line) if line > 0 => format!("{name} ({file}:{line})"),
        (file, _) => format!("{name} ({file})"),
    })
}
