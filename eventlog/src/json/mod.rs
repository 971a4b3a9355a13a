//! Lines of a log as events. Only fields that are needed are taken; all else is skipped without recursion, so that plans may
//! nest as deep as they like.

mod task;
mod text;

use std::collections::BTreeMap;

use serde::Deserialize;

pub(crate) use self::text::Names;
use self::text::{Text, bounded, head_of, moment, owned};
use crate::event::{
    ApplicationStart, Environment, Event, ExecutorAdded, ExecutorRemoved, JobEnd, JobStart,
    Properties, Rdd, SqlEnd, SqlStart, Stage,
};

/// The event of a line; none if it is of a kind that nobody here asks for.
///
/// # Errors
/// If the line is no JSON or lacks what identifies the event.
pub(crate) fn event(line: &[u8], names: &mut Names) -> serde_json::Result<Option<Event>> {
    let kind = head_of(line)?;
    let kind = kind.rsplit('.').next().unwrap_or_default();
    Ok(Some(match kind {
        "SparkListenerTaskEnd" => serde_json::from_slice::<task::End>(line)?.event(names),
        "SparkListenerTaskStart" => serde_json::from_slice::<task::Start>(line)?.event(names),
        "SparkListenerStageSubmitted" => {
            Event::StageSubmitted(serde_json::from_slice::<StageEvent>(line)?.stage())
        }
        "SparkListenerStageCompleted" => {
            Event::StageCompleted(serde_json::from_slice::<StageEvent>(line)?.stage())
        }
        "SparkListenerJobStart" => serde_json::from_slice::<Started>(line)?.event(),
        "SparkListenerJobEnd" => serde_json::from_slice::<Ended>(line)?.event(),
        "SparkListenerExecutorAdded" => serde_json::from_slice::<Added>(line)?.event(names),
        "SparkListenerExecutorRemoved" => serde_json::from_slice::<Removed>(line)?.event(names),
        "SparkListenerSQLExecutionStart" => serde_json::from_slice::<SqlStarted>(line)?.event(),
        "SparkListenerSQLExecutionEnd" => serde_json::from_slice::<SqlEnded>(line)?.event(),
        "SparkListenerEnvironmentUpdate" => serde_json::from_slice::<Configured>(line)?.event(),
        "SparkListenerApplicationStart" => serde_json::from_slice::<Application>(line)?.event(),
        "SparkListenerApplicationEnd" => {
            Event::ApplicationEnd(serde_json::from_slice::<Stamped>(line)?.time_ms)
        }
        "SparkListenerLogStart" => {
            Event::LogStart(serde_json::from_slice::<Begun>(line)?.version.into_owned())
        }
        _ => return Ok(None),
    }))
}

#[derive(Deserialize)]
struct Begun<'a> {
    #[serde(rename = "Spark Version", borrow)]
    version: Text<'a>,
}

#[derive(Deserialize)]
struct Stamped {
    #[serde(rename = "Timestamp")]
    time_ms: i64,
}

#[derive(Deserialize)]
struct Application {
    #[serde(rename = "App ID")]
    id: Option<String>,
    #[serde(rename = "App Attempt ID")]
    attempt: Option<String>,
    #[serde(rename = "App Name", default)]
    name: String,
    #[serde(rename = "User", default)]
    user: String,
    #[serde(rename = "Timestamp")]
    time_ms: i64,
}

impl Application {
    fn event(self) -> Event {
        Event::ApplicationStart(ApplicationStart {
            id: self.id,
            attempt: self.attempt,
            name: self.name,
            user: self.user,
            time_ms: self.time_ms,
        })
    }
}

#[derive(Deserialize)]
struct Configured {
    #[serde(rename = "JVM Information", default)]
    jvm: BTreeMap<String, String>,
    #[serde(rename = "Spark Properties", default)]
    spark: BTreeMap<String, String>,
}

impl Configured {
    fn event(mut self) -> Event {
        Event::Environment(Environment {
            spark: self.spark,
            java_version: self.jvm.remove("Java Version").unwrap_or_default(),
        })
    }
}

#[derive(Deserialize)]
struct Added<'a> {
    #[serde(rename = "Timestamp")]
    time_ms: i64,
    #[serde(rename = "Executor ID", borrow)]
    executor: Text<'a>,
    #[serde(rename = "Executor Info", borrow)]
    info: ExecutorInfo<'a>,
}

