use super::*;

/// Example 3.3: three tasks read 30, 60 and 120 bytes in a second from a disk of 210 bytes a second.
fn example() -> Tables {
    let mut tables = Tables::default();
    for (id, units) in [(1, 30.0), (2, 60.0), (3, 120.0)] {
        query(&mut tables, id, &[(0, &[], span(0, 1))]);
        task(&mut tables, id, stage(id, 0), 0, span(0, 1));
        reads(&mut tables, id, span(0, 1), units, S / 4);
    }
    disk(&mut tables, 0, 210.0);
    tables
}

#[test]
fn examples_3_3_and_3_4() {
    let workload = Workload::new(example()).unwrap();
    let cell = &cells(&workload, None).next().unwrap();
    let victim = &cell.tasks[0];
    close(cell.slowdown(victim), 6.0);
    let blame = cell.blame(&workload, victim);
    assert_eq!(
        blame.iter().map(|(who, _)| *who).collect::<Vec<_>>(),
        [CellCulprit::Task(TaskId(2)), CellCulprit::Task(TaskId(3))]
    );
    close(blame[0].1, 2.0);
    close(blame[1].1, 4.0);
    // Section 3.4: blocked for a quarter of the second only.
    close(
        cell.blocked_blame(&workload, victim, Kind::IoRead)[1].1,
        1.0,
    );
}

#[test]
fn figure_5_cuts_where_tasks_start_and_end() {
    let mut tables = Tables::default();
    query(&mut tables, 1, &[(0, &[], span(0, 20))]);
    // The victim; and others that begin before it, are inside it, contain it, end after it.
    for (id, life) in [
        (1, span(4, 14)),
        (2, span(2, 6)),
        (3, span(7, 9)),
        (4, span(0, 20)),
        (5, span(12, 16)),
    ] {
        task(&mut tables, id, stage(1, 0), 0, life);
    }
    tables.heartbeats.push(Heartbeat {
        host: HostId(0),
        at: 10 * S,
    });
    let workload = Workload::new(tables).unwrap();
    let cuts: Vec<i64> = windows(&workload, HostId(0))
        .iter()
        .map(|window| window.start / S)
        .collect();
    assert_eq!(cuts, [0, 2, 4, 6, 7, 9, 10, 12, 14, 16]);
}

#[test]
fn figure_6_shares_500_seconds_out_4_to_1() {
    let mut tables = Tables::default();
    query(&mut tables, 0, &[(0, &[], span(0, 1000))]);
    query(
        &mut tables,
        1,
        &[(1, &[], span(0, 1000)), (2, &[], span(0, 1000))],
    );
    for (id, of, units) in [
        (1, stage(0, 0), 100.0),
        (2, stage(1, 1), 400.0),
        (3, stage(1, 2), 100.0),
    ] {
        task(&mut tables, id, of, 2, span(0, 1000));
        reads(
            &mut tables,
            id,
            span(0, 1000),
            units,
            if id == 1 { 500 * S } else { 0 },
        );
    }
    disk(&mut tables, 2, 0.6);
    let workload = Workload::new(tables).unwrap();
    let options = Options {
        victims: [QueryId(0)].into(),
        ..Options::default()
    };
    let graph = Graph::from_blame(&workload, &Blame::new(&workload, &options));
    for (by, seconds) in [(1, 400.0), (2, 100.0)] {
        let key = Key::Cause(
            stage(0, 0),
            Kind::IoRead,
            HostId(2),
            Source::Stage(stage(1, by)),
        );
        close(
            graph.find(&key).unwrap().impact[&QueryId(0)].seconds,
            seconds,
        );
    }
}

#[test]
fn critical_path_of_figure_1() {
    let mut tables = Tables::default();
    query(
        &mut tables,
        0,
        &[
            (0, &[], span(0, 5)),
            (1, &[], span(0, 2)),
            (2, &[], span(0, 3)),
            (3, &[0, 1], span(5, 8)),
            (4, &[2, 3], span(8, 10)),
            (5, &[4, 77], span(10, 11)),
        ],
    );
    let workload = Workload::new(tables.clone()).unwrap();
    assert_eq!(
        critical_path(&workload, QueryId(0)),
        [0, 3, 4, 5].map(|number| stage(0, number))
    );
    tables.stages[0].parents = vec![5];
    assert_eq!(
        Workload::new(tables).unwrap_err(),
        InputError::Cycle(QueryId(0))
    );
}

