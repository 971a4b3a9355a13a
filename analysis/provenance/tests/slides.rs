//! The examples of the paper's slides, and facts about small programs.

use std::path::Path;

use proptest::prelude::*;
use unfuse_format::{
    ProfileDir, RecordIdentity, RecordInRow, RecordOutRow, RecordSourceKind, RecordSourceRow,
    RecordTargetRow, SegmentWriter, Table, TaskKey,
};
use unfuse_provenance::{Options, Outcome, SEVERAL, TaskTraces, propagate};

const MS: i64 = 1_000_000;

/// A profile being made: tasks with one source and one output each.
struct Run {
    _home: tempfile::TempDir,
    dir: ProfileDir,
    sources: Vec<RecordSourceRow>,
    targets: Vec<RecordTargetRow>,
    inputs: Vec<RecordInRow>,
    outputs: Vec<RecordOutRow>,
}

/// Source and output of a task's records.
struct Task {
    stage: i32,
    partition: i32,
    from: Option<&'static str>,
    to: &'static str,
    combined: bool,
    shuffle_ms: i64,
}

/// A record: its id when read, its id when made (0 for a result), and its time.
type Record = (i64, i64, i64);

impl Run {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let dir = ProfileDir::create(&home.path().join("profile")).expect("a profile");
        Self {
            _home: home,
            dir,
            sources: Vec::new(),
            targets: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        }
    }

    fn task(&mut self, task: &Task, records: &[Record]) {
        let task_key = task_key(task.stage, task.partition);
        let count = records.len() as i64;
        self.sources.push(RecordSourceRow {
            stage: task.stage,
            partition: task.partition,
            task_key,
            kind: if task.from.is_some() {
                RecordSourceKind::Shuffle
            } else {
                RecordSourceKind::File
            },
            by: RecordIdentity::Key,
            links: task.from.iter().map(|link| (*link).to_owned()).collect(),
            count,
            read_ns: task.shuffle_ms * MS,
            timed: true,
            output: -1,
            ..RecordSourceRow::default()
        });
        self.targets.push(RecordTargetRow {
            stage: task.stage,
            partition: task.partition,
            task_key,
            link: task.to.to_owned(),
            combined: task.combined,
            count,
            ..RecordTargetRow::default()
        });
        for (position, (id, key, ms)) in (0..).zip(records) {
            self.inputs.push(RecordInRow {
                task_key,
                position,
                id: *id,
                ns: ms * MS,
                ..RecordInRow::default()
            });
            self.outputs.push(RecordOutRow {
                task_key,
                position,
                key: *key,
                ns: ms * MS,
                first: position,
                count: 1,
                ..RecordOutRow::default()
            });
        }
    }

    fn propagate(self, memory: usize) -> Outcome {
        self.follow(None, memory).1
    }

    fn follow(self, app: Option<&str>, memory: usize) -> (TaskTraces, Outcome) {
        write(&self.dir, self.sources);
        write(&self.dir, self.targets);
        write(&self.dir, self.inputs);
        write(&self.dir, self.outputs);
        let traces = TaskTraces::read(&self.dir, app).expect("task attempts");
        let options = Options {
            memory,
            ..Options::default()
        };
        let outcome = propagate(&self.dir, &traces, &options).expect("an outcome");
        (traces, outcome)
    }
}

/// Numbers do not define the order: here those of the first stage are the last.
fn task_key(stage: i32, partition: i32) -> TaskKey {
    TaskKey(i64::from(10_000 - stage * 1000 - partition))
}

fn write<T: Table>(dir: &ProfileDir, rows: Vec<T>) {
    let mut writer = SegmentWriter::new(dir, "host-1");
    for (index, row) in rows.into_iter().enumerate() {
        writer.push(row);
        // Several segments with arbitrary bounds.
        if index % 5 == 4 {
            writer.flush().expect("written");
        }
    }
    writer.flush().expect("written");
}

fn first(stage: i32, partition: i32) -> Task {
    Task {
        stage,
        partition,
        from: None,
        to: "shuffle 0",
        combined: false,
        shuffle_ms: 0,
    }
}

fn last(partition: i32, shuffle_ms: i64) -> Task {
    Task {
        stage: 1,
        partition,
        from: Some("shuffle 0"),
        to: "result",
        combined: false,
        shuffle_ms,
    }
}