#[derive(Deserialize)]
struct ExecutorInfo<'a> {
    #[serde(rename = "Host", borrow, default)]
    host: Text<'a>,
    #[serde(rename = "Total Cores", default)]
    cores: u32,
}

impl Added<'_> {
    fn event(self, names: &mut Names) -> Event {
        Event::ExecutorAdded(ExecutorAdded {
            executor: names.of(&self.executor),
            host: names.of(&self.info.host),
            cores: self.info.cores,
            time_ms: self.time_ms,
        })
    }
}

#[derive(Deserialize)]
struct Removed<'a> {
    #[serde(rename = "Timestamp")]
    time_ms: i64,
    #[serde(rename = "Executor ID", borrow)]
    executor: Text<'a>,
    #[serde(rename = "Removed Reason", borrow, default)]
    reason: Text<'a>,
}

impl Removed<'_> {
    fn event(self, names: &mut Names) -> Event {
        Event::ExecutorRemoved(ExecutorRemoved {
            executor: names.of(&self.executor),
            reason: bounded(&self.reason),
            time_ms: self.time_ms,
        })
    }
}

/// Of some hundred properties, those that say whose work it is.
#[derive(Default, Deserialize)]
struct Set<'a> {
    #[serde(rename = "spark.sql.execution.id", borrow)]
    sql: Option<Text<'a>>,
    #[serde(rename = "spark.sql.execution.root.id", borrow)]
    root_sql: Option<Text<'a>>,
    #[serde(rename = "spark.scheduler.pool", borrow)]
    pool: Option<Text<'a>>,
    #[serde(rename = "spark.jobGroup.id", borrow)]
    group: Option<Text<'a>>,
    #[serde(rename = "spark.job.description", borrow)]
    description: Option<Text<'a>>,
    #[serde(rename = "spark.job.tags", borrow)]
    tags: Option<Text<'a>>,
}

impl Set<'_> {
    fn properties(self) -> Properties {
        let number = |text: Option<Text>| text.and_then(|text| text.parse().ok());
        Properties {
            sql: number(self.sql),
            root_sql: number(self.root_sql),
            pool: owned(self.pool),
            group: owned(self.group),
            description: owned(self.description),
            tags: owned(self.tags),
        }
    }
}

#[derive(Deserialize)]
struct Started<'a> {
    #[serde(rename = "Job ID")]
    job: i64,
    #[serde(rename = "Submission Time", default)]
    time_ms: i64,
    #[serde(rename = "Stage Infos", borrow, default)]
    infos: Vec<StageInfo<'a>>,
    #[serde(rename = "Stage IDs", default)]
    stages: Vec<i32>,
    #[serde(rename = "Properties", borrow, default)]
    properties: Option<Set<'a>>,
}

impl Started<'_> {
    fn event(self) -> Event {
        Event::JobStart(JobStart {
            job: self.job,
            time_ms: self.time_ms,
            stages: self.stages,
            infos: self
                .infos
                .into_iter()
                .map(|info| info.stage(None))
                .collect(),
            properties: self.properties.unwrap_or_default().properties(),
        })
    }
}

#[derive(Deserialize)]
struct Ended {
    #[serde(rename = "Job ID")]
    job: i64,
    #[serde(rename = "Completion Time", default)]
    time_ms: i64,
    #[serde(rename = "Job Result")]
    result: JobResult,
}

#[derive(Deserialize)]
struct JobResult {
    #[serde(rename = "Result")]
    result: String,
    #[serde(rename = "Exception")]
    exception: Option<Thrown>,
}

#[derive(Deserialize)]
struct Thrown {
    #[serde(rename = "Message")]
    message: Option<String>,
}

impl Ended {
    fn event(self) -> Event {
        let message = self.result.exception.and_then(|thrown| thrown.message);
        let word = self.result.result;
        Event::JobEnd(JobEnd {
            job: self.job,
            time_ms: self.time_ms,
            failure: (word != "JobSucceeded").then(|| bounded(&message.unwrap_or(word))),
        })
    }
}

#[derive(Deserialize)]
struct StageEvent<'a> {
    #[serde(rename = "Stage Info", borrow)]
    info: StageInfo<'a>,
    #[serde(rename = "Properties", borrow, default)]
    properties: Option<Set<'a>>,
}

impl StageEvent<'_> {
    fn stage(self) -> Stage {
        self.info.stage(self.properties)
    }
}

