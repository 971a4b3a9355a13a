//! Logs of real runs (fixtures/make.sh): their events are found, through every codec.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use unfuse_eventlog::{Event, EventLog, Outcome, TaskEnd, is_event_log};

/// The log of a fixture: the only entry of its folder.
fn path(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name);
    let mut entries = fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let entry = entries.next().expect("a log").expect("an entry");
    assert!(entries.next().is_none(), "one log in {}", dir.display());
    entry.path()
}

fn read(name: &str) -> (Vec<Event>, EventLog) {
    let path = path(name);
    assert!(is_event_log(&path), "{}", path.display());
    let mut log = EventLog::open(&path).expect("a log");
    (log.by_ref().collect(), log)
}

fn task_ends(events: &[Event]) -> Vec<&TaskEnd> {
    let ends = events.iter().filter_map(|event| match event {
        Event::TaskEnd(end) => Some(&**end),
        _ => None,
    });
    ends.collect()
}

/// Stage numbers by the description of their job.
fn stages(events: &[Event]) -> BTreeMap<String, Vec<i32>> {
    let mut stages: BTreeMap<String, Vec<i32>> = BTreeMap::new();
    for event in events {
        if let Event::StageSubmitted(stage) = event {
            let called = stage.properties.description.clone().unwrap_or_default();
            stages.entry(called).or_default().push(stage.stage);
        }
    }
    stages
}

#[test]
fn every_codec_of_spark_is_read_to_the_end() {
    for name in [
        "small-lz4",
        "small-snappy",
        "small-lzf",
        "causes-3.5",
        "causes-4.3",
    ] {
        let (events, log) = read(name);
        assert!(log.damage().is_none(), "{name}: {:?}", log.damage());
        assert!(matches!(events.first(), Some(Event::LogStart(_))), "{name}");
        assert!(
            matches!(events.last(), Some(Event::ApplicationEnd(at)) if *at > 0),
            "{name}"
        );
        let ends = task_ends(&events);
        let starts = events
            .iter()
            .filter(|event| matches!(event, Event::TaskStart(_)));
        assert_eq!(ends.len(), starts.count(), "{name}");
        assert!(
            ends.iter()
                .all(|end| end.metrics.is_some_and(|m| m.run_ms > 0)),
            "{name}"
        );
        let sql = events.iter().find_map(|event| match event {
            Event::SqlStart(start) => Some(start.sql),
            _ => None,
        });
        assert_eq!(sql, Some(0), "{name}");
    }
}

#[test]
fn stages_have_their_rdds_and_whose_they_are() {
    let (events, _) = read("causes-4.3");
    let stages = events.iter().filter_map(|event| match event {
        Event::StageSubmitted(stage) => Some(stage),
        _ => None,
    });
    let stages: Vec<_> = stages.collect();
    let scopes = |of: &unfuse_eventlog::Stage| -> Vec<String> {
        of.rdds.iter().filter_map(|rdd| rdd.scope.clone()).collect()
    };
    assert!(
        scopes(stages[0]).contains(&"textFile".to_owned()),
        "{:?}",
        scopes(stages[0])
    );
    let of_sql: Vec<_> = stages
        .iter()
        .filter(|stage| stage.properties.sql == Some(0))
        .collect();
    assert!(
        of_sql
            .iter()
            .any(|stage| scopes(stage).contains(&"Exchange".to_owned()))
    );
    assert!(
        stages
            .iter()
            .all(|stage| stage.tasks > 0 && !stage.details.is_empty())
    );
}

#[test]
fn a_rolling_log_is_all_of_its_files() {
    let (events, log) = read("rolling-4.3");
    assert!(log.damage().is_none());
    let begun = events
        .iter()
        .filter(|event| matches!(event, Event::LogStart(version) if version.starts_with("4.")));
    assert_eq!(begun.count(), 1);
    let files = fs::read_dir(path("rolling-4.3")).expect("a directory");
    let names = files
        .flatten()
        .map(|file| file.file_name().to_string_lossy().into_owned());
    assert!(names.filter(|name| name.starts_with("events_")).count() > 2);
    let jobs: Vec<i64> = events
        .iter()
        .filter_map(|event| match event {
            Event::JobEnd(end) => Some(end.job),
            _ => None,
        })
        .collect();
    assert_eq!(jobs, (0..26).collect::<Vec<_>>());
}

