//! The slow records of a run, if records were traced.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use ts_rs::TS;
use unfuse_files::open_given;
use unfuse_format::{ProfileDir, RecordSourceRow, RecordTargetRow, counted};
use unfuse_provenance::{
    Options, Outcome, ProvenanceError, RecordPlace, RecordRef, SlowOutput, TaskTraces, Texts,
    propagate,
};
use unfuse_skew::{Run, Task};

use super::Propagate;
use crate::ReportError;

/// Longest content that is read from a file, bytes.
const LONGEST: u64 = 300;
/// Lines of code of a record.
const LINES: usize = 3;

/// A note on records that pass through a Python process.
const READ_AHEAD: &str =
    "Python reads ahead, so a result may be attributed to records read shortly after its own input";
/// Number of slowest results that are traced if only those of one stage are wanted: the stage is known only afterwards.
const OF_ONE_STAGE: usize = 1000;

/// Selects records.
pub struct RecordFilter<'a> {
    /// Only records of this application.
    pub app: Option<&'a str>,
    /// Only records of this stage.
    pub stage: Option<i32>,
    /// Maximum number of records, and of results.
    pub top: usize,
}

impl RecordFilter<'_> {
    fn is_of(&self, stage: i32) -> bool {
        self.stage.is_none_or(|only| only == stage)
    }
}

/// Notes on doubtful data.
type Notes = Vec<String>;

/// The analysis of a run's records.
#[derive(Debug, Clone, Serialize, TS, JsonSchema)]
pub struct Records {
    /// Number of records in the program's inputs.
    pub(super) inputs: u64,
    /// Number of records in its results.
    pub(super) results: u64,
    /// Number of task attempts that were traced and count.
    pub(super) tasks: usize,
    /// Records that took longest in one place, the slowest first.
    pub(super) slow_records: Vec<SlowRecord>,
    /// Results with the longest path from an input, the slowest first.
    pub(super) slow_results: Vec<SlowResult>,
}

/// A record that was slow in one place.
#[derive(Debug, Clone, Serialize, TS, JsonSchema)]
pub(super) struct SlowRecord {
    pub(super) at: Place,
    /// Time of its task's code for this record, s.
    pub(super) seconds: f64,
    /// Part of its task's run time, 0 to 1.
    pub(super) share_of_task: Option<f64>,
    /// How much sooner its stage would have ended without the record, on the same slots, s; none if the task does not
    /// count.
    pub(super) saves_seconds: Option<f64>,
    /// Code that ran for it, the hottest first.
    pub(super) lines: Vec<Line>,
}

/// A line of code.
#[derive(Debug, Clone, Serialize, TS, JsonSchema)]
#[ts(rename = "RecordLine")]
pub(super) struct Line {
    pub(super) line: String,
    pub(super) share: f64,
}

/// A result and the slowest path to it.
#[derive(Debug, Clone, Serialize, TS, JsonSchema)]
pub(super) struct SlowResult {
    pub(super) app: String,
    pub(super) stage: i32,
    pub(super) partition: i32,
    pub(super) position: i64,
    pub(super) content: Option<String>,
    pub(super) cut: bool,
    /// End-to-end latency, s.
    pub(super) seconds: f64,
    /// Number of inputs that it came from, at most: an input on several paths counts several times.
    pub(super) inputs: u64,
    /// The input at which the slowest path begins, with its time there.
    pub(super) expensive_input: Place,
    pub(super) expensive_input_seconds: f64,
    /// The slowest step of the path.
    pub(super) slowest_step: Place,
    pub(super) slowest_step_seconds: f64,
}

/// The place of a record.
#[derive(Debug, Clone, Default, Serialize, TS, JsonSchema)]
#[ts(rename = "RecordPlace")]
pub(super) struct Place {
    pub(super) app: String,
    pub(super) stage: i32,
    pub(super) task: i64,
    pub(super) partition: i32,
    /// `file`, `other`, `shuffle` or `cached`.
    pub(super) kind: &'static str,
    pub(super) rdd: String,
    pub(super) position: i64,
    pub(super) file: Option<String>,
    /// Offset of its line in the file, bytes.
    pub(super) offset: Option<i64>,
    /// Row in the part of the file that begins at `file_start` bytes, from 0.
    pub(super) row: Option<i64>,
    pub(super) file_start: i64,
    pub(super) content: Option<String>,
    pub(super) cut: bool,
}

impl Place {
    fn new(place: &RecordPlace) -> Self {
        Self {
            app: place.app.clone(),
            stage: place.stage,
            task: place.task,
            partition: place.partition,
            kind: place.kind.as_str(),
            rdd: place.rdd.clone(),
            position: place.position,
            file: place.file.clone(),
            offset: place.offset,
            row: place.row,
            file_start: place.file_start,
            content: place.text.clone(),
            cut: place.cut,
        }
    }

    /// Reads the record from its file; the error is a message for the user.
    fn read_file(&mut self) -> Result<(), String> {
        let Some((path, offset)) = self.local_file().zip(self.offset) else {
            return Ok(());
        };
        let failed = |e: io::Error| format!("{} is not read: {e}", path.display());
        let (line, cut) = line_at(&path, offset).map_err(failed)?;
        self.content = Some(line);
        self.cut = cut;
        Ok(())
    }

