//! Which rows of a table a question needs, so that the others are not read.

use std::ops::RangeInclusive;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_schema::{ArrowError, DataType};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowPredicate, ArrowPredicateFn, RowFilter};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;

/// Ranges of numbers that all have to hold for a row. A row without the number is not in any range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bounds(Vec<(&'static str, RangeInclusive<i64>)>);

impl Bounds {
    /// Every row.
    pub const ALL: Self = Self(Vec::new());

    /// Only rows whose `column`, one of signed numbers, is in `range`. A column that a segment lacks leaves none of its
    /// rows.
    #[must_use]
    pub fn and(mut self, column: &'static str, range: RangeInclusive<i64>) -> Self {
        self.0.push((column, range));
        self
    }

    /// The row groups that may hold wanted rows, by their statistics.
    pub(crate) fn row_groups(&self, metadata: &ParquetMetaData) -> Vec<usize> {
        let groups = metadata.row_groups().iter().enumerate();
        groups
            .filter(|(_, group)| self.0.iter().all(|bound| may_hold(group, bound)))
            .map(|(index, _)| index)
            .collect()
    }

    /// Has the Parquet reader skip the other rows.
    ///
    /// # Errors
    /// A column that is bounded does not hold signed numbers.
    pub(crate) fn filter(
        &self,
        metadata: &ParquetMetaData,
        schema: &arrow_schema::Schema,
    ) -> Result<Option<RowFilter>, String> {
        let mut predicates: Vec<Box<dyn ArrowPredicate>> = Vec::new();
        for (column, range) in &self.0 {
            let Ok(index) = schema.index_of(column) else {
                continue;
            };
            if !matches!(
                schema.field(index).data_type(),
                DataType::Int32 | DataType::Int64
            ) {
                return Err(format!("its column {column} does not hold numbers"));
            }
            let mask = ProjectionMask::roots(metadata.file_metadata().schema_descr(), [index]);
            let range = range.clone();
            let predicate = move |batch: RecordBatch| held(&batch, &range);
            predicates.push(Box::new(ArrowPredicateFn::new(mask, predicate)));
        }
        Ok((!predicates.is_empty()).then(|| RowFilter::new(predicates)))
    }
}

/// Which rows of a batch of one column are in a range.
fn held(batch: &RecordBatch, range: &RangeInclusive<i64>) -> Result<BooleanArray, ArrowError> {
    let column = batch.column(0);
    let held = match column.data_type() {
        DataType::Int32 => {
            let numbers = column.as_primitive::<Int32Type>().iter();
            numbers
                .map(|number| number.is_some_and(|n| range.contains(&i64::from(n))))
                .collect::<Vec<bool>>()
        }
        DataType::Int64 => {
            let numbers = column.as_primitive::<Int64Type>().iter();
            numbers
                .map(|number| number.is_some_and(|n| range.contains(&n)))
                .collect()
        }
        other => {
            let error = format!("no number: {other}");
            return Err(ArrowError::SchemaError(error));
        }
    };
    Ok(held.into())
}

/// Whether a row group may have a number in the range.
fn may_hold(group: &RowGroupMetaData, (name, range): &(&'static str, RangeInclusive<i64>)) -> bool {
    let column = group
        .columns()
        .iter()
        .find(|column| column.column_path().parts() == [*name]);
    let Some(column) = column else { return false };
    let (low, high) = match column.statistics() {
        Some(Statistics::Int32(numbers)) => {
            let of = |number: Option<&i32>| number.copied().map(i64::from);
            (of(numbers.min_opt()), of(numbers.max_opt()))
        }
        Some(Statistics::Int64(numbers)) => {
            (numbers.min_opt().copied(), numbers.max_opt().copied())
        }
        _ => return true,
    };
    match low.zip(high) {
        Some((low, high)) => low <= *range.end() && high >= *range.start(),
        // Nulls only, or nothing is known.
        None => true,
    }
}
