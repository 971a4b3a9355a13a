//! The tables: which there are ([`every_table!`](crate::every_table)), and the row type of each.
//!
//! A table is declared twice: its row type in one of the files here, and its name in the list below. The compiler
//! refuses one without the other. Whoever handles all tables (writer, retention, docs/profile-format.md, tests) goes through
//! the list.
//!
//! A new table or column keeps old profiles readable: a missing column reads as its default (`#[serde(default)]` on all row
//! types). Another meaning or type of a column raises [`crate::FORMAT_VERSION`].

#[macro_use]
mod declare;
mod application;
mod code;
mod records;
mod resources;
mod samples;
mod stacks;

use arrow_array::RecordBatch;
use arrow_schema::FieldRef;
use serde::{Deserialize, Serialize};

pub use application::{
    Accumulator, ApplicationRow, ExecutionRow, ExecutorRow, JobRow, Setting, StageRow, TaskRow,
};
pub use code::{CodegenRow, Metric, PlanRow, RegionNode, SourceRow};
pub use records::{RecordInRow, RecordOutRow, RecordSourceRow, RecordTargetRow, RecordTextRow};
pub use resources::{CachedRow, CpuWaitRow, HostRow, IntervalRow, LockWaitRow, OutsideRow};
pub use samples::{
    EVENT_LOG, Frame, INSTRUCTION, NO_CALLERS, ProcessRow, SampleRow, StackRow, UNDESCRIBED,
};

/// The list of all tables. It calls a macro with, for each table, the variant of [`TableId`](crate::TableId), the name
/// (of its folder, and of the writer's field), the row type and the [`Lifetime`](crate::Lifetime) of its segments.
///
/// The first group are the tables that a profile's writer fills, in the order in which it writes them: stacks
/// before the samples that refer to them. The second group are those of followed records, which a thread of its own
/// fills; a reader that finds the sources of a task finds its records.
#[macro_export]
macro_rules! every_table {
    ($call:ident) => {
        $call! {
            {
                Stacks stacks: $crate::StackRow => Generation,
                Samples samples: $crate::SampleRow => Generation,
                SourceIndex source_index: $crate::SourceRow => Profile,
                Codegen codegen: $crate::CodegenRow => Generation,
                Applications applications: $crate::ApplicationRow => Generation,
                Executors executors: $crate::ExecutorRow => Generation,
                Jobs jobs: $crate::JobRow => Generation,
                Plans plans: $crate::PlanRow => Generation,
                Executions executions: $crate::ExecutionRow => Generation,
                Stages stages: $crate::StageRow => Generation,
                Tasks tasks: $crate::TaskRow => Generation,
                Intervals intervals: $crate::IntervalRow => Generation,
                Hosts hosts: $crate::HostRow => Generation,
                Outside outside: $crate::OutsideRow => Generation,
                CpuWaits cpu_waits: $crate::CpuWaitRow => Generation,
                LockWaits lock_waits: $crate::LockWaitRow => Generation,
                Cached cached: $crate::CachedRow => Generation,
                Processes processes: $crate::ProcessRow => Latest,
            }
            {
                RecordsIn records_in: $crate::RecordInRow => Profile,
                RecordsOut records_out: $crate::RecordOutRow => Profile,
                RecordTexts record_texts: $crate::RecordTextRow => Profile,
                RecordTargets record_targets: $crate::RecordTargetRow => Profile,
                RecordSources record_sources: $crate::RecordSourceRow => Profile,
            }
        }
    };
}

/// How long the segments of a table stay in a profile with limits ([`crate::Retention`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// As long as their generation.
    Generation,
    /// Until the same writer writes the next one; the last one until its writer has ended and all else of it is deleted.
    Latest,
    /// As long as the profile; they do not count towards its size.
    Profile,
}