#[test]
fn more_than_the_capacity_is_the_capacity() {
    let mut tables = example();
    tables.capacities[0].per_second = 100.0;
    let workload = Workload::new(tables).unwrap();
    let cell = &cells(&workload, None).next().unwrap();
    assert_eq!((cell.basis, cell.unknown), (CapacityBasis::Exceeded, 0.0));
    close(cell.capacity, 210.0);
    assert_eq!(
        Blame::new(&workload, &Options::default()).notes[0].windows,
        1
    );
}

#[test]
fn use_outside_tasks_is_external_and_the_rest_unknown() {
    let mut tables = example();
    tables.capacities[0].per_second = 300.0;
    tables.known.push(KnownUse {
        host: HostId(0),
        process: KnownProcess::ExternalIo,
        resource: Resource::Io,
        span: span(0, 1),
        units: 30.0,
    });
    let workload = Workload::new(tables).unwrap();
    let cell = &cells(&workload, None).next().unwrap();
    let blame = cell.blame(&workload, &cell.tasks[0]);
    assert_eq!(blame[2].0, CellCulprit::Known(KnownProcess::ExternalIo));
    close(blame[2].1, 1.0);
    close(blame[3].1, 2.0);
}

#[test]
fn weight_halves_blame_and_keeps_the_sum() {
    let mut tables = example();
    tables.queries[2].weight = 2.0;
    let workload = Workload::new(tables).unwrap();
    let cell = &cells(&workload, None).next().unwrap();
    let blame = cell.blame(&workload, &cell.tasks[0]);
    close(blame[0].1, 3.0);
    close(blame[1].1, 3.0);
}

#[test]
fn impossible_rows_are_refused() {
    let refused = |change: fn(&mut Tables)| {
        let mut tables = example();
        change(&mut tables);
        Workload::new(tables).unwrap_err()
    };
    assert!(matches!(
        refused(|t| t.intervals[0].units = f64::NAN),
        InputError::Amount { .. }
    ));
    // As numbers they are possible, but quotients with them are not.
    for extreme in [1e-320, 1e308] {
        for what in [
            |t: &mut Tables, to| t.intervals[0].units = to,
            |t: &mut Tables, to| t.queries[0].weight = to,
            |t: &mut Tables, to| t.capacities[0].per_second = to,
        ] {
            let mut tables = example();
            what(&mut tables, extreme);
            let error = Workload::new(tables).unwrap_err();
            assert!(error.to_string().contains("must be"), "{extreme}: {error}");
        }
    }
    assert!(matches!(
        refused(|t| t.tasks[0].span.start = -1),
        InputError::NegativeTime { at: -1, .. }
    ));
    assert!(matches!(
        refused(|t| t.tasks[0].span.start = 2 * S),
        InputError::EndBeforeStart { .. }
    ));
    assert!(matches!(
        refused(|t| t.intervals[0].blocked_ns = 2 * S),
        InputError::Blocked { .. }
    ));
    assert!(matches!(
        refused(|t| t.intervals[0].span.end = 2 * S),
        InputError::OutsideTask(TaskId(1))
    ));
}

#[test]
fn a_pause_is_put_down_to_garbage_collection_whatever_else_is_known() {
    let mut tables = example();
    tables.intervals[0].blocked_ns = 0;
    tables.intervals.push(Interval {
        task: TaskId(1),
        kind: Kind::Pause,
        span: span(0, 1),
        units: 0.0,
        blocked_ns: S / 2,
    });
    let workload = Workload::new(tables).unwrap();
    for split in [Split::Pooled, Split::ByWindow] {
        let options = Options {
            victims: [QueryId(1)].into(),
            split,
            ..Options::default()
        };
        let paths = Blame::new(&workload, &options).explanations(&workload);
        assert_eq!(paths[0].culprit, Culprit::Known(KnownProcess::Gc));
        close(paths[0].seconds, 0.5);
    }
}

