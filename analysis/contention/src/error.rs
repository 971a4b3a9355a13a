//! Errors in the input.

use thiserror::Error;

use crate::{HostId, QueryId, Resource, StageId, TaskId};

/// Why tables are rejected.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum InputError {
    /// A time before the clock began.
    #[error("{what}: negative time {at} ns")]
    NegativeTime {
        /// The row.
        what: String,
        /// The time.
        at: i64,
    },
    /// A time that no clock shows in this century.
    #[error("{what}: time {at} ns is after the year 2096")]
    TooLate {
        /// The row.
        what: String,
        /// The time.
        at: i64,
    },
    /// A span that ends before it starts.
    #[error("{what}: ends at {end} ns, before it starts at {start} ns")]
    EndBeforeStart {
        /// The row.
        what: String,
        /// Its start.
        start: i64,
        /// Its end.
        end: i64,
    },
    /// NaN, infinite, negative, zero where that has no meaning, or so small or large that quotients overflow.
    #[error("{what}: {value:?} is not a possible amount; it must be {possible}")]
    Amount {
        /// The row.
        what: String,
        /// The number.
        value: f64,
        /// The range of possible values.
        possible: &'static str,
    },
    /// Something was used in an empty span, so there is no rate.
    #[error("{what}: units or blocked time in an empty span")]
    EmptySpan {
        /// The row.
        what: String,
    },
    /// Blocked time is negative or longer than the span it is in.
    #[error("task {}: blocked for {blocked_ns} ns in {span_ns} ns", task.0)]
    Blocked {
        /// The task.
        task: TaskId,
        /// The blocked time.
        blocked_ns: i64,
        /// The length of the span.
        span_ns: i64,
    },
    /// An interval outside its task's life.
    #[error("task {}: an interval lies outside the task's life", .0.0)]
    OutsideTask(TaskId),
    /// A row refers to a query that does not exist.
    #[error("no query {}", .0.0)]
    NoQuery(QueryId),
    /// A row refers to a stage that does not exist.
    #[error("no stage {}.{} of query {}", .0.stage, .0.attempt, .0.query.0)]
    NoStage(StageId),
    /// A row refers to a task that does not exist.
    #[error("no task {}", .0.0)]
    NoTask(TaskId),
    /// A row refers to a host that does not exist.
    #[error("no host {}", .0.0)]
    NoHost(HostId),
    /// Two rows for the same thing.
    #[error("{0} occurs twice")]
    Twice(String),
    /// Two capacities of a host's resource.
    #[error("host {} has two capacities for {}", .0.0, .1.name())]
    CapacityTwice(HostId, Resource),
    /// Shares of a stage's operators exceed 1.
    #[error("operators of stage {} of query {} sum to {sum}", stage.stage, stage.query.0)]
    Shares {
        /// The stage.
        stage: StageId,
        /// The sum.
        sum: f64,
    },
    /// Too many rows at the same time: an answer would take hours.
    #[error(
        "too many tasks run at the same time: {0} comparisons of rows with stages are needed, and {limit} are allowed. Select a part of \
         the time (--since, --until)", limit = crate::options::MOST_COMPARISONS
    )]
    TooMany(u64),
    /// Stages that wait for each other.
    #[error("the stages of query {} form a cycle", .0.0)]
    Cycle(QueryId),
}
