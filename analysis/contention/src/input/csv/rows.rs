//! The rows of the files, each checked on its own.

use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use unfuse_files::read_given;

use super::CsvError;
use crate::workload::{LATEST, POSSIBLE_UNITS, POSSIBLE_WEIGHTS, UNITS, WEIGHTS, is_amount};
use crate::{Kind, Resource, Span};

/// The largest file that is read, bytes: its rows take a few times as much memory.
const LARGEST: u64 = 1 << 30;

#[derive(Deserialize)]
pub(super) struct IntervalRow {
    pub(super) host: String,
    pub(super) query: String,
    pub(super) stage: u32,
    #[serde(default)]
    pub(super) attempt: u32,
    pub(super) task: String,
    kind: String,
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    pub(super) units: f64,
    pub(super) blocked_ns: i64,
}

impl IntervalRow {
    pub(super) fn span(&self) -> Span {
        Span {
            start: self.start_ns,
            end: self.end_ns,
        }
    }

    /// The kind, if the row is possible; `index` is its position, from 0.
    pub(super) fn checked(&self, path: &Path, index: usize) -> Result<Kind, CsvError> {
        let span = self.span();
        check(path, index, span, self.units)?;
        let length = span.end - span.start;
        if !(0..=length).contains(&self.blocked_ns) {
            let reason = format!("blocked for {} ns in {length} ns", self.blocked_ns);
            return Err(CsvError::impossible(path, index, reason));
        }
        Kind::from_word(&self.kind).ok_or_else(|| {
            let known = Kind::ALL.map(Kind::word);
            CsvError::word(path, index, "kind", self.kind.clone(), &known)
        })
    }
}

#[derive(Deserialize)]
pub(super) struct HostRow {
    pub(super) host: String,
    resource: String,
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    pub(super) units: f64,
    pub(super) capacity: Option<f64>,
}

impl HostRow {
    pub(super) fn span(&self) -> Span {
        Span {
            start: self.start_ns,
            end: self.end_ns,
        }
    }

    /// The resource, if the row is possible; `index` is its position, from 0.
    pub(super) fn checked(&self, path: &Path, index: usize) -> Result<Resource, CsvError> {
        check(path, index, self.span(), self.units)?;
        if self.capacity.is_some_and(|c| !UNITS.contains(&c)) {
            let reason = "a capacity must be from 1e-30 to 1e30, or be left empty";
            return Err(CsvError::impossible(path, index, reason));
        }
        let mut all = Resource::ALL.into_iter();
        let named = all.find(|resource| resource.name().eq_ignore_ascii_case(&self.resource));
        named.ok_or_else(|| {
            let known = Resource::ALL.map(Resource::name);
            CsvError::word(path, index, "resource", self.resource.clone(), &known)
        })
    }
}

#[derive(Deserialize)]
pub(super) struct QueryRow {
    pub(super) query: String,
    pub(super) label: Option<String>,
    pub(super) user: Option<String>,
    pub(super) pool: Option<String>,
    weight: Option<f64>,
}

impl QueryRow {
    /// The weight, if it is possible; `index` is the row's position, from 0.
    pub(super) fn weight(&self, path: &Path, index: usize) -> Result<f64, CsvError> {
        let weight = self.weight.unwrap_or(1.0);
        if WEIGHTS.contains(&weight) {
            return Ok(weight);
        }
        let reason = format!(
            "{} is no possible weight; it must be {POSSIBLE_WEIGHTS}",
            text(weight)
        );
        Err(CsvError::impossible(path, index, reason))
    }
}

#[derive(Deserialize)]
pub(super) struct StageRow {
    pub(super) query: String,
    pub(super) stage: u32,
    #[serde(default)]
    pub(super) attempt: u32,
    /// Numbers separated by spaces.
    parents: Option<String>,
}

impl StageRow {
    /// Numbers of the stages it reads from; `index` is the row's position, from 0.
    pub(super) fn parents(&self, path: &Path, index: usize) -> Result<Vec<u32>, CsvError> {
        let numbers = self.parents.as_deref().unwrap_or_default();
        let numbers: Result<Vec<u32>, _> = numbers.split_whitespace().map(str::parse).collect();
        let reason = "parents must be numbers of stages with spaces between them";
        numbers.map_err(|_| CsvError::impossible(path, index, reason))
    }
}

fn check(path: &Path, index: usize, span: Span, units: f64) -> Result<(), CsvError> {
    let reason = if span.start < 0 || span.end < span.start {
        format!("it begins at {} ns and ends at {} ns", span.start, span.end)
    } else if span.end > LATEST {
        format!("it ends at {} ns, after the year 2096", span.end)
    } else if !is_amount(units) {
        format!(
            "{} is no possible amount; it must be {POSSIBLE_UNITS}",
            text(units)
        )
    } else {
        return Ok(());
    };
    Err(CsvError::impossible(path, index, reason))
}

/// A number as users write it: without three hundred zeros.
fn text(number: f64) -> String {
    let text = format!("{number:?}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

pub(super) fn read_if_there<Row: DeserializeOwned>(path: &Path) -> Result<Vec<Row>, CsvError> {
    if path.exists() {
        read(path)
    } else {
        Ok(Vec::new())
    }
}

pub(super) fn read<Row: DeserializeOwned>(path: &Path) -> Result<Vec<Row>, CsvError> {
    let wrong = |error: csv::Error| CsvError::Row {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let text = read_given(path, LARGEST).map_err(|error| CsvError::Row {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(text.as_slice());
    reader.deserialize().map(|row| row.map_err(wrong)).collect()
}
