//! The paper's examples, and properties of any workload.

mod locks;
mod memory;
mod paper;
mod profile;
mod properties;
mod rules;
mod triage;

use crate::*;

const S: i64 = 1_000_000_000;

fn span(start: i64, end: i64) -> Span {
    Span {
        start: start * S,
        end: end * S,
    }
}

fn stage(query: u64, stage: u32) -> StageId {
    StageId {
        query: QueryId(query),
        stage,
        attempt: 0,
    }
}

/// Adds a query with one stage for each (number, parents, span).
fn query(tables: &mut Tables, id: u64, stages: &[(u32, &[u32], Span)]) {
    let query = Query {
        id: QueryId(id),
        name: id.to_string(),
        application: "a".into(),
        label: format!("q{id}"),
        user: "u".into(),
        pool: "p".into(),
        weight: 1.0,
    };
    tables.queries.push(query);
    for (number, parents, span) in stages {
        tables.stages.push(Stage {
            id: stage(id, *number),
            parents: parents.to_vec(),
            span: *span,
        });
    }
}

fn task(tables: &mut Tables, id: u64, stage: StageId, host: u32, span: Span) {
    if tables.hosts.iter().all(|row| row.id != HostId(host)) {
        tables.hosts.push(Host {
            id: HostId(host),
            name: format!("h{host}"),
        });
    }
    tables.tasks.push(Task {
        id: TaskId(id),
        stage,
        host: HostId(host),
        executor: Executor::default(),
        span,
        runs: true,
    });
}

fn reads(tables: &mut Tables, task: u64, span: Span, units: f64, blocked_ns: i64) {
    tables.intervals.push(Interval {
        task: TaskId(task),
        kind: Kind::IoRead,
        span,
        units,
        blocked_ns,
    });
}

fn disk(tables: &mut Tables, host: u32, per_second: f64) {
    tables.capacities.push(Capacity {
        host: HostId(host),
        executor: Executor::default(),
        resource: Resource::Io,
        per_second,
    });
}

#[track_caller]
fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-6 * (1.0 + a.abs()), "{a} is not {b}");
}
