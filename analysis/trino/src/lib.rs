//! The tables that `unfuse blame` reads, from what the servers of Trino say of running queries (appendix F of the paper
//! on iQCAR).
//!
//! The coordinator knows sums for each task: CPU time, time on a thread, bytes, memory. [`Meter`] makes rows of the
//! difference of two answers. Nothing here asks a server or writes a file.

mod amounts;
mod answer;
mod meter;
mod rows;

pub use answer::{Listed, NodeStatus, QueryInfo, State};
pub use meter::Meter;
pub use rows::{HostRow, IntervalRow, QueryRow, Rows, StageRow};
