//! Events of jobs and stages.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::text::{Text, bounded, described, moment, owned};
use crate::event::{Event, JobEnd, JobStart, Properties, Rdd, Stage};

/// The few of about a hundred properties that identify the work.
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
            description: owned(self.description).map(described),
            tags: owned(self.tags),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Started<'a> {
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
    pub(super) fn event(self) -> Event {
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
pub(super) struct Ended {
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
    exception: Option<JobException>,
}

#[derive(Deserialize)]
struct JobException {
    #[serde(rename = "Message")]
    message: Option<String>,
}

impl Ended {
    pub(super) fn event(self) -> Event {
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
pub(super) struct StageEvent<'a> {
    #[serde(rename = "Stage Info", borrow)]
    info: StageInfo<'a>,
    #[serde(rename = "Properties", borrow, default)]
    properties: Option<Set<'a>>,
}

impl StageEvent<'_> {
    pub(super) fn stage(self) -> Stage {
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
    #[serde(rename = "Accumulables", borrow, default)]
    accumulables: Vec<Accumulable<'a>>,
}

#[derive(Deserialize)]
struct Accumulable<'a> {
    #[serde(rename = "ID")]
    id: i64,
    #[serde(rename = "Value", default)]
    value: Value,
    #[serde(rename = "Metadata", borrow)]
    metadata: Option<Text<'a>>,
}

impl Accumulable<'_> {
    fn metric(self) -> Option<(i64, String)> {
        let is_sql = self.metadata.as_deref() == Some("sql");
        Some((self.id, self.value.0.filter(|_| is_sql)?))
    }
}

/// Spark writes the values of its SQL metrics as texts or numbers. Those of other accumulators can be anything.
#[derive(Default)]
struct Value(Option<String>);

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("the value of an accumulator")
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value(Some(bounded(text))))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value(Some(number.to_string())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value(Some(number.to_string())))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
        Ok(Value(None))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Value, A::Error> {
        IgnoredAny.visit_seq(list)?;
        Ok(Value(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Value, A::Error> {
        IgnoredAny.visit_map(map)?;
        Ok(Value(None))
    }
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
            metrics: self
                .accumulables
                .into_iter()
                .filter_map(Accumulable::metric)
                .collect(),
        }
    }
}

#[derive(Deserialize)]
struct RddInfo<'a> {
    #[serde(rename = "RDD ID")]
    rdd: i32,
    #[serde(rename = "Name", borrow, default)]
    name: Text<'a>,
    /// JSON inside a text.
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
