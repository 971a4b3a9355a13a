//! Traced records of tasks: from the JVM's files to tables.
//!
//! This runs on a thread of its own: there can be millions of rows, and they must delay neither the writer's samples
//! nor the job.

mod file;

use std::io::{BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;
use unfuse_format::{
    ProfileDir, RecordInRow, RecordOutRow, RecordSourceRow, RecordTargetRow, RecordTextRow, TaskKey,
};

use super::segments::RecordSegments;
use crate::clock::EpochOffset;
use crate::process::give_way;
use file::{Block, Blocks, Ranges};

/// Approximate number of rows in a segment.
const ROWS: usize = 200_000;
/// How long rows wait in memory.
const FLUSH_EVERY: Duration = Duration::from_secs(5);

/// What the thread is to do.
enum Order {
    /// Read the file that an event of the JVM names.
    Read(Value),
    /// Write all rows, then answer.
    Flush(Sender<()>),
}

/// Hands files of records to the thread; it ends when this is dropped, after what it was handed.
pub(super) struct Records {
    to_thread: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
    lost: Arc<AtomicU64>,
}

impl Records {
    /// The thread starts with the first file.
    pub(super) fn new() -> Self {
        Self {
            to_thread: None,
            thread: None,
            lost: Arc::default(),
        }
    }

    /// Number of tasks whose records could not be read.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Writes everything that was handed up to now; false if that takes longer than `patience`.
    pub(super) fn flush(&self, patience: Duration) -> bool {
        let Some(to_thread) = &self.to_thread else {
            return true;
        };
        let (done, answer) = channel();
        to_thread.send(Order::Flush(done)).is_err() || answer.recv_timeout(patience).is_ok()
    }

    /// Waits until everything that was handed is written.
    pub(super) fn finish(&mut self) {
        drop(self.to_thread.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    /// Processes the event with which the JVM announces a file.
    pub(super) fn take(
        &mut self,
        event: Value,
        dir: &ProfileDir,
        writer: &str,
        clock: EpochOffset,
    ) {
        let to_thread = self.to_thread.get_or_insert_with(|| {
            let (to_thread, orders) = channel();
            let tables = RecordTables::new(dir, writer, clock);
            let thread = std::thread::Builder::new().name("records".to_owned());
            let lost = Arc::clone(&self.lost);
            let serve = move || {
                give_way();
                tables.serve(&orders, &lost);
            };
            self.thread = thread.spawn(serve).ok();
            to_thread
        });
        // Without a thread the files stay where they are, and the tables end here.
        let _ = to_thread.send(Order::Read(event));
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        self.finish();
    }
}

#[derive(Deserialize)]
struct Task {
    file: String,
    app: String,
    stage: i32,
    attempt: i32,
    task: i64,
    partition: i32,
    unowned_ns: i64,
    sources: Vec<Value>,
    outputs: Vec<Value>,
}

#[derive(Deserialize)]
struct Text {
    position: i64,
    ns: i64,
    /// Start in the JVM's clock.
    began_ns: u64,
    ended_ns: u64,
    text: Option<String>,
    cut: bool,
}

struct RecordTables {
    clock: EpochOffset,
    dir: ProfileDir,
    segments: RecordSegments,
}

impl RecordTables {
    fn new(dir: &ProfileDir, writer: &str, clock: EpochOffset) -> Self {
        Self {
            clock,
            dir: dir.clone(),
            segments: RecordSegments::new(dir, writer),
        }
    }

    fn serve(mut self, orders: &Receiver<Order>, lost: &AtomicU64) {
        let mut flushed = Instant::now();
        loop {
            match orders.recv_timeout(FLUSH_EVERY) {
                Ok(Order::Read(event)) => {
                    if self.add(event).is_none() {
                        lost.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Ok(Order::Flush(done)) => {
                    self.segments.flush();
                    flushed = Instant::now();
                    // Nobody waits any longer for an answer that is late.
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if flushed.elapsed() >= FLUSH_EVERY || self.segments.record_texts.pending() >= ROWS {
                self.segments.flush();
                flushed = Instant::now();
            }
        }
        self.segments.flush();
        self.dir.remove_records_waiting();
    }

    /// Adds a task's rows; for a damaged file those before the damage.
    fn add(&mut self, event: Value) -> Option<()> {
        let task: Task = serde_json::from_value(event).ok()?;
        if !is_plain(&task.file) {
            return None;
        }
        let task_key = TaskKey::new(&task.app, task.task);
        // Rows first: a reader that finds a task's sources then finds its records.
        if let Ok(waiting) = self.dir.records_waiting()
            && let Ok(file) = waiting.open_file(&task.file)
        {
            self.rows(task_key, BufReader::new(file));
            let _ = waiting.remove(&task.file);
        }
        for (number, source) in (0..).zip(&task.sources) {
            self.texts(task_key, source, number, -1);
            let Ok(row) = serde_json::from_value::<RecordSourceRow>(source.clone()) else {
                continue;
            };
            // The row also has the task's partition, so the source's gets another name.
            let source_partition = row.partition;
            self.segments.record_sources.push(RecordSourceRow {
                app: task.app.clone(),
                stage: task.stage,
                attempt: task.attempt,
                task: task.task,
                partition: task.partition,
                task_key,
                source: number,
                source_partition,
                ..row
            });
        }
        for (number, output) in (0..).zip(&task.outputs) {
            self.texts(task_key, output, -1, number);
            let Ok(row) = serde_json::from_value::<RecordTargetRow>(output.clone()) else {
                continue;
            };
            self.segments.record_targets.push(RecordTargetRow {
                app: task.app.clone(),
                stage: task.stage,
                attempt: task.attempt,
                task: task.task,
                partition: task.partition,
                task_key,
                output: number,
                unowned_ns: task.unowned_ns,
                ..row
            });
        }
        Some(())
    }

    fn texts(&mut self, task_key: TaskKey, of: &Value, source: i32, output: i32) {
        let texts = Vec::<Text>::deserialize(&of["texts"]).unwrap_or_default();
        for text in texts {
            self.segments.record_texts.push(RecordTextRow {
                task_key,
                source,
                output,
                position: text.position,
                ns: text.ns,
                began_ns: self.clock.epoch_ns(text.began_ns),
                ended_ns: self.clock.epoch_ns(text.ended_ns),
                text: text.text,
                cut: text.cut,
            });
        }
    }

    fn rows(&mut self, task_key: TaskKey, file: impl Read) {
        let mut ranges = Ranges::default();
        for block in Blocks::new(file) {
            match block {
                Block::Input(row) => self.segments.records_in.push(RecordInRow {
                    task_key,
                    source: row.source,
                    position: row.position,
                    id: row.id,
                    ns: row.ns,
                }),
                Block::Output(row) => {
                    for (source, range) in ranges.update(&row) {
                        self.segments.records_out.push(RecordOutRow {
                            task_key,
                            output: row.output,
                            position: row.position,
                            key: row.key,
                            whole: row.whole,
                            ns: row.ns,
                            alone_ns: row.alone_ns,
                            source,
                            first: range.start,
                            count: range.end - range.start,
                        });
                    }
                }
            }
            if self.segments.records_in.pending() + self.segments.records_out.pending() >= ROWS {
                self.segments.flush();
            }
        }
    }
}

/// The content of a file of records. For `unfuse-fuzz` only.
#[doc(hidden)]
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct RecordCounts {
    /// Number of records read.
    pub inputs: usize,
    /// Number of records made.
    pub outputs: usize,
    /// Number of rows of these.
    pub output_rows: usize,
}

/// Parses a file of records as the writer does. For `unfuse-fuzz` only.
#[doc(hidden)]
pub fn take_records(bytes: &[u8]) -> RecordCounts {
    let mut ranges = Ranges::default();
    let mut taken = RecordCounts::default();
    for block in Blocks::new(bytes) {
        match block {
            Block::Input(_) => taken.inputs += 1,
            Block::Output(row) => {
                taken.outputs += 1;
                taken.output_rows += ranges.update(&row).count();
            }
        }
    }
    taken
}

/// Whether the JVM may have given a file this name.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}
