//! Parquet files that claim more than they hold.

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder, StructBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Fields};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

/// Writes equal batches.
fn write(path: &Path, columns: Vec<(&str, ArrayRef)>, times: usize) {
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(None)
        .build();
    let file = std::fs::File::create(path).expect("created");
    let mut writer =
        ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("a writer");
    for _ in 0..times {
        writer.write(&batch).expect("written");
    }
    writer.close().expect("closed");
}

/// Millions of rows of one number, some KiB.
pub(crate) fn many_rows(path: &Path, column: &str) {
    let ones = Int64Array::from(vec![1; 1 << 20]);
    write(path, vec![(column, Arc::new(ones))], 32);
}

/// Half a MiB of text, in each of very many rows, by a dictionary.
pub(crate) fn long_text_in_each_row(path: &Path, column: &str) {
    let keys = Int32Array::from(vec![0; 1 << 18]);
    let text = StringArray::from(vec!["x".repeat(1 << 19)]);
    let array = DictionaryArray::<Int32Type>::try_new(keys, Arc::new(text)).expect("keys");
    write(path, vec![(column, Arc::new(array))], 1);
}

/// One stack with millions of frames.
pub(crate) fn one_endless_list(path: &Path) {
    const FRAMES: usize = 8 << 20;
    let fields = Fields::from(vec![Field::new("line", DataType::Int32, true)]);
    let mut stacks = ListBuilder::new(StructBuilder::from_fields(fields, FRAMES));
    for _ in 0..FRAMES {
        let frames = stacks.values();
        let line: &mut Int32Builder = frames.field_builder(0).expect("a column of lines");
        line.append_value(7);
        frames.append(true);
    }
    stacks.append(true);
    let stack = Int64Array::from(vec![1]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("stack", Arc::new(stack)),
        ("frames", Arc::new(stacks.finish())),
    ];
    write(path, columns, 1);
}

/// A page that claims to unpack to two GiB: its header is written anew.
pub(crate) fn lying_page(path: &Path, column: &str) {
    let numbers = Int64Array::from((0..1000).collect::<Vec<i64>>());
    write(path, vec![(column, Arc::new(numbers))], 1);
    let mut bytes = std::fs::read(path).expect("read");
    // Behind the magic number: type (field 1), then the unpacked size (field 2), both as zigzag numbers.
    assert_eq!((bytes[4], bytes[6]), (0x15, 0x15), "a page header");
    let size = bytes[7..].iter().take_while(|byte| **byte >= 0x80).count() + 1;
    let two_gib = [0xfe, 0xff, 0xff, 0xff, 0x0f];
    bytes.splice(7..7 + size, two_gib);
    std::fs::write(path, bytes).expect("written");
}

/// A footer that claims to be as long as it can be.
pub(crate) fn endless_footer(path: &Path) {
    let mut bytes = b"PAR1".to_vec();
    bytes.resize(3 << 20, 0x19);
    bytes.extend((3u32 << 20).wrapping_sub(12).to_le_bytes());
    bytes.extend(b"PAR1");
    std::fs::write(path, bytes).expect("written");
}
