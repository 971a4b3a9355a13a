//! Rows of a Parquet file of which nothing is trusted.

use std::cell::Cell;
use std::fmt::Display;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Arc, Once};

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, RecordBatchReader};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use crate::bounds::Bounds;
use crate::columns::Columns;
use crate::pages::{self, Claims};
use crate::room::{Allowance, Room, VALUE};
use crate::{Table, footer};

/// Rows that are unpacked at once.
const BATCH: usize = 8192;
/// Bytes of a text or a list beside its contents.
const HEADER: u64 = 24;

/// Which part of a segment is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentPart<'a> {
    /// Columns; none for all.
    pub(crate) columns: Option<&'a [&'a str]>,
    /// Rows.
    pub(crate) bounds: &'a Bounds,
    /// Whether all rows are read of a row group that may hold some within the bounds.
    pub(crate) whole_groups: bool,
    /// Which of all rows of the row groups that are read; none for all.
    pub(crate) selection: Option<&'a RowSelection>,
}

impl SegmentPart<'_> {
    /// Everything.
    pub(crate) const ALL: Self = Self {
        columns: None,
        bounds: &Bounds::ALL,
        whole_groups: false,
        selection: None,
    };
}

/// The rows of a file, or what is wrong with it. What they take in memory beyond what its size allows is taken from `room`.
pub(crate) fn rows<T: Table>(
    file: File,
    wanted: SegmentPart<'_>,
    room: &Room,
) -> Result<Vec<T>, String> {
    let read = || -> Result<Vec<T>, String> {
        let mut rows = Vec::new();
        for batch in read::<T>(file, wanted, room, size_of::<T>())? {
            let part = T::rows(&batch);
            rows.extend(
                part.map_err(|e| format!("its columns are not those of table {} ({e})", T::NAME))?,
            );
        }
        Ok(rows)
    };
    understood(read)
}

/// The same without making rows of it.
pub(crate) fn columns<T: Table>(
    file: File,
    wanted: SegmentPart<'_>,
    room: &Room,
) -> Result<Vec<Columns>, String> {
    let batches = understood(|| read::<T>(file, wanted, room, 0))?;
    Ok(batches.into_iter().map(Columns::new).collect())
}

/// Turns a panic of the Parquet reader into an error: it panics over some damage that it should refuse.
fn understood<R>(read: impl FnOnce() -> Result<R, String>) -> Result<R, String> {
    without_panic_message(read)
        .unwrap_or_else(|_| Err("damaged beyond what the Parquet reader understands".to_owned()))
}

thread_local! {
    static PANIC_IS_AN_ANSWER: Cell<bool> = const { Cell::new(false) };
}

/// Catches a panic and keeps its message from standard error; messages of other panics come as ever.
fn without_panic_message<R>(run: impl FnOnce() -> R) -> std::thread::Result<R> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !PANIC_IS_AN_ANSWER.get() {
                before(panic);
            }
        }));
    });
    PANIC_IS_AN_ANSWER.set(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    PANIC_IS_AN_ANSWER.set(false);
    result
}

/// The batches of a file. Each of its rows takes `row_size` bytes beside its values.
fn read<T: Table>(
    file: File,
    wanted: SegmentPart<'_>,
    room: &Room,
    row_size: usize,
) -> Result<Vec<RecordBatch>, String> {
    let unreadable = |e: &dyn Display| format!("not a complete Parquet segment ({e})");
    let mut allowance = room.allowance(file.metadata().map_err(|e| e.to_string())?.len());
    let footer = footer::checked(&file).map_err(|e| unreadable(&e))?;
    let footer = ParquetMetaDataReader::decode_metadata(&footer).map_err(|e| unreadable(&e))?;
    let groups = wanted.bounds.row_groups(&footer);
    if groups.is_empty() && footer.num_row_groups() > 0 {
        return Ok(Vec::new());
    }
    let metadata =
        checked_metadata(&file, footer, &groups, &allowance).map_err(|e| unreadable(&e))?;
    let schema = metadata.schema();
    let descriptor = metadata.metadata().file_metadata().schema_descr();
    let is_wanted = |name: &str| {
        let is_named = |columns: &[&str]| columns.contains(&today::<T>(name));
        wanted.columns.is_none_or(is_named)
    };
    let fields = schema.fields().iter().enumerate();
    let indices = fields.filter(|(_, field)| is_wanted(field.name()));
    let mask = ProjectionMask::roots(descriptor, indices.map(|(index, _)| index));
    let filter = match wanted.whole_groups {
        true => None,
        false => wanted.bounds.filter(metadata.metadata(), schema)?,
    };
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
        .with_batch_size(BATCH)
        .with_projection(mask)
        .with_row_groups(groups);
    let reader = match filter {
        Some(filter) => reader.with_row_filter(filter),
        None => reader,
    };
    let reader = match wanted.selection {
        Some(selection) => reader.with_row_selection(selection.clone()),
        None => reader,
    };
    let reader = reader.build().map_err(|e| unreadable(&e))?;
    if reader.schema().fields().is_empty() {
        // Without a column nothing bounds the rows that its header claims.
        return Err(format!("it has no columns of table {}", T::NAME));
    }
    let mut batches = Vec::new();
    for batch in reader {
        let batch = batch.map_err(|e| unreadable(&e))?;
        let inline = batch.num_rows().saturating_mul(row_size) as u64;
        allowance.take(inline.saturating_add(row_bytes(&batch)))?;
        batches.push(with_names_of_today::<T>(batch)?);
    }
    Ok(batches)
}

