//! Slow records: in some queries a task takes longer for the
//! same amount of data, because of one record.

use std::sync::Arc;

use unfuse_format::{
    Frame, FrameKind, ProfileDir, RecordIdentity, RecordInRow, RecordOutRow, RecordSourceKind,
    RecordSourceRow, RecordTargetRow, RecordTextRow, SampleKind, SampleRow, SegmentWriter, StackId,
    StackRow, Table, TaskKey,
};

use super::{APP, HOST, TASKS};

/// The task that is slow.
const SLOW: i32 = 5;
/// The stack of its slow record.
const STACK: StackId = StackId(1 << 40);
/// Where the slow record is in its file, bytes.
const OFFSET: i64 = 1_696_227;

/// Texts of the records and of their results. The first record is slow.
const TEXTS: &[(&str, &str)] = &[
    (
        "123456,<img src=x onerror=\"window.broken=1\">,\u{202e}77777\u{7}",
        "</script><script>window.broken=1</script>=2610279",
    ),
    ("123457,north,3", "north=17"),
];

/// By how much a task is slower, ms.
pub(super) fn slower_ms(query: usize, position: i32, index: i32, cost: u64) -> i64 {
    let is_slow = query % 25 == 4 && position == 1 && index == SLOW;
    if is_slow { 150 * cost as i64 } else { 0 }
}

pub(super) struct Records {
    samples: SegmentWriter<SampleRow>,
    stacks: SegmentWriter<StackRow>,
    sources: SegmentWriter<RecordSourceRow>,
    targets: SegmentWriter<RecordTargetRow>,
    inputs: SegmentWriter<RecordInRow>,
    outputs: SegmentWriter<RecordOutRow>,
    texts: SegmentWriter<RecordTextRow>,
}

impl Records {
    pub(super) fn new(dir: &ProfileDir) -> Self {
        fn writer<T: Table>(dir: &ProfileDir) -> SegmentWriter<T> {
            SegmentWriter::new(dir, "synthetic-2")
        }
        let mut stacks = writer(dir);
        stacks.push(StackRow {
            stack: STACK,
            frames: vec![Arc::new(Frame {
                kind: FrameKind::Java,
                class: "com.example.Daily".into(),
                method: "<parse>".into(),
                file: "Daily.scala".into(),
                line: 88,
                ..Frame::default()
            })],
        });
        Self {
            samples: writer(dir),
            stacks,
            sources: writer(dir),
            targets: writer(dir),
            inputs: writer(dir),
            outputs: writer(dir),
            texts: writer(dir),
        }
    }

    /// Adds the records and samples of a task that is this much slower.
    pub(super) fn of_task(&mut self, stage: i32, launched_ms: i64, slower_ms: i64) {
        let task = i64::from(stage) * i64::from(TASKS) + i64::from(SLOW);
        let began_ns = launched_ms * 1_000_000;
        self.sources.push(RecordSourceRow {
            app: APP.into(),
            stage,
            task,
            partition: SLOW,
            task_key: TaskKey(task),
            kind: RecordSourceKind::File,
            by: RecordIdentity::Position,
            name: "/data/sales.csv HadoopRDD[1] at textFile".into(),
            count: TEXTS.len() as i64,
            timed: true,
            output: -1,
            files: vec!["hdfs://data/sales.csv".into()],
            file_starts: vec![0],
            file_positions: vec![0],
            ..RecordSourceRow::default()
        });
        self.targets.push(RecordTargetRow {
            app: APP.into(),
            stage,
            task,
            partition: SLOW,
            task_key: TaskKey(task),
            link: "result".into(),
            count: TEXTS.len() as i64,
            ..RecordTargetRow::default()
        });
        self.records(TaskKey(task), began_ns, slower_ms);
        self.samples.push(SampleRow {
            app: APP.into(),
            host: HOST.into(),
            executor: "1".into(),
            pid: 4711,
            tid: 100 + SLOW as u32,
            thread: "Executor task launch worker".into(),
            stage: Some(stage),
            stage_attempt: Some(0),
            task: Some(task),
            start_ns: began_ns,
            end_ns: began_ns + slower_ms * 1_000_000,
            kind: SampleKind::Cpu,
            stack: STACK,
            count: slower_ms.unsigned_abs() / 5,
            weight_ns: slower_ms.unsigned_abs() * 1_000_000,
        });
    }

    /// Adds the inputs and outputs of a task; the first record is slow.
    fn records(&mut self, task_key: TaskKey, began_ns: i64, slower_ms: i64) {
        for (position, (read, made)) in (0..).zip(TEXTS) {
            let ns = if position == 0 {
                slower_ms * 1_000_000
            } else {
                1000
            };
            self.inputs.push(RecordInRow {
                task_key,
                source: 0,
                position,
                id: OFFSET + 40 * position,
                ns,
            });
            self.outputs.push(RecordOutRow {
                task_key,
                position,
                ns,
                first: position,
                count: 1,
                ..RecordOutRow::default()
            });
            for (source, output, text) in [(0, -1, read), (-1, 0, made)] {
                self.texts.push(RecordTextRow {
                    task_key,
                    source,
                    output,
                    position,
                    ns,
                    began_ns,
                    ended_ns: began_ns + ns,
                    text: Some((*text).into()),
                    cut: false,
                });
            }
        }
    }

    pub(super) fn flush(&mut self) -> Result<(), unfuse_format::FormatError> {
        self.samples.flush()?;
        self.stacks.flush()?;
        self.sources.flush()?;
        self.targets.flush()?;
        self.inputs.flush()?;
        self.outputs.flush()?;
        self.texts.flush()
    }
}
