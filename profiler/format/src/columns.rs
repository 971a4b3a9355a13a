//! Rows of large tables, column by column: what a question does not need is not made.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrowPrimitiveType, PrimitiveArray, RecordBatch, StringViewArray};

/// Some columns of some rows. A column that older profiles lack has the default of its type in every row.
#[derive(Debug)]
pub struct Columns {
    batch: RecordBatch,
}

impl Columns {
    pub(crate) fn new(batch: RecordBatch) -> Self {
        Self { batch }
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// A column of texts.
    ///
    /// # Errors
    /// It is none.
    pub fn texts(&self, name: &str) -> Result<Texts<'_>, String> {
        let Some(column) = self.batch.column_by_name(name) else {
            return Ok(Texts(None));
        };
        let texts = column.as_string_view_opt();
        texts
            .map(|texts| Texts(Some(texts)))
            .ok_or_else(|| format!("its column {name} does not hold texts"))
    }

    /// A column of signed numbers of 32 bits.
    ///
    /// # Errors
    /// It is none.
    pub fn i32s(&self, name: &str) -> Result<Numbers<'_, Int32Type>, String> {
        self.numbers(name)
    }

    /// A column of signed numbers of 64 bits.
    ///
    /// # Errors
    /// It is none.
    pub fn i64s(&self, name: &str) -> Result<Numbers<'_, Int64Type>, String> {
        self.numbers(name)
    }

    /// A column of unsigned numbers of 32 bits.
    ///
    /// # Errors
    /// It is none.
    pub fn u32s(&self, name: &str) -> Result<Numbers<'_, UInt32Type>, String> {
        self.numbers(name)
    }

    /// A column of unsigned numbers of 64 bits.
    ///
    /// # Errors
    /// It is none.
    pub fn u64s(&self, name: &str) -> Result<Numbers<'_, UInt64Type>, String> {
        self.numbers(name)
    }

    fn numbers<P: ArrowPrimitiveType>(&self, name: &str) -> Result<Numbers<'_, P>, String> {
        let Some(column) = self.batch.column_by_name(name) else {
            return Ok(Numbers(None));
        };
        let numbers = column.as_primitive_opt();
        numbers
            .map(|numbers| Numbers(Some(numbers)))
            .ok_or_else(|| format!("its column {name} does not hold numbers of its type"))
    }
}

/// A column of texts.
#[derive(Debug, Clone, Copy)]
pub struct Texts<'a>(Option<&'a StringViewArray>);

impl<'a> Texts<'a> {
    /// The text of a row; empty where there is none.
    pub fn get(self, row: usize) -> &'a str {
        match self.0 {
            Some(texts) if texts.is_valid(row) => texts.value(row),
            _ => "",
        }
    }

    /// Whether a row certainly has the same text as the one before it. Equal texts that are stored twice are not found.
    pub fn repeats(self, row: usize) -> bool {
        let Some(texts) = self.0 else {
            return row > 0;
        };
        let same = row > 0 && texts.views()[row] == texts.views()[row - 1];
        same && texts.is_valid(row) == texts.is_valid(row - 1)
    }
}

/// A column of numbers.
#[derive(Debug)]
pub struct Numbers<'a, P: ArrowPrimitiveType>(Option<&'a PrimitiveArray<P>>);

impl<P: ArrowPrimitiveType> Numbers<'_, P> {
    /// The number of a row, if it has one.
    pub fn get(&self, row: usize) -> Option<P::Native> {
        let numbers = self.0?;
        numbers.is_valid(row).then(|| numbers.value(row))
    }

    /// The number of a row; 0 where there is none.
    pub fn or_zero(&self, row: usize) -> P::Native {
        self.get(row).unwrap_or_default()
    }
}