/// Today's name of a column.
fn today<T: Table>(name: &str) -> &str {
    let renamed = T::RENAMED.iter().find(|(old, _)| *old == name);
    renamed.map_or(name, |(_, new)| new)
}

/// Columns of older profiles under the names that they have today.
fn with_names_of_today<T: Table>(batch: RecordBatch) -> Result<RecordBatch, String> {
    let old_name = |(old, _): &(&str, &str)| batch.schema_ref().column_with_name(old).is_some();
    if !T::RENAMED.iter().any(old_name) {
        return Ok(batch);
    }
    let fields = batch.schema_ref().fields().iter().map(|field| {
        let renamed = T::RENAMED.iter().find(|(old, _)| old == field.name());
        renamed.map_or_else(
            || Arc::clone(field),
            |(_, new)| Arc::new(field.as_ref().clone().with_name(*new)),
        )
    });
    let schema = Arc::new(Schema::new(fields.collect::<Fields>()));
    RecordBatch::try_new(schema, batch.columns().to_vec()).map_err(|e| e.to_string())
}

/// The metadata of a segment, of which the pages of some row groups claim no more than its size allows. Texts become views
/// into their pages and dictionaries, so that one long text in a dictionary is not copied for each row.
fn checked_metadata(
    file: &File,
    metadata: ParquetMetaData,
    groups: &[usize],
    allowance: &Allowance<'_>,
) -> Result<ArrowReaderMetadata, String> {
    check_pages(file, &metadata, groups, allowance)?;
    let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata =
        ArrowReaderMetadata::try_new(Arc::new(metadata), plain).map_err(|e| e.to_string())?;
    let views = ArrowReaderOptions::new().with_schema(with_views(metadata.schema()));
    ArrowReaderMetadata::try_new(metadata.metadata().clone(), views).map_err(|e| e.to_string())
}

/// Refuses pages that claim more than the file's size allows, and columns that share bytes: each of them is read.
fn check_pages(
    file: &File,
    metadata: &ParquetMetaData,
    groups: &[usize],
    allowance: &Allowance<'_>,
) -> Result<(), String> {
    let row_groups = groups.iter().map(|index| metadata.row_group(*index));
    let ranges = row_groups.flat_map(|group| group.columns().iter().map(|one| one.byte_range()));
    let total = ranges
        .clone()
        .fold(0, |sum: u64, (_, length)| sum.saturating_add(length));
    if total > file.metadata().map_err(|e| e.to_string())?.len() {
        return Err("its columns together are longer than the file".to_owned());
    }
    let mut claims = Claims::default();
    for (start, length) in ranges {
        let range = start..start.saturating_add(length);
        claims.add(pages::claims(file, range).map_err(|e| e.to_string())?);
        allowance.admits(claims)?;
    }
    Ok(())
}

/// The schema with texts as views.
pub(crate) fn with_views(schema: &SchemaRef) -> SchemaRef {
    Arc::new(Schema::new(fields_with_views(schema.fields())))
}

fn fields_with_views(fields: &Fields) -> Fields {
    fields.iter().map(|field| field_with_views(field)).collect()
}

