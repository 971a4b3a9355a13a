//! A synthetic profile of a large application: many executors that each write their own segments, and hundreds of
//! tasks in each stage.

use std::path::Path;

use anyhow::Result;
use rayon::prelude::*;
use unfuse_format::{
    IntervalRow, ProcessRow, ProfileDir, SampleKind, SampleRow, SegmentWriter, StackRow, StageRow,
    TaskRow,
};

use super::shapes::{plan_tables, shape_tables, stack_id, stack_row};
use super::{APP, BEGUN_MS, SHAPES, STACKS, STAGES, Tables, execution_tables, stage_id, stage_row};
use crate::random::Random;

/// How long the application runs, ms.
const LENGTH_MS: i64 = 3_600_000;
/// How long a stage takes, ms.
const STAGE_MS: i64 = 6_000;
/// Rows of samples in a segment.
const SEGMENT: usize = 20_000;
/// Intervals of each task for which its used resources are recorded.
const HEARTBEATS: i64 = 2;

/// The size of the application.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Executors, each on a host of its own.
    pub executors: usize,
    /// Queries.
    pub queries: usize,
    /// Tasks in each stage.
    pub tasks: usize,
    /// Rows of samples for each task.
    pub rows: usize,
}

/// Writes the profile of an application of this size.
///
/// # Errors
/// If a segment cannot be written.
pub fn write(root: &Path, size: Size) -> Result<()> {
    let dir = ProfileDir::create(root)?;
    driver(&dir, size)?;
    (0..size.executors)
        .into_par_iter()
        .try_for_each(|number| executor(&dir, size, number))
}

/// When a stage is submitted, ms since the epoch.
fn submitted_ms(size: Size, query: usize, position: i32) -> i64 {
    let begun = BEGUN_MS + LENGTH_MS * query as i64 / size.queries as i64;
    begun + STAGE_MS * i64::from(position)
}

/// The number of a task attempt.
fn task_id(size: Size, stage: i32, index: usize) -> i64 {
    i64::from(stage) * size.tasks as i64 + index as i64
}

/// Writes the tables of the driver: plans, stages, tasks.
fn driver(dir: &ProfileDir, size: Size) -> Result<()> {
    let mut out = Tables::new(dir);
    for shape in 0..SHAPES {
        shape_tables(dir, &mut out, shape)?;
    }
    out.stacks.discard();
    let mut random = Random(11);
    for query in 0..size.queries {
        plan_tables(&mut out, query, query % SHAPES, false);
        execution_tables(&mut out, query, submitted_ms(size, query, 0), 20_000);
        for position in 0..STAGES as i32 {
            let submitted = submitted_ms(size, query, position);
            out.stages.push(StageRow {
                tasks: i32::try_from(size.tasks)?,
                submitted_ms: Some(submitted),
                completed_ms: Some(submitted + STAGE_MS),
                ..stage_row(query, position)
            });
            for index in 0..size.tasks {
                out.tasks
                    .push(task(size, query, position, index, &mut random)?);
            }
        }
        if query % 50 == 49 {
            out.flush()?;
        }
    }
    out.flush()
}

fn task(
    size: Size,
    query: usize,
    position: i32,
    index: usize,
    random: &mut Random,
) -> Result<TaskRow> {
    let stage = stage_id(query, position);
    let launched = submitted_ms(size, query, position) + random.below(2_000) as i64;
    let run_ms = 1_000 + random.below(2_000) as i64;
    let executor = index % size.executors;
    Ok(TaskRow {
        app: APP.into(),
        stage,
        task: task_id(size, stage, index),
        index: i32::try_from(index)?,
        executor: executor.to_string(),
        host: format!("worker-{executor}"),
        launched_ms: launched,
        finished_ms: launched + run_ms,
        status: "SUCCESS".into(),
        cpu_ns: run_ms * 800_000,
        run_ms,
        gc_ms: run_ms / 40,
        input_bytes: 100_000_000 + random.below(1_000_000) as i64,
        ..TaskRow::default()
    })
}