    /// The file, if it is a plain text file of this machine.
    fn local_file(&self) -> Option<PathBuf> {
        let path = self.file.as_deref()?.strip_prefix("file:")?;
        let path = Path::new(path.strip_prefix("//").unwrap_or(path));
        let packed = ["gz", "bz2", "zst", "lz4", "snappy", "xz", "deflate"];
        let extension = path
            .extension()
            .and_then(|e| e.to_str())
            .unwrap_or_default();
        (!packed.contains(&extension)).then(|| path.to_owned())
    }
}

/// The line that begins at an offset of a file, and whether it was cut.
fn line_at(path: &Path, offset: i64) -> io::Result<(String, bool)> {
    let offset = u64::try_from(offset).map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "its record has no position in it",
        )
    })?;
    let mut file = open_given(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut line = Vec::new();
    let mut reader = BufReader::new(file.take(LONGEST + 1));
    reader.read_until(b'\n', &mut line)?;
    let whole = line.ends_with(b"\n") || line.len() as u64 <= LONGEST;
    let text = String::from_utf8_lossy(&line);
    Ok((text.trim_end_matches(['\n', '\r']).to_owned(), !whole))
}

impl Records {
    /// Selects the slow records of some stages, by application and number. The totals stay those of all.
    pub(super) fn of_stages(&self, which: impl Fn(&str, i32) -> bool) -> Self {
        let slow_records = self.slow_records.iter();
        let slow_results = self.slow_results.iter();
        Self {
            slow_records: slow_records
                .filter(|record| which(&record.at.app, record.at.stage))
                .cloned()
                .collect(),
            slow_results: slow_results
                .filter(|result| which(&result.app, result.stage))
                .cloned()
                .collect(),
            ..*self
        }
    }

    /// Reads contents that were not kept from the records' files, if these are text files on this machine. An untrusted
    /// profile can name any file, so only call this on the user's request, and never for a page that others will see.
    /// Returns a message on what could not be read.
    pub fn read_inputs(&mut self) -> Option<String> {
        let mut failed = self
            .unread()
            .into_iter()
            .filter_map(|place| place.read_file().err());
        let first = failed.next()?;
        Some(match failed.count() {
            0 => first,
            more => format!("{first} (and {more} more records)"),
        })
    }

    /// Returns a message on how to see contents that were not kept.
    pub fn unread_inputs(&mut self) -> Option<String> {
        let unread = self.unread();
        let file = unread.iter().find_map(|place| place.file.as_deref())?;
        Some(format!(
            "contents of {} records were not kept; --read-inputs reads them from the files that the profile names, such as {file}",
            unread.len()
        ))
    }

    /// Places in local files whose contents were not kept.
    fn unread(&mut self) -> Vec<&mut Place> {
        let of_records = self.slow_records.iter_mut().map(|record| &mut record.at);
        let of_results = self
            .slow_results
            .iter_mut()
            .flat_map(|result| [&mut result.expensive_input, &mut result.slowest_step]);
        let mut places: Vec<&mut Place> = of_records.chain(of_results).collect();
        // If the run was told to keep no contents, do not read them from elsewhere.
        if places.iter().all(|place| place.content.is_none()) {
            return Vec::new();
        }
        places.retain(|place| {
            place.content.is_none() && place.offset.is_some() && place.local_file().is_some()
        });
        places
    }

    /// Whether there are no slow records and results.
    pub(super) fn is_empty(&self) -> bool {
        self.slow_records.is_empty() && self.slow_results.is_empty()
    }
}

/// Analyses the records of an application, or of all, with notes; `None` if they were not traced. Records are
/// propagated here, or by a job.
pub(super) fn records(
    root: &Path,
    filter: &RecordFilter,
    run: &Run,
    job: Option<&Propagate<'_>>,
) -> Result<Option<(Records, Notes)>, ReportError> {
    let dir = ProfileDir::open(root)?;
    if job.is_none() && !dir.has::<RecordSourceRow>() {
        return Ok(None);
    }
    let traces = match TaskTraces::read(&dir, filter.app) {
        // The records of another application were traced.
        Err(ProvenanceError::NoRecords(_)) if filter.app.is_some() => return Ok(None),
        traces => traces?,
    };
    let texts = Texts::read(&dir, &traces)?;
    let mut slowest = texts.slowest(usize::MAX);
    let stage_of = |record: &RecordRef| traces.source(*record).map(|source| source.stage);
    slowest.retain(|record| stage_of(record).is_some_and(|stage| filter.is_of(stage)));
    slowest.truncate(filter.top);
    let options = Options {
        top: match filter.stage {
            Some(_) => filter.top.max(OF_ONE_STAGE),
            None => filter.top,
        },
        records: slowest.clone(),
        ..Options::default()
    };
    let outcome = match job {
        Some(propagate) => propagate(&traces, &options)?,
        None => propagate(&dir, &traces, &options)?,
    };
    let places = texts.places(&outcome.records)?;
    let found = places.of;
    let contents = texts.contents(&outcome.slowest);
    let place = |record: &RecordRef| {
        let found = found.get(record);
        found.map_or_else(Place::default, Place::new)
    };
    let slow_records = slowest.iter().filter_map(|record| {
        let of = found.get(record)?;
        Some(slow_record(of, Place::new(of), run))
    });
    let slow_results = outcome.slowest.iter().zip(contents).map(|(slow, content)| {
        let result = slow_result(target(&traces, slow), slow, content, place);
        SlowResult {
            // Inputs on several paths are counted several times.
            inputs: result.inputs.min(outcome.inputs),
            ..result
        }
    });
    let records = Records {
        inputs: outcome.inputs,
        results: outcome.results,
        tasks: traces.all.len(),
        slow_records: slow_records.collect(),
        slow_results: slow_results
            .filter(|result| filter.is_of(result.stage))
            .take(filter.top)
            .collect(),
    };
    let mut notes = notes(&traces, &outcome, places.in_python);
    let waiting = dir.records_waiting().and_then(|folder| folder.names());
    let waiting = waiting.map_or(0, |names| names.len());
    if waiting > 0 {
        notes.push(format!(
            "the records of {} are not in the tables yet: if the application was not killed, run this again in a minute",
            counted(waiting, "task")
        ));
    }
    Ok(Some((records, notes)))
}

