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
        [Blamed::Task(TaskId(2)), Blamed::Task(TaskId(3))]
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
    // The victim, then: begins before it, lies in it, covers it, ends after it.
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
    let graph = Graph::build(
        &workload,
        &Options {
            victims: [QueryId(0)].into(),
            ..Options::default()
        },
    );
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
        Graph::build(&workload, &Options::default()).notes[0].windows,
        1
    );
}

#[test]
fn use_outside_tasks_is_external_and_the_rest_unknown() {
    let mut tables = example();
    tables.capacities[0].per_second = 300.0;
    let window = HostWindow {
        host: HostId(0),
        resource: Resource::Io,
        span: span(0, 1),
        units: 240.0,
    };
    tables.host_windows.push(window);
    let workload = Workload::new(tables).unwrap();
    let cell = &cells(&workload, None).next().unwrap();
    let blame = cell.blame(&workload, &cell.tasks[0]);
    assert_eq!(blame[2].0, Blamed::Known(KnownProcess::ExternalIo));
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
fn questions_rules_and_baselines() {
    let mut tables = example();
    tables.queries[2].label = "<'q3'>".into();
    let workload = Workload::new(tables).unwrap();
    let options = Options {
        victims: [QueryId(1)].into(),
        ..Options::default()
    };
    let graph = Graph::build(&workload, &options);
    let paths = graph.explanations();
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
