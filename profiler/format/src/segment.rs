//! Segments: a bounded buffer of rows that becomes one Parquet file.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use arrow_schema::FieldRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::RowSelection;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::WriterProperties;
use rayon::prelude::*;
use unfuse_files::Directory;

use crate::bounds::Bounds;
use crate::columns::Columns;
use crate::parquet_rows::{self, SegmentPart, rows};
use crate::room::Room;
use crate::{FormatError, Problem, ProfileDir, Table, TableId};

/// Collects rows of one table and writes them as numbered segments.
#[derive(Debug)]
pub struct SegmentWriter<T: Table> {
    dir: ProfileDir,
    writer: String,
    next: u32,
    rows: Vec<T>,
    /// Columns, once they are needed: to find them takes a while.
    fields: Vec<FieldRef>,
    /// The last segment's name, and the bytes of all.
    last: Option<String>,
    written: u64,
}

impl<T: Table> SegmentWriter<T> {
    /// A writer for table `T`; `writer` (`HOST-PID`) makes its file names its own.
    pub fn new(dir: &ProfileDir, writer: &str) -> Self {
        Self {
            dir: dir.clone(),
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

    /// As [`flush`](Self::flush); then deletes the segment before, for tables whose latest row counts.
    ///
    /// # Errors
    /// Those of `flush`.
    pub fn flush_latest(&mut self) -> Result<(), FormatError> {
        let before = self.last.clone();
        self.flush()?;
        if let Some(before) = before.filter(|name| self.last.as_ref() != Some(name)) {
            let _ = self.dir.make_folder(T::NAME)?.remove(before);
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

    /// The name of the segment that the last flush has written, once.
    pub fn take_last(&mut self) -> Option<String> {
        self.last.take()
    }

    /// Closes the open segment: writes it aside and renames it into place. Without rows, nothing.
    /// On an error the rows are kept, so that a later flush can still save them.
    pub fn flush(&mut self) -> Result<(), FormatError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let folder = self.dir.make_folder(T::NAME)?;
        let name = loop {
            let name = format!("{}-{:05}.parquet", self.writer, self.next);
            if !folder.has(&name) {
                break name;
            }
            // A pid that came round again in a directory that several runs share.
            self.next += 1;
        };
        if self.fields.is_empty() {
            self.fields = T::fields();
        }
        // Half a segment would take room that the next one may need: it is removed.
        let bytes = parquet(&self.fields, &self.rows)
            .and_then(|bytes| folder.write(&name, &bytes).map(|()| bytes.len() as u64))
            .map_err(FormatError::unwritable(&folder.path().join(&name)))?;
        self.next += 1;
        self.written += bytes;
        self.last = Some(name);
        self.rows.clear();
        Ok(())
    }

    /// Gives up the rows of the open segment; they are the caller's.
    pub fn discard(&mut self) -> Vec<T> {
        std::mem::take(&mut self.rows)
    }
}

/// The open segment of some table: what can be done with it whatever its rows are.
pub trait OpenSegment {
    /// The table.
    fn table(&self) -> TableId;

    /// Rows in the segment.
    fn pending(&self) -> usize;

    /// Bytes of the segments that were written.
    fn written(&self) -> u64;

    /// Calls the segments from now on by another name.
    fn rename(&mut self, writer: &str);

    /// Drops the rows.
    fn discard(&mut self);

    /// Writes the segment.
    ///
    /// # Errors
    /// Those of [`SegmentWriter::flush`].
    fn flush(&mut self) -> Result<(), FormatError>;
}

impl<T: Table> OpenSegment for SegmentWriter<T> {
    fn table(&self) -> TableId {
        T::ID
    }

    fn pending(&self) -> usize {
        self.rows.len()
    }

    fn written(&self) -> u64 {
        self.written
    }

    fn rename(&mut self, writer: &str) {
        self.rename(writer);
    }

    fn discard(&mut self) {
        self.discard();
    }

    fn flush(&mut self) -> Result<(), FormatError> {
        self.flush()
    }
}

fn parquet<T: Table>(fields: &[FieldRef], rows: &[T]) -> io::Result<Vec<u8>> {
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
    Ok(bytes)
}

/// The rows of a table and the segments that could not be read.
#[derive(Debug)]
pub struct TableRows<T> {
    /// Rows of all good segments, in file name order.
    pub rows: Vec<T>,
    /// Segments left out, each with the reason.
    pub problems: Vec<Problem>,
}

/// The rows of a table that are within bounds, after `each` has seen those of a segment.
pub(crate) fn read_table<T: Table, R: Send>(
    dir: &ProfileDir,
    bounds: &Bounds,
    each: impl Fn(Vec<T>) -> Vec<R> + Sync,
) -> Result<TableRows<R>, FormatError> {
    let wanted = SegmentPart {
        bounds,
        ..SegmentPart::ALL
    };
    let room = Room::default();
    collect::<T, R>(dir, |folder, name| {
        let file = folder.open_file(name).map_err(|e| e.to_string())?;
        rows(file, wanted, &room).map(&each)
    })
}

/// The rows of a table that `choose` takes by some of their columns. Of row groups without a row in bounds nothing is read.
///
/// # Errors
/// The folder of the table cannot be read.
pub(crate) fn read_chosen<T: Table>(
    dir: &ProfileDir,
    columns: &[&str],
    bounds: &Bounds,
    choose: impl Fn(&Columns) -> Result<Vec<bool>, String> + Sync,
) -> Result<TableRows<T>, FormatError> {
    let room = Room::default();
    collect::<T, T>(dir, |folder, name| {
        let open = || folder.open_file(name).map_err(|e| e.to_string());
        let all = SegmentPart {
            columns: Some(columns),
            bounds,
            whole_groups: true,
            ..SegmentPart::ALL
        };
        let mut chosen = Vec::new();
        for part in parquet_rows::columns::<T>(open()?, all, &room)? {
            chosen.extend(choose(&part)?);
        }
        if !chosen.contains(&true) {
            return Ok(Vec::new());
        }
        let selection = RowSelection::from_filters(&[chosen.into()]);
        let wanted = SegmentPart {
            columns: None,
            selection: Some(&selection),
            ..all
        };
        rows(open()?, wanted, &room)
    })
}

/// What `each` makes of columns of each segment, in the order of segments.
///
/// # Errors
/// The folder of the table cannot be read.
pub(crate) fn map_table<T: Table, R: Send>(
    dir: &ProfileDir,
    wanted: SegmentPart<'_>,
    each: impl Fn(&[Columns]) -> Result<Vec<R>, String> + Sync,
) -> Result<TableRows<R>, FormatError> {
    let room = Room::default();
    collect::<T, R>(dir, |folder, name| {
        let file = folder.open_file(name).map_err(|e| e.to_string())?;
        each(&parquet_rows::columns::<T>(file, wanted, &room)?)
    })
}

/// What is read of each segment, in the order of segments. They are read in parallel.
fn collect<T: Table, R: Send>(
    dir: &ProfileDir,
    read_one: impl Fn(&Directory, &OsStr) -> Result<Vec<R>, String> + Sync,
) -> Result<TableRows<R>, FormatError> {
    let mut read = TableRows {
        rows: Vec::new(),
        problems: Vec::new(),
    };
    let segments = each_segment::<T, _>(dir, &mut read.problems, |folder, names| {
        names
            .par_iter()
            .map(|name| read_one(folder, name))
            .collect()
    })?;
    let rows = segments.iter().map(Vec::len).sum();
    read.rows.reserve_exact(rows);
    read.rows.extend(segments.into_iter().flatten());
    Ok(read)
}

/// Sums up columns of a table: each thread adds segments to a sum of its own. The order of sums and of segments in them is
/// not determined.
///
/// # Errors
/// The folder of the table cannot be read.
pub(crate) fn fold_table<T: Table, A: Send>(
    dir: &ProfileDir,
    wanted: SegmentPart<'_>,
    new: impl Fn() -> A + Sync,
    add: impl Fn(&mut A, &[Columns]) -> Result<(), String> + Sync,
) -> Result<TableRows<A>, FormatError> {
    let room = Room::default();
    let idle: Mutex<Vec<A>> = Mutex::default();
    let lock = || idle.lock().unwrap_or_else(PoisonError::into_inner);
    let read_one = |folder: &Directory, name: &OsStr| {
        let file = folder.open_file(name).map_err(|e| e.to_string())?;
        let columns = parquet_rows::columns::<T>(file, wanted, &room)?;
        let known = lock().pop();
        let mut sum = known.unwrap_or_else(&new);
        let added = add(&mut sum, &columns);
        lock().push(sum);
        added
    };
    let mut problems = Vec::new();
    each_segment::<T, _>(dir, &mut problems, |folder, names| {
        // What processes wrote at about the same time is mostly about the same stages.
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by_key(|index| sequence_number(&names[*index]));
        // One after the other, and not by halves of the list.
        let next = order.into_iter().par_bridge();
        let read = next.map(|index| (index, read_one(folder, &names[index])));
        let mut read: Vec<_> = read.collect();
        read.sort_by_key(|(index, _)| *index);
        read.into_iter().map(|(_, result)| result).collect()
    })?;
    Ok(TableRows {
        rows: idle.into_inner().unwrap_or_else(PoisonError::into_inner),
        problems,
    })
}

/// The number at the end of a segment's name, which counts the segments of its writer.
fn sequence_number(name: &OsStr) -> u32 {
    let stem = Path::new(name).file_stem().and_then(OsStr::to_str);
    let number = stem.and_then(|stem| stem.rsplit('-').next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Rows of a table with ids that `is_new`; `take` gets those of a segment. Where two threads find the same id at once, both
/// read it.
///
/// # Errors
/// The folder of the table cannot be read.
pub(crate) fn read_new<T: Table>(
    dir: &ProfileDir,
    id_column: &'static str,
    is_new: impl Fn(i64) -> bool + Sync,
    take: impl Fn(Vec<T>) + Sync,
) -> Result<Vec<Problem>, FormatError> {
    let room = Room::default();
    let read_one = |folder: &Directory, name: &OsStr| {
        let open = || folder.open_file(name).map_err(|e| e.to_string());
        let ids = SegmentPart {
            columns: Some(&[id_column]),
            ..SegmentPart::ALL
        };
        let mut new = Vec::new();
        for ids in parquet_rows::columns::<T>(open()?, ids, &room)? {
            let column = ids.i64s(id_column)?;
            new.extend((0..ids.rows()).map(|row| is_new(column.or_zero(row))));
        }
        if !new.contains(&true) {
            return Ok(());
        }
        let selection = RowSelection::from_filters(&[new.into()]);
        let wanted = SegmentPart {
            selection: Some(&selection),
            ..SegmentPart::ALL
        };
        take(rows(open()?, wanted, &room)?);
        Ok(())
    };
    let mut problems = Vec::new();
    each_segment::<T, _>(dir, &mut problems, |folder, names| {
        names
            .par_iter()
            .map(|name| read_one(folder, name))
            .collect()
    })?;
    Ok(problems)
}

/// What is made of the segments of a table that can be read; of the others, what is wrong with them.
fn each_segment<T: Table, R>(
    dir: &ProfileDir,
    problems: &mut Vec<Problem>,
    read: impl FnOnce(&Directory, &[OsString]) -> Vec<Result<R, String>>,
) -> Result<Vec<R>, FormatError> {
    let path = dir.path().join(T::NAME);
    let folder = match dir.folder(T::NAME) {
        Ok(folder) => folder,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => {
            let reason = e.to_string();
            problems.push(Problem { path, reason });
            return Ok(Vec::new());
        }
    };
    let names = segments_in(&folder).map_err(FormatError::io(&path))?;
    let results = read(&folder, &names);
    let mut good = Vec::with_capacity(results.len());
    for (name, result) in names.into_iter().zip(results) {
        match result {
            Ok(result) => good.push(result),
            // Retention deletes while we read; what was in it is too old to be missed.
            Err(_) if folder.about(&name).is_err() => {}
            Err(reason) => problems.push(Problem {
                path: path.join(name),
                reason,
            }),
        }
    }
    Ok(good)
}

/// The names of the complete segments of a table, in order.
pub(crate) fn segments(dir: &ProfileDir, table: &str) -> io::Result<Vec<OsString>> {
    match dir.folder(table) {
        Ok(folder) => segments_in(&folder),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(e),
    }
}

fn segments_in(folder: &Directory) -> io::Result<Vec<OsString>> {
    let mut names = folder.names()?;
    names.retain(|name| Path::new(name).extension().is_some_and(|e| e == "parquet"));
    names.sort();
    Ok(names)
}

/// The rows of a segment, or what is wrong with it. What they take in memory beyond what its size allows is taken from
/// `room`.
pub(crate) fn read_segment<T: Table>(
    folder: &Directory,
    name: &OsStr,
    room: &Room,
) -> Result<Vec<T>, String> {
    let file = folder.open_file(name).map_err(|e| e.to_string())?;
    rows(file, SegmentPart::ALL, room)
}

/// The Arrow fields of a row type, worked out from its serde definition.
/// The columns of rows, by serde.
pub(crate) fn batch_of<T: serde::Serialize>(
    fields: &[FieldRef],
    rows: &[T],
) -> io::Result<arrow_array::RecordBatch> {
    serde_arrow::to_record_batch(fields, &rows).map_err(io::Error::other)
}

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
