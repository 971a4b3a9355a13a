//! Builds made-up profiles of an application with one query, which tests extend.

use std::path::PathBuf;

use tempfile::TempDir;
use unfuse_format::{
    Accumulator, ApplicationRow, ExecutionRow, ExecutorRow, Frame, FrameKind, Metric, PlanRow,
    ProcessRow, ProfileDir, SampleRow, SegmentWriter, StackRow, StageRow, Table, TaskRow,
};
use unfuse_postprocess::Profile;

pub const APP: &str = "app-1";
const S: u64 = 1_000_000_000;

/// Stacks of a task, named by what they are attributed to.
pub const SORT: &[&str] = &["org.apache.spark.sql.execution.UnsafeExternalRowSorter.sort"];
pub const DESERIALIZATION: &[&str] = &["java.io.ObjectInputStream.readObject"];
pub const DISK_READ: &[&str] = &[SORT[0], "java.io.FileInputStream.readBytes"];
pub const PAUSE: &[&str] = &[SORT[0], "SafepointBlob"];
pub const JIT: &[&str] = &["JIT compilation"];
pub const COLLECTOR: &[&str] = &["garbage collection"];

/// Rows of every table.
#[derive(Debug, Default)]
pub struct ProfileBuilder {
    pub application: Vec<ApplicationRow>,
    pub executors: Vec<ExecutorRow>,
    pub executions: Vec<ExecutionRow>,
    pub plans: Vec<PlanRow>,
    pub stages: Vec<StageRow>,
    pub tasks: Vec<TaskRow>,
    pub processes: Vec<ProcessRow>,
    pub samples: Vec<SampleRow>,
    pub stacks: Vec<StackRow>,
}

impl ProfileBuilder {
    /// An application that ran 10 s on 2 slots: a query sorts in 2 tasks of 10 s each.
    pub fn new() -> Self {
        let app = APP.to_owned();
        let mut builder = Self {
            application: vec![
                ApplicationRow {
                    app: app.clone(),
                    started_ms: Some(0),
                    ..ApplicationRow::default()
                },
                ApplicationRow {
                    app: app.clone(),
                    ended_ms: Some(10_000),
                    ..ApplicationRow::default()
                },
            ],
            executors: vec![ExecutorRow {
                app: app.clone(),
                executor: "driver".to_owned(),
                cores: 2,
                added_ms: Some(0),
                ..ExecutorRow::default()
            }],
            processes: vec![ProcessRow {
                app,
                name: "job".to_owned(),
                samples: 2000,
                rate_hz: 100,
                end_ns: 10_000_000_000,
                ..ProcessRow::default()
            }],
            ..Self::default()
        };
        builder.query(7, "the query", 9_000);
        builder.task(7, 10_000);
        builder.task(7, 10_000);
        builder.cpu(7, SORT, 16 * S);
        builder
    }

    /// Adds a query whose plan is a sort over a scan, and a stage with the same number.
    pub fn query(&mut self, query: i64, description: &str, ms: i64) {
        let app = APP.to_owned();
        self.executions.push(ExecutionRow {
            app: app.clone(),
            execution: query,
            description: description.to_owned(),
            started_ms: Some(query * 10),
            ended_ms: Some(query * 10 + ms),
            ..ExecutionRow::default()
        });
        for (node, operator) in [(0, "Sort"), (1, "Scan parquet ")] {
            self.plans.push(PlanRow {
                app: app.clone(),
                execution: query,
                node,
                parent: (node > 0).then(|| node - 1),
                operator: operator.to_owned(),
                detail: operator.to_owned(),
                metrics: vec![Metric {
                    id: query * 10 + i64::from(node),
                    name: "number of output rows".to_owned(),
                    ..Metric::default()
                }],
                ..PlanRow::default()
            });
        }
        self.stages.push(StageRow {
            app,
            stage: query as i32,
            execution: Some(query),
            accumulators: vec![Accumulator {
                id: query * 10 + 1,
                value: "1000".to_owned(),
            }],
            ..StageRow::default()
        });
    }

    /// Adds a task attempt of a query that ran for its whole duration.
    pub fn task(&mut self, query: i64, ms: i64) -> &mut TaskRow {
        let number = self.tasks.len() as i64;
        self.tasks.push(TaskRow {
            app: APP.to_owned(),
            stage: query as i32,
            task: number,
            index: number as i32,
            finished_ms: ms,
            run_ms: ms,
            status: "SUCCESS".to_owned(),
            ..TaskRow::default()
        });
        self.tasks.last_mut().expect("it was just added")
    }

    /// Adds CPU time of a query's tasks, 100 samples a second.
    pub fn cpu(&mut self, query: i64, stack: &[&str], ns: u64) {
        self.sample("cpu", Some(query as i32), stack, ns);
    }

    /// Adds waiting time of a query's tasks.
    pub fn wait(&mut self, query: i64, stack: &[&str], ns: u64) {
        self.sample("off-cpu", Some(query as i32), stack, ns);
    }

    /// Adds CPU time of threads without a task.
    pub fn beside(&mut self, stack: &[&str], ns: u64) {
        self.sample("cpu", None, stack, ns);
    }

    fn sample(&mut self, kind: &str, stage: Option<i32>, stack: &[&str], ns: u64) {
        let frame = |text: &&str| {
            let (class, method) = text.rsplit_once('.').unwrap_or(("", text));
            Frame {
                kind: if class.is_empty() {
                    FrameKind::Native
                } else {
                    FrameKind::Java
                },
                class: class.to_owned(),
                method: method.to_owned(),
                ..Frame::default()
            }
        };
        let stack = StackRow::from_frames(stack.iter().map(frame).collect());
        self.samples.push(SampleRow {
            app: APP.to_owned(),
            kind: kind.into(),
            stage,
            stage_attempt: stage.map(|_| 0),
            task: stage.map(|_| 0),
            stack: stack.stack,
            count: (ns / 10_000_000).max(1),
            weight_ns: ns,
            ..SampleRow::default()
        });
        self.stacks.push(stack);
    }

    /// Opens the profile; the directory lasts as long as the first value.
    pub fn open(self) -> (TempDir, Profile) {
        let home = tempfile::tempdir().expect("a directory");
        let profile = self.write(home.path().join("profile"));
        (home, Profile::open(profile.path()).expect("a profile"))
    }

    fn write(self, path: PathBuf) -> ProfileDir {
        let dir = ProfileDir::create(&path).expect("a profile");
        write(&dir, self.application);
        write(&dir, self.executors);
        write(&dir, self.executions);
        write(&dir, self.plans);
        write(&dir, self.stages);
        write(&dir, self.tasks);
        write(&dir, self.processes);
        write(&dir, self.samples);
        write(&dir, self.stacks);
        dir
    }
}

fn write<T: Table>(dir: &ProfileDir, rows: Vec<T>) {
    let mut segment = SegmentWriter::new(dir, "test-1");
    rows.into_iter().for_each(|row| segment.push(row));
    segment.flush().expect("written");
}
