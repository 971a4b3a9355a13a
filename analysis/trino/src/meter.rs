//! Rows from the differences of sums.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use chrono::{DateTime, Utc};

use crate::answer::{NodeStatus, QueryInfo, Stage, Task, TaskStats};
use crate::rows::{HostRow, IntervalRow, QueryRow, Rows, StageRow};

/// Most drivers of a task that have rows of their own; more of them share rows.
const MOST_DRIVERS: f64 = 128.0;
/// Longest label of a query, characters.
const LONGEST_LABEL: usize = 80;
/// Deepest tree of stages that is read.
const DEEPEST: usize = 100;

/// What was known of each task at the last look.
#[derive(Debug, Default)]
pub struct Meter {
    tasks: HashMap<String, (DateTime<Utc>, TaskStats)>,
    queries: HashSet<String>,
    stages: HashSet<(String, u32)>,
    /// Addresses of the servers that run tasks, by node id.
    servers: BTreeMap<String, String>,
    looks: HashMap<String, DateTime<Utc>>,
}

impl Meter {
    /// The rows since the last look at a query. A task's rows are for the time between two sums of its server.
    pub fn look(&mut self, info: &QueryInfo) -> Rows {
        let mut rows = Rows::default();
        if self.queries.insert(info.query_id.clone()) {
            rows.queries.push(query_row(info));
        }
        if let Some(stage) = &info.output_stage {
            self.look_at_stage(info, stage, DEEPEST, &mut rows);
        }
        rows
    }

    /// Forgets the tasks of a query that has ended.
    pub fn end(&mut self, query: &str) {
        let prefix = format!("{query}.");
        self.tasks.retain(|task, _| !task.starts_with(&prefix));
    }

    /// Addresses of the servers that have run tasks.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        let addresses: BTreeSet<&str> = self.servers.values().map(String::as_str).collect();
        addresses.into_iter()
    }

    /// The rows of a host since the last look at it, until `now`; none at the first look.
    pub fn host(&mut self, status: &NodeStatus, now: DateTime<Utc>) -> Vec<HostRow> {
        let before = self.looks.insert(status.node_id.clone(), now);
        let Some((start_ns, end_ns)) = before.and_then(|before| span(before, now)) else {
            return Vec::new();
        };
        let seconds = (end_ns - start_ns) as f64 / 1e9;
        let row = |resource, used: f64, capacity| HostRow {
            host: status.node_id.clone(),
            resource,
            start_ns,
            end_ns,
            units: used * seconds,
            capacity,
        };
        let cpus = f64::from(status.processors);
        let pool = &status.memory_info.pool;
        let mut rows = vec![row(
            "memory",
            pool.reserved_bytes as f64,
            pool.max_bytes as f64,
        )];
        if (0.0..=1.0).contains(&status.system_cpu_load) {
            rows.push(row("CPU", status.system_cpu_load * cpus, cpus));
        }
        rows
    }

    fn look_at_stage(&mut self, info: &QueryInfo, stage: &Stage, depth: usize, rows: &mut Rows) {
        let Some(number) = number_of(&stage.stage_id) else {
            return;
        };
        if self.stages.insert((info.query_id.clone(), number)) {
            let parents = stage.sub_stages.iter();
            let parents = parents.filter_map(|parent| number_of(&parent.stage_id));
            let parents: Vec<String> = parents.map(|parent| parent.to_string()).collect();
            rows.stages.push(StageRow {
                query: info.query_id.clone(),
                stage: number,
                attempt: 0,
                parents: parents.join(" "),
            });
        }
        for task in &stage.tasks {
            self.look_at_task(&info.query_id, number, task, rows);
        }
        if depth > 0 {
            for parent in &stage.sub_stages {
                self.look_at_stage(info, parent, depth - 1, rows);
            }
        }
    }

    fn look_at_task(&mut self, query: &str, stage: u32, task: &Task, rows: &mut Rows) {
        let status = &task.task_status;
        if let Some(server) = server_of(&status.address) {
            self.servers.insert(status.node_id.clone(), server);
        }
        let now = (task.last_heartbeat, task.stats.clone());
        let before = match self.tasks.get(&status.task_id) {
            Some((at, _)) if *at >= now.0 => return,
            Some(before) => before.clone(),
            None => (task.stats.create_time, at_start(&task.stats)),
        };
        let Some(times) = span(before.0, now.0) else {
            return;
        };
        // `NUMBER.ATTEMPT` is behind the stage.
        let name = status.task_id.splitn(3, '.').nth(2).unwrap_or("0.0");
        let attempt = name.rsplit('.').next().and_then(|text| text.parse().ok());
        for driver in Drivers::new(&before.1, &now.1, times).rows() {
            let (number, kind, units, blocked_ns) = driver;
            rows.intervals.push(IntervalRow {
                host: status.node_id.clone(),
                query: query.to_owned(),
                stage,
                attempt: attempt.unwrap_or(0),
                task: format!("{name}/{number}"),
                kind,
                start_ns: times.0,
                end_ns: times.1,
                units,
                blocked_ns,
            });
        }
        self.tasks.insert(status.task_id.clone(), now);
    }
}

