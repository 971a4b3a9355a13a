use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Three queries of two stages each, tasks on two hosts, reading, with use outside tasks.
fn workloads() -> impl Strategy<Value = Tables> {
    let task = (
        0..3u64,
        0..2u32,
        0..2u32,
        0..20i64,
        1..10i64,
        0..1000u32,
        0..=4i64,
    );
    (prop::collection::vec(task, 1..25), 1..500u32).prop_map(|(rows, capacity)| {
        let mut tables = Tables::default();
        for id in 0..3 {
            query(
                &mut tables,
                id,
                &[(0, &[], span(0, 10)), (1, &[0], span(10, 30))],
            );
        }
        for (id, (query, number, host, start, length, units, quarters)) in
            rows.into_iter().enumerate()
        {
            let life = span(start, start + length);
            task_row(&mut tables, id as u64, stage(query, number), host, life);
            reads(
                &mut tables,
                id as u64,
                life,
                units.into(),
                length * S / 4 * quarters,
            );
        }
        for host in 0..tables.hosts.len() {
            let host = tables.hosts[host].id;
            disk(&mut tables, host.0, capacity.into());
            tables.known.push(KnownUse {
                host,
                process: KnownProcess::ExternalIo,
                resource: Resource::Io,
                span: span(3, 12),
                units: 300.0,
            });
        }
        tables.operators.push(OperatorShare {
            stage: stage(0, 0),
            operator: "Scan".into(),
            share: 0.5,
        });
        tables
    })
}

use super::task as task_row;

/// Amounts and weights at the accepted limits, and beyond.
fn extremes() -> impl Strategy<Value = Tables> {
    let number = prop_oneof![
        Just(0.0),
        Just(1e-30),
        Just(1e30),
        Just(1e-320),
        Just(f64::MAX),
        1e-9..1e9,
    ];
    let weight = prop_oneof![Just(1e-6), Just(1e6), Just(1e-320), Just(1.0)];
    let rows = prop::collection::vec((number, 0..=4i64), 6);
    (workloads(), rows, prop::collection::vec(weight, 3)).prop_map(|(mut tables, rows, weights)| {
        for (row, (units, quarters)) in tables.intervals.iter_mut().zip(rows) {
            row.units = units;
            row.blocked_ns = (row.span.end - row.span.start) / 4 * quarters;
        }
        for (query, weight) in tables.queries.iter_mut().zip(weights) {
            query.weight = weight;
        }
        tables
    })
}

proptest! {
    #[test]
    fn terms_sum_to_the_slowdown(tables in workloads()) {
        let workload = Workload::new(tables).unwrap();
        for cell in cells(&workload, None) {
            for victim in cell.tasks.iter().filter(|task| task.units > 0.0) {
                let sum: f64 = cell.blame(&workload, victim).iter().map(|(_, blame)| blame).sum();
                let slowdown = cell.slowdown(victim);
                prop_assert!((sum - slowdown).abs() <= 1e-6 * (1.0 + slowdown), "{sum} {slowdown}");
                let blocked = cell.blocked_blame(&workload, victim, Kind::IoRead);
                prop_assert!(blocked.iter().map(|(_, blame)| blame).sum::<f64>() <= slowdown + 1e-6 * (1.0 + slowdown));
            }
        }
    }

    #[test]
    fn what_is_taken_gives_numbers(tables in extremes(), known: bool, by_window: bool) {
        let mut tables = tables;
        if !known {
            tables.capacities.clear();
        }
        let split = if by_window { Split::ByWindow } else { Split::Pooled };
        let options = Options { split, ..Options::default() };
        match Workload::new(tables) {
            Err(error) => prop_assert!(matches!(error, InputError::Amount { .. }), "{}", error),
            Ok(workload) => {
                for path in Blame::new(&workload, &options).explanations(&workload) {
                    prop_assert!(path.weight.is_finite() && path.seconds.is_finite(), "{:?}", path);
                }
            }
        }
    }

    #[test]
    fn levels_carry_the_same_seconds(tables in workloads(), own_tasks: bool, by_window: bool) {
        let workload = Workload::new(tables).unwrap();
        let split = if by_window { Split::ByWindow } else { Split::Pooled };
        let options = Options { stages: VictimStages::All, own_tasks, split, ..Options::default() };
        let blame = Blame::new(&workload, &options);
        let graph = Graph::from_blame(&workload, &blame);
        for victim in graph.victims() {
            let of = |level| graph.level(level).filter_map(move |node| node.impact.get(&victim));
            let total: f64 = of(0).map(|impact| impact.seconds).sum();
            let rows = workload.tables().intervals.iter();
            let rows = rows.filter(|row| workload.task(row.task).unwrap().stage.query == victim);
            close(rows.map(|row| row.blocked_ns as f64 / 1e9).sum(), total);
            for level in [1, 2, 3, 4, 6] {
                close(of(level).map(|impact| impact.seconds).sum(), total);
                let responsible: f64 = of(level).map(|impact| impact.responsibility).sum();
                close(responsible, if total > 0.0 { 1.0 } else { 0.0 });
            }
        }
        let pairs: usize = graph.edges.iter().map(|edge| edge.flow.len()).sum();
        prop_assert_eq!(graph.visits(), pairs);
        // What is computed from the parts of all seconds is what the graph passes on, edge by edge.
        let mut weights: BTreeMap<Key, f64> = BTreeMap::new();
        for path in blame.explanations(&workload) {
            let Entity::Source(source) = Entity::from_explanation(&path, By::CulpritStage) else {
                panic!("a source");
            };
            *weights.entry(Key::Cause(path.stage, path.kind, path.host, source)).or_default() += path.weight;
        }
        for (key, weight) in &weights {
            close(*weight, graph.find(key).unwrap().impact.values().map(|impact| impact.responsibility).sum());
        }
        prop_assert_eq!(weights.len(), graph.level(4).count());
    }

    #[test]
    fn slices_hold_all_that_a_victim_was_blocked(tables in workloads(), by_window: bool, slices in 1..5usize) {
        let workload = Workload::new(tables).unwrap();
        let split = if by_window { Split::ByWindow } else { Split::Pooled };
        let options = Options { split, ..Options::default() };
        let (blame, timelines) = Blame::with_timelines(&workload, &options, slices);
        prop_assert_eq!(&blame, &Blame::new(&workload, &options));
        for (victim, timeline) in timelines {
            prop_assert_eq!(timeline.slices.len(), slices);
            let sum: f64 = timeline.slices.iter().flat_map(|slice| slice.seconds.values()).sum();
            close(sum, blame.seconds(victim));
            if slices == 1 {
                let mut expected: BTreeMap<(Resource, Culprit), f64> = BTreeMap::new();
                let mut paths = Vec::new();
                Explainer::new(&workload, &blame).explain(victim, &mut paths);
                for path in paths {
                    *expected.entry((path.resource, path.culprit)).or_default() += path.seconds;
                }
                let seconds = &timeline.slices[0].seconds;
                prop_assert!(seconds.keys().eq(expected.keys()), "{:?} {:?}", seconds, expected);
                expected.iter().for_each(|(key, expected)| close(seconds[key], *expected));
            }
        }
    }

    #[test]
    fn the_order_of_rows_does_not_matter(tables in workloads()) {
        let mut reversed = tables.clone();
        reversed.tasks.reverse();
        reversed.intervals.reverse();
        reversed.stages.reverse();
        reversed.queries.reverse();
        reversed.known.reverse();
        let blame = |tables| Blame::new(&Workload::new(tables).unwrap(), &Options::default());
        prop_assert_eq!(blame(tables), blame(reversed));
    }
}