fn target<'a>(traces: &'a TaskTraces, slow: &SlowOutput) -> Option<&'a RecordTargetRow> {
    let trace = traces.all.get(usize::try_from(slow.trace).ok()?)?;
    trace.targets.iter().find(|row| row.output == slow.output)
}

fn slow_result(
    target: Option<&RecordTargetRow>,
    slow: &SlowOutput,
    content: Option<(String, bool)>,
    place: impl Fn(&RecordRef) -> Place,
) -> SlowResult {
    let (content, cut) = content.map_or((None, false), |(text, cut)| (Some(text), cut));
    SlowResult {
        app: target.map_or_else(String::new, |target| target.app.clone()),
        stage: target.map_or(-1, |target| target.stage),
        partition: target.map_or(-1, |target| target.partition),
        position: slow.position,
        content,
        cut,
        seconds: seconds(slow.path.ns()),
        inputs: slow.path.lineage,
        expensive_input: place(&slow.path.root),
        expensive_input_seconds: seconds(slow.path.root_ns),
        slowest_step: place(&slow.path.peak),
        slowest_step_seconds: seconds(slow.path.peak_ns),
    }
}

fn slow_record(of: &RecordPlace, at: Place, run: &Run) -> SlowRecord {
    let stage = run.stages.iter().find(|stage| {
        stage.stage == of.stage
            && *stage.app == *of.app
            && stage.attempts.iter().any(|task| task.task == of.task)
    });
    let attempts = stage.map_or(&[][..], |stage| &stage.attempts);
    let is_its = |task: &Task| task.task == of.task;
    let its = attempts.iter().find(|task| is_its(task));
    let its = its.map(|task| task.run_ms as f64 / 1e3);
    let counts = stage.filter(|stage| stage.tasks().into_iter().any(is_its));
    let saved_ms = |task: &Task| {
        if is_its(task) {
            of.ns as f64 / 1e6
        } else {
            0.0
        }
    };
    SlowRecord {
        at,
        seconds: seconds(of.ns),
        share_of_task: its
            .filter(|its| *its > 0.0)
            .map(|its| (seconds(of.ns) / its).min(1.0)),
        saves_seconds: counts.map(|stage| stage.sooner_ms(saved_ms) / 1e3),
        lines: of
            .lines
            .iter()
            .take(LINES)
            .map(|(line, share)| Line {
                line: line.clone(),
                share: *share,
            })
            .collect(),
    }
}

fn notes(traces: &TaskTraces, outcome: &Outcome, in_python: usize) -> Vec<String> {
    let mut notes = Vec::new();
    let mut sources = traces.all.iter().flat_map(|trace| &trace.sources);
    if sources.any(|source| !source.timed) {
        notes.push(
            format!("records go to a Python process in batches, so the time of a single one is unknown. {READ_AHEAD}"),
        );
    } else if in_python > 0 {
        notes.push(format!(
            "a Python process worked for {in_python} of the {} followed tasks: a record there has the time until the next one was \
             requested, not the time of its work in Python. {READ_AHEAD}",
            traces.all.len()
        ));
    }
    if outcome.unlinked > 0 {
        notes.push(format!(
            "{} behind a shuffle or a cache have no known origin: they count as inputs",
            counted(outcome.unlinked, "record")
        ));
    }
    if outcome.missing > 0 {
        notes.push(format!(
            "{} that tasks read are not in the profile: their effect is unknown",
            counted(outcome.missing, "record")
        ));
    }
    if traces.repeated > 0 {
        notes.push(format!(
            "{} left out, because the tasks were repeated",
            counted(traces.repeated, "task attempt")
        ));
    }
    let damaged = traces.damaged + outcome.damaged;
    if damaged > 0 {
        notes.push(format!(
            "{} with records left out, because of damage",
            counted(damaged, "segment")
        ));
    }
    notes
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}
