//! What a JVM gets in addition to Spark and the data.

use std::path::PathBuf;

use serde::Serialize;

/// Functions and profilers that a JVM gets in addition to Spark and the data.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Setup {
    /// Whether the queries use `spin(value, rounds)`, which computes for some rounds and returns the value.
    pub spin: bool,
    /// Functions that one operator of a plan calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marks: Option<Marks>,
    /// Whether async-profiler samples each query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub async_profiler: Option<AsyncProfiler>,
    /// Whether the JDK's Flight Recorder samples each query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flight_recorder: Option<FlightRecorder>,
    /// More settings of Spark, `KEY=VALUE`.
    #[serde(skip)]
    pub settings: &'static [&'static str],
}

/// Functions of `Marks.java`.
#[derive(Debug, Clone, Serialize)]
pub struct Marks {
    /// Functions that SQL calls as `mark_NAME`.
    pub functions: Vec<String>,
    /// A query with one column, which the view `mapped` maps.
    pub mapped: String,
}

/// Settings of async-profiler, which writes `QUERY_ROUND.KIND`.
#[derive(Debug, Clone, Serialize)]
pub struct AsyncProfiler {
    /// Its native library.
    pub library: PathBuf,
    /// CPU time between samples, such as `5ms`.
    pub interval: String,
    /// Directory of the results.
    pub into: PathBuf,
    /// `collapsed` stacks or a `jfr` recording.
    pub kind: &'static str,
}

/// Settings of the JDK's Flight Recorder, which writes `QUERY_ROUND.jfr`.
#[derive(Debug, Clone, Serialize)]
pub struct FlightRecorder {
    /// Wall time between samples, ms.
    pub period_ms: u32,
    /// Directory of the results.
    pub into: PathBuf,
}
