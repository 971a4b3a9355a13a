//! The time of the analysis as concurrency grows (figure 15), on a simulated cluster.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use unfuse_contention::{
    Blame, By, Capacity, Executor, Explainer, Filter, Host, HostId, Interval, Kind, Options, Query,
    QueryId, Resource, Span, Stage, StageId, Tables, Task, TaskId, Workload, top,
};

use super::Contention;
use crate::page::{Figure, Measuring};
use crate::random::Random;
use crate::scale::{Run, run};

const S: i64 = 1_000_000_000;
/// Time between heartbeats, ns. Rows of a task are cut at each.
const HEARTBEAT: i64 = 2 * S;

/// A cluster and its workload.
#[derive(Debug, Clone, Copy)]
struct Cluster {
    /// Machines.
    hosts: u32,
    /// Task slots of each.
    slots: u32,
    /// Concurrent users. Each runs one query after the other.
    users: u64,
    /// Queries of each user.
    queries: u64,
    /// Stages of a query, one after the other.
    stages: u32,
    /// Tasks of a stage.
    tasks: u32,
}

impl Cluster {
    /// The paper's cluster: 19 workers of 8 cores.
    fn paper(users: u64, queries: u64) -> Self {
        Self {
            hosts: 19,
            slots: 8,
            users,
            queries,
            stages: 4,
            tasks: 100,
        }
    }

    /// A cluster with more users and machines.
    fn large(users: u64) -> Self {
        Self {
            hosts: 100,
            slots: 16,
            users,
            queries: 1,
            stages: 4,
            tasks: 100,
        }
    }
}

/// Size and time of an analysis.
#[derive(Debug, Clone, Copy)]
struct Took {
    /// Rows of the table of intervals.
    rows: usize,
    /// Simulated time, s.
    simulated_s: f64,
    /// Checking the tables, s.
    check_s: f64,
    /// Attributing the waits of the victims, s.
    blame_s: f64,
    /// All paths, and the ten worst culprits of each victim, s.
    explain_s: f64,
    /// `unfuse blame` from its start to its end, s.
    whole_s: f64,
    /// Its most memory, MiB.
    whole_mib: f64,
    /// Paths.
    paths: usize,
}

impl Took {
    /// Time of the whole analysis, s.
    fn sum_s(&self) -> f64 {
        self.check_s + self.blame_s + self.explain_s
    }
}

/// Measures and writes `contention-scaling.md`.
pub fn measure(asked: &Contention, results: &Path) -> Result<()> {
    let measures = [
        "analysis/contention/src",
        "cli/src/commands/blame",
        "report/src/blame",
    ];
    let page = Measuring::begin(results, "contention-scaling", &measures)?;
    let mut body = format!(
        "Made-up workloads: first the paper's cluster (19 workers of 8 cores) with one query for each user, \
         and with 15 one after the other; then one query for each user on 100 workers of 16 cores. A query has 4 stages of 100 tasks. Rows are cut at heartbeats of \
         2 s; tasks take half a second to eight. *Sum* is the analysis alone, in memory; *whole* is `unfuse blame` from its start to \
         its end on the same rows in CSV files (without the hosts' capacities, which are then what was used), so with reading them; memory \
         is the high-water mark of its resident set. Means of {} runs.\n\n\
         | users at once | queries | victims | tasks | rows | simulated, s | check, s | attribute, s | explain and rank, s | sum, s | whole, s | memory, MiB | paths |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        asked.runs
    );
    let clusters = [2, 4, 6, 8, 11].map(|users| Cluster::paper(users, 1));
    let all = clusters.into_iter().chain([Cluster::paper(11, 15)]);
    let many = [100, 1_000].map(Cluster::large);
    let one = many.map(|cluster| (cluster, Some(QueryId(cluster.users / 2))));
    let mut figures = Vec::new();
    let all = all.chain(many).map(|cluster| (cluster, None));
    for (cluster, victim) in all.chain(one) {
        let runs: Result<Vec<Took>> = (0..asked.runs).map(|_| analyse(cluster, victim)).collect();
        let runs = runs?;
        let of = |of: fn(&Took) -> f64| -> Vec<f64> { runs.iter().map(of).collect() };
        let mean = |part: fn(&Took) -> f64| of(part).iter().sum::<f64>() / runs.len() as f64;
        let queries = cluster.users * cluster.queries;
        let tasks = queries * u64::from(cluster.stages * cluster.tasks);
        let victims = if victim.is_some() { "one" } else { "all" };
        let _ = writeln!(
            body,
            "| {} | {queries} | {victims} | {tasks} | {} | {:.0} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.0} | {} |",
            cluster.users,
            runs[0].rows,
            runs[0].simulated_s,
            mean(|took| took.check_s),
            mean(|took| took.blame_s),
            mean(|took| took.explain_s),
            mean(Took::sum_s),
            mean(|took| took.whole_s),
            mean(|took| took.whole_mib),
            runs[0].paths,
        );
        if queries >= 11 {
            for (key, what, seconds) in [
                ("sum", "analysis", of(Took::sum_s)),
                (
                    "whole",
                    "`unfuse blame`, reading included",
                    of(|took| took.whole_s),
                ),
            ] {
                let name = format!("{key}_{queries}_{victims}");
                let what = format!("{what}: {queries} queries, {victims} as victim");
                figures.push(Figure::from_runs(&name, &what, &seconds, "s", 2));
            }
            let what =
                format!("`unfuse blame`, most memory: {queries} queries, {victims} as victim");
            let name = format!("memory_{queries}_{victims}");
            figures.push(Figure::from_runs(
                &name,
                &what,
                &of(|took| took.whole_mib),
                "MiB",
                0,
            ));
        }
    }
    page.finish(asked.runs, figures, &body)
}

