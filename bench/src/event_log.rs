//! What Spark itself says of a run, from its event log: the tool-neutral truth.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

/// What is needed of an event. Plans, which nest deep, are skipped.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "Event")]
    name: String,
    description: Option<String>,
    #[serde(rename = "executionId")]
    execution: Option<i64>,
    #[serde(rename = "Stage ID")]
    stage: Option<i64>,
    #[serde(rename = "Stage Info")]
    stage_info: Option<StageInfo>,
    #[serde(rename = "Properties")]
    properties: Option<Properties>,
    #[serde(rename = "Task Metrics")]
    metrics: Option<TaskMetrics>,
}

#[derive(Deserialize)]
struct StageInfo {
    #[serde(rename = "Stage ID")]
    id: i64,
}

#[derive(Deserialize)]
struct Properties {
    #[serde(rename = "spark.sql.execution.id")]
    execution: Option<String>,
}

#[derive(Deserialize)]
struct TaskMetrics {
    #[serde(rename = "Executor CPU Time", default)]
    cpu_ns: u64,
    #[serde(rename = "Executor Deserialize CPU Time", default)]
    deserialize_cpu_ns: u64,
}

/// What operators say that they took, ms, by stage and by operator and name of the metric; of a stage's equal ones the sum.
pub type Timings = HashMap<i32, HashMap<(String, String), f64>>;

/// The timings of an event log's plans.
///
/// # Errors
/// If it cannot be read.
pub fn timings(log: &Path) -> Result<Timings> {
    let file = File::open(log).with_context(|| format!("cannot read {}", log.display()))?;
    // Plans change as they are run: the last one that names a metric counts.
    let mut metrics: HashMap<i64, (String, String)> = HashMap::new();
    let mut timings = Timings::new();
    for line in BufReader::new(file).lines() {
        let event: Value = serde_json::from_str(&line?)?;
        collect(&event["sparkPlanInfo"], &mut metrics);
        if event["Event"] != "SparkListenerStageCompleted" {
            continue;
        }
        let stage = &event["Stage Info"];
        let id = stage["Stage ID"].as_i64().unwrap_or(-1) as i32;
        for accumulable in stage["Accumulables"].as_array().into_iter().flatten() {
            let metric = accumulable["ID"].as_i64().and_then(|id| metrics.get(&id));
            let value = accumulable["Value"]
                .as_str()
                .and_then(|v| v.parse::<f64>().ok());
            if let (Some(metric), Some(ms)) = (metric, value) {
                let of_stage = timings.entry(id).or_default();
                *of_stage.entry(metric.clone()).or_default() += ms;
            }
        }
    }
    Ok(timings)
}

/// Names the timings of a plan and what is below it.
fn collect(plan: &Value, metrics: &mut HashMap<i64, (String, String)>) {
    let operator = plan["nodeName"].as_str().unwrap_or_default().trim();
    for metric in plan["metrics"].as_array().into_iter().flatten() {
        if let (Some(id), Some(name), Some("timing")) = (
            metric["accumulatorId"].as_i64(),
            metric["name"].as_str(),
            metric["metricType"].as_str(),
        ) {
            metrics.insert(id, (operator.to_owned(), name.to_owned()));
        }
    }
    for child in plan["children"].as_array().into_iter().flatten() {
        collect(child, metrics);
    }
}

/// One SQL execution.
#[derive(Debug, Clone)]
pub struct Execution {
    /// Its id.
    pub id: i64,
    /// The job description it was run under.
    pub description: String,
    /// The stage with most CPU time.
    pub stage: i32,
    /// CPU time of that stage's tasks, s; as the samples, with the time to deserialize them.
    pub cpu_s: f64,
    /// The same of all its stages, s.
    pub all_cpu_s: f64,
}

/// The executions of an event log that ran stages, in order.
pub fn executions(log: &Path) -> Result<Vec<Execution>> {
    let file = File::open(log).with_context(|| format!("cannot read {}", log.display()))?;
    let mut descriptions: HashMap<i64, String> = HashMap::new();
    let mut stage_execution: HashMap<i64, i64> = HashMap::new();
    let mut stage_cpu: HashMap<i64, f64> = HashMap::new();
    for line in BufReader::new(file).lines() {
        let event: Event = serde_json::from_str(&line?)?;
        if event.name.ends_with("SparkListenerSQLExecutionStart") {
            let description = event.description.unwrap_or_default();
            descriptions.insert(event.execution.unwrap_or(-1), description);
        } else if event.name == "SparkListenerStageSubmitted" {
            let execution = event
                .properties
                .and_then(|properties| properties.execution?.parse().ok());
            if let (Some(stage), Some(execution)) = (event.stage_info, execution) {
                stage_execution.insert(stage.id, execution);
            }
        } else if event.name == "SparkListenerTaskEnd" {
            let ns = event
                .metrics
                .map_or(0, |task| task.cpu_ns + task.deserialize_cpu_ns);
            *stage_cpu.entry(event.stage.unwrap_or(-1)).or_default() += ns as f64 / 1e9;
        }
    }
    let mut best: HashMap<i64, (i64, f64)> = HashMap::new();
    let mut all: HashMap<i64, f64> = HashMap::new();
    for (stage, execution) in stage_execution {
        let cpu = stage_cpu.get(&stage).copied().unwrap_or(0.0);
        *all.entry(execution).or_default() += cpu;
        let entry = best.entry(execution).or_insert((stage, cpu));
        if cpu > entry.1 {
            *entry = (stage, cpu);
        }
    }
    let mut executions: Vec<Execution> = best
        .into_iter()
        .map(|(id, (stage, cpu_s))| Execution {
            id,
            description: descriptions.remove(&id).unwrap_or_default(),
            stage: stage as i32,
            cpu_s,
            all_cpu_s: all[&id],
        })
        .collect();
    executions.sort_by_key(|execution| execution.id);
    Ok(executions)
}