macro_rules! table_ids {
    ($({ $($id:ident $name:ident: $row:ty => $lifetime:ident,)+ })+) => {
        /// A table of a profile.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum TableId {
            $($(#[doc = concat!("`", stringify!($name), "/`")] $id,)+)+
        }

        impl TableId {
            /// All tables.
            pub const ALL: &[Self] = &[$($(Self::$id,)+)+];

            /// The folder under the profile directory.
            pub const fn name(self) -> &'static str {
                match self {
                    $($(Self::$id => stringify!($name),)+)+
                }
            }

            /// How long its segments stay in a profile with limits.
            pub const fn lifetime(self) -> Lifetime {
                match self {
                    $($(Self::$id => Lifetime::$lifetime,)+)+
                }
            }

            /// What a row stands for; a line each.
            pub const fn doc(self) -> &'static [&'static str] {
                match self {
                    $($(Self::$id => <$row as Table>::DOC,)+)+
                }
            }

            /// Its columns.
            pub const fn columns(self) -> &'static [Column] {
                match self {
                    $($(Self::$id => <$row as Table>::COLUMNS,)+)+
                }
            }

            /// The Arrow fields of its columns, in their order.
            pub fn fields(self) -> Vec<FieldRef> {
                match self {
                    $($(Self::$id => <$row as Table>::fields(),)+)+
                }
            }
        }

        // Each row type is in the list under its own name.
        const _: () = {
            $($(assert!(<$row as Table>::ID as u8 == TableId::$id as u8);)+)+
        };
    };
}

every_table!(table_ids);

/// A column, for readers of the documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it means; a line each.
    pub doc: &'static [&'static str],
    /// Of a list of structs: the fields of one.
    pub parts: &'static [Column],
}

/// A row type that is stored as a table. `table!` and `numbers!` implement it.
pub trait Table: Serialize + for<'a> Deserialize<'a> + Send {
    /// Which table it is.
    const ID: TableId;

    /// The folder under the profile directory.
    const NAME: &'static str = Self::ID.name();

    /// What a row stands for; a line each.
    const DOC: &'static [&'static str];

    /// The columns.
    const COLUMNS: &'static [Column];

    /// Names of columns in older profiles, each with the one of today.
    const RENAMED: &'static [(&'static str, &'static str)];

    /// Numbers only, in such an order that the differences of neighbours are small: stored as these.
    const DELTAS: bool = false;

    /// The Arrow fields of the table.
    fn fields() -> Vec<FieldRef>;

    /// The rows in columns.
    ///
    /// # Errors
    /// If they do not fit the fields.
    fn batch(fields: &[FieldRef], rows: &[Self]) -> std::io::Result<RecordBatch>
    where
        Self: Sized;

    /// The rows of columns, which have the names of today.
    ///
    /// # Errors
    /// What the columns lack.
    fn rows(batch: &RecordBatch) -> Result<Vec<Self>, String>
    where
        Self: Sized;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_the_arrow_schema() {
        for table in TableId::ALL {
            let fields = table.fields();
            let names: Vec<_> = fields.iter().map(|field| field.name().as_str()).collect();
            let declared: Vec<_> = table.columns().iter().map(|column| column.name).collect();
            assert_eq!(names, declared, "{table:?}");
        }
    }

    /// Each column must be under its own name: many have the same type.
    #[test]
    fn columns_of_numbers_are_those_that_serde_finds() {
        let row = RecordInRow {
            task_key: crate::TaskKey(1),
            source: 2,
            position: 3,
            id: -4,
            ns: i64::MAX,
        };
        same(&[row, RecordInRow::default()]);
        let row = RecordOutRow {
            task_key: crate::TaskKey(1),
            output: 2,
            position: 3,
            key: -4,
            whole: i64::MIN,
            ns: 6,
            alone_ns: 5,
            source: 7,
            first: 8,
            count: 9,
        };
        same(&[row, RecordOutRow::default()]);
    }

    fn same<T: Table>(rows: &[T]) {
        let fields = T::fields();
        let by_serde = serde_arrow::to_record_batch(&fields, &rows).expect("a batch");
        assert_eq!(T::batch(&fields, rows).expect("a batch"), by_serde);
    }
}
