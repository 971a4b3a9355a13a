//! What happened, as far as analyses ask for it.

mod task;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use self::task::{Outcome, Task, TaskEnd, TaskMetrics};

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The log begins; the version of Spark.
    LogStart(String),
    /// The application has started.
    ApplicationStart(ApplicationStart),
    /// It has ended; ms since the epoch.
    ApplicationEnd(i64),
    /// Its configuration; again where it changed.
    Environment(Environment),
    /// An executor is there.
    ExecutorAdded(ExecutorAdded),
    /// An executor is gone.
    ExecutorRemoved(ExecutorRemoved),
    /// A job has started.
    JobStart(JobStart),
    /// A job has ended.
    JobEnd(JobEnd),
    /// A stage attempt has started.
    StageSubmitted(Stage),
    /// A stage attempt has ended, well or not.
    StageCompleted(Stage),
    /// A task attempt has started.
    TaskStart(Task),
    /// A task attempt has ended, well or not.
    TaskEnd(Box<TaskEnd>),
    /// A SQL execution has started.
    SqlStart(SqlStart),
    /// A SQL execution has ended.
    SqlEnd(SqlEnd),
}

/// Which application.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplicationStart {
    /// Its id; some masters of Spark 2 give none.
    pub id: Option<String>,
    /// The attempt, on cluster managers that have several (YARN).
    pub attempt: Option<String>,
    /// Its name.
    pub name: String,
    /// Who runs it.
    pub user: String,
    /// ms since the epoch.
    pub time_ms: i64,
}

/// How it is configured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Environment {
    /// All `spark.*` properties that were set. Spark has struck out secrets.
    pub spark: BTreeMap<String, String>,
    /// Such as `17.0.9 (Debian)`.
    pub java_version: String,
}

/// An executor that came.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutorAdded {
    /// Its id; `driver` in local mode.
    pub executor: Arc<str>,
    /// Its host.
    pub host: Arc<str>,
    /// Cores that tasks get.
    pub cores: u32,
    /// ms since the epoch.
    pub time_ms: i64,
}

/// An executor that went.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutorRemoved {
    /// Its id.
    pub executor: Arc<str>,
    /// Why.
    pub reason: String,
    /// ms since the epoch.
    pub time_ms: i64,
}

/// What the thread that started a job or stage had set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Properties {
    /// The SQL execution it is of (`spark.sql.execution.id`).
    pub sql: Option<i64>,
    /// The execution that this is a part of, if of another (`spark.sql.execution.root.id`).
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
    /// Ids of its stages; those whose output is still there will not run.
    pub stages: Vec<i32>,
    /// The same with what is known of them before they run.
    pub infos: Vec<Stage>,
    /// What was set.
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
    /// The call site in short, such as `count at Job.scala:12`.
    pub name: String,
    /// The call site's stack.
    pub details: String,
    /// How many tasks it has; a retry has only those that are missing.
    pub tasks: u32,
    /// Its RDDs, which tell the library and operators that made it.
    pub rdds: Vec<Rdd>,
    /// Stages it reads from.
    pub parents: Vec<i32>,
    /// When it was submitted, ms since the epoch.
    pub submitted_ms: Option<i64>,
    /// When it was completed, ms since the epoch.
    pub completed_ms: Option<i64>,
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// What was set; only of [`Event::StageSubmitted`].
    pub properties: Properties,
}

/// An RDD of a stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Rdd {
    /// Its id.
    pub rdd: i32,
    /// Its class or the name it was given.
    pub name: String,
    /// The name of the operation that made it (`Exchange`, `WholeStageCodegen (1)`, `textFile`).
    pub scope: Option<String>,
    /// The call site in short.
    pub call_site: String,
    /// RDDs it is computed from.
    pub parents: Vec<i32>,
    /// Its partitions.
    pub partitions: u32,
    /// Of them, those that were in the cache.
    pub cached_partitions: u32,
    /// Whether it shall be cached, in memory or on disk.
    pub persisted: bool,
}

/// A SQL execution that started.
#[derive(Clone, Debug, PartialEq)]
pub struct SqlStart {
    /// Its id.
    pub sql: i64,
    /// The execution that this is a part of, if of another.
    pub root: Option<i64>,
    /// Text or call site.
    pub description: String,
    /// ms since the epoch.
    pub time_ms: i64,
}

/// A SQL execution that ended.
#[derive(Clone, Debug, PartialEq)]
pub struct SqlEnd {
    /// Its id.
    pub sql: i64,
    /// ms since the epoch.
    pub time_ms: i64,
    /// Why it failed, if it did; Spark 2 and 3.0 to 3.3 do not say.
    pub failure: Option<String>,
}
