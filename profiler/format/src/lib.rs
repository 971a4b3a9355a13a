//! The profile directory: what is in it, how it is written, how it is read.
//!
//! A profile is a directory of Parquet segments, one folder a table, beside the generated sources:
//!
//! ```text
//! DIR/unfuse.json              format version
//! DIR/samples/HOST-PID-SEQ.parquet
//! DIR/stacks/…                 and so on: a folder for each table of [`TableId`]
//! DIR/sources/HASH.java        the text handed to the compiler, named by its hash
//! DIR/live/HOST-PID            held (flock) by a writer that is still at work
//! DIR/records.waiting/         files of records that are not tables yet
//! ```
//!
//! Every segment is written as `*.tmp` and renamed when complete, so a killed writer loses at most the
//! segment it was filling. Segments are plain Parquet: DuckDB, DataFusion and Spark read them too.
//!
//! ```
//! use unfuse_format::{ProfileDir, SampleRow, SegmentWriter, StackId, Table};
//! # let tmp = tempfile::tempdir().unwrap();
//! let dir = ProfileDir::create(&tmp.path().join("profile")).unwrap();
//! let mut samples = SegmentWriter::<SampleRow>::new(&dir, "host-1");
//! samples.push(SampleRow { stack: StackId(7), count: 3, weight_ns: 15_000_000, ..Default::default() });
//! samples.flush().unwrap();
//! let read = dir.read::<SampleRow>().unwrap();
//! assert_eq!(read.rows[0].count, 3);
//! ```

mod bounds;
mod columns;
mod count;
mod describe;
mod dir;
mod error;
mod footer;
mod ids;
mod live;
mod merge;
mod pages;
mod parquet_rows;
mod retention;
mod room;
mod segment;
mod tables;
mod thrift;
pub mod units;
mod words;

pub use bounds::Bounds;
pub use columns::{Columns, Numbers, Texts};
pub use count::counted;
pub use describe::describe_tables;
pub use dir::{FORMAT_VERSION, MANIFEST, ProfileDir, is_uri};
pub use error::{FormatError, Problem};
pub use ids::{ExecutionId, StackId, StageAttempt, TaskKey};
pub use live::LiveMarker;
pub use merge::{latest_processes, merge_executions, merge_stages};
pub use retention::{Retention, first_generation, generation_name};
pub use segment::{OpenSegment, SegmentWriter, TableRows};
pub use tables::*;
pub use words::{
    FrameKind, GARBAGE_COLLECTION, JIT_COMPILATION, RecordIdentity, RecordSourceKind, SampleKind,
    VM_OPERATIONS,
};
