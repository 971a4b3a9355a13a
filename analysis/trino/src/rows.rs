//! The rows of the tables (docs/contention.md, *Another engine*).

use serde::Serialize;

/// What a driver used, and for how long it could not proceed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IntervalRow {
    /// The server's node id.
    pub host: String,
    /// The query's id.
    pub query: String,
    /// Its stage.
    pub stage: u32,
    /// The attempt of the task.
    pub attempt: u32,
    /// The task, and the number of the driver in it.
    pub task: String,
    /// What was used or waited for, as a word of the table.
    pub kind: &'static str,
    /// From, ns since the epoch.
    pub start_ns: i64,
    /// Until, ns since the epoch.
    pub end_ns: i64,
    /// CPU seconds, bytes, byte seconds or slot seconds.
    pub units: f64,
    /// Blocked time, ns; at most the row's length.
    pub blocked_ns: i64,
}

/// What all processes of a host used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostRow {
    /// The server's node id.
    pub host: String,
    /// `CPU` or `memory`.
    pub resource: &'static str,
    /// From, ns since the epoch.
    pub start_ns: i64,
    /// Until, ns since the epoch.
    pub end_ns: i64,
    /// CPU seconds, or byte seconds of the server's pool.
    pub units: f64,
    /// Units a second.
    pub capacity: f64,
}

/// A query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueryRow {
    /// Its id.
    pub query: String,
    /// Its source, or the beginning of its text.
    pub label: String,
    /// Who runs it.
    pub user: String,
    /// Not known.
    pub pool: String,
    /// Not known.
    pub weight: Option<f64>,
}

/// A stage of a query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageRow {
    /// The query's id.
    pub query: String,
    /// Its number.
    pub stage: u32,
    /// Always 0: the stages of a query are not repeated.
    pub attempt: u32,
    /// Stages whose output it reads, with spaces between them.
    pub parents: String,
}

/// New rows of all tables.
#[derive(Debug, Default, PartialEq)]
pub struct Rows {
    /// Rows of `intervals.csv`.
    pub intervals: Vec<IntervalRow>,
    /// Rows of `queries.csv`.
    pub queries: Vec<QueryRow>,
    /// Rows of `stages.csv`.
    pub stages: Vec<StageRow>,
}
