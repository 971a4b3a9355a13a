//! Declares row types: each with its documentation, which docs/profile-format.md is made of.
//!
//! `pub new_name was old_name: Type` is a column that older profiles have under another name, and
//! `pub list: Vec<Part> => Part` one whose elements a `part!` describes.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array};

use crate::TaskKey;

/// Derives what every row type has.
macro_rules! row_type {
    ($(#[$attribute:meta])* pub struct $row:ident { $($fields:tt)* }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Default, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(default)]
        pub struct $row { $($fields)* }
    };
}

/// The columns of a row type or a part of one.
macro_rules! columns {
    ($( [$($doc:expr)*] $column:ident $($part:ty)? ),*) => {
        &[$($crate::Column {
            name: stringify!($column),
            doc: &[$($doc),*],
            parts: columns!(@parts $($part)?),
        }),*]
    };
    (@parts) => { &[] };
    (@parts $part:ty) => { <$part>::COLUMNS };
}

/// The names of columns in older profiles.
macro_rules! renamed {
    ($( $column:ident $($old:ident)? ),*) => {
        &[$($((stringify!($old), stringify!($column)),)?)*]
    };
}

/// What serde makes of a row type. These are no defaults of the trait: as functions of each type they are compiled
/// once, here, and not again in every crate that reads a profile.
macro_rules! by_serde {
    (fields) => {
        fn fields() -> Vec<::arrow_schema::FieldRef> {
            $crate::segment::fields_of::<Self>()
        }
    };
    (batch) => {
        by_serde!(batch $crate::segment::batch_of);
    };
    (batch $batch:path) => {
        fn batch(
            fields: &[::arrow_schema::FieldRef],
            rows: &[Self],
        ) -> ::std::io::Result<::arrow_array::RecordBatch> {
            $batch(fields, rows)
        }
    };
    (rows) => {
        fn rows(batch: &::arrow_array::RecordBatch) -> Result<Vec<Self>, String> {
            ::serde_arrow::from_record_batch(batch).map_err(|e| e.to_string())
        }
    };
}

/// A table; `by FUNCTION` makes its columns without serde.
macro_rules! table {
    (
        $(#[doc = $doc:expr])*
        pub struct $row:ident in $id:ident $(by $batch:path)? {
            $( $(#[doc = $column_doc:expr])* pub $column:ident $(was $old:ident)? : $type:ty $(=> $part:ty)? ),* $(,)?
        }
    ) => {
        row_type! {
            $(#[doc = $doc])*
            pub struct $row { $( $(#[doc = $column_doc])* pub $column: $type ),* }
        }

        impl $crate::Table for $row {
            const ID: $crate::TableId = $crate::TableId::$id;
            const DOC: &'static [&'static str] = &[$($doc),*];
            const COLUMNS: &'static [$crate::Column] = columns!($( [$($column_doc)*] $column $($part)? ),*);
            const RENAMED: &'static [(&'static str, &'static str)] = renamed!($( $column $($old)? ),*);

            by_serde!(fields);
            by_serde!(batch $($batch)?);
            by_serde!(rows);
        }
    };
}

/// A table of very many rows of numbers: its columns are made without looking at each field of each row by name.
macro_rules! numbers {
    (
        $(#[doc = $doc:expr])*
        pub struct $row:ident in $id:ident {
            $( $(#[doc = $column_doc:expr])* pub $column:ident $(was $old:ident)? : $type:ty ),* $(,)?
        }
    ) => {
        row_type! {
            $(#[doc = $doc])*
            pub struct $row { $( $(#[doc = $column_doc])* pub $column: $type ),* }
        }

        impl $crate::Table for $row {
            const ID: $crate::TableId = $crate::TableId::$id;
            const DOC: &'static [&'static str] = &[$($doc),*];
            const COLUMNS: &'static [$crate::Column] = columns!($( [$($column_doc)*] $column ),*);
            const RENAMED: &'static [(&'static str, &'static str)] = renamed!($( $column $($old)? ),*);
            const DELTAS: bool = true;

            by_serde!(fields);
            by_serde!(rows);

            fn batch(
                fields: &[::arrow_schema::FieldRef],
                rows: &[Self],
            ) -> ::std::io::Result<::arrow_array::RecordBatch> {
                use $crate::tables::declare::Number;
                let schema = ::std::sync::Arc::new(::arrow_schema::Schema::new(fields.to_vec()));
                let columns = vec![$(<$type>::column(rows.iter().map(|row| row.$column))),*];
                ::arrow_array::RecordBatch::try_new(schema, columns).map_err(::std::io::Error::other)
            }
        }
    };
}

/// A struct in a list of a row.
macro_rules! part {
    (
        $(#[doc = $doc:expr])*
        $(#[derive($($derived:ident),+)])?
        pub struct $part:ident {
            $( $(#[doc = $column_doc:expr])* pub $column:ident : $type:ty ),* $(,)?
        }
    ) => {
        row_type! {
            $(#[doc = $doc])*
            $(#[derive($($derived),+)])?
            pub struct $part { $( $(#[doc = $column_doc])* pub $column: $type ),* }
        }

        impl $part {
            pub(crate) const COLUMNS: &'static [$crate::Column] = columns!($( [$($column_doc)*] $column ),*);
        }
    };
}

/// A type of number that columns have.
pub(super) trait Number: Sized {
    /// A column of them.
    fn column(values: impl Iterator<Item = Self>) -> ArrayRef;
}

impl Number for i32 {
    fn column(values: impl Iterator<Item = Self>) -> ArrayRef {
        Arc::new(Int32Array::from_iter_values(values))
    }
}

impl Number for TaskKey {
    fn column(values: impl Iterator<Item = Self>) -> ArrayRef {
        i64::column(values.map(|key| key.0))
    }
}

impl Number for i64 {
    fn column(values: impl Iterator<Item = Self>) -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(values))
    }
}
