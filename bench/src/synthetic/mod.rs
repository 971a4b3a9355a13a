//! A synthetic profile: a day of queries of one application,
//! written with the code of the profile format.
//!
//! Every query is a run of one of several shapes. A shape has a plan of three stages, two generated
//! sources and stacks of its own. Some descriptions would break a page that does not escape them.

pub mod large;
mod shapes;
mod skew;

use std::path::Path;

use anyhow::Result;
use unfuse_format::{
    Accumulator, CodegenRow, ExecutionRow, IntervalRow, PlanRow, ProcessRow, ProfileDir,
    SampleKind, SampleRow, SegmentWriter, SourceRow, StackRow, StageRow, Table, TaskRow,
};

use self::shapes::{PLAN, plan_tables, shape_tables, stack_id};
use self::skew::Records;
use crate::random::Random;

const APP: &str = "app-20261121-0001";
const SHAPES: usize = 50;
/// Distinct stacks of a shape; a run has samples in most of them.
const STACKS: usize = 140;
/// Stages of a query.
const STAGES: usize = 3;
const TASKS: i32 = 8;
const BEGUN_MS: i64 = 1_795_219_200_000;
const DAY_MS: i64 = 24 * 3_600_000;

/// Descriptions that a page must escape. The first is also the name of an operator.
const HOSTILE: &[&str] = &[
    "</script><img src=x onerror=\"window.broken=1\"><script>window.broken=1</script>",
    "select '<!--', \"]]>\", '\u{202e}', '${x}' -- \u{0}&amp;\u{1b}]0;title\u{7}\u{9b}2J\u{2028}\u{2066}",
];

/// The host of all processes, which a page must escape too.
const HOST: &str = "worker-1<img src=x onerror=\"window.broken=1\">\u{2028}";

/// Writes a profile of this many queries. `heavier` makes the last stage of some shapes slower and
/// changes the join of one shape, for a comparison to find.
pub fn write(root: &Path, queries: usize, heavier: bool) -> Result<()> {
    let dir = ProfileDir::create(root)?;
    let mut out = Tables::new(&dir);
    for shape in 0..SHAPES {
        shape_tables(&dir, &mut out, shape)?;
    }
    let mut random = Random(7);
    for query in 0..queries {
        query_tables(&mut out, query, heavier, &mut random);
        if query % 500 == 499 {
            out.flush()?;
        }
    }
    outside(&mut out, queries);
    out.flush()
}

struct Tables {
    samples: SegmentWriter<SampleRow>,
    stacks: SegmentWriter<StackRow>,
    processes: SegmentWriter<ProcessRow>,
    sources: SegmentWriter<SourceRow>,
    codegen: SegmentWriter<CodegenRow>,
    plans: SegmentWriter<PlanRow>,
    executions: SegmentWriter<ExecutionRow>,
    stages: SegmentWriter<StageRow>,
    tasks: SegmentWriter<TaskRow>,
    intervals: SegmentWriter<IntervalRow>,
    records: Records,
}

impl Tables {
    fn new(dir: &ProfileDir) -> Self {
        fn writer<T: Table>(dir: &ProfileDir) -> SegmentWriter<T> {
            SegmentWriter::new(dir, "synthetic-1")
        }
        Self {
            samples: writer(dir),
            stacks: writer(dir),
            processes: writer(dir),
            sources: writer(dir),
            codegen: writer(dir),
            plans: writer(dir),
            executions: writer(dir),
            stages: writer(dir),
            tasks: writer(dir),
            intervals: writer(dir),
            records: Records::new(dir),
        }
    }

    fn flush(&mut self) -> Result<()> {
        self.samples.flush()?;
        self.stacks.flush()?;
        self.processes.flush()?;
        self.sources.flush()?;
        self.codegen.flush()?;
        self.plans.flush()?;
        self.executions.flush()?;
        self.stages.flush()?;
        self.tasks.flush()?;
        self.intervals.flush()?;
        Ok(self.records.flush()?)
    }
}

fn query_tables(out: &mut Tables, query: usize, heavier: bool, random: &mut Random) {
    let shape = query % SHAPES;
    // Two queries run at a time.
    let between = DAY_MS / 5000;
    let begun = BEGUN_MS + query as i64 * between - (query % 2) as i64 * (between - 500);
    let cost = 1 + (shape as u64 % 9) + random.below(4);
    plan_tables(out, query, shape, heavier);
    execution_tables(out, query, begun, 900 * cost as i64);
    for position in 0..STAGES as i32 {
        stage_tables(out, query, position, begun, cost, random);
    }
    for number in 0..STACKS {
        let slow = heavier && shape.is_multiple_of(5) && number % 4 == 3;
        let count = random.below(cost + 2) * if slow { 3 } else { 1 };
        if count == 0 {
            continue;
        }
        let position = if number % 4 == 3 {
            2
        } else {
            i32::from(number % 10 != 0)
        };
        let stage = stage_id(query, position);
        let task = i64::from(stage) * i64::from(TASKS) + random.below(TASKS as u64) as i64;
        out.samples.push(SampleRow {
            app: APP.into(),
            host: HOST.into(),
            executor: "1".into(),
            pid: 4711,
            tid: 100 + (task % 16) as u32,
            thread: "Executor task launch worker".into(),
            stage: Some(stage),
            stage_attempt: Some(0),
            task: Some(task),
            start_ns: begun * 1_000_000,
            end_ns: (begun + 100) * 1_000_000,
            kind: SampleKind::Cpu,
            stack: stack_id(shape, number),
            count,
            weight_ns: count * 5_000_000,
        });
    }
}

