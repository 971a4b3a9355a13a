//! Spark's own figures of a run, from its event log. They are the reference that no profiler influences.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use unfuse_eventlog::{Event, EventLog};

/// Times that operators report, ms: by stage, then by operator and name of the
/// metric. Equal operators of a stage are summed.
pub type Timings = HashMap<i32, HashMap<(String, String), f64>>;

/// Reads the times that operators report from an event log.
///
/// # Errors
/// If it cannot be read.
pub fn timings(log: &Path) -> Result<Timings> {
    let file = File::open(log).with_context(|| format!("cannot read {}", log.display()))?;
    // Spark changes plans while it runs them, so the last plan that names a metric counts.
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

/// Collects the names of the timings of a plan and of its children.
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
    /// When it started, ms since the epoch.
    pub started_ms: i64,
    /// When it ended, ms since the epoch.
    pub ended_ms: i64,
    /// The stage with most CPU time.
    pub stage: i32,
    /// CPU time of that stage's tasks, s. It includes their deserialization, as the samples do.
    pub cpu_s: f64,
    /// All its stages.
    pub stages: Vec<i32>,
    /// CPU time of all its stages, s.
    pub all_cpu_s: f64,
    /// The part of `all_cpu_s` that deserialized the tasks (`executorDeserializeCpuTime`), s.
    pub deserialize_cpu_s: f64,
}

impl Execution {
    /// The name of its query and its round, which the description consists of. Rounds to warm up are below 0.
    pub fn query_and_round(&self) -> Option<(&str, &str)> {
        self.description.rsplit_once(' ')
    }

    /// The name of its query; none in a round to warm up.
    pub fn counted_query(&self) -> Option<&str> {
        let (query, round) = self.query_and_round()?;
        (!round.starts_with('-')).then_some(query)
    }
}

/// The executions of an event log that ran stages, in order.
pub fn executions(log: &Path) -> Result<Vec<Execution>> {
    let mut events = EventLog::open(log)?;
    let mut started: HashMap<i64, (String, i64)> = HashMap::new();
    let mut ended: HashMap<i64, i64> = HashMap::new();
    let mut stage_execution: HashMap<i32, i64> = HashMap::new();
    // CPU time of a stage, and its part for deserialization, s.
    let mut stage_cpu: HashMap<i32, (f64, f64)> = HashMap::new();
    for event in &mut events {
        match event {
            Event::SqlStart(start) => {
                started.insert(start.sql, (start.description, start.time_ms));
            }
            Event::SqlEnd(end) => {
                ended.insert(end.sql, end.time_ms);
            }
            Event::StageSubmitted(stage) => {
                let execution = stage.properties.sql;
                stage_execution.extend(execution.map(|execution| (stage.stage, execution)));
            }
            Event::TaskEnd(end) => {
                let (all, deserialize) = stage_cpu.entry(end.task.stage).or_default();
                if let Some(task) = end.metrics {
                    *all += (task.cpu_ns + task.deserialize_cpu_ns) as f64 / 1e9;
                    *deserialize += task.deserialize_cpu_ns as f64 / 1e9;
                }
            }
            _ => {}
        }
    }
    if !events.damage().is_none() {
        bail!("{}", events.damage().notes().join("; "));
    }
    let mut best: HashMap<i64, (i32, f64)> = HashMap::new();
    let mut all: HashMap<i64, (Vec<i32>, f64, f64)> = HashMap::new();
    for (stage, execution) in stage_execution {
        let (cpu, deserialize) = stage_cpu.get(&stage).copied().unwrap_or_default();
        let (stages, sum, sum_deserialize) = all.entry(execution).or_default();
        stages.push(stage);
        *sum += cpu;
        *sum_deserialize += deserialize;
        let entry = best.entry(execution).or_insert((stage, cpu));
        if cpu > entry.1 {
            *entry = (stage, cpu);
        }
    }
    let mut executions: Vec<Execution> = best
        .into_iter()
        .map(|(id, (stage, cpu_s))| {
            let (stages, all_cpu_s, deserialize_cpu_s) = all.remove(&id).unwrap_or_default();
            let (description, started_ms) = started.remove(&id).unwrap_or_default();
            Execution {
                id,
                description,
                started_ms,
                ended_ms: ended.get(&id).copied().unwrap_or_default(),
                stage,
                cpu_s,
                stages,
                all_cpu_s,
                deserialize_cpu_s,
            }
        })
        .collect();
    executions.sort_by_key(|execution| execution.id);
    Ok(executions)
}