#[derive(Deserialize)]
struct StageInfo<'a> {
    #[serde(rename = "Stage ID")]
    stage: i32,
    #[serde(rename = "Stage Attempt ID", default)]
    attempt: i32,
    #[serde(rename = "Stage Name", borrow, default)]
    name: Text<'a>,
    #[serde(rename = "Details", borrow, default)]
    details: Text<'a>,
    #[serde(rename = "Number of Tasks", default)]
    tasks: u32,
    #[serde(rename = "RDD Info", borrow, default)]
    rdds: Vec<RddInfo<'a>>,
    #[serde(rename = "Parent IDs", default)]
    parents: Vec<i32>,
    #[serde(rename = "Submission Time")]
    submitted_ms: Option<i64>,
    #[serde(rename = "Completion Time")]
    completed_ms: Option<i64>,
    #[serde(rename = "Failure Reason", borrow)]
    failure: Option<Text<'a>>,
}

impl StageInfo<'_> {
    fn stage(self, properties: Option<Set<'_>>) -> Stage {
        Stage {
            stage: self.stage,
            attempt: self.attempt,
            name: self.name.into_owned(),
            details: self.details.into_owned(),
            tasks: self.tasks,
            rdds: self.rdds.into_iter().map(RddInfo::rdd).collect(),
            parents: self.parents,
            submitted_ms: self.submitted_ms.and_then(moment),
            completed_ms: self.completed_ms.and_then(moment),
            failure: self.failure.as_deref().map(bounded),
            properties: properties.unwrap_or_default().properties(),
        }
    }
}

#[derive(Deserialize)]
struct RddInfo<'a> {
    #[serde(rename = "RDD ID")]
    rdd: i32,
    #[serde(rename = "Name", borrow, default)]
    name: Text<'a>,
    /// JSON in a text.
    #[serde(rename = "Scope", borrow)]
    scope: Option<Text<'a>>,
    #[serde(rename = "Callsite", borrow, default)]
    call_site: Text<'a>,
    #[serde(rename = "Parent IDs", default)]
    parents: Vec<i32>,
    #[serde(rename = "Number of Partitions", default)]
    partitions: u32,
    #[serde(rename = "Number of Cached Partitions", default)]
    cached_partitions: u32,
    #[serde(rename = "Storage Level", default)]
    storage: Storage,
}

#[derive(Default, Deserialize)]
struct Storage {
    #[serde(rename = "Use Disk", default)]
    disk: bool,
    #[serde(rename = "Use Memory", default)]
    memory: bool,
}

impl RddInfo<'_> {
    fn rdd(self) -> Rdd {
        #[derive(Deserialize)]
        struct Scope {
            name: String,
        }
        let scope = |text: Text| serde_json::from_str::<Scope>(&text).ok();
        Rdd {
            rdd: self.rdd,
            name: self.name.into_owned(),
            scope: self.scope.and_then(scope).map(|scope| scope.name),
            call_site: self.call_site.into_owned(),
            parents: self.parents,
            partitions: self.partitions,
            cached_partitions: self.cached_partitions,
            persisted: self.storage.disk || self.storage.memory,
        }
    }
}

#[derive(Deserialize)]
struct SqlStarted {
    #[serde(rename = "executionId")]
    sql: i64,
    #[serde(rename = "rootExecutionId")]
    root: Option<i64>,
    #[serde(default)]
    description: String,
    #[serde(rename = "time", default)]
    time_ms: i64,
}

impl SqlStarted {
    fn event(self) -> Event {
        Event::SqlStart(SqlStart {
            sql: self.sql,
            root: self.root.filter(|root| *root != self.sql),
            description: self.description,
            time_ms: self.time_ms,
        })
    }
}

#[derive(Deserialize)]
struct SqlEnded {
    #[serde(rename = "executionId")]
    sql: i64,
    #[serde(rename = "time", default)]
    time_ms: i64,
    /// Empty if all went well; missing where Spark does not say.
    #[serde(rename = "errorMessage")]
    error: Option<String>,
}

impl SqlEnded {
    fn event(self) -> Event {
        let failure = self.error.filter(|error| !error.is_empty());
        Event::SqlEnd(SqlEnd {
            sql: self.sql,
            time_ms: self.time_ms,
            failure: failure.as_deref().map(bounded),
        })
    }
}