/// "Propagate Expensive Inputs": end-to-end latencies of the outputs, each with the input that is responsible.
#[test]
fn the_expensive_input_is_that_of_the_slowest_path() {
    let mut run = Run::new();
    let (o1, o2, o3) = (101, 102, 103);
    run.task(
        &first(0, 0),
        &[
            (0, o1, 40),
            (0, o2, 30),
            (0, o2, 25),
            (0, o3, 40),
            (0, o1, 55),
            (0, o3, 60),
        ],
    );
    run.task(&last(0, 0), &[(o1, 0, 65), (o2, 0, 70), (o3, 0, 40)]);
    let outcome = run.propagate(1 << 20);
    let told: Vec<_> = outcome
        .slowest
        .iter()
        .map(|slow| {
            (
                slow.position,
                slow.path.ns() / MS,
                slow.path.root.position + 1,
            )
        })
        .collect();
    assert_eq!(told, [(0, 120, 5), (1, 100, 2), (2, 100, 6)]);
    assert!(outcome.slowest.iter().all(|slow| slow.path.lineage == 2));
    assert_eq!(
        (outcome.results, outcome.inputs, outcome.unlinked),
        (3, 6, 0)
    );
}

/// "Calculate Stage Latency": 30 ms of functions and 2 of 16 records of a partition whose shuffle took 80 ms.
#[test]
fn a_shuffle_counts_by_how_much_was_read() {
    let mut run = Run::new();
    let combined = |partition| Task {
        combined: true,
        ..first(0, partition)
    };
    // Values of key 100 are merged in each task; key 200 comes from one of them, and 13 records belong to others.
    run.task(
        &combined(0),
        &[(0, 100, 3), (0, 200, 20), (0, 100, 6), (0, 100, 1)],
    );
    run.task(&combined(1), &[(0, 100, 1)]);
    let others: Vec<Record> = (0..13).map(|index| (0, 300 + index, 0)).collect();
    run.task(&combined(2), &others);
    let mut read = vec![(100, 0, 30), (200, 0, 40)];
    read.extend((0..13).map(|index| (300 + index, 0, 0)));
    run.task(&last(0, 80), &read);
    let outcome = run.propagate(1 << 20);
    let of = |position| {
        let found = outcome
            .slowest
            .iter()
            .find(|slow| slow.position == position);
        found.expect("an output").path
    };
    // Before: both values of the key in the task in which it took longest.
    assert_eq!((of(0).own_ns, of(0).base_ns), (40 * MS, 10 * MS));
    assert_eq!((of(1).own_ns, of(1).base_ns), (45 * MS, 20 * MS));
    assert_eq!(of(0).root.position, 2);
    assert_eq!(of(0).lineage, 4);
}

/// If a record became several, each counts its own time; if several became one, the slowest and its inputs.
#[test]
fn ranges_of_records() {
    let mut run = Run::new();
    run.task(&first(0, 0), &[(0, 1, 10), (0, 2, 90), (0, 3, 5)]);
    // One output of all three, and two of the last one alone.
    let range = |position, first, count, ms| RecordOutRow {
        task_key: task_key(0, 0),
        position,
        key: 7 + position,
        ns: ms * MS,
        first,
        count,
        ..RecordOutRow::default()
    };
    run.outputs = vec![range(0, 0, 3, 105), range(1, 2, 1, 4), range(2, 2, 1, 1)];
    run.targets[0].link = "result".to_owned();
    let outcome = run.propagate(1 << 20);
    let told: Vec<_> = outcome
        .slowest
        .iter()
        .map(|slow| (slow.position, slow.path.ns() / MS, slow.path.root.position))
        .collect();
    assert_eq!(told, [(0, 90, 1), (1, 4, 2), (2, 1, 2)]);
}

/// An output of all sorted records has its own time after the slowest of these.
#[test]
fn a_slow_function_behind_a_sort_is_found() {
    let mut run = Run::new();
    run.task(&first(0, 0), &[(0, 1, 10), (0, 2, 90), (0, 3, 5)]);
    let of_all = |position, ms| RecordOutRow {
        task_key: task_key(0, 0),
        position,
        ns: ms * MS,
        alone_ns: ms * MS,
        count: 3,
        ..RecordOutRow::default()
    };
    run.outputs = vec![of_all(0, 0), of_all(1, 2), of_all(2, 700), of_all(3, 1)];
    run.targets[0].link = "result".to_owned();
    let outcome = run.propagate(1 << 20);
    let slowest = &outcome.slowest[0];
    let path = slowest.path;
    assert_eq!((slowest.position, path.ns() / MS), (2, 790));
    // The path begins with the slowest record; the slowest step is not a record.
    assert_eq!((path.root.position, path.root_ns / MS), (1, 90));
    assert_eq!((path.peak.position, path.peak_ns / MS), (SEVERAL, 700));
    assert_eq!(outcome.slowest[1].path.ns() / MS, 92);
}