/// The rows of an execution that begins at `begun` (ms since the epoch) and takes `length` ms.
fn execution_tables(out: &mut Tables, query: usize, begun: i64, length: i64) {
    for ended in [false, true] {
        out.executions.push(ExecutionRow {
            app: APP.into(),
            execution: query as i64,
            description: description(query % SHAPES),
            started_ms: Some(begun),
            ended_ms: ended.then_some(begun + length),
            error: (ended && query % 97 == 96).then(|| {
                "Job aborted due to stage failure:\n  java.io.IOException: <b>disk</b>".into()
            }),
        });
    }
}

/// The number of a query's stage.
fn stage_id(query: usize, position: i32) -> i32 {
    (query * STAGES) as i32 + position
}

/// The row of a query's stage, without its times.
fn stage_row(query: usize, position: i32) -> StageRow {
    let stage = stage_id(query, position);
    let accumulators = PLAN.iter().enumerate().map(|(number, _)| Accumulator {
        id: (query * 100 + number) as i64,
        value: (1000 * (number + 1)).to_string(),
    });
    StageRow {
        app: APP.into(),
        stage,
        attempt: 0,
        execution: Some(query as i64),
        name: "save at Daily.scala:41".into(),
        tasks: TASKS,
        failure: (query % 97 == 96 && position == 2)
            .then(|| "java.io.IOException: <b>disk</b>".into()),
        accumulators: accumulators.collect(),
        parents: (position > 0).then(|| stage - 1).into_iter().collect(),
        ..StageRow::default()
    }
}

fn description(shape: usize) -> String {
    HOSTILE.get(shape).map_or_else(
        || {
            format!(
                "insert overwrite daily_{shape} select … from sales join customers group by region"
            )
        },
        |text| (*text).to_owned(),
    )
}

fn stage_tables(
    out: &mut Tables,
    query: usize,
    position: i32,
    begun: i64,
    cost: u64,
    random: &mut Random,
) {
    let stage = stage_id(query, position);
    let submitted = begun + i64::from(position) * 300 * cost as i64;
    out.stages.push(StageRow {
        submitted_ms: Some(submitted),
        completed_ms: Some(submitted + 280 * cost as i64),
        ..stage_row(query, position)
    });
    for index in 0..TASKS {
        let slower_ms = skew::slower_ms(query, position, index, cost);
        let run_ms = (60 * cost + random.below(80)) as i64 + slower_ms;
        // All tasks have about the same amount of data.
        let data = 60 * cost as i64 + i64::from(index);
        let task = i64::from(stage) * i64::from(TASKS) + i64::from(index);
        let (fetched, fetch_wait_ms) = if position == 2 {
            (data * 7919, run_ms / 12)
        } else {
            (0, 0)
        };
        let started = submitted + i64::from(index);
        if slower_ms > 0 {
            out.records.of_task(stage, started, slower_ms);
        }
        for (kind, units, blocked_ms) in [
            ("cpu", run_ms as f64 * 0.8e-3, 0),
            ("network", fetched as f64, fetch_wait_ms),
        ] {
            out.intervals.push(IntervalRow {
                app: APP.into(),
                host: HOST.into(),
                executor: "1".into(),
                stage,
                attempt: 0,
                task,
                kind: kind.into(),
                start_ns: started * 1_000_000,
                end_ns: (started + run_ms) * 1_000_000,
                units,
                blocked_ns: blocked_ms * 1_000_000,
            });
        }
        out.tasks.push(TaskRow {
            app: APP.into(),
            stage,
            attempt: 0,
            task,
            index,
            executor: "1".into(),
            host: HOST.into(),
            launched_ms: started,
            finished_ms: submitted + run_ms + 9,
            status: if query % 97 == 96 && position == 2 {
                "FAILED"
            } else {
                "SUCCESS"
            }
            .into(),
            cpu_ns: run_ms * 800_000,
            run_ms,
            gc_ms: run_ms / 40,
            shuffle_fetch_wait_ms: fetch_wait_ms,
            shuffle_read_bytes: fetched,
            shuffle_write_bytes: if position == 1 { data * 7919 } else { 0 },
            input_bytes: if position == 2 { 0 } else { data * 104_729 },
            ..TaskRow::default()
        });
    }
}

/// Writes the row of the process, and samples outside queries.
fn outside(out: &mut Tables, queries: usize) {
    out.processes.push(ProcessRow {
        app: APP.into(),
        name: "daily reports".into(),
        spark: "4.3.0".into(),
        host: HOST.into(),
        executor: "1".into(),
        pid: 4711,
        rate_hz: 200,
        source: "perf".into(),
        start_ns: BEGUN_MS * 1_000_000,
        end_ns: (BEGUN_MS + DAY_MS) * 1_000_000,
        broken_chains: 3,
        ..ProcessRow::default()
    });
    for (tid, thread) in ["C2 CompilerThre", "GC Thread#0", "G1 Service", "main"]
        .iter()
        .enumerate()
    {
        out.samples.push(SampleRow {
            app: APP.into(),
            host: HOST.into(),
            executor: "1".into(),
            pid: 4711,
            tid: tid as u32 + 1,
            thread: (*thread).into(),
            start_ns: BEGUN_MS * 1_000_000,
            end_ns: BEGUN_MS * 1_000_000,
            kind: SampleKind::Cpu,
            stack: stack_id(0, tid),
            count: queries as u64,
            weight_ns: queries as u64 * 5_000_000,
            ..SampleRow::default()
        });
    }
}
