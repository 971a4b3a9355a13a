//! Real logs of Spark as profiles.

use std::path::{Path, PathBuf};

use unfuse_eventlog::EventLog;
use unfuse_format::{
    ApplicationRow, EVENT_LOG, ExecutionRow, ExecutorRow, IntervalRow, JobRow, PlanRow, ProcessRow,
    ProfileDir, StageRow, Table, TaskRow, merge_executions, merge_stages,
};
use unfuse_import::import;

/// The only entry of a folder of logs.
fn log(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../eventlog/tests/fixtures")
        .join(name);
    let mut entries = std::fs::read_dir(folder).expect("a folder");
    entries.next().expect("an entry").expect("an entry").path()
}

fn imported(name: &str) -> (tempfile::TempDir, ProfileDir, Vec<String>) {
    let home = tempfile::tempdir().expect("a directory");
    let dir = ProfileDir::create(&home.path().join("profile")).expect("a profile");
    let mut events = EventLog::open(&log(name)).expect("a log");
    let notes = import(&mut events, &dir).expect("tables");
    (home, dir, notes)
}

fn rows<T: Table>(dir: &ProfileDir) -> Vec<T> {
    dir.read::<T>().expect("a table").rows
}

#[test]
fn every_event_of_the_application_is_in_its_table() {
    for name in ["causes-3.5", "causes-4.3", "failures-4.3", "small-lz4"] {
        let (_home, dir, notes) = imported(name);
        assert_eq!(notes, [""; 0], "{name}");
        let [application] = &rows::<ApplicationRow>(&dir)[..] else {
            panic!("{name}: an application");
        };
        assert!(application.started_ms < application.ended_ms, "{name}");
        let [process] = &rows::<ProcessRow>(&dir)[..] else {
            panic!("{name}: a process");
        };
        assert_eq!((&*process.source, process.ended), (EVENT_LOG, Some(true)));
        assert!(process.start_ns < process.end_ns && !process.spark.is_empty());
        assert!(!rows::<ExecutorRow>(&dir).is_empty(), "{name}");
        let tasks = rows::<TaskRow>(&dir);
        let stages: Vec<StageRow> = merge_stages(rows(&dir)).into_values().collect();
        for stage in stages.iter().filter(|stage| stage.failure.is_none()) {
            let succeeded = tasks.iter().filter(|task| {
                (task.stage, task.attempt) == (stage.stage, stage.attempt)
                    && task.status == "SUCCESS"
            });
            assert_eq!(
                succeeded.count(),
                stage.tasks as usize,
                "{name}: {}",
                stage.stage
            );
        }
        assert!(tasks.iter().any(|task| task.cpu_ns > 0), "{name}");
        let cpu_s = |of: &TaskRow| (of.cpu_ns + of.deserialize_cpu_ns) as f64 / 1e9;
        let intervals = rows::<IntervalRow>(&dir);
        let used_s: f64 = intervals
            .iter()
            .filter(|row| row.kind == "cpu")
            .map(|row| row.units)
            .sum();
        assert!((used_s - tasks.iter().map(cpu_s).sum::<f64>()).abs() < 1e-6);
        let jobs = rows::<JobRow>(&dir);
        assert_eq!(
            jobs.iter().filter(|job| job.ended_ms.is_some()).count() * 2,
            jobs.len()
        );
        assert!(
            rows::<PlanRow>(&dir)
                .iter()
                .all(|row| row.app == application.app)
        );
    }
}

#[test]
fn plans_have_their_generated_loops_and_metrics() {
    let (_home, dir, _) = imported("causes-4.3");
    let executions: Vec<ExecutionRow> = merge_executions(rows(&dir)).into_values().collect();
    let plans = rows::<PlanRow>(&dir);
    let stages: Vec<StageRow> = merge_stages(rows(&dir)).into_values().collect();
    assert!(!executions.is_empty() && !plans.is_empty());
    for execution in &executions {
        let nodes: Vec<&PlanRow> = plans
            .iter()
            .filter(|row| row.execution == execution.execution)
            .collect();
        let last = nodes.iter().map(|row| row.version).max().expect("a plan");
        let nodes: Vec<&PlanRow> = nodes
            .into_iter()
            .filter(|row| row.version == last)
            .collect();
        assert!(
            nodes
                .iter()
                .enumerate()
                .all(|(at, row)| row.node as usize == at)
        );
        assert!(nodes.iter().all(|row| row.parent < Some(row.node)));
        // A loop's own node is region 0, and those that it fuses follow.
        for root in nodes
            .iter()
            .filter(|row| row.operator.starts_with("WholeStageCodegen"))
        {
            assert_eq!(root.region, Some(0));
            let of_stage = nodes
                .iter()
                .filter(|row| row.codegen_stage == root.codegen_stage);
            assert!(of_stage.count() > 1, "{}", root.operator);
        }
    }
    let metrics: Vec<i64> = plans
        .iter()
        .flat_map(|row| &row.metrics)
        .map(|metric| metric.id)
        .collect();
    let values = stages.iter().flat_map(|stage| &stage.accumulators);
    assert!(
        values.clone().count() > 0
            && values
                .clone()
                .all(|value| value.value.parse::<f64>().is_ok())
    );
    assert!(values.clone().any(|value| metrics.contains(&value.id)));
}

#[test]
fn a_log_of_an_application_that_was_killed_has_what_it_said() {
    let (_home, dir, _) = imported("killed-4.3");
    let process = &rows::<ProcessRow>(&dir)[0];
    assert_eq!(process.ended, Some(false));
    assert!(!rows::<TaskRow>(&dir).is_empty());
}
