use unfuse_format::{
    CachedRow, HostRow, IntervalRow, ProcessRow, ProfileDir, SegmentWriter, StageRow, Table,
};
use unfuse_postprocess::Profile;

use super::*;

fn write<T: Table>(dir: &ProfileDir, rows: impl IntoIterator<Item = T>) {
    let mut writer = SegmentWriter::new(dir, "test");
    rows.into_iter().for_each(|row| writer.push(row));
    writer.flush().unwrap();
}

/// An application with one stage of a query, of which a task ran on host h.
fn application(dir: &ProfileDir, app: &str, ran: Span, completed: bool, tasks: i32) {
    let app = app.to_owned();
    let host = "h".to_owned();
    write(
        dir,
        [ProcessRow {
            app: app.clone(),
            host: host.clone(),
            executor: "1".to_owned(),
            ..ProcessRow::default()
        }],
    );
    write(
        dir,
        [StageRow {
            app: app.clone(),
            execution: Some(1),
            tasks,
            submitted_ms: Some(ran.start / 1_000_000),
            completed_ms: completed.then_some(ran.end / 1_000_000),
            ..StageRow::default()
        }],
    );
    write(
        dir,
        [IntervalRow {
            app: app.clone(),
            host: host.clone(),
            executor: "1".to_owned(),
            kind: "cpu".to_owned(),
            start_ns: ran.start,
            end_ns: ran.end,
            units: 1.0,
            ..IntervalRow::default()
        }],
    );
    write(
        dir,
        [CachedRow {
            app: app.clone(),
            executor: "1".to_owned(),
            stage: Some(0),
            since_ms: ran.start / 1_000_000,
            memory_bytes: 5,
            ..CachedRow::default()
        }],
    );
    write(
        dir,
        [HostRow {
            app,
            host,
            start_ns: ran.start,
            end_ns: ran.end,
            cpus: 4,
            ..HostRow::default()
        }],
    );
}

#[test]
fn a_killed_application_ends_when_it_was_last_heard_of() {
    let home = tempfile::tempdir().unwrap();
    let dir = ProfileDir::create(&home.path().join("profile")).unwrap();
    // Nine of its tasks never ran, and nothing says that its stage ended.
    application(&dir, "killed", span(0, 5), false, 10);
    application(&dir, "later", span(10, 20), true, 1);
    let profile = Profile::open(dir.path()).unwrap();
    let input = from_profile(&profile, BlockedTime::Measured).unwrap();
    let workload = Workload::new(input.tables).unwrap();
    let killed = input.executions[&("killed".to_owned(), Some(1))];
    assert_eq!(workload.span_of(killed), Some(span(0, 5)));
    for row in &workload.tables().intervals {
        assert_eq!(row.blocked_ns, 0, "{row:?}");
        if workload.task(row.task).unwrap().stage.query == killed {
            assert!(row.span.end <= 5 * S, "{row:?}");
        }
    }
}