/// Each file is below the limit of a log; the second exceeds it in sum, and the third is not read.
#[test]
fn the_files_of_a_rolling_log_share_what_they_may_unpack_to() {
    let dir = tempfile::tempdir().expect("a directory");
    let start = r#"{"Event":"SparkListenerLogStart","Spark Version":"4.0.0"}"#;
    let text = format!("{start}\n{}\n", " ".repeat(40 << 20));
    let packed = zstd::encode_all(text.as_bytes(), 1).expect("packed");
    for number in 1..=3 {
        let name = format!("events_{number}_app.zstd");
        fs::write(dir.path().join(name), &packed).expect("written");
    }
    let mut log = EventLog::open(dir.path()).expect("a log");
    assert_eq!(log.by_ref().count(), 2);
    let [(file, why)] = log.damage().cut_files.as_slice() else {
        panic!("one file is cut: {:?}", log.damage());
    };
    assert!(file.ends_with("events_2_app.zstd"), "{}", file.display());
    assert!(why.contains("bytes of the log unpack to"), "{why}");
}

#[test]
fn the_log_of_a_driver_that_was_killed_is_read_as_far_as_it_goes() {
    let (events, log) = read("killed-4.3");
    let done = stages(&events);
    assert!(done.contains_key("before it is killed"), "{done:?}");
    assert!(
        !events
            .iter()
            .any(|event| matches!(event, Event::ApplicationEnd(_)))
    );
    // Spark ends a frame at each flush.
    assert!(log.damage().is_none(), "{:?}", log.damage());
}

#[test]
fn failures_copies_and_lost_executors_are_told() {
    for name in ["failures-3.5", "failures-4.3"] {
        let (events, log) = read(name);
        assert!(log.damage().is_none(), "{name}: {:?}", log.damage());
        let ends = task_ends(&events);
        let of = |outcome| ends.iter().filter(move |end| end.outcome == outcome);
        let failed: Vec<_> = of(Outcome::Exception).collect();
        assert!(
            failed.len() == 1 && failed[0].message.contains("fails once, as asked"),
            "{name}: {failed:?}"
        );
        assert!(
            of(Outcome::Killed).any(|end| !end.task.speculative),
            "{name}"
        );
        assert!(
            of(Outcome::Success).any(|end| end.task.speculative),
            "{name}"
        );
        assert!(of(Outcome::ExecutorLost).next().is_some(), "{name}");
        let removed = events
            .iter()
            .filter(|event| matches!(event, Event::ExecutorRemoved(_)));
        assert!(removed.count() >= 1, "{name}");
        let cores: u32 = events
            .iter()
            .filter_map(|event| match event {
                Event::ExecutorAdded(added) => Some(added.cores),
                _ => None,
            })
            .sum();
        assert!(cores >= 3, "{name}: {cores}");
        // The stage was partially repeated.
        let again = events.iter().find_map(|event| match event {
            Event::StageSubmitted(stage) if stage.attempt > 0 => Some(stage),
            _ => None,
        });
        assert!(
            again.is_some_and(|stage| stage.tasks < 16),
            "{name}: {again:?}"
        );
    }
}

/// If a log is cut anywhere, its events are the first of the whole.
#[test]
fn a_log_that_is_cut_has_the_events_before_the_cut() {
    for name in ["small-lz4", "small-snappy", "small-lzf", "causes-3.5"] {
        let path = path(name);
        let bytes = fs::read(&path).expect("a log");
        let (whole, _) = read(name);
        for part in 1..20 {
            let cut = bytes[..bytes.len() * part / 20].to_vec();
            let mut log = EventLog::from_reader(std::io::Cursor::new(cut), &path).expect("a log");
            let events: Vec<Event> = log.by_ref().collect();
            assert!(whole.starts_with(&events), "{name} {part}");
            assert!(!log.damage().is_none(), "{name} {part}");
            assert!(
                part < 19 || events.len() > whole.len() / 3,
                "{name} {part}: {}",
                events.len()
            );
        }
    }
}
