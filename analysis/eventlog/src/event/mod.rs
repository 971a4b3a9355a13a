//! Events, with the fields that analyses need.

mod task;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

pub use self::task::{Outcome, Task, TaskEnd, TaskMetrics};

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The begin of the log, with the version of Spark.
    LogStart(String),
    /// The application started.
    ApplicationStart(ApplicationStart),
    /// The application ended; ms since the epoch.
    ApplicationEnd(i64),
    /// The configuration; again after each change.
    Environment(Environment),
    /// An executor was added.
    ExecutorAdded(ExecutorAdded),
    /// An executor was removed.
    ExecutorRemoved(ExecutorRemoved),
    /// A job started.
    JobStart(JobStart),
    /// A job ended.
    JobEnd(JobEnd),
    /// A stage attempt started.
    StageSubmitted(Stage),
    /// A stage attempt succeeded or failed.
    StageCompleted(Stage),
    /// A task attempt started.
    TaskStart(Task),
    /// A task attempt succeeded or failed.
    TaskEnd(Box<TaskEnd>),
    /// A SQL execution started.
    SqlStart(SqlStart),
    /// Adaptive execution changed the plan of a SQL execution.
    SqlPlan(SqlPlan),
    /// A SQL execution ended.
    SqlEnd(SqlEnd),
}

/// The identity of an application.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplicationStart {
    /// Its id; some masters of Spark 2 do not assign one.
    pub id: Option<String>,
    /// The attempt, if the cluster manager has several (YARN).
    pub attempt: Option<String>,
    /// Its name.
    pub name: String,
    /// The user.
    pub user: String,
    /// Start, ms since the epoch.
    pub time_ms: i64,
}

/// The configuration of an application.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Environment {
    /// All `spark.*` properties. Spark has redacted secrets.
    pub spark: BTreeMap<String, String>,
    /// Version of Java, such as `17.0.9 (Debian)`.
    pub java_version: String,
}

/// An executor that was added.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutorAdded {
    /// Its id; `driver` in local mode.
    pub executor: Arc<str>,
    /// Its host.
    pub host: Arc<str>,
    /// Number of cores for tasks.
    pub cores: u32,
    /// ms since the epoch.
    pub time_ms: i64,
}

/// An executor that was removed.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutorRemoved {
    /// Its id.
    pub executor: Arc<str>,
    /// The reason.
    pub reason: String,
    /// ms since the epoch.
    pub time_ms: i64,
}

/// Local properties of the thread that started a job or stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Properties {
    /// The SQL execution (`spark.sql.execution.id`).
    pub sql: Option<i64>,
    /// The root execution, if the execution is part of another one (`spark.sql.execution.root.id`).
    pub root_sql: Option<i64>,
    /// The scheduler pool.
    pub pool: Option<String>,
    /// The job group.
    pub group: Option<String>,
    /// The job's description.
    pub description: Option<String>,
    /// Tags, comma-separated; Spark Connect names the user here.
    pub tags: Option<String>,
}

/// A job that started.
#[derive(Clone, Debug, PartialEq)]
pub struct JobStart {
    /// Its id.
    pub job: i64,
    /// ms since the epoch.
    pub time_ms: i64,
    /// Ids of its stages. Stages whose output still exists are skipped.
    pub stages: Vec<i32>,
    /// Its stages, as known before they run.
    pub infos: Vec<Stage>,
    /// Local properties.
    pub properties: Properties,
}

/// A job that ended.
#[derive(Clone, Debug, PartialEq)]
pub struct JobEnd {
    /// Its id.
    pub job: i64,
    /// ms since the epoch.
    pub time_ms: i64,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

/// A stage attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stage {
    /// Its id.
    pub stage: i32,
    /// Its attempt, from 0.
    pub attempt: i32,
    /// The short call site, such as `count at Job.scala:12`.
    pub name: String,
    /// The call site's stack.
    pub details: String,
    /// Number of tasks; a retry has only the missing ones.
    pub tasks: u32,
    /// Its RDDs, which identify its library and operators.
    pub rdds: Vec<Rdd>,
    /// Stages it reads from.
    pub parents: Vec<i32>,
    /// Submission, ms since the epoch.
    pub submitted_ms: Option<i64>,
    /// Completion, ms since the epoch.
    pub completed_ms: Option<i64>,
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// Local properties; only for [`Event::StageSubmitted`].
    pub properties: Properties,
    /// Final values of SQL metrics, by the ids of their accumulators; only for [`Event::StageCompleted`].
    pub metrics: Vec<(i64, String)>,
}

/// An RDD of a stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Rdd {
    /// Its id.
    pub rdd: i32,
    /// Its class or its given name.
    pub name: String,
    /// The name of the operation that made it (`Exchange`, `WholeStageCodegen (1)`, `textFile`).
    pub scope: Option<String>,
    /// The short call site.
    pub call_site: String,
    /// RDDs from which it is computed.
    pub parents: Vec<i32>,
    /// Number of partitions.
    pub partitions: u32,
    /// Number of partitions that were in the cache.
    pub cached_partitions: u32,
    /// Whether it is to be cached, in memory or on disk.
    pub persisted: bool,
}

/// A SQL execution that started.
#[derive(Clone, Debug, PartialEq)]
pub struct SqlStart {
    /// Its id.
    pub sql: i64,
    /// The root execution, if it is part of another one.
    pub root: Option<i64>,
    /// Text or call site.
    pub description: String,
    /// ms since the epoch.
    pub time_ms: i64,
    /// Its plan: nodes in pre-order.
    pub plan: Vec<PlanNode>,
}

/// A later plan of a SQL execution.
#[derive(Clone, Debug, PartialEq)]
pub struct SqlPlan {
    /// The execution.
    pub sql: i64,
    /// Nodes in pre-order.
    pub plan: Vec<PlanNode>,
}

/// A node of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanNode {
    /// Position of its parent; none for the root.
    pub parent: Option<usize>,
    /// Name, such as `HashAggregate`.
    pub name: String,
    /// The operator as the plan prints it.
    pub detail: String,
    /// Its metrics.
    pub metrics: Vec<SqlMetric>,
}

/// A metric of a plan's node.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct SqlMetric {
    /// Name, such as `number of output rows`.
    pub name: String,
    /// Id of its accumulator.
    #[serde(rename = "accumulatorId")]
    pub id: i64,
    /// Spark's type, such as `sum` or `nsTiming`.
    #[serde(rename = "metricType")]
    pub kind: String,
}

/// A SQL execution that ended.
#[derive(Clone, Debug, PartialEq)]
pub struct SqlEnd {
    /// Its id.
    pub sql: i64,
    /// ms since the epoch.
    pub time_ms: i64,
    /// Why it failed, if it did; unknown in Spark 2 and 3.0 to 3.3.
    pub failure: Option<String>,
}
