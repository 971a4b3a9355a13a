//! Reading the two large tables without keeping their rows: samples and stacks, a few columns each.
//!
//! A profile of a long job has millions of sample rows. [`ProfileDir::scan`] hands out one row after the
//! other with its texts borrowed, so that a reader keeps only what it sums.

use std::fs::File;
use std::path::Path;

use arrow_array::RecordBatch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde::Deserialize;

use crate::segment::segments;
use crate::{FormatError, Problem, ProfileDir, SampleRow, StackRow, Table};

/// Rows a batch: large enough that per-batch work does not count.
const BATCH: usize = 32 * 1024;

/// Some columns of a table.
pub trait Columns {
    /// The table they are of.
    type Of: Table;
    /// A row of them, texts borrowed.
    type Row<'a>: Deserialize<'a>;
    /// Their names.
    const NAMES: &'static [&'static str];
}

/// What sums need of [`SampleRow`].
#[derive(Debug)]
pub enum SampleColumns {}

/// A [`SampleRow`] without the columns that sums do not need.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SampleRef<'a> {
    /// See [`SampleRow::app`].
    #[serde(borrow)]
    pub app: &'a str,
    /// See [`SampleRow::thread`].
    #[serde(borrow)]
    pub thread: &'a str,
    /// See [`SampleRow::stage`].
    pub stage: Option<i32>,
    /// See [`SampleRow::stage_attempt`].
    pub stage_attempt: Option<i32>,
    /// See [`SampleRow::stack`].
    pub stack: i64,
    /// See [`SampleRow::count`].
    pub count: u64,
    /// See [`SampleRow::weight_ns`].
    pub weight_ns: u64,
}

impl Columns for SampleColumns {
    type Of = SampleRow;
    type Row<'a> = SampleRef<'a>;
    const NAMES: &'static [&'static str] = &[
        "app",
        "thread",
        "stage",
        "stage_attempt",
        "stack",
        "count",
        "weight_ns",
    ];
}

/// What naming and attributing needs of [`StackRow`].
#[derive(Debug)]
pub enum StackColumns {}

/// A [`StackRow`].
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct StackRef<'a> {
    /// See [`StackRow::stack`].
    pub stack: i64,
    /// See [`StackRow::frames`].
    #[serde(borrow)]
    pub frames: Vec<FrameRef<'a>>,
}

/// A [`crate::Frame`] without signature, bytecode index and inlining.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct FrameRef<'a> {
    /// See [`crate::Frame::class`].
    pub class: &'a str,
    /// See [`crate::Frame::method`].
    pub method: &'a str,
    /// See [`crate::Frame::file`].
    pub file: &'a str,
    /// See [`crate::Frame::line`].
    pub line: u32,
}

impl Columns for StackColumns {
    type Of = StackRow;
    type Row<'a> = StackRef<'a>;
    const NAMES: &'static [&'static str] = &["stack", "frames"];
}

impl ProfileDir {
    /// Calls `each` with every row of good segments, in file name order; returns the segments left out.
    /// A segment is used whole or not at all.
    pub fn scan<C: Columns>(
        &self,
        mut each: impl FnMut(C::Row<'_>),
    ) -> Result<Vec<Problem>, FormatError> {
        let mut problems = Vec::new();
        for path in segments(&self.path().join(C::Of::NAME))? {
            if let Err(reason) = scan_segment::<C>(&path, &mut each) {
                problems.push(Problem { path, reason });
            }
        }
        Ok(problems)
    }
}

fn scan_segment<C: Columns>(path: &Path, each: &mut impl FnMut(C::Row<'_>)) -> Result<(), String> {
    let file = File::open(path).map_err(|e| e.to_string())?;
    let unreadable = |e: &dyn std::fmt::Display| format!("not a complete Parquet segment ({e})");
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| unreadable(&e))?;
    let columns = ProjectionMask::columns(builder.parquet_schema(), C::NAMES.iter().copied());
    let batches: Vec<RecordBatch> = builder
        .with_projection(columns)
        .with_batch_size(BATCH)
        .build()
        .map_err(|e| unreadable(&e))?
        .collect::<Result<_, _>>()
        .map_err(|e| unreadable(&e))?;
    // All batches before the first row is handed out: nothing of a damaged segment is.
    let rows: Vec<Vec<C::Row<'_>>> = batches
        .iter()
        .map(serde_arrow::from_record_batch)
        .collect::<Result<_, _>>()
        .map_err(|e| format!("its columns are not those of table {} ({e})", C::Of::NAME))?;
    rows.into_iter().flatten().for_each(each);
    Ok(())
}
