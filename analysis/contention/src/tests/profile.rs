use std::collections::BTreeSet;

use unfuse_format::{
    CachedRow, HostRow, IntervalRow, ProcessRow, ProfileDir, SegmentWriter, StageRow, Table,
};
use unfuse_postprocess::Profile;

use super::*;

fn write<T: Table>(dir: &ProfileDir, writer: &str, row: T) {
    let mut writer = SegmentWriter::new(dir, writer);
    writer.push(row);
    writer.flush().unwrap();
}

/// An application with one stage of a query; one of its tasks ran on host h.
fn application(dir: &ProfileDir, app: &str, ran: Span, completed: bool, tasks: i32) {
    let writer = app;
    let app = app.to_owned();
    let host = "h".to_owned();
    write(
        dir,
        writer,
        ProcessRow {
            app: app.clone(),
            host: host.clone(),
            executor: "1".to_owned(),
            start_ns: ran.start,
            ..ProcessRow::default()
        },
    );
    write(
        dir,
        writer,
        StageRow {
            app: app.clone(),
            execution: Some(1),
            tasks,
            submitted_ms: Some(ran.start / 1_000_000),
            completed_ms: completed.then_some(ran.end / 1_000_000),
            ..StageRow::default()
        },
    );
    write(
        dir,
        writer,
        IntervalRow {
            app: app.clone(),
            host: host.clone(),
            executor: "1".to_owned(),
            kind: "cpu".to_owned(),
            start_ns: ran.start,
            end_ns: ran.end,
            units: 1.0,
            ..IntervalRow::default()
        },
    );
    write(
        dir,
        writer,
        CachedRow {
            app: app.clone(),
            executor: "1".to_owned(),
            stage: Some(0),
            since_ms: ran.start / 1_000_000,
            memory_bytes: 5,
            ..CachedRow::default()
        },
    );
    write(
        dir,
        writer,
        HostRow {
            app,
            host,
            start_ns: ran.start,
            end_ns: ran.end,
            cpus: 4,
            memory_bytes: Some(100),
            ..HostRow::default()
        },
    );
}

#[test]
fn a_killed_application_ends_when_it_was_last_heard_of() {
    let home = tempfile::tempdir().unwrap();
    let dir = ProfileDir::create(&home.path().join("profile")).unwrap();
    // Nine of its tasks never ran, and its stage has no recorded end.
    application(&dir, "killed", span(0, 5), false, 10);
    application(&dir, "later", span(10, 20), true, 1);
    let profile = Profile::open(dir.path()).unwrap();
    let input = from_profile(&profile, BlockedTime::Measured).unwrap();
    let workload = Workload::new(input.tables).unwrap();
    let killed = input.executions[&("killed".to_owned(), Some(1))];
    assert_eq!(workload.span_of(killed), Some(span(0, 5)));
    for row in &workload.tables().intervals {
        assert!(!row.kind.is_for_slots() || row.blocked_ns == 0, "{row:?}");
        if workload.task(row.task).unwrap().stage.query == killed {
            assert!(row.span.end <= 5 * S, "{row:?}");
        }
    }
}

/// As in containers, their JVMs have the same process id and host name.
#[test]
fn each_jvm_of_a_host_has_its_own_memory() {
    let home = tempfile::tempdir().unwrap();
    let dir = ProfileDir::create(&home.path().join("profile")).unwrap();
    application(&dir, "first", span(0, 5), true, 1);
    application(&dir, "second", span(3, 8), true, 1);
    let profile = Profile::open(dir.path()).unwrap();
    let input = from_profile(&profile, BlockedTime::Measured).unwrap();
    let workload = Workload::new(input.tables).unwrap();
    let held = cells(&workload, None).filter(|cell| cell.resource == Resource::Memory);
    let held: Vec<(i64, f64, usize)> = held
        .map(|cell| (cell.span.start / S, cell.capacity, cell.tasks.len()))
        .collect();
    let alone = |start| (start, 100.0, 1);
    assert_eq!(held, [alone(0), alone(3), alone(3), alone(5)]);
}

/// The rows of a query's own time decide who slowed it down.
#[test]
fn a_victim_needs_only_rows_of_its_time() {
    let home = tempfile::tempdir().unwrap();
    let dir = ProfileDir::create(&home.path().join("profile")).unwrap();
    application(&dir, "victim", span(0, 5), true, 10);
    application(&dir, "beside", span(3, 8), true, 1);
    application(&dir, "later", span(5_000, 5_010), true, 1);
    let profile = Profile::open(dir.path()).unwrap();
    let mut index = StageIndex::read(&profile).unwrap();
    let victims = BTreeSet::from([index.executions()[&("victim".to_owned(), Some(1))]]);
    let mut answer = |of: Option<&BTreeSet<QueryId>>| {
        let input = index.input(BlockedTime::Measured, of).unwrap();
        let workload = Workload::new(input.tables).unwrap();
        let options = Options {
            victims: victims.clone(),
            ..Options::default()
        };
        let paths = Blame::new(&workload, &options).explanations(&workload);
        let runs = workload.tables().tasks.iter().filter(|task| task.runs);
        let is_beside = |path: &Explanation| matches!(path.culprit, Culprit::Query(_));
        assert!(paths.iter().any(is_beside), "{paths:?}");
        (paths, runs.count())
    };
    let (all, part) = (answer(None), answer(Some(&victims)));
    assert_eq!(all.0, part.0);
    assert_eq!((all.1, part.1), (3, 2));
}

/// Victims far apart are answered separately, and those with too many rows are left out.
#[test]
fn victims_are_parted_by_rows() {
    let home = tempfile::tempdir().unwrap();
    let dir = ProfileDir::create(&home.path().join("profile")).unwrap();
    application(&dir, "first", span(0, 5), true, 1);
    application(&dir, "later", span(5_000, 5_010), true, 1);
    let profile = Profile::open(dir.path()).unwrap();
    let index = StageIndex::read(&profile).unwrap();
    let [first, later] =
        ["first", "later"].map(|app| index.executions()[&(app.to_owned(), Some(1))]);
    let both = BTreeSet::from([first, later]);
    let none = BTreeSet::new();
    let one_each = vec![BTreeSet::from([first]), BTreeSet::from([later])];
    assert_eq!(index.parts(&both, 2, 2), (vec![both.clone()], none.clone()));
    assert_eq!(index.parts(&both, 1, 2), (one_each, none));
    assert_eq!(index.parts(&both, 0, 0), (Vec::new(), both));
}

/// A running application writes while its profile is read.
#[test]
fn stages_that_began_after_the_index_was_read_are_counted() {
    let home = tempfile::tempdir().unwrap();
    let dir = ProfileDir::create(&home.path().join("profile")).unwrap();
    application(&dir, "first", span(0, 5), true, 1);
    let profile = Profile::open(dir.path()).unwrap();
    let mut index = StageIndex::read(&profile).unwrap();
    let row = IntervalRow {
        app: "first".to_owned(),
        stage: 1,
        task: 1,
        kind: "cpu".to_owned(),
        end_ns: S,
        units: 1.0,
        ..IntervalRow::default()
    };
    write(&dir, "later", row);
    let input = index.input(BlockedTime::Measured, None).unwrap();
    let is_counted = |note: &String| note.starts_with("1 stage without a known query has tasks");
    assert!(input.notes.iter().any(is_counted), "{:?}", input.notes);
}
