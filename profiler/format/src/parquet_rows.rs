//! Rows of a Parquet file of which nothing is trusted.

use std::cell::Cell;
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Arc, Once};

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, RecordBatchReader};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};

use crate::Table;
use crate::pages::{self, Claims};
use crate::room::{Allowance, Room, VALUE};

/// Bytes of a text or a list beside its contents.
const HEADER: u64 = 24;
/// Longest footer, bytes. Ours have below 64 KiB.
const LONGEST_FOOTER: u32 = 1 << 20;

/// The rows of a file, or what is wrong with it. What they take in memory beyond what its size allows is taken from `room`.
pub(crate) fn rows<T: Table>(file: File, room: &Room) -> Result<Vec<T>, String> {
    // The Parquet reader panics over some damage that it should refuse.
    without_panic_message(|| read(file, room))
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

fn read<T: Table>(file: File, room: &Room) -> Result<Vec<T>, String> {
    let unreadable = |e: &dyn Display| format!("not a complete Parquet segment ({e})");
    let mut allowance = room.allowance(file.metadata().map_err(|e| e.to_string())?.len());
    let metadata = checked_metadata(&file, &allowance).map_err(|e| unreadable(&e))?;
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
        .build()
        .map_err(|e| unreadable(&e))?;
    if reader.schema().fields().is_empty() {
        // Without a column nothing bounds the rows that its header claims.
        return Err(format!("it has no columns of table {}", T::NAME));
    }
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch.map_err(|e| unreadable(&e))?;
        let inline = batch.num_rows().saturating_mul(size_of::<T>()) as u64;
        allowance.take(inline.saturating_add(row_bytes(&batch)))?;
        let part = T::rows(&batch);
        rows.extend(
            part.map_err(|e| format!("its columns are not those of table {} ({e})", T::NAME))?,
        );
    }
    Ok(rows)
}

/// The metadata of a segment whose pages claim no more than its size allows. Texts become views into their pages and
/// dictionaries, so that one long text in a dictionary is not copied for each row.
fn checked_metadata(file: &File, allowance: &Allowance<'_>) -> Result<ArrowReaderMetadata, String> {
    let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    check_footer(file).map_err(|e| e.to_string())?;
    let metadata = ArrowReaderMetadata::load(file, plain).map_err(|e| e.to_string())?;
    let mut claims = Claims::default();
    for row_group in metadata.metadata().row_groups() {
        for column in row_group.columns() {
            let (start, length) = column.byte_range();
            let range = start..start.saturating_add(length);
            let chunk = pages::claims(file, range).map_err(|e| e.to_string())?;
            claims.values = claims.values.saturating_add(chunk.values);
            claims.bytes = claims.bytes.saturating_add(chunk.bytes);
        }
    }
    allowance.admits(claims)?;
    let views = ArrowReaderOptions::new().with_schema(with_views(metadata.schema()));
    ArrowReaderMetadata::try_new(metadata.metadata().clone(), views).map_err(|e| e.to_string())
}

/// Refuses a footer that is longer than any of ours: what it unpacks to is a multiple of it.
pub(crate) fn check_footer(file: &File) -> io::Result<()> {
    let damaged = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidData, what));
    let Some(at) = file.metadata()?.len().checked_sub(8) else {
        return damaged("it is shorter than a footer");
    };
    let mut length = [0; 4];
    file.read_exact_at(&mut length, at)?;
    if u32::from_le_bytes(length) > LONGEST_FOOTER {
        return damaged("its footer is longer than any that unfuse writes");
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