/// A JVM stops for other reasons than garbage collection.
#[test]
fn a_pause_in_a_window_without_collection_is_the_jvms() {
    let mut tables = example();
    tables.intervals[0].blocked_ns = 0;
    for (start, end) in [(0, 1), (1, 2)] {
        tables.tasks[0].span.end = end * S;
        tables.intervals.push(Interval {
            task: TaskId(1),
            kind: Kind::Pause,
            span: span(start, end),
            units: 0.0,
            blocked_ns: S / 4 * end,
        });
    }
    for (process, span) in [
        (KnownProcess::Gc, span(0, 1)),
        (KnownProcess::Jvm, span(1, 2)),
    ] {
        tables.known.push(KnownUse {
            host: HostId(0),
            process,
            resource: Resource::Cpu,
            span,
            units: 0.1,
        });
    }
    let workload = Workload::new(tables).unwrap();
    let options = Options {
        victims: [QueryId(1)].into(),
        ..Options::default()
    };
    let paths = Blame::new(&workload, &options).explanations(&workload);
    let found: Vec<_> = paths.iter().map(|path| path.culprit).collect();
    let [collection, other] = [KnownProcess::Gc, KnownProcess::Jvm].map(Culprit::Known);
    assert_eq!(found, [other, collection]);
    close(paths[0].seconds, 0.5);
    close(paths[1].seconds, 0.25);
}

/// Spark manages the memory of each JVM separately: what one holds is not missing in another.
#[test]
fn memory_is_contended_for_in_a_jvm_and_slots_in_an_application() {
    let executor = |application, number| Executor {
        application,
        number,
    };
    let mut tables = Tables::default();
    for (id, executor) in [
        (1, executor(0, 1)),
        (2, executor(0, 1)),
        (3, executor(0, 2)),
        (4, executor(1, 3)),
    ] {
        query(&mut tables, id, &[(0, &[], span(0, 1))]);
        task(&mut tables, id, stage(id, 0), 0, span(0, 1));
        tables.tasks.last_mut().unwrap().executor = executor;
        for (kind, units) in [
            (Kind::ExecutionMemory, 60.0),
            (Kind::Slot, 1.0),
            (Kind::RunQueue, 0.1),
        ] {
            let victim = id == 1;
            tables.intervals.push(Interval {
                task: TaskId(id),
                kind,
                span: span(0, 1),
                units: if victim { 0.0 } else { units },
                blocked_ns: if victim { S / 4 } else { 0 },
            });
        }
    }
    for (executor, per_second) in [(executor(0, 1), 60.0), (executor(0, 2), 1000.0)] {
        tables.capacities.push(Capacity {
            host: HostId(0),
            executor,
            resource: Resource::Memory,
            per_second,
        });
    }
    let workload = Workload::new(tables).unwrap();
    let options = Options {
        victims: [QueryId(1)].into(),
        ..Options::default()
    };
    let blame = Blame::new(&workload, &options);
    let culprits = |kind: Kind| -> Vec<Culprit> {
        let paths = blame.explanations(&workload).into_iter();
        let mut culprits: Vec<Culprit> = paths
            .filter(|path| path.kind == kind)
            .map(|path| path.culprit)
            .collect();
        culprits.sort_unstable();
        culprits
    };
    let queries = |ids: &[u64]| -> Vec<Culprit> {
        ids.iter().map(|id| Culprit::Query(QueryId(*id))).collect()
    };
    assert_eq!(culprits(Kind::ExecutionMemory), queries(&[2]));
    assert_eq!(culprits(Kind::Slot), queries(&[2, 3]));
    assert_eq!(culprits(Kind::RunQueue), queries(&[2, 3, 4]));
    // Level 3 has only the host.
    let graph = Graph::from_blame(&workload, &blame);
    assert!(
        graph
            .find(&Key::Host(stage(1, 0), Kind::ExecutionMemory, HostId(0)))
            .is_some()
    );
}

