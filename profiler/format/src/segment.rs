//! Segments: a bounded buffer of rows that becomes one Parquet file.

use std::fs::{self, File};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatchReader;
use arrow_schema::FieldRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::WriterProperties;
use rayon::prelude::*;

use crate::dir::private_folder;
use crate::{FormatError, Problem, ProfileDir, Table};

/// Collects rows of one table and writes them as numbered segments.
#[derive(Debug)]
pub struct SegmentWriter<T: Table> {
    folder: PathBuf,
    writer: String,
    next: u32,
    rows: Vec<T>,
    /// Columns, once they are needed: to find them takes a while.
    fields: Vec<FieldRef>,
    /// The last segment, and the bytes of all.
    last: Option<PathBuf>,
    written: u64,
}

impl<T: Table> SegmentWriter<T> {
    /// A writer for table `T`; `writer` (`HOST-PID`) makes its file names its own.
    pub fn new(dir: &ProfileDir, writer: &str) -> Self {
        Self {
            folder: dir.path().join(T::NAME),
            writer: writer.to_owned(),
            next: 0,
            rows: Vec::new(),
            fields: Vec::new(),
            last: None,
            written: 0,
        }
    }

    /// Calls the segments from now on by another name.
    pub fn rename(&mut self, writer: &str) {
        writer.clone_into(&mut self.writer);
        self.next = 0;
    }

    /// Bytes of all segments so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// As [`flush`](Self::flush); then deletes the segment before, for tables whose last word counts.
    ///
    /// # Errors
    /// Those of `flush`.
    pub fn flush_last_word(&mut self) -> Result<(), FormatError> {
        let before = self.last.clone();
        self.flush()?;
        if let Some(before) = before.filter(|path| self.last.as_ref() != Some(path)) {
            let _ = fs::remove_file(before);
        }
        Ok(())
    }

    /// Adds a row to the open segment.
    pub fn push(&mut self, row: T) {
        self.rows.push(row);
    }

    /// Rows in the open segment.
    pub fn pending(&self) -> usize {
        self.rows.len()
    }

    /// The rows of the open segment.
    pub fn rows(&self) -> &[T] {
        &self.rows
    }

    /// The file that the last flush has written, once.
    pub fn take_last(&mut self) -> Option<PathBuf> {
        self.last.take()
    }

    /// Closes the open segment: writes it aside and renames it into place. Without rows, nothing.
    /// On an error the rows are kept, so that a later flush can still save them.
    pub fn flush(&mut self) -> Result<(), FormatError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        private_folder(&self.folder).map_err(FormatError::unwritable(&self.folder))?;
        let path = loop {
            let path = self
                .folder
                .join(format!("{}-{:05}.parquet", self.writer, self.next));
            if !path.exists() {
                break path;
            }
            // A pid that came round again in a directory that several runs share.
            self.next += 1;
        };
        if self.fields.is_empty() {
            self.fields = T::fields();
        }
        let aside = path.with_extension("tmp");
        let bytes = write_parquet(&aside, &self.fields, &self.rows)
            .and_then(|bytes| fs::rename(&aside, &path).map(|()| bytes))
            .map_err(|e| {
                // Half a segment would take room that the next one may need.
                let _ = fs::remove_file(&aside);
                FormatError::unwritable(&path)(e)
            })?;
        self.next += 1;
        self.written += bytes;
        self.last = Some(path);
        self.rows.clear();
        Ok(())
    }

    /// Gives up the rows of the open segment; they are the caller's.
    pub fn discard(&mut self) -> Vec<T> {
        std::mem::take(&mut self.rows)
    }
}

fn write_parquet<T: Table>(path: &Path, fields: &[FieldRef], rows: &[T]) -> std::io::Result<u64> {
    let batch = T::batch(fields, rows)?;
    let properties = WriterProperties::builder();
    let properties = if T::DELTAS {
        let properties = properties.set_dictionary_enabled(false);
        properties.set_encoding(Encoding::DELTA_BINARY_PACKED)
    } else {
        properties.set_compression(Compression::SNAPPY)
    };
    // In memory first: the Parquet writer's errors do not say what the system said.
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties.build()))?;
    writer.write(&batch)?;
    writer.close()?;
    fs::write(path, &bytes)?;
    Ok(bytes.len() as u64)
}

/// The rows of a table and the segments that could not be read.
#[derive(Debug)]
pub struct Read<T> {
    /// Rows of all good segments, in file name order.
    pub rows: Vec<T>,
    /// Segments left out, each with the reason.
    pub problems: Vec<Problem>,
}

pub(crate) fn read_table<T: Table, R: Send>(
    folder: &Path,
    each: impl Fn(Vec<T>) -> Vec<R> + Sync,
) -> Result<Read<R>, FormatError> {
    let mut read = Read {
        rows: Vec::new(),
        problems: Vec::new(),
    };
    let paths = segments(folder)?;
    let read_one = |path: &PathBuf| read_segment(path).map(&each);
    let segments: Vec<Result<Vec<R>, String>> = paths.par_iter().map(read_one).collect();
    let rows = segments.iter().flatten().map(Vec::len).sum();
    read.rows.reserve_exact(rows);
    for (path, rows) in paths.into_iter().zip(segments) {
        match rows {
            Ok(rows) => read.rows.extend(rows),
            // Retention deletes while we read; what was in it is too old to be missed.
            Err(_) if !path.exists() => {}
            Err(reason) => read.problems.push(Problem { path, reason }),
        }
    }
    Ok(read)
}

/// The complete segments in a folder, in the order of their names.
pub(crate) fn segments(folder: &Path) -> Result<Vec<PathBuf>, FormatError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(FormatError::io(folder)(e)),
    };
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "parquet"))
        .collect();
    paths.sort();
    Ok(paths)
}

/// The rows of a segment, or what is wrong with it.
pub(crate) fn read_segment<T: Table>(path: &Path) -> Result<Vec<T>, String> {
    // The Parquet reader panics over some damage that it should refuse.
    catch_unwind(|| read_parquet(path))
        .unwrap_or_else(|_| Err("damaged beyond what the Parquet reader understands".to_owned()))
}

fn read_parquet<T: Table>(path: &Path) -> Result<Vec<T>, String> {
    let file = File::open(path).map_err(|e| e.to_string())?;
    let unreadable = |e: &dyn std::fmt::Display| format!("not a complete Parquet segment ({e})");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(ParquetRecordBatchReaderBuilder::build)
        .map_err(|e| unreadable(&e))?;
    if reader.schema().fields().is_empty() {
        // Without a column nothing bounds the rows that its header claims.
        return Err(format!("it has no columns of table {}", T::NAME));
    }
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch.map_err(|e| unreadable(&e))?;
        let part: Vec<T> = serde_arrow::from_record_batch(&batch)
            .map_err(|e| format!("its columns are not those of table {} ({e})", T::NAME))?;
        rows.extend(part);
    }
    Ok(rows)
}

/// The Arrow fields of a row type, worked out from its serde definition.
pub(crate) fn fields_of<T: for<'a> serde::Deserialize<'a>>() -> Vec<FieldRef> {
    use serde_arrow::schema::{SchemaLike, TracingOptions};
    let options = TracingOptions::default()
        .strings_as_large_utf8(false)
        .sequence_as_large_list(false);
    Vec::<FieldRef>::from_type::<T>(options)
        .expect("row types are plain structs that serde_arrow can trace (covered by a test for each table)")
        .into_iter()
        .collect()
}
