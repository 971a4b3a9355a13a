//! Parses the lines of a log. Only needed fields are read; everything else is skipped without recursion.

mod plan;
mod stage;
mod task;
mod text;

use std::collections::BTreeMap;

use serde::Deserialize;

use self::plan::Plan;
use self::stage::{Ended, StageEvent, Started};
pub(crate) use self::text::Names;
use self::text::{Text, bounded, described, head_of};
use crate::event::{
    ApplicationStart, Environment, Event, ExecutorAdded, ExecutorRemoved, SqlEnd, SqlPlan, SqlStart,
};

/// The event of a line; `None` for kinds that no analysis needs.
///
/// # Errors
/// If the line is not JSON, or lacks the key fields of its event.
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
        "SparkListenerSQLExecutionStart" => with_plan::<SqlStarted>(line)?.event(),
        "SparkListenerSQLAdaptiveExecutionUpdate" => with_plan::<SqlChanged>(line)?.event(),
        "SparkListenerSQLExecutionEnd" => serde_json::from_slice::<SqlEnded>(line)?.event(),
        "SparkListenerEnvironmentUpdate" => serde_json::from_slice::<Configured>(line)?.event(),
        "SparkListenerApplicationStart" => serde_json::from_slice::<Application>(line)?.event(),
        "SparkListenerApplicationEnd" => {
            Event::ApplicationEnd(serde_json::from_slice::<Timestamp>(line)?.time_ms)
        }
        "SparkListenerLogStart" => {
            Event::LogStart(serde_json::from_slice::<Begun>(line)?.version.into_owned())
        }
        _ => return Ok(None),
    }))
}

/// An event with a plan. Reading a plan counts its depth itself, because queries are deeper than JSON usually is.
fn with_plan<'a, T: Deserialize<'a>>(line: &'a [u8]) -> serde_json::Result<T> {
    let mut deserializer = serde_json::Deserializer::from_slice(line);
    deserializer.disable_recursion_limit();
    let event = T::deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(event)
}

#[derive(Deserialize)]
struct Begun<'a> {
    #[serde(rename = "Spark Version", borrow)]
    version: Text<'a>,
}

#[derive(Deserialize)]
struct Timestamp {
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
            id: self.id.as_deref().map(bounded),
            attempt: self.attempt,
            name: bounded(&self.name),
            user: bounded(&self.user),
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
            executor: names.intern(&self.executor),
            host: names.intern(&self.info.host),
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
            executor: names.intern(&self.executor),
            reason: bounded(&self.reason),
            time_ms: self.time_ms,
        })
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
    #[serde(rename = "sparkPlanInfo")]
    plan: Option<Plan>,
}

impl SqlStarted {
    fn event(self) -> Event {
        Event::SqlStart(SqlStart {
            sql: self.sql,
            root: self.root.filter(|root| *root != self.sql),
            description: described(self.description),
            time_ms: self.time_ms,
            plan: self.plan.map(|plan| plan.0).unwrap_or_default(),
        })
    }
}

#[derive(Deserialize)]
struct SqlChanged {
    #[serde(rename = "executionId")]
    sql: i64,
    #[serde(rename = "sparkPlanInfo")]
    plan: Plan,
}

impl SqlChanged {
    fn event(self) -> Event {
        Event::SqlPlan(SqlPlan {
            sql: self.sql,
            plan: self.plan.0,
        })
    }
}

#[derive(Deserialize)]
struct SqlEnded {
    #[serde(rename = "executionId")]
    sql: i64,
    #[serde(rename = "time", default)]
    time_ms: i64,
    /// Empty for success; missing if Spark does not report it.
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