/// Among equally long paths the same one is chosen for any order of the tables.
#[test]
fn the_first_of_equally_slow_inputs_is_told() {
    for swapped in [false, true] {
        let mut run = Run::new();
        let records = [(0, 1, 40), (0, 1, 40)];
        let partitions = if swapped { [1, 0] } else { [0, 1] };
        for partition in partitions {
            run.task(&first(0, partition), &records);
        }
        run.task(&last(0, 0), &[(1, 0, 5)]);
        let (traces, outcome) = run.follow(None, 1 << 20);
        let root = outcome.slowest[0].path.root;
        let partition = traces.source(root).map(|source| source.partition);
        // Task attempts come in the order of their numbers.
        assert_eq!((partition, root.position), (Some(1), 0));
    }
}

/// Requested records come with their recorded data.
#[test]
fn records_are_looked_up() {
    let mut run = Run::new();
    run.task(&first(0, 0), &[(50, 1, 40), (60, 1, 30)]);
    run.task(&last(0, 0), &[(1, 0, 5)]);
    let outcome = run.propagate(1 << 20);
    let noted: Vec<_> = outcome
        .records
        .iter()
        .map(|(record, noted)| (record.position, noted.id, noted.ns / MS))
        .collect();
    assert_eq!(noted, [(0, 50, 40)]);
}

#[test]
fn of_attempts_at_a_task_one_counts() {
    let mut run = Run::new();
    run.task(&first(0, 0), &[(0, 1, 500)]);
    run.task(&first(0, 0), &[(0, 1, 10)]);
    // The second one is a later attempt.
    run.sources[1].task = 9;
    run.targets[1].task = 9;
    run.sources[1].task_key = TaskKey(77);
    run.targets[1].task_key = TaskKey(77);
    run.inputs[1].task_key = TaskKey(77);
    run.outputs[1].task_key = TaskKey(77);
    run.task(&last(0, 0), &[(1, 0, 1)]);
    let (traces, outcome) = run.follow(None, 1 << 20);
    assert_eq!(traces.repeated, 1);
    assert_eq!(outcome.slowest[0].path.ns(), 11 * MS);
}

#[test]
fn of_an_application_only_its_own_tasks_count() {
    let result = |partition| Task {
        to: "result",
        ..first(0, partition)
    };
    let mut run = Run::new();
    run.task(&result(0), &[(0, 0, 500)]);
    run.task(&result(1), &[(0, 0, 10)]);
    run.sources[1].app = "app-2".to_owned();
    run.targets[1].app = "app-2".to_owned();
    let (traces, outcome) = run.follow(Some("app-2"), 1 << 20);
    assert_eq!((outcome.results, traces.repeated), (1, 0));
    assert_eq!(outcome.slowest[0].path.ns(), 10 * MS);
}

#[test]
fn a_profile_without_records_is_told() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = ProfileDir::create(&home.path().join("profile")).expect("a profile");
    let error = TaskTraces::read(&dir, None).expect_err("no records");
    assert!(
        error.to_string().contains("unfuse run --records"),
        "{error}"
    );
    assert!(ProfileDir::open(Path::new(dir.path())).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Two stages with any keys: the same as a map of all records, on disk as in memory.
    #[test]
    fn as_by_hand(
        tasks in proptest::collection::vec(proptest::collection::vec((1_i64..6, 0_i64..100), 1..8), 1..4),
        seconds in proptest::collection::vec(0_i64..50, 5),
        in_memory: bool,
    ) {
        let mut run = Run::new();
        let mut slowest = [None::<i64>; 6];
        for (partition, records) in (0..).zip(&tasks) {
            let rows: Vec<Record> = records.iter().map(|(key, ms)| (0, *key, *ms)).collect();
            run.task(&first(0, partition), &rows);
            for (key, ms) in records {
                let slot = &mut slowest[*key as usize];
                *slot = Some(slot.map_or(*ms, |before| before.max(*ms)));
            }
        }
        let read: Vec<Record> = (1..6)
            .filter(|key| slowest[*key as usize].is_some())
            .map(|key| (key, 0, seconds[key as usize - 1]))
            .collect();
        run.task(&last(0, 0), &read);
        let outcome = run.propagate(if in_memory { 1 << 20 } else { 0 });
        prop_assert_eq!(outcome.slowest.len(), read.len());
        for slow in &outcome.slowest {
            let (key, _, ms) = read[slow.position as usize];
            prop_assert_eq!(slow.path.ns(), (slowest[key as usize].unwrap_or(0) + ms) * MS);
        }
        let lineage: u64 = outcome.slowest.iter().map(|slow| slow.path.lineage).sum();
        prop_assert_eq!(lineage, tasks.iter().map(|records| records.len() as u64).sum::<u64>());
    }
}
