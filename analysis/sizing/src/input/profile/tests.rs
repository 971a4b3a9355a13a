use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use unfuse_format::{
    ApplicationRow, ExecutorRow, JobRow, ProcessRow, ProfileDir, SegmentWriter, Setting, StageRow,
    Table, TaskRow,
};

use crate::{Category, GivenValues, Logs, SizingError, read};

fn write<T: Table>(dir: &Path, rows: Vec<T>) {
    let dir = ProfileDir::create(dir).expect("a profile");
    let mut segment = SegmentWriter::new(&dir, "h-1");
    rows.into_iter().for_each(|row| segment.push(row));
    segment.flush().expect("written");
}

fn job(job: i64, stages: &[i32], from: i64, to: i64) -> [JobRow; 2] {
    let start = JobRow {
        app: "a".into(),
        job,
        stages: stages.to_vec(),
        started_ms: Some(from),
        ..JobRow::default()
    };
    let end = JobRow {
        app: "a".into(),
        job,
        ended_ms: Some(to),
        ..JobRow::default()
    };
    [start, end]
}

/// A stage's rows at submission and completion; the first already has the end, as for short stages.
fn stage(stage: i32, parents: &[i32], submitted: i64, completed: i64) -> [StageRow; 2] {
    let end = StageRow {
        app: "a".into(),
        stage,
        name: "fit at /home/u/job.py:3".into(),
        execution: Some(0),
        tasks: 1,
        submitted_ms: Some(submitted),
        completed_ms: Some(completed),
        ..StageRow::default()
    };
    let start = StageRow {
        parents: parents.to_vec(),
        rdds: vec!["Exchange".into(), "WholeStageCodegen (2)".into()],
        packages: vec!["java.lang".into(), "org.apache.spark.ml".into()],
        ..end.clone()
    };
    [start, end]
}

fn task(task: i64, stage: i32, launched: i64, finished: i64, status: &str) -> TaskRow {
    TaskRow {
        app: "a".into(),
        stage,
        task,
        launched_ms: launched,
        finished_ms: finished,
        status: status.into(),
        run_ms: finished - launched - 100,
        input_bytes: 500,
        shuffle_fetch_wait_ms: 30,
        shuffle_write_ns: 20_000_000,
        ..TaskRow::default()
    }
}

/// Two jobs; the second reads the output of the first, visible by the skipped stage 2.
fn tables(dir: &Path) {
    let start = ApplicationRow {
        app: "a".into(),
        name: "job".into(),
        started_ms: Some(1_000),
        settings: vec![Setting {
            name: "spark.unfuse.iterations".into(),
            value: "3".into(),
        }],
        ..ApplicationRow::default()
    };
    let end = ApplicationRow {
        app: "a".into(),
        ended_ms: Some(9_000),
        ..ApplicationRow::default()
    };
    write(dir, vec![start, end]);
    let executor = |name: &str, added, removed| ExecutorRow {
        app: "a".into(),
        executor: name.into(),
        cores: if added > 0 { 2 } else { 0 },
        added_ms: Some(added).filter(|ms| *ms > 0),
        removed_ms: removed,
        ..ExecutorRow::default()
    };
    write(
        dir,
        vec![
            executor("1", 1_500, None),
            executor("2", 1_500, None),
            executor("2", 0, Some(5_000)),
        ],
    );
    write(
        dir,
        [job(0, &[0, 1], 3_000, 6_000), job(1, &[2, 3], 6_500, 8_500)].concat(),
    );
    let stages = [
        stage(0, &[], 3_000, 5_000),
        stage(1, &[0], 5_000, 6_000),
        stage(3, &[0], 6_500, 8_500),
    ];
    write(dir, stages.concat());
    write(
        dir,
        vec![
            task(0, 0, 3_000, 5_000, "SUCCESS"),
            task(1, 0, 3_000, 3_500, "KILLED"),
            task(2, 1, 5_000, 6_000, "SUCCESS"),
            task(3, 3, 6_500, 7_000, "FAILED"),
            // Its executor and its output were lost.
            task(2, 1, 5_000, 6_000, "SUCCESS"),
            task(4, 3, 7_000, 8_500, "SUCCESS"),
        ],
    );
    let process = |executor: &str, lost_events| ProcessRow {
        app: "a".into(),
        executor: executor.into(),
        lost_events,
        ..ProcessRow::default()
    };
    write(dir, vec![process("driver", 7), process("1", 9)]);
}

fn example() -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("run-1");
    tables(&dir);
    (home, dir)
}

fn logs(paths: &[PathBuf], given: &GivenValues) -> Logs {
    read(paths, given).expect("something to read")
}

fn left_out(dir: &Path) -> String {
    let logs = logs(&[dir.to_owned()], &GivenValues::default());
    assert!(logs.runs.is_empty(), "{:?}", logs.runs);
    logs.left_out[0].why.clone()
}