/// Analyses the contention of one query, or of all.
fn analyse(cluster: Cluster, victim: Option<QueryId>) -> Result<Took> {
    let tables = simulate(cluster);
    let whole = whole(&tables, victim)?;
    let rows = tables.intervals.len();
    let ends = tables.tasks.iter().map(|task| task.span.end);
    let simulated_s = ends.max().unwrap_or(0) as f64 / S as f64;
    let begun = Instant::now();
    let workload = Workload::new(tables)?;
    let checked = Instant::now();
    let options = Options {
        victims: victim.into_iter().collect(),
        ..Options::default()
    };
    let blame = Blame::new(&workload, &options);
    let attributed = Instant::now();
    let mut explainer = Explainer::new(&workload, &blame);
    let (mut paths, mut its) = (0, Vec::new());
    for victim in blame.victims() {
        explainer.explain(*victim, &mut its);
        top(&workload, &its, &Filter::default(), By::Culprit, 10);
        paths += its.len();
    }
    Ok(Took {
        rows,
        simulated_s,
        check_s: (checked - begun).as_secs_f64(),
        blame_s: (attributed - checked).as_secs_f64(),
        explain_s: attributed.elapsed().as_secs_f64(),
        whole_s: whole.seconds,
        whole_mib: whole.mib,
        paths,
    })
}

/// Runs `unfuse blame` on the tables as CSV files.
fn whole(tables: &Tables, victim: Option<QueryId>) -> Result<Run> {
    let dir = tempfile::tempdir()?;
    let create = |name: &str| File::create(dir.path().join(name)).map(BufWriter::new);
    let mut intervals = create("intervals.csv")?;
    writeln!(
        intervals,
        "host,query,stage,task,kind,start_ns,end_ns,units,blocked_ns"
    )?;
    for row in &tables.intervals {
        let task = &tables.tasks[usize::try_from(row.task.0)?];
        let kind = match row.kind {
            Kind::RunQueue => "cpu",
            Kind::IoRead => "io-read",
            Kind::NetworkFetch => "network",
            _ => "execution-memory",
        };
        writeln!(
            intervals,
            "worker-{},{},{},{},{kind},{},{},{},{}",
            task.host.0,
            task.stage.query.0,
            task.stage.stage,
            row.task.0,
            row.span.start,
            row.span.end,
            row.units,
            row.blocked_ns
        )?;
    }
    intervals.flush()?;
    let mut stages = create("stages.csv")?;
    writeln!(stages, "query,stage,parents")?;
    for stage in &tables.stages {
        let parents: Vec<String> = stage.parents.iter().map(u32::to_string).collect();
        writeln!(
            stages,
            "{},{},{}",
            stage.id.query.0,
            stage.id.stage,
            parents.join(" ")
        )?;
    }
    stages.flush()?;
    let victim = victim.map(|victim| victim.0.to_string());
    let arguments: Vec<&str> = victim
        .iter()
        .flat_map(|victim| ["--victim", victim])
        .collect();
    run("blame", dir.path(), &arguments)
}

/// How far a user is with its queries.
struct Progress {
    query: u64,
    stage: u32,
    /// Tasks of the stage that have not started, and those that have started but not ended.
    waiting: u32,
    running: u32,
    begun: i64,
}

