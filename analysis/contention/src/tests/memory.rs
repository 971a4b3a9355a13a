//! Who is blamed for waits for memory: those who hold it, and those for whom Spark keeps the free part.

use std::collections::BTreeMap;

use super::*;

/// An executor has 100 bytes of memory. The task of query 1 holds 30 bytes and waits for 4 s. The task of query 2 holds 20 bytes.
fn held() -> Tables {
    let mut tables = Tables::default();
    let life = span(0, 10);
    for (id, bytes, blocked_ns) in [(1, 30.0, 4 * S), (2, 20.0, 0)] {
        query(&mut tables, id, &[(0, &[], life)]);
        task(&mut tables, id, stage(id, 0), 0, life);
        tables.intervals.push(Interval {
            task: TaskId(id),
            kind: Kind::ExecutionMemory,
            span: life,
            units: 10.0 * bytes,
            blocked_ns,
        });
    }
    tables.capacities.push(Capacity {
        host: HostId(0),
        executor: Executor::default(),
        resource: Resource::Memory,
        per_second: 100.0,
    });
    tables
}

fn seconds(tables: Tables) -> Vec<(Culprit, f64)> {
    let workload = Workload::new(tables).unwrap();
    let options = Options {
        victims: [QueryId(1)].into(),
        ..Options::default()
    };
    let paths = Blame::new(&workload, &options).explanations(&workload);
    let mut seconds = BTreeMap::new();
    for path in paths {
        *seconds.entry(path.culprit).or_default() += path.seconds;
    }
    seconds.into_iter().collect()
}

#[test]
fn free_memory_counts_for_the_tasks_that_it_is_kept_for() {
    // Each task may hold 50 bytes: 30 of the free 50 are kept for the neighbour, and 20 for the victim.
    let found = seconds(held());
    let [(first, most), (second, least)] = found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(
        (first, second),
        (Culprit::Query(QueryId(2)), Culprit::Unknown)
    );
    close(most + least, 4.0);
    close(most / least, 50.0 / 20.0);
}

#[test]
fn a_cache_that_fills_the_pool_leaves_nothing_to_keep() {
    let mut tables = held();
    tables.intervals.push(Interval {
        task: TaskId(2),
        kind: Kind::StorageMemory,
        span: span(0, 10),
        units: 500.0,
        blocked_ns: 0,
    });
    let found = seconds(tables);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, Culprit::Query(QueryId(2)));
    close(found[0].1, 4.0);
}
