//! The columns of stacks. A profiler writes thousands of frames a second, and serde looks at each field of each by name.

use std::io::{Error, Result};
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, ListArray, RecordBatch, StructArray,
    UInt32Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, FieldRef, Schema};

use crate::{Frame, StackRow};

/// The columns of `StackRow::fields`.
///
/// # Errors
/// If `fields` are others.
pub(super) fn batch(fields: &[FieldRef], rows: &[StackRow]) -> Result<RecordBatch> {
    let item = match fields.get(1).map(|field| field.data_type()) {
        Some(DataType::List(item)) => item,
        _ => return Err(Error::other("frames are no list")),
    };
    let DataType::Struct(parts) = item.data_type() else {
        return Err(Error::other("a frame is no struct"));
    };
    let ids = Int64Array::from_iter_values(rows.iter().map(|row| row.stack.0));
    let lengths = OffsetBuffer::from_lengths(rows.iter().map(|row| row.frames.len()));
    let frames = StructArray::try_new(parts.clone(), frames(rows), None).map_err(Error::other)?;
    let frames = ListArray::try_new(Arc::clone(item), lengths, Arc::new(frames), None)
        .map_err(Error::other)?;
    let schema = Arc::new(Schema::new(fields.to_vec()));
    RecordBatch::try_new(schema, vec![Arc::new(ids), Arc::new(frames)]).map_err(Error::other)
}

/// The fields of all frames, in their order.
fn frames(rows: &[StackRow]) -> Vec<ArrayRef> {
    let all = || rows.iter().flat_map(|row| &row.frames);
    let count = rows.iter().map(|row| row.frames.len()).sum();
    let texts = |of: fn(&Frame) -> &str| -> ArrayRef {
        let bytes = all().map(|frame| of(frame).len()).sum();
        let mut texts = StringBuilder::with_capacity(count, bytes);
        for frame in all() {
            texts.append_value(of(frame));
        }
        Arc::new(texts.finish())
    };
    let numbers = |of: fn(&Frame) -> u32| -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(all().map(|frame| of(frame))))
    };
    let bci = Int32Array::from_iter_values(all().map(|frame| frame.bci));
    let inlined: BooleanArray = all().map(|frame| Some(frame.inlined)).collect();
    vec![
        texts(|frame| frame.kind.as_str()),
        texts(|frame| &frame.class),
        texts(|frame| &frame.method),
        texts(|frame| &frame.signature),
        texts(|frame| &frame.file),
        numbers(|frame| frame.line),
        Arc::new(bci),
        Arc::new(inlined),
        numbers(|frame| frame.line_before),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::batch_of;
    use crate::{FrameKind, StackId, Table};

    #[test]
    fn the_columns_are_those_of_serde() {
        let frame = |number: u32| {
            Arc::new(Frame {
                kind: [FrameKind::Java, FrameKind::Native][number as usize % 2],
                class: format!("class {number}"),
                method: format!("method {number}"),
                signature: format!("signature {number}"),
                file: format!("file {number}"),
                line: number,
                bci: -1,
                inlined: number.is_multiple_of(3),
                line_before: 7 * number,
            })
        };
        let row = |frames: std::ops::Range<u32>| StackRow {
            stack: StackId(-i64::from(frames.end)),
            frames: frames.map(frame).collect(),
        };
        let rows = [row(0..3), row(3..3), row(3..9)];
        for rows in [&rows[..], &[]] {
            let fields = StackRow::fields();
            let by_serde = batch_of(&fields, rows).unwrap();
            assert_eq!(batch(&fields, rows).unwrap(), by_serde);
        }
    }
}