fn field_with_views(field: &Field) -> Arc<Field> {
    let with_views = match field.data_type() {
        DataType::Utf8 => DataType::Utf8View,
        DataType::Binary => DataType::BinaryView,
        DataType::List(item) => DataType::List(field_with_views(item)),
        DataType::Struct(fields) => DataType::Struct(fields_with_views(fields)),
        other => other.clone(),
    };
    Arc::new(field.clone().with_data_type(with_views))
}

/// Bytes that the values of a batch will take, about.
pub(crate) fn row_bytes(batch: &RecordBatch) -> u64 {
    batch.columns().iter().map(|column| bytes(column)).sum()
}

fn bytes(array: &dyn Array) -> u64 {
    let length = array.len() as u64;
    // The lower half of a view's lowest word is the length of its text.
    let texts = |views: &[u128]| {
        views
            .iter()
            .map(|view| u64::from(*view as u32))
            .sum::<u64>()
    };
    match array.data_type() {
        DataType::Utf8View => length * HEADER + texts(array.as_string_view().views()),
        DataType::BinaryView => length * HEADER + texts(array.as_binary_view().views()),
        DataType::List(_) => length * HEADER + bytes(array.as_list::<i32>().values()),
        DataType::Struct(_) => array
            .as_struct()
            .columns()
            .iter()
            .map(|one| bytes(one))
            .sum(),
        _ => length * VALUE + array.get_buffer_memory_size() as u64,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};
    use parquet::arrow::ArrowWriter;
    use parquet::file::metadata::ParquetMetaDataWriter;

    use super::*;
    use crate::TaskRow;

    #[test]
    fn columns_of_older_profiles_are_read_under_their_names_of_today() {
        let row = TaskRow {
            launched_ms: 7,
            disk_spilled_bytes: 9,
            ..TaskRow::default()
        };
        let rows = [row];
        let batch = TaskRow::batch(&TaskRow::fields(), &rows).expect("a batch");
        let fields = batch.schema_ref().fields().iter().map(|field| {
            let mut renamed = TaskRow::RENAMED.iter();
            let old = renamed.find(|(_, new)| new == field.name());
            let name = old.map_or(field.name().as_str(), |(old, _)| old);
            field.as_ref().clone().with_name(name)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        assert!(schema.column_with_name("launched").is_some());
        let old = RecordBatch::try_new(schema, batch.columns().to_vec()).expect("a batch");
        let today = with_names_of_today::<TaskRow>(old).expect("a batch");
        assert_eq!(TaskRow::rows(&today).expect("rows"), rows);
    }

    fn check(file: &File) -> Result<ArrowReaderMetadata, String> {
        let length = file.metadata().expect("a file").len();
        let footer = footer::checked(file).map_err(|e| e.to_string())?;
        let footer = ParquetMetaDataReader::decode_metadata(&footer).map_err(|e| e.to_string())?;
        let groups: Vec<usize> = (0..footer.num_row_groups()).collect();
        let room = Room::default();
        checked_metadata(file, footer, &groups, &room.allowance(length))
    }

    /// Checks every segment in a directory and returns their number.
    fn check_all(dir: &Path) -> usize {
        let mut segments = 0;
        for entry in std::fs::read_dir(dir).expect("a directory").flatten() {
            let path = entry.path();
            if path.is_dir() {
                segments += check_all(&path);
            } else if path.extension().is_some_and(|e| e == "parquet") {
                let file = File::open(&path).expect("a segment");
                check(&file).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                segments += 1;
            }
        }
        segments
    }

    #[test]
    fn segments_of_unfuse_are_admitted() {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cli/tests/fixtures");
        assert!(check_all(&fixtures) > 20);
    }

    #[test]
    fn columns_that_share_bytes_are_refused() {
        let mut file = tempfile::tempfile().expect("a file");
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
        let batch = RecordBatch::try_from_iter([("count", numbers)]).expect("a batch");
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), None).expect("a writer");
        writer.write(&batch).expect("written");
        let metadata = writer.close().expect("closed");
        check(&file).expect("admitted");
        let groups = vec![metadata.row_group(0).clone(); 100];
        let shared = ParquetMetaData::new(metadata.file_metadata().clone(), groups);
        let end = ParquetMetaDataWriter::new(&mut file, &shared);
        end.finish().expect("written");
        let error = check(&file).map(drop).expect_err("refused");
        assert_eq!(error, "its columns together are longer than the file");
    }
}
