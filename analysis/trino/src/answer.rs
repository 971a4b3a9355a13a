//! The parts of the servers' answers that are used (Trino 476).

use chrono::{DateTime, Utc};
use serde::Deserialize;

use crate::amounts::{bytes, seconds, time};

/// A query in the coordinator's list (`/v1/query`).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// Its id.
    pub query_id: String,
    /// Its state.
    pub state: State,
}

/// How far a query is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    /// It has ended, well.
    Finished,
    /// It has ended with an error.
    Failed,
    /// It waits, is planned, or runs.
    #[serde(other)]
    Going,
}

/// A query with its stages and tasks (`/v1/query/ID`).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueryInfo {
    pub(crate) query_id: String,
    pub(crate) session: Session,
    #[serde(default)]
    pub(crate) query: String,
    /// The stage that gives the result, as soon as the query is planned.
    pub(crate) output_stage: Option<Stage>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Session {
    #[serde(default)]
    pub(crate) user: String,
    #[serde(default)]
    pub(crate) source: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stage {
    /// `QUERY.NUMBER`.
    pub(crate) stage_id: String,
    #[serde(default)]
    pub(crate) tasks: Vec<Task>,
    /// Those whose output it reads.
    #[serde(default)]
    pub(crate) sub_stages: Vec<Stage>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Task {
    pub(crate) task_status: TaskStatus,
    /// When its server made the sums.
    #[serde(deserialize_with = "time")]
    pub(crate) last_heartbeat: DateTime<Utc>,
    pub(crate) stats: TaskStats,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskStatus {
    /// `QUERY.STAGE.NUMBER.ATTEMPT`.
    pub(crate) task_id: String,
    pub(crate) node_id: String,
    /// Its address.
    #[serde(rename = "self")]
    pub(crate) address: String,
}

/// Sums of a task since its start, over all its drivers.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskStats {
    #[serde(deserialize_with = "time")]
    pub(crate) create_time: DateTime<Utc>,
    #[serde(rename = "totalCpuTime", deserialize_with = "seconds")]
    pub(crate) cpu_s: f64,
    /// Time on a thread of the server, s.
    #[serde(rename = "totalScheduledTime", deserialize_with = "seconds")]
    pub(crate) scheduled_s: f64,
    #[serde(rename = "physicalInputReadTime", deserialize_with = "seconds")]
    pub(crate) reading_s: f64,
    #[serde(rename = "physicalInputDataSize", deserialize_with = "bytes")]
    pub(crate) read_bytes: f64,
    #[serde(rename = "physicalWrittenDataSize", deserialize_with = "bytes")]
    pub(crate) written_bytes: f64,
    #[serde(rename = "internalNetworkInputDataSize", deserialize_with = "bytes")]
    pub(crate) network_bytes: f64,
    /// Byte milliseconds.
    pub(crate) cumulative_user_memory: f64,
    #[serde(default)]
    pub(crate) queued_drivers: u32,
    #[serde(default)]
    pub(crate) running_drivers: u32,
    #[serde(default)]
    pub(crate) blocked_drivers: u32,
    #[serde(default)]
    pub(crate) blocked_reasons: Vec<String>,
}

impl TaskStats {
    /// Drivers that could run if they had a thread.
    pub(crate) fn runnable(&self) -> f64 {
        f64::from(self.queued_drivers) + f64::from(self.running_drivers)
    }

    /// Drivers that have not ended.
    pub(crate) fn live(&self) -> f64 {
        self.runnable() + f64::from(self.blocked_drivers)
    }

    /// Whether drivers wait for memory.
    pub(crate) fn waits_for_memory(&self) -> bool {
        let waits = |reason: &String| reason == "WAITING_FOR_MEMORY";
        self.blocked_reasons.iter().any(waits)
    }
}

/// What a server says of itself (`/v1/status`).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// Its name in rows.
    pub node_id: String,
    pub(crate) processors: u32,
    /// Part of all CPUs that all processes of the host use, 0 to 1; negative if unknown.
    pub(crate) system_cpu_load: f64,
    pub(crate) memory_info: MemoryInfo,
}

#[derive(Debug, Deserialize)]
pub(crate) struct MemoryInfo {
    pub(crate) pool: Pool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pool {
    pub(crate) max_bytes: u64,
    pub(crate) reserved_bytes: u64,
}