#[test]
fn waiting_for_a_slot_is_no_part_of_a_tasks_life() {
    let mut tables = Tables::default();
    for (id, life) in [(1, span(10, 11)), (2, span(0, 10))] {
        query(&mut tables, id, &[(0, &[], span(0, 11))]);
        task(&mut tables, id, stage(id, 0), 0, life);
    }
    for (id, kind, units, blocked_ns) in [
        (1, Kind::Slot, 0.0, 5 * S),
        (1, Kind::SlotOnBusyCpu, 0.0, 5 * S),
        (2, Kind::Slot, 10.0, 0),
        (2, Kind::RunQueue, 10.0, 0),
    ] {
        tables.intervals.push(Interval {
            task: TaskId(id),
            kind,
            span: span(0, 10),
            units,
            blocked_ns,
        });
    }
    let workload = Workload::new(tables).unwrap();
    let victims = [QueryId(1)].into();
    let overlaps = baseline::deep_overlap(&workload, &victims, None);
    assert!(overlaps[&QueryId(1)].is_empty());
    let paths = Blame::new(&workload, &Options::default()).explanations(&workload);
    let others = paths
        .iter()
        .filter(|path| path.culprit == Culprit::Query(QueryId(2)));
    close(others.map(|path| path.seconds).sum(), 10.0);
}

/// Cells come as a stream, one window after the other: concurrent tasks do not need memory for all windows.
#[test]
fn cells_come_in_time_with_those_who_were_there() {
    let mut tables = Tables::default();
    query(&mut tables, 1, &[(0, &[], span(0, 20))]);
    for id in 0..5 {
        let life = span(id, id + 3);
        task(&mut tables, id as u64, stage(1, 0), 0, life);
        reads(&mut tables, id as u64, life, 3.0, 0);
    }
    let workload = Workload::new(tables).unwrap();
    let found: Vec<(i64, Vec<u64>)> = cells(&workload, Some(span(1, 6)))
        .map(|cell| {
            cell.tasks.iter().for_each(|task| close(task.units, 1.0));
            let tasks = cell.tasks.iter().map(|task| task.task.0);
            (cell.span.start / S, tasks.collect())
        })
        .collect();
    let expected = [
        (1, vec![0, 1]),
        (2, vec![0, 1, 2]),
        (3, vec![1, 2, 3]),
        (4, vec![2, 3, 4]),
        (5, vec![3, 4]),
    ];
    assert_eq!(found, expected);
}

#[test]
fn questions_rules_and_baselines() {
    let mut tables = example();
    tables.queries[2].label = "<'q3'>".into();
    let workload = Workload::new(tables).unwrap();
    let options = Options {
        victims: [QueryId(1)].into(),
        ..Options::default()
    };
    let blame = Blame::new(&workload, &options);
    let paths = blame.explanations(&workload);
    let graph = Graph::from_blame(&workload, &blame);
    let first = culprits(&workload, &paths)[0];
    assert_eq!(first.entity, Entity::Culprit(Culprit::Query(QueryId(3))));
    close(first.responsibility, 4.0 / 6.0);
    assert_eq!(
        slow_nodes(&workload, &paths)[0].entity,
        Entity::Host(HostId(0))
    );
    let other_pool = Filter {
        pool: Some("other".into()),
        ..Filter::default()
    };
    assert!(top(&workload, &paths, &other_pool, By::Culprit, 3).is_empty());
    let advice = suggestions(&workload, &paths, &Thresholds::default());
    assert!(matches!(advice[0], Suggestion::Delay { stage: of, .. } if of == stage(3, 0)));
    for overlap in [baseline::naive_overlap, baseline::deep_overlap] {
        let overlap = overlap(&workload, &[QueryId(1)].into(), None);
        let others = [(QueryId(2), 1.0), (QueryId(3), 1.0)].into();
        assert_eq!(overlap, [(QueryId(1), others)].into());
    }
    let blocked = baseline::blocked_time(&workload, &[QueryId(1)].into(), None);
    close(blocked[&QueryId(1)][&Resource::Io], 0.25);
    assert!(graph.to_graphml().contains("&lt;'q3'&gt;"));
    assert!(graph.to_cypher().contains("'<\\'q3\\'>'"));
    assert!(graph.to_json(&[]).contains("\"<'q3'>\""));
}
