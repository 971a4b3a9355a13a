use super::*;

/// Query 1 waits for CPUs that query 2 uses, equally in each of two stages.
fn contended() -> Tables {
    let mut tables = Tables::default();
    query(&mut tables, 1, &[(0, &[], span(0, 4))]);
    query(
        &mut tables,
        2,
        &[(0, &[], span(0, 2)), (1, &[0], span(2, 4))],
    );
    for (id, of, life, blocked_ns) in [
        (1, stage(1, 0), span(0, 4), 2 * S),
        (2, stage(2, 0), span(0, 2), 0),
        (3, stage(2, 1), span(2, 4), 0),
    ] {
        task(&mut tables, id, of, 0, life);
        tables.intervals.push(Interval {
            task: TaskId(id),
            kind: Kind::RunQueue,
            span: life,
            units: 1.0,
            blocked_ns,
        });
    }
    tables
}

fn advice(change: impl FnOnce(&mut Vec<Query>)) -> Vec<Suggestion> {
    let mut tables = contended();
    change(&mut tables.queries);
    let workload = Workload::new(tables).unwrap();
    let paths = Blame::new(&workload, &Options::default()).explanations(&workload);
    suggestions(&workload, &paths, &Thresholds::default())
}

fn is_reprioritise(advice: &[Suggestion]) -> bool {
    matches!(
        advice,
        [Suggestion::Reprioritise {
            culprit: QueryId(2),
            ..
        }]
    )
}

#[test]
fn one_pool_is_to_be_left_and_two_are_to_be_weighed() {
    let shared = advice(|_| {});
    assert!(
        matches!(&shared[..], [Suggestion::ChangePool { pool, .. }] if pool == "p"),
        "{shared:?}"
    );
    let apart = advice(|queries| queries[1].pool = "other".into());
    assert!(is_reprioritise(&apart), "{apart:?}");
    let lighter = advice(|queries| {
        queries[1].pool = "other".into();
        queries[0].weight = 2.0;
    });
    assert!(lighter.is_empty(), "{lighter:?}");
    // Spark's name for the pool of queries that set none.
    let default = advice(|queries| {
        queries[0].pool = String::new();
        queries[1].pool = "default".into();
    });
    assert!(
        matches!(default[..], [Suggestion::ChangePool { .. }]),
        "{default:?}"
    );
}

#[test]
fn no_scheduler_sees_two_applications() {
    let other = |queries: &mut Vec<Query>| queries[1].application = "b".into();
    let shared = advice(other);
    assert!(shared.is_empty(), "{shared:?}");
    let apart = advice(|queries| {
        other(queries);
        queries[1].pool = "other".into();
    });
    assert!(apart.is_empty(), "{apart:?}");
}

#[test]
fn a_title_is_a_label_without_its_description() {
    let mut tables = contended();
    let query = &mut tables.queries[0];
    for (name, label, title) in [
        ("3", "query 3: a: b", "query 3"),
        ("1000000003", "app-1 query 3: a", "app-1 query 3"),
        ("a: b", "query a: b: c", "query a: b"),
        ("a: b", "query a: b", "query a: b"),
        ("999999999", "jobs without a query", "jobs without a query"),
    ] {
        query.name = name.into();
        query.label = label.into();
        assert_eq!(query.title(), title);
    }
}
