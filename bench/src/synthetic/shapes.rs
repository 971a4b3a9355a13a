//! The shapes of the synthetic queries: plan, generated sources, stacks.

use std::sync::Arc;

use anyhow::Result;
use unfuse_format::{
    CodegenRow, Frame, FrameKind, Metric, PlanRow, ProfileDir, RegionNode, SourceRow, StackId,
    StackRow,
};

use super::{APP, HOSTILE, STACKS, Tables};

/// Name, depth in the plan, and codegen stage with region.
type Operator = (&'static str, usize, Option<(i32, i32)>);

/// Plan of every shape.
pub(super) const PLAN: &[Operator] = &[
    ("Execute InsertIntoHadoopFsRelationCommand", 0, None),
    ("AdaptiveSparkPlan isFinalPlan=true", 1, None),
    ("WholeStageCodegen (2)", 2, Some((2, 0))),
    ("Project", 3, Some((2, 1))),
    ("HashAggregate", 4, Some((2, 2))),
    ("AQEShuffleRead", 5, Some((2, 3))),
    ("ShuffleQueryStage", 6, None),
    ("Exchange", 7, None),
    ("WholeStageCodegen (1)", 8, Some((1, 0))),
    ("HashAggregate", 9, Some((1, 1))),
    ("Project", 10, Some((1, 2))),
    ("BroadcastHashJoin", 11, Some((1, 3))),
    ("Filter", 12, Some((1, 4))),
    ("ColumnarToRow", 13, Some((1, 5))),
    ("FileScan parquet", 14, None),
    ("BroadcastQueryStage", 12, None),
    ("BroadcastExchange", 13, None),
    ("Filter", 14, None),
    ("FileScan parquet", 15, None),
];

fn hash(shape: usize, codegen_stage: i32) -> String {
    format!("{shape:08x}{codegen_stage:08x}")
}

pub(super) fn stack_id(shape: usize, number: usize) -> StackId {
    StackId((shape * 1000 + number) as i64 + 1)
}

/// The operators of a codegen stage, by region.
fn regions(codegen_stage: i32) -> impl Iterator<Item = (usize, &'static str)> {
    let nodes = PLAN.iter().enumerate();
    nodes.filter_map(move |(index, (operator, _, codegen))| {
        codegen
            .filter(|(stage, _)| *stage == codegen_stage)
            .map(|_| (index, *operator))
    })
}

pub(super) fn shape_tables(dir: &ProfileDir, out: &mut Tables, shape: usize) -> Result<()> {
    for codegen_stage in [1, 2] {
        let hash = hash(shape, codegen_stage);
        dir.save_source(&hash, &source(shape, codegen_stage))?;
        out.sources.push(SourceRow {
            app: APP.into(),
            hash,
            class: format!("GeneratedIteratorForCodegenStage{codegen_stage}"),
            codegen_stage: Some(codegen_stage),
            body: String::new(),
        });
    }
    for number in 0..STACKS {
        out.stacks.push(stack_row(shape, number));
    }
    Ok(())
}

pub(super) fn stack_row(shape: usize, number: usize) -> StackRow {
    StackRow {
        stack: stack_id(shape, number),
        frames: frames(shape, number).into_iter().map(Arc::new).collect(),
    }
}

/// Lines of one operator in a generated source.
const LINES: u32 = 80;

fn source(shape: usize, codegen_stage: i32) -> String {
    let mut text = format!(
        "public Object generate(Object[] references) {{\n  // shape {shape}\n  protected void processNext() {{\n"
    );
    let count = regions(codegen_stage).count();
    for region in (1..count).rev() {
        let kind = if region == count - 1 {
            "PRODUCE"
        } else {
            "CONSUME"
        };
        text += &format!("/* BeginCodeRegion({kind}_{region}) */\n");
        for line in 2..LINES {
            text += &format!("    long value_{region}_{line} = row_{shape}.getLong({line});\n");
        }
    }
    for region in 1..count {
        let kind = if region == count - 1 {
            "PRODUCE"
        } else {
            "CONSUME"
        };
        text += &format!("/* EndCodeRegion({kind}_{region}) */\n");
    }
    text + "  }\n}\n"
}

/// The frames of a stack: those of a task at the beginning, then code of a depth that varies.
fn frames(shape: usize, number: usize) -> Vec<Frame> {
    let java = |class: &str, method: &str, line: u32| Frame {
        kind: FrameKind::Java,
        class: class.into(),
        method: method.into(),
        signature: "()V".into(),
        file: format!("{}.java", class.rsplit('.').next().unwrap_or(class)),
        line,
        bci: 1,
        inlined: false,
        line_before: 0,
    };
    let mut frames = vec![
        java("java.lang.Thread", "run", 840),
        java("java.util.concurrent.ThreadPoolExecutor$Worker", "run", 635),
        java("java.util.concurrent.ThreadPoolExecutor", "runWorker", 1136),
        java("org.apache.spark.executor.Executor$TaskRunner", "run", 635),
        java("org.apache.spark.scheduler.Task", "run", 141),
        java("org.apache.spark.scheduler.ShuffleMapTask", "runTask", 104),
        java("org.apache.spark.rdd.RDD", "iterator", 331),
        java("org.apache.spark.rdd.MapPartitionsRDD", "compute", 52),
    ];
    let codegen_stage = if number % 4 == 3 { 2 } else { 1 };
    if number % 7 != 6 {
        let line = 4 + (number as u32 * 37 + shape as u32) % (LINES * 3);
        let hash = hash(shape, codegen_stage);
        frames.push(Frame {
            file: format!("generated_{hash}.java"),
            line,
            ..java(
                &format!("org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIteratorForCodegenStage{codegen_stage}"),
                "processNext",
                line,
            )
        });
    }
    if number.is_multiple_of(5) {
        let reader = "org.apache.spark.sql.execution.datasources";
        frames.push(java(
            &format!("{reader}.FileScanRDD$$anon$1"),
            "hasNext",
            130,
        ));
        let vectorized = format!("{reader}.parquet.VectorizedParquetRecordReader");
        frames.push(java(&vectorized, "nextBatch", 331));
    }
    for depth in 0..(number * 13 + shape) % 18 {
        let class = format!(
            "org.apache.spark.unsafe.types.Part{}",
            (number + depth * 7) % 90
        );
        frames.push(java(
            &class,
            &format!("step{}", depth % 5),
            10 + depth as u32,
        ));
    }
    frames
}

pub(super) fn plan_tables(out: &mut Tables, query: usize, shape: usize, heavier: bool) {
    let id = query * 100;
    for (index, (operator, depth, codegen)) in PLAN.iter().enumerate() {
        // In the heavier profile one shape has another join. In both, one shape has an operator
        // with a name to escape.
        let operator = match (*operator, heavier && shape == 7) {
            ("BroadcastHashJoin", true) => "ShuffledHashJoin",
            _ if shape == 1 && index == 0 => HOSTILE[0],
            (operator, _) => operator,
        };
        out.plans.push(PlanRow {
            app: APP.into(),
            execution: query as i64,
            version: 1,
            node: index as i32,
            parent: PLAN[..index]
                .iter()
                .rposition(|(_, above, _)| *above + 1 == *depth)
                .map(|parent| parent as i32),
            operator: operator.into(),
            detail: detail(operator, shape, id),
            codegen_stage: codegen.map(|(stage, _)| stage),
            region: codegen.map(|(_, region)| region),
            metrics: vec![Metric {
                id: (id + index) as i64,
                name: "number of output rows".into(),
                kind: "sum".into(),
            }],
        });
    }
    for codegen_stage in [1, 2] {
        out.codegen.push(CodegenRow {
            app: APP.into(),
            execution: Some(query as i64),
            codegen_stage,
            hash: hash(shape, codegen_stage),
            nodes: regions(codegen_stage)
                .enumerate()
                .map(|(region, (_, operator))| RegionNode {
                    region: region as i32,
                    operator: operator.into(),
                    detail: detail(operator, shape, id),
                })
                .collect(),
        });
    }
}

fn detail(operator: &str, shape: usize, id: usize) -> String {
    match operator {
        "Filter" => format!(
            "Filter ((isnotnull(amount#{id}) AND (amount#{id} > {shape})) AND (region#{}L < 10))",
            id + 1
        ),
        "HashAggregate" => format!(
            "HashAggregate(keys=[region#{id}], functions=[sum(amount#{}L), count(1)], output=[region#{id}, sum#{}L])",
            id + 1,
            id + 2
        ),
        "Exchange" => format!(
            "Exchange hashpartitioning(region#{id}, 200), ENSURE_REQUIREMENTS, [plan_id={id}]"
        ),
        "FileScan parquet" => format!(
            "FileScan parquet [region#{id},amount#{}L] Batched: true, DataFilters: [isnotnull(amount#{})], Format: Parquet, Location: InMemoryFileIndex(1 paths)[file:/data/run-{id}/sales_{shape}], PartitionFilters: [], PushedFilters: [IsNotNull(amount)], ReadSchema: struct<region:int,amount:bigint>",
            id + 1,
            id + 1
        ),
        "BroadcastHashJoin" | "ShuffledHashJoin" => format!(
            "{operator} [customer#{id}], [customer#{}], Inner, BuildRight, false",
            id + 3
        ),
        other => other.to_owned(),
    }
}