/// Writes the tables of an executor, about its tasks.
fn executor(dir: &ProfileDir, size: Size, number: usize) -> Result<()> {
    let host = format!("worker-{number}");
    let name = format!("{host}-{}", 1000 + number);
    let mut samples = SegmentWriter::<SampleRow>::new(dir, &name);
    let mut intervals = SegmentWriter::<IntervalRow>::new(dir, &name);
    let mut random = Random(number as u64 + 100);
    process(dir, &name, &host, number)?;
    stacks(dir, &name)?;
    for query in 0..size.queries {
        for position in 0..STAGES as i32 {
            for index in (number..size.tasks).step_by(size.executors) {
                let task = RunningTask {
                    host: &host,
                    executor: number,
                    shape: query % SHAPES,
                    stage: stage_id(query, position),
                    task: task_id(size, stage_id(query, position), index),
                    begun_ns: submitted_ms(size, query, position) * 1_000_000,
                };
                task.samples(size.rows, &mut samples, &mut random);
                task.intervals(&mut intervals);
                if samples.pending() >= SEGMENT {
                    samples.flush()?;
                    intervals.flush()?;
                }
            }
        }
    }
    samples.flush()?;
    Ok(intervals.flush()?)
}

fn process(dir: &ProfileDir, name: &str, host: &str, number: usize) -> Result<()> {
    let mut processes = SegmentWriter::<ProcessRow>::new(dir, name);
    processes.push(ProcessRow {
        app: APP.into(),
        name: "hourly reports".into(),
        spark: "4.3.0".into(),
        host: host.into(),
        executor: number.to_string(),
        pid: 1000 + number as u32,
        rate_hz: 200,
        source: "perf".into(),
        start_ns: BEGUN_MS * 1_000_000,
        end_ns: (BEGUN_MS + LENGTH_MS) * 1_000_000,
        ended: Some(true),
        ..ProcessRow::default()
    });
    Ok(processes.flush()?)
}

/// Every executor has the same stacks in its own segments.
fn stacks(dir: &ProfileDir, name: &str) -> Result<()> {
    let mut stacks = SegmentWriter::<StackRow>::new(dir, name);
    for shape in 0..SHAPES {
        for number in 0..STACKS {
            stacks.push(stack_row(shape, number));
        }
    }
    Ok(stacks.flush()?)
}

/// A task on its executor.
struct RunningTask<'a> {
    host: &'a str,
    executor: usize,
    shape: usize,
    stage: i32,
    task: i64,
    begun_ns: i64,
}

impl RunningTask<'_> {
    fn samples(&self, rows: usize, out: &mut SegmentWriter<SampleRow>, random: &mut Random) {
        for _ in 0..rows {
            let stack = random.below(STACKS as u64) as usize;
            let start_ns = self.begun_ns + random.below(4_000_000_000) as i64;
            let count = 1 + random.below(4);
            let waited = random.below(6) == 0;
            out.push(SampleRow {
                app: APP.into(),
                host: self.host.into(),
                executor: self.executor.to_string(),
                pid: 1000 + self.executor as u32,
                tid: 100 + (self.task % 8) as u32,
                thread: "Executor task launch worker".into(),
                stage: Some(self.stage),
                stage_attempt: Some(0),
                task: Some(self.task),
                start_ns,
                end_ns: start_ns + random.below(1_000_000_000) as i64,
                kind: if waited {
                    SampleKind::OffCpu
                } else {
                    SampleKind::Cpu
                },
                stack: stack_id(self.shape, stack),
                count,
                weight_ns: count * 5_000_000,
            });
        }
    }

    fn intervals(&self, out: &mut SegmentWriter<IntervalRow>) {
        for beat in 0..HEARTBEATS {
            for (kind, units) in [("cpu", 1.1), ("io-read", 5e7)] {
                out.push(IntervalRow {
                    app: APP.into(),
                    host: self.host.into(),
                    executor: self.executor.to_string(),
                    stage: self.stage,
                    attempt: 0,
                    task: self.task,
                    kind: kind.into(),
                    start_ns: self.begun_ns + beat * 1_500_000_000,
                    end_ns: self.begun_ns + (beat + 1) * 1_500_000_000,
                    units,
                    blocked_ns: 0,
                });
            }
        }
    }
}