impl Progress {
    /// A user who starts the first query.
    fn new(cluster: Cluster) -> Self {
        Self {
            query: 0,
            stage: 0,
            waiting: cluster.tasks,
            running: 0,
            begun: 0,
        }
    }
}

/// Simulates the cluster. Users get slots in turn, as from a
/// fair scheduler; tasks take 0.5 s to 8 s.
fn simulate(cluster: Cluster) -> Tables {
    let mut random = Random(7);
    let mut tables = Tables::default();
    add_hosts(&mut tables, cluster);
    let mut users: Vec<Progress> = (0..cluster.users).map(|_| Progress::new(cluster)).collect();
    let id = |user: usize, query: u64| QueryId(user as u64 * cluster.queries + query);
    let mut free: Vec<u32> = (0..cluster.hosts * cluster.slots).collect();
    let mut running: BinaryHeap<Reverse<(i64, u32, usize)>> = BinaryHeap::new();
    let (mut now, mut turn) = (0, 0);
    loop {
        while !free.is_empty() {
            let count = users.len();
            let next = (0..count)
                .map(|step| (turn + step) % count)
                .find(|user| users[*user].waiting > 0);
            let Some(user) = next else { break };
            let Some(slot) = free.pop() else { break };
            turn = user + 1;
            let length = S / 2 + random.below(15 * S as u64 / 2) as i64;
            let progress = &mut users[user];
            progress.waiting -= 1;
            progress.running += 1;
            let stage = StageId {
                query: id(user, progress.query),
                stage: progress.stage,
                attempt: 0,
            };
            let span = Span {
                start: now,
                end: now + length,
            };
            task(
                &mut tables,
                &mut random,
                stage,
                HostId(slot % cluster.hosts),
                span,
            );
            running.push(Reverse((span.end, slot, user)));
        }
        let Some(Reverse((end, slot, user))) = running.pop() else {
            break;
        };
        now = end;
        free.push(slot);
        let progress = &mut users[user];
        progress.running -= 1;
        if progress.running > 0 || progress.waiting > 0 {
            continue;
        }
        let query = id(user, progress.query);
        tables.stages.push(Stage {
            id: StageId {
                query,
                stage: progress.stage,
                attempt: 0,
            },
            parents: progress.stage.checked_sub(1).into_iter().collect(),
            span: Span {
                start: progress.begun,
                end: now,
            },
        });
        progress.begun = now;
        progress.stage += 1;
        if progress.stage == cluster.stages {
            tables.queries.push(query_row(query, user));
            progress.stage = 0;
            progress.query += 1;
        }
        if progress.query < cluster.queries {
            progress.waiting = cluster.tasks;
        }
    }
    tables
}

fn add_hosts(tables: &mut Tables, cluster: Cluster) {
    for host in 0..cluster.hosts {
        let id = HostId(host);
        tables.hosts.push(Host {
            id,
            name: format!("worker-{host}"),
        });
        for (resource, per_second) in [
            (Resource::Cpu, f64::from(cluster.slots)),
            (Resource::Network, 1.25e9),
        ] {
            tables.capacities.push(Capacity {
                host: id,
                executor: Executor::default(),
                resource,
                per_second,
            });
        }
    }
}

fn query_row(id: QueryId, user: usize) -> Query {
    Query {
        id,
        name: id.0.to_string(),
        application: String::new(),
        label: format!("query {}", id.0),
        user: format!("user{user}"),
        pool: format!("user{user}"),
        weight: 1.0,
    }
}

/// Adds a task that computes, reads, fetches and holds memory.
fn task(tables: &mut Tables, random: &mut Random, stage: StageId, host: HostId, span: Span) {
    let id = TaskId(tables.tasks.len() as u64);
    tables.tasks.push(Task {
        id,
        stage,
        host,
        executor: Executor::default(),
        span,
        runs: true,
    });
    let mut start = span.start;
    while start < span.end {
        let end = ((start / HEARTBEAT + 1) * HEARTBEAT).min(span.end);
        let seconds = (end - start) as f64 / S as f64;
        for (kind, per_second) in [
            (Kind::RunQueue, 1.0),
            (Kind::IoRead, 1e8),
            (Kind::NetworkFetch, 5e7),
            (Kind::ExecutionMemory, 1e8),
        ] {
            let part = random.below(100) as f64 / 100.0;
            tables.intervals.push(Interval {
                task: id,
                kind,
                span: Span { start, end },
                units: per_second * seconds * (1.0 - part),
                blocked_ns: ((end - start) as f64 * part / 4.0) as i64,
            });
        }
        start = end;
    }
}
