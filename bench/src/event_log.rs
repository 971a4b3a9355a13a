//! What Spark itself says of a run, from its event log: the tool-neutral truth.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

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
        let event: Value = serde_json::from_str(&line?)?;
        let name = event["Event"].as_str().unwrap_or_default();
        if name.ends_with("SparkListenerSQLExecutionStart") {
            let description = event["description"].as_str().unwrap_or_default();
            let id = event["executionId"].as_i64().unwrap_or(-1);
            descriptions.insert(id, description.to_owned());
        } else if name == "SparkListenerStageSubmitted" {
            let stage = event["Stage Info"]["Stage ID"].as_i64();
            let execution = event["Properties"]["spark.sql.execution.id"]
                .as_str()
                .and_then(|id| id.parse().ok());
            if let (Some(stage), Some(execution)) = (stage, execution) {
                stage_execution.insert(stage, execution);
            }
        } else if name == "SparkListenerTaskEnd" {
            let metrics = &event["Task Metrics"];
            let ns = |key: &str| metrics[key].as_f64().unwrap_or(0.0);
            let cpu = ns("Executor CPU Time") + ns("Executor Deserialize CPU Time");
            let stage = event["Stage ID"].as_i64().unwrap_or(-1);
            *stage_cpu.entry(stage).or_default() += cpu / 1e9;
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