/// What the drivers of a task used and waited for in a span. A server says it of all together; each driver gets an equal
/// part.
struct Drivers {
    number: f64,
    length_ns: i64,
    /// Kind, units and blocked seconds of all.
    sums: Vec<(&'static str, f64, f64)>,
}

impl Drivers {
    fn new(before: &TaskStats, now: &TaskStats, (start_ns, end_ns): (i64, i64)) -> Self {
        let seconds = (end_ns - start_ns) as f64 / 1e9;
        let grown = |of: fn(&TaskStats) -> f64| (of(now) - of(before)).max(0.0);
        let mean = |of: fn(&TaskStats) -> f64| f64::midpoint(of(before), of(now));
        let cpu = grown(|stats| stats.cpu_s);
        let scheduled = grown(|stats| stats.scheduled_s);
        let reading = grown(|stats| stats.reading_s).min(scheduled);
        // On a thread, but not on a CPU.
        let queued = (scheduled - cpu - reading).max(0.0);
        let without_thread = (mean(TaskStats::runnable) * seconds - scheduled).max(0.0);
        let for_memory = match before.waits_for_memory() && now.waits_for_memory() {
            true => mean(|stats| f64::from(stats.blocked_drivers)) * seconds,
            false => 0.0,
        };
        let held = grown(|stats| stats.cumulative_user_memory) / 1e3;
        let busy = (scheduled + without_thread + for_memory) / seconds;
        let live = before.live().max(now.live());
        Self {
            number: busy.max(live).ceil().clamp(1.0, MOST_DRIVERS),
            length_ns: end_ns - start_ns,
            sums: vec![
                ("cpu", cpu, queued),
                ("io-read", grown(|stats| stats.read_bytes), reading),
                ("io-write", grown(|stats| stats.written_bytes), 0.0),
                ("network", grown(|stats| stats.network_bytes), 0.0),
                ("execution-memory", held, for_memory),
                ("slot", scheduled, without_thread),
            ],
        }
    }

    /// Number of the driver, kind, units and blocked time (ns) of each row. There is one of `cpu` for each driver, which
    /// says that it lived.
    fn rows(&self) -> impl Iterator<Item = (usize, &'static str, f64, i64)> {
        let blocked: f64 = self.sums.iter().map(|(_, _, blocked)| blocked).sum();
        let most = self.length_ns as f64 / 1e9 * self.number;
        let scale = if blocked > most { most / blocked } else { 1.0 };
        (0..self.number as usize).flat_map(move |driver| {
            let used = |(kind, units, blocked): &&(&str, f64, f64)| {
                *kind == "cpu" || *units > 0.0 || *blocked > 0.0
            };
            self.sums
                .iter()
                .filter(used)
                .map(move |(kind, units, blocked)| {
                    let ns = (blocked * scale / self.number * 1e9) as i64;
                    (driver, *kind, units / self.number, ns.min(self.length_ns))
                })
        })
    }
}

/// The sums of a task when it started.
fn at_start(stats: &TaskStats) -> TaskStats {
    TaskStats {
        cpu_s: 0.0,
        scheduled_s: 0.0,
        reading_s: 0.0,
        read_bytes: 0.0,
        written_bytes: 0.0,
        network_bytes: 0.0,
        cumulative_user_memory: 0.0,
        ..stats.clone()
    }
}

fn query_row(info: &QueryInfo) -> QueryRow {
    let source = info.session.source.as_deref().unwrap_or("");
    let text = if source.is_empty() {
        &info.query
    } else {
        source
    };
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    QueryRow {
        query: info.query_id.clone(),
        label: words.chars().take(LONGEST_LABEL).collect(),
        user: info.session.user.clone(),
        // A resource group admits queries; it does not share out CPUs as a pool of Spark does.
        pool: String::new(),
        weight: None,
    }
}

/// The number of a stage.
fn number_of(stage: &str) -> Option<u32> {
    stage.rsplit('.').next()?.parse().ok()
}

/// The address of a server from that of one of its tasks.
fn server_of(task: &str) -> Option<String> {
    let (scheme, rest) = task.split_once("://")?;
    let host = rest.split('/').next().filter(|host| !host.is_empty())?;
    Some(format!("{scheme}://{host}"))
}

/// Begin and end, ns since the epoch; `None` if nothing is between them.
fn span(from: DateTime<Utc>, to: DateTime<Utc>) -> Option<(i64, i64)> {
    let times = (from.timestamp_nanos_opt()?, to.timestamp_nanos_opt()?);
    (times.0 < times.1).then_some(times)
}

#[cfg(test)]
mod tests;
