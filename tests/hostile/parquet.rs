//! Parquet files that claim more than they hold.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder, StructBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Fields};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::metadata::{
    ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::file::properties::WriterProperties;

/// Writes equal batches.
fn write(path: &Path, columns: Vec<(&str, ArrayRef)>, times: usize) {
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(None)
        .build();
    let file = File::create(path).expect("created");
    let mut writer =
        ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("a writer");
    for _ in 0..times {
        writer.write(&batch).expect("written");
    }
    writer.close().expect("closed");
}

/// Millions of rows with the same number, in some KiB.
pub(crate) fn many_rows(path: &Path, column: &str) {
    let ones = Int64Array::from(vec![1; 1 << 20]);
    write(path, vec![(column, Arc::new(ones))], 32);
}

/// Many rows with half a MiB of text each, by a dictionary.
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

/// A page whose header claims that it unpacks to 2 GiB.
pub(crate) fn lying_page(path: &Path, column: &str) {
    let numbers = Int64Array::from((0..1000).collect::<Vec<i64>>());
    write(path, vec![(column, Arc::new(numbers))], 1);
    let mut bytes = std::fs::read(path).expect("read");
    // After the magic number: type (field 1), then the unpacked size (field 2), both as zigzag numbers.
    assert_eq!((bytes[4], bytes[6]), (0x15, 0x15), "a page header");
    let size = bytes[7..].iter().take_while(|byte| **byte >= 0x80).count() + 1;
    let two_gib = [0xfe, 0xff, 0xff, 0xff, 0x0f];
    bytes.splice(7..7 + size, two_gib);
    std::fs::write(path, bytes).expect("written");
}

/// A footer that claims to fill the file.
pub(crate) fn endless_footer(path: &Path) {
    let mut bytes = b"PAR1".to_vec();
    bytes.resize(3 << 20, 0x19);
    bytes.extend((3u32 << 20).wrapping_sub(12).to_le_bytes());
    bytes.extend(b"PAR1");
    std::fs::write(path, bytes).expect("written");
}

/// Writes a file that has only a footer.
fn only_footer(path: &Path, footer: &[u8]) {
    let length = u32::try_from(footer.len()).expect("a footer");
    let file = [b"PAR1", footer, &length.to_le_bytes(), b"PAR1"].concat();
    std::fs::write(path, file).expect("written");
}

/// The version, and the head of a schema with this number of elements (a varint). The elements follow.
fn schema(elements: &[u8]) -> Vec<u8> {
    [&[0x15, 2, 0x19, 0xfc], elements].concat()
}

/// The varint of 2^31 - 1.
const MOST: [u8; 5] = [0xff, 0xff, 0xff, 0xff, 0x07];

/// A footer of nested groups: 1 MiB has more levels than fit on a thread's stack.
pub(crate) fn deep_schema(path: &Path) {
    // 2^17 - 1 elements, each required, without a name and with one child.
    let mut footer = schema(&[0xff, 0xff, 0x07]);
    footer.extend([0x35, 0, 0x18, 0, 0x15, 2, 0].repeat((1 << 17) - 1));
    footer.push(0);
    only_footer(path, &footer);
}

/// A group that claims 2^31 - 1 columns.
pub(crate) fn endless_group(path: &Path) {
    let mut footer = schema(&[1]);
    footer.extend([0x48, 1, b'a', 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0, 0]);
    only_footer(path, &footer);
}

/// A list of 2^31 - 1 booleans without bytes, in a field that the Parquet reader skips (32).
pub(crate) fn endless_booleans(path: &Path) {
    let mut footer = vec![0x09, 64, 0xf1];
    footer.extend(MOST);
    footer.push(0);
    only_footer(path, &footer);
}

/// A list of lists, each with as many booleans as there are bytes.
pub(crate) fn many_booleans(path: &Path) {
    const LISTS: u32 = 1 << 17;
    // 2^17 lists of 2^17 booleans each: both numbers are the same varint.
    let number = [0x80, 0x80, 0x08];
    let mut footer = [&[0x09, 64, 0xf9][..], &number].concat();
    for _ in 0..LISTS {
        footer.push(0xf1);
        footer.extend(number);
    }
    // After the last list are as many bytes as it claims booleans.
    footer.resize(footer.len() + LISTS as usize, 0);
    only_footer(path, &footer);
}

/// A footer that claims 2^31 - 1 row groups.
pub(crate) fn endless_row_groups(path: &Path) {
    let mut footer = schema(&[1]);
    footer.extend([0x48, 1, b'a', 0, 0x29, 0xfc]);
    footer.extend(MOST);
    only_footer(path, &footer);
}

/// Appends pages to a file with one row group, and metadata with other row groups. `change` makes these from the row group
/// and the offset of the pages.
fn with_row_groups(
    path: &Path,
    pages: &[u8],
    change: impl FnOnce(RowGroupMetaData, i64) -> Vec<RowGroupMetaData>,
) {
    let mut bytes = std::fs::read(path).expect("read");
    let file = File::open(path).expect("open");
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&file);
    let metadata = metadata.expect("metadata");
    let groups = change(metadata.row_group(0).clone(), bytes.len() as i64);
    let metadata = ParquetMetaData::new(metadata.file_metadata().clone(), groups);
    bytes.extend(pages);
    let writer = ParquetMetaDataWriter::new(&mut bytes, &metadata);
    writer.finish().expect("written");
    std::fs::write(path, bytes).expect("written");
}

/// Thousands of row groups whose pages are the same.
pub(crate) fn shared_pages(path: &Path, column: &str) {
    // Numbers that do not compress.
    let numbers = (0..1i64 << 18).map(|n| n.wrapping_mul(0x1e37_79b9_7f4a_7c15));
    let numbers = Int64Array::from_iter_values(numbers);
    write(path, vec![(column, Arc::new(numbers))], 1);
    with_row_groups(path, &[], |group, _| vec![group; 3000]);
}

/// A column of a million pages without values and bytes.
pub(crate) fn pages_of_nothing(path: &Path, column: &str) {
    let ones = Int64Array::from(vec![1; 1000]);
    write(path, vec![(column, Arc::new(ones))], 1);
    let pages = [0x25, 0, 0x15, 0, 0].repeat(1 << 20);
    with_row_groups(path, &pages, |group, start| {
        let column = group.column(0).clone().into_builder();
        let column = column
            .set_data_page_offset(start)
            .set_dictionary_page_offset(None)
            .set_total_compressed_size(pages.len() as i64);
        let columns = vec![column.build().expect("a column")];
        let group = group.into_builder().set_column_metadata(columns);
        vec![group.build().expect("a row group")]
    });
}