#[test]
fn a_run_is_read() {
    let (_home, dir) = example();
    let logs = logs(std::slice::from_ref(&dir), &GivenValues::default());
    let [run] = &logs.runs[..] else {
        panic!("{logs:?}");
    };
    assert_eq!(
        (run.log.as_str(), run.application.as_str()),
        (dir.to_str().expect("text"), "job")
    );
    assert_eq!(run.category, Category::MLlib);
    assert_eq!((run.seconds, run.phases.preparation), (8.0, 2.0));
    // Two slots for 5.5 s, and two more for 2 s.
    assert!((run.at.slots - 15.0 / 5.5).abs() < 1e-9, "{}", run.at.slots);
    assert_eq!((run.at.iterations, run.at.bytes), (3.0, 1_000.0));
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    near(run.phases.sharing, 0.3);
    near(run.phases.communication, 0.15);
    near(run.phases.execution, 4.05);
    // The stage of the second job waits for the first job, not only for its input.
    let after: Vec<&[usize]> = run
        .stages
        .iter()
        .map(|stage| stage.after.as_slice())
        .collect();
    assert_eq!(after, [&[][..], &[0], &[1]]);
    assert_eq!(
        run.stages[0].class,
        "fit at job.py:3: Exchange < WholeStageCodegen"
    );
    assert_eq!(run.stages[0].unit, "Exchange");
    for words in [
        "2 tasks and 0 stages failed",
        "executors came and went",
        "7 events lost",
    ] {
        assert!(
            logs.notes.iter().any(|note| note.contains(words)),
            "{words}: {:?}",
            logs.notes
        );
    }
}

#[test]
fn profiles_that_are_no_run_say_why() {
    let (_home, dir) = example();
    let only = |app: ApplicationRow| {
        fs::remove_dir_all(dir.join(ApplicationRow::NAME)).expect("deleted");
        write(&dir, vec![app]);
    };
    only(ApplicationRow {
        app: "a".into(),
        started_ms: Some(1_000),
        ..ApplicationRow::default()
    });
    assert!(left_out(&dir).contains("it has no end of the application"));
    only(ApplicationRow {
        app: "a".into(),
        ended_ms: Some(9_000),
        ..ApplicationRow::default()
    });
    assert!(left_out(&dir).contains("the beginning of its tables was deleted"));
    fs::remove_dir_all(dir.join(ApplicationRow::NAME)).expect("deleted");
    assert!(left_out(&dir).contains("an older unfuse wrote it"));
    tables(&dir);
    tables(&dir);
    assert!(left_out(&dir).contains("its driver started 2 times"));
    fs::write(dir.join("unfuse.json"), "{").expect("written");
    assert!(left_out(&dir).contains("is damaged"));
}

#[test]
fn profiles_are_found_and_named() {
    let (home, dir) = example();
    let other = home.path().join("run-2");
    tables(&other);
    let table = home.path().join("runs.csv");
    fs::write(&table, "log,iterations,bytes\nrun-2,5,\nb,,70\n").expect("written");
    let given = GivenValues::read(&table).expect("a table");
    fs::remove_file(table).expect("deleted");
    let whole = logs(&[home.path().to_owned()], &given);
    let points: Vec<(f64, f64)> = whole
        .runs
        .iter()
        .map(|run| (run.at.iterations, run.at.bytes))
        .collect();
    assert_eq!(points, [(3.0, 1_000.0), (5.0, 1_000.0)], "{whole:?}");
    // A second application in the directory: both are identified by id.
    let unwell = ApplicationRow {
        app: "b".into(),
        started_ms: Some(1_000),
        ended_ms: Some(2_000),
        ..ApplicationRow::default()
    };
    let folder = ProfileDir::open(&dir).expect("a profile");
    let mut segment = SegmentWriter::new(&folder, "h-2");
    segment.push(unwell);
    segment.flush().expect("written");
    let both = logs(std::slice::from_ref(&dir), &given);
    assert_eq!(both.runs[0].log, dir.join("a").display().to_string());
    assert_eq!(both.left_out[0].log, dir.join("b").display().to_string());
    assert!(both.left_out[0].why.contains("no task in it succeeded"));
}

#[test]
fn a_run_with_log_and_profile_counts_once() {
    let (home, dir) = example();
    let log = home.path().join("log");
    let event = |text: &str| format!("{{\"Event\":\"SparkListener{text}}}\n");
    let text = [
        "LogStart\",\"Spark Version\":\"4.3.0\"",
        "ExecutorAdded\",\"Timestamp\":1500,\"Executor ID\":\"1\",\"Executor Info\":{\"Host\":\"h\",\"Total Cores\":2,\"Log Urls\":{}}",
        "ApplicationStart\",\"App Name\":\"job\",\"App ID\":\"a\",\"Timestamp\":1000,\"User\":\"u\"",
        "TaskEnd\",\"Stage ID\":0,\"Stage Attempt ID\":0,\"Task Type\":\"ResultTask\",\"Task End Reason\":{\"Reason\":\"Success\"},\
         \"Task Info\":{\"Task ID\":0,\"Index\":0,\"Attempt\":0,\"Launch Time\":2000,\"Executor ID\":\"1\",\"Host\":\"h\",\
         \"Locality\":\"ANY\",\"Speculative\":false,\"Getting Result Time\":0,\"Finish Time\":3000,\"Failed\":false,\"Killed\":false,\
         \"Accumulables\":[]},\"Task Metrics\":{\"Executor Run Time\":900}",
        "ApplicationEnd\",\"Timestamp\":9000",
    ];
    fs::write(&log, text.map(event).concat()).expect("written");
    let both = logs(&[dir.clone(), log.clone()], &GivenValues::default());
    assert_eq!(both.runs.len(), 1, "{both:?}");
    assert_eq!(both.left_out[0].log, log.display().to_string());
    assert!(
        both.left_out[0]
            .why
            .contains("run-1 is from the same run, which counts once"),
        "{:?}",
        both.left_out
    );
    let empty = home.path().join("empty");
    fs::create_dir(&empty).expect("a directory");
    assert!(matches!(
        read(&[empty], &GivenValues::default()),
        Err(SizingError::File { why, .. }) if why.contains("unfuse run -o DIR")
    ));
}
