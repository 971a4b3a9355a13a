//! Handmade logs: what is read from them, and the cost of broken ones.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use unfuse_eventlog::{Event, EventLog, EventLogError, Outcome};

fn read(text: &str) -> (Vec<Event>, EventLog) {
    let reader = Cursor::new(text.as_bytes().to_vec());
    let mut log = EventLog::from_reader(reader, Path::new("log")).expect("a log");
    (log.by_ref().collect(), log)
}

const START: &str = r#"{"Event":"SparkListenerLogStart","Spark Version":"4.3.0"}"#;

fn task_end(reason: &str, metrics: &str) -> String {
    format!(
        r#"{{"Event":"SparkListenerTaskEnd","Stage ID":3,"Stage Attempt ID":1,"Task Type":"ResultTask","Task End Reason":{reason},"Task Info":{{"Task ID":7,"Index":2,"Attempt":1,"Launch Time":1000,"Executor ID":"e\u0031","Host":"h","Locality":"ANY","Speculative":true,"Getting Result Time":0,"Finish Time":1500,"Accumulables":[{{"ID":1,"Value":[[]]}}]}},"Task Metrics":{metrics}}}"#
    )
}

#[test]
fn a_task_has_what_it_used_and_how_it_ended() {
    let metrics = r#"{"Executor CPU Time":5,"JVM GC Time":-1,"Shuffle Read Metrics":{"Remote Bytes Read":3,"Local Bytes Read":4,"Fetch Wait Time":9}}"#;
    let (events, _) = read(&task_end(r#"{"Reason":"Success"}"#, metrics));
    let [Event::TaskEnd(end)] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!((end.task.stage, end.task.stage_attempt), (3, 1));
    assert_eq!((end.task.partition, &*end.task.executor), (None, "e1"));
    assert_eq!((end.duration_ms(), end.getting_result_ms), (500, None));
    assert_eq!((end.outcome, end.message.as_str()), (Outcome::Success, ""));
    let metrics = end.metrics.expect("metrics");
    assert_eq!((metrics.cpu_ns, metrics.gc_ms), (5, 0));
    assert_eq!(
        (metrics.shuffle_read_bytes(), metrics.fetch_wait_ms),
        (7, 9)
    );
}

#[test]
fn a_failure_has_its_reason() {
    for (reason, outcome, message) in [
        (r#"{"Reason":"Resubmitted"}"#, Outcome::Resubmitted, ""),
        (
            r#"{"Reason":"ExceptionFailure","Class Name":"java.lang.E","Description":"no \"x\"","Stack Trace":[]}"#,
            Outcome::Exception,
            "java.lang.E: no \"x\"",
        ),
        (
            r#"{"Reason":"TaskKilled","Kill Reason":"another attempt succeeded"}"#,
            Outcome::Killed,
            "another attempt succeeded",
        ),
        (
            r#"{"Reason":"ExecutorLostFailure","Executor ID":"1","Exit Caused By App":false,"Loss Reason":"gone"}"#,
            Outcome::ExecutorLost,
            "gone",
        ),
        (
            r#"{"Reason":"FetchFailed","Message":"no block"}"#,
            Outcome::FetchFailed,
            "no block",
        ),
        (r#"{"Reason":"Tomorrow"}"#, Outcome::Other, "Tomorrow"),
    ] {
        let (events, _) = read(&task_end(reason, "null"));
        let [Event::TaskEnd(end)] = events.as_slice() else {
            panic!("{reason}: {events:?}");
        };
        assert_eq!((end.outcome, end.message.as_str()), (outcome, message));
        assert_eq!(end.metrics, None);
    }
}

#[test]
fn broken_lines_are_counted_and_the_others_read() {
    let text = [
        START,
        "{\"Event\":",
        "nonsense",
        "",
        r#"{"Event":"SparkListenerTaskEnd"}"#,
        START,
    ]
    .join("\n")
        + "\n";
    let (events, log) = read(&text);
    assert_eq!(events.len(), 2);
    assert_eq!(log.damage().broken_lines, 3);
    let notes = log.damage().notes();
    assert!(
        notes.len() == 1
            && notes[0].starts_with("3 lines are no events and were skipped; the first is log:2 ("),
        "{notes:?}"
    );
}

#[test]
fn a_last_line_without_end_counts_if_it_is_whole() {
    let (events, log) = read(&[START, START].join("\n"));
    assert!(events.len() == 2 && log.damage().is_none());
    let (events, log) = read(&[START, &START[..30]].join("\n"));
    assert_eq!(events.len(), 1);
    assert_eq!(
        log.damage().notes(),
        ["log: its last line is cut off; what came before counts"]
    );
}

#[test]
fn unknown_events_are_no_damage() {
    let (events, log) =
        read("{\"Event\":\"SparkListenerTomorrow\",\"x\":1}\n{\"x\":1,\"Event\":\"org.x.Y\"}\n");
    assert!(events.is_empty() && log.damage().is_none());
}

#[test]
fn a_plan_may_nest_deep() {
    let depth = 200_000;
    let plan = r#"{"children":["#.repeat(depth) + &"]}".repeat(depth);
    let line = format!(
        r#"{{"Event":"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart","executionId":4,"description":"deep","sparkPlanInfo":{plan},"time":9}}"#
    );
    let (events, log) = read(&line);
    let [Event::SqlStart(start)] = events.as_slice() else {
        panic!("{:?}", log.damage());
    };
    assert_eq!(
        (start.sql, start.description.as_str(), start.time_ms),
        (4, "deep", 9)
    );
}

#[test]
fn what_is_no_log_is_refused_with_its_name() {
    let dir = tempfile::tempdir().expect("a directory");
    let refused = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).expect("a file");
        EventLog::open(&path).err().map(|error| error.to_string())
    };
    let message = refused("app.inprogress", b"").expect("refused");
    assert!(message.contains("app.inprogress is empty"), "{message}");
    let message = refused("t.parquet", b"PAR1....").expect("refused");
    assert!(
        message.contains("t.parquet is no event log of Spark"),
        "{message}"
    );
    let gone = EventLog::open(&dir.path().join("gone"));
    assert!(matches!(gone, Err(EventLogError::Io { .. })));
    let none = EventLog::open(dir.path());
    assert!(matches!(none, Err(EventLogError::NoEvents(_))));
}

#[test]
fn a_rolling_log_is_read_over_its_gaps() {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, text) in [
        ("appstatus_app.inprogress", ""),
        (
            "events_1_app",
            "{\"Event\":\"SparkListenerLogStart\",\"Spark Version\":\"1\"}\n",
        ),
        ("events_2_app", "PAR1"),
        (
            "events_4_app",
            "{\"Event\":\"SparkListenerLogStart\",\"Spark Version\":\"4\"}\n",
        ),
        ("events_5_app", ""),
    ] {
        fs::write(dir.path().join(name), text).expect("a file");
    }
    let mut log = EventLog::open(dir.path()).expect("a log");
    let events: Vec<Event> = log.by_ref().collect();
    assert_eq!(
        events,
        [Event::LogStart("1".into()), Event::LogStart("4".into())]
    );
    assert_eq!(log.damage().missing_files, [3]);
    assert_eq!(log.damage().cut_files.len(), 1);
    assert_eq!(log.damage().notes().len(), 2);
}
