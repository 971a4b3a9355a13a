//! Converts events to rows, and decides when to write them.

use super::records::Records;
use super::spool::SpoolLimit;
use serde::Deserialize;
use unfuse_format::{
    CachedRow, CodegenRow, CpuWaitRow, ExecutionRow, FormatError, Frame, FrameKind, HostRow,
    IntervalRow, LockWaitRow, OutsideRow, PlanRow, ProcessRow, ProfileDir, SampleKind, SampleRow,
    SourceRow, StageRow, Table, TaskRow,
};

use super::events::Event;
use super::python::{self, PythonTime};
use super::segments::{MOST_ROWS, Segments, flush};
use crate::clock::EpochOffset;
use crate::share::TaskShare;
use crate::wire::WirePython;

/// Tables with more rows are written early.
const LARGE: usize = 50_000;
/// Maximum size of waiting samples in a spool, bytes.
const SPOOL_BYTES: u64 = 1 << 30;

/// Fields of events that are not columns.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Times {
    submitted: Option<i64>,
    completed: Option<i64>,
    time: Option<i64>,
}

#[derive(Deserialize)]
struct Source {
    hash: String,
    text: String,
}

#[derive(Deserialize)]
#[serde(default)]
struct Plan {
    version: i32,
    execution: i64,
    time: Option<i64>,
    nodes: Vec<PlanRow>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            version: 0,
            execution: -1,
            time: None,
            nodes: Vec::new(),
        }
    }
}

#[derive(Deserialize)]
struct LockWaits {
    #[serde(default)]
    rows: Vec<LockWaitRow>,
}

#[derive(Deserialize)]
struct Intervals {
    #[serde(default)]
    rows: Vec<IntervalRow>,
    #[serde(flatten)]
    heap: Heap,
}

/// The JVM's heap, bytes. `live_bytes` is 0 before the first collection.
#[derive(Default, Clone, Copy, Deserialize)]
struct Heap {
    heap_bytes: Option<u64>,
    live_bytes: Option<u64>,
}

pub(super) struct Tables {
    dir: ProfileDir,
    writer: String,
    pub(super) records: Records,
    /// The share of profiled tasks, and the seed for drawing them.
    pub(super) draw: (TaskShare, u64),
    /// Whether old segments are deleted.
    limited: bool,
    pub(super) process: ProcessRow,
    pub(super) segments: Segments,
    /// The JVM's clock, in which intervals are reported.
    clock: EpochOffset,
    /// Memory that Spark manages in this JVM, bytes.
    memory_bytes: Option<u64>,
    heap: Heap,
    /// If segments are removed by another process: those of samples that may still exist.
    spool: Option<SpoolLimit>,
    /// Sources that are not saved yet.
    unsaved: Vec<(String, String)>,
    /// CPU time of Python processes.
    pub(super) python: PythonTime,
    /// Whether it is recorded.
    pub(super) with_python: bool,
    /// Number of events that could not be parsed as a row.
    pub(super) misread_events: u64,
}

impl Tables {
    pub(super) fn new(dir: ProfileDir, writer: &str, clock: EpochOffset) -> Self {
        Self {
            process: ProcessRow::default(),
            segments: Segments::new(&dir, writer),
            clock,
            memory_bytes: None,
            heap: Heap::default(),
            spool: None,
            unsaved: Vec::new(),
            python: PythonTime::default(),
            with_python: false,
            misread_events: 0,
            draw: (TaskShare::default(), 0),
            limited: false,
            records: Records::new(),
            writer: writer.to_owned(),
            dir,
        }
    }

    /// Renames the segments from now on, except tables that are not deleted by generation.
    pub(super) fn begin_generation(&mut self, name: &str) {
        self.limited = true;
        self.segments.begin_generation(name);
    }

    /// Limits the segments of samples from now on: the process that removes them may fail for long.
    pub(super) fn bound_spool(&mut self) {
        self.spool = Some(SpoolLimit::new(self.dir.clone(), SPOOL_BYTES));
    }

    pub(super) fn is_large(&mut self) -> bool {
        self.segments.is_large(LARGE)
    }

    /// Processes one event of the JVM.
    pub(super) fn record(&mut self, event: &Event) {
        match event.kind.as_str() {
            "app" => {
                let fields = event.fields();
                let text = |key: &str| fields[key].as_str().unwrap_or_default().to_owned();
                self.process.app = text("app");
                self.process.name = text("name");
                self.process.spark = text("spark");
                self.process.executor = text("executor");
                self.memory_bytes = fields["memory"].as_u64();
            }
            "source" => {
                if let Some(Source { hash, text }) = event.read() {
                    self.unsaved.push((hash, text));
                }
                self.add(event, |tables, app, row: SourceRow| {
                    tables.segments.source_index.push(SourceRow { app, ..row });
                });
            }
            "codegen" => self.add(event, |tables, app, row: CodegenRow| {
                tables.segments.codegen.push(CodegenRow { app, ..row });
            }),
            // These have their own application id: some precede "app".
            "application" => self.add(event, |tables, _, row| {
                tables.segments.applications.push(row)
            }),
            "executor" => self.add(event, |tables, _, row| tables.segments.executors.push(row)),
            "job" => self.add(event, |tables, _, row| tables.segments.jobs.push(row)),
            "stage" => {
                let Times {
                    submitted,
                    completed,
                    ..
                } = event.read().unwrap_or_default();
                self.add(event, |tables, app, row: StageRow| {
                    tables.segments.stages.push(StageRow {
                        app,
                        submitted_ms: submitted,
                        completed_ms: completed,
                        ..row
                    });
                });
            }
            "task" => self.add(event, |tables, app, row: TaskRow| {
                tables.segments.tasks.push(TaskRow { app, ..row });
            }),
            "plan" => self.plan(event),
            "records" => {
                self.records
                    .take(event.fields(), &self.dir, &self.writer, self.clock);
            }
            "intervals" => self.intervals(event),
            "lock_waits" => self.lock_waits(event),
            "cached" => self.add(event, |tables, app, row: CachedRow| {
                tables.segments.cached.push(CachedRow { app, ..row });
            }),
            "python_begin" | "python" if self.with_python => self.python(event),
            "execution_end" => {
                let Times { time, .. } = event.read().unwrap_or_default();
                self.execution(event, |row| row.ended_ms = time);
            }
            // Unknown events are for newer writers.
            _ => {}
        }
    }

    /// Notes that a Python worker has begun to work for a task, or has ended.
    fn python(&mut self, event: &Event) {
        let (share, seed) = self.draw;
        let is_drawn = |task| share.draws(task, seed);
        let read = match event.kind.as_str() {
            "python_begin" => event.read().map(|begin| self.python.begin(begin, is_drawn)),
            _ => event.read().map(|end| self.python.end(&end, is_drawn)),
        };
        if read.is_none() {
            self.misread_events += 1;
        }
        self.settle_python(false);
    }

    /// Adds the CPU time of Python workers for which there are no stacks, of tasks that have ended; with `all` also of
    /// those whose samples may still come.
    pub(super) fn settle_python(&mut self, all: bool) {
        self.python.send_waiting();
        for (stack, mut sample) in self.python.settle(&self.process, all) {
            sample.weight_ns = self.draw.0.scale(sample.weight_ns);
            // One for each task is little, and a duplicate stack does no harm.
            self.segments.stacks.push(stack);
            self.segments.samples.push(sample);
        }
    }

    /// Adds samples of a Python worker. Their stacks may be gone if they are of an old generation; then their time is
    /// without a stack.
    pub(super) fn python_samples(&mut self, sent: WirePython, has_stacks: bool) {
        let WirePython {
            job,
            rows,
            used_ns,
            over,
            ..
        } = sent;
        let mut explained_ns = 0u64;
        for row in rows.into_iter().filter(|_| has_stacks) {
            explained_ns = explained_ns.saturating_add(row.weight_ns);
            self.segments.samples.push(SampleRow {
                start_ns: self.clock.epoch_ns(row.first),
                end_ns: self.clock.epoch_ns(row.last),
                stack: row.stack,
                count: row.count,
                weight_ns: self.draw.0.scale(row.weight_ns),
                ..python::sample_in(&self.process, job)
            });
        }
        self.python.explain(job, explained_ns, used_ns, over);
        self.settle_python(false);
    }

    fn plan(&mut self, event: &Event) {
        let Some(Plan {
            version,
            execution,
            time,
            nodes,
        }) = event.read()
        else {
            self.misread_events += 1;
            return;
        };
        for row in nodes {
            self.segments.plans.push(PlanRow {
                app: self.process.app.clone(),
                execution,
                version,
                ..row
            });
        }
        self.execution(event, |row| row.started_ms = time);
    }

    fn execution(&mut self, event: &Event, fill: impl FnOnce(&mut ExecutionRow)) {
        self.add(event, |tables, app, mut row: ExecutionRow| {
            fill(&mut row);
            tables.segments.executions.push(ExecutionRow { app, ..row });
        });
    }

    fn intervals(&mut self, event: &Event) {
        let Some(Intervals { rows, heap }) = event.read() else {
            self.misread_events += 1;
            return;
        };
        self.heap = heap;
        let process = &self.process;
        for row in rows {
            // Monotonic until here.
            let epoch = |ns: i64| self.clock.epoch_ns(ns.max(0).cast_unsigned());
            self.segments.intervals.push(IntervalRow {
                app: process.app.clone(),
                host: process.host.clone(),
                executor: process.executor.clone(),
                start_ns: epoch(row.start_ns),
                end_ns: epoch(row.end_ns),
                ..row
            });
        }
    }

    fn lock_waits(&mut self, event: &Event) {
        let Some(LockWaits { rows }) = event.read() else {
            self.misread_events += 1;
            return;
        };
        let process = &self.process;
        for row in rows {
            let epoch = |ns: i64| self.clock.epoch_ns(ns.max(0).cast_unsigned());
            self.segments.lock_waits.push(LockWaitRow {
                app: process.app.clone(),
                host: process.host.clone(),
                executor: process.executor.clone(),
                start_ns: epoch(row.start_ns),
                end_ns: epoch(row.end_ns),
                ..row
            });
        }
    }

    /// Adds the use of the host since the last heartbeat.
    pub(super) fn host(&mut self, row: HostRow) {
        let process = &self.process;
        self.segments.hosts.push(HostRow {
            app: process.app.clone(),
            host: process.host.clone(),
            pid: process.pid,
            memory_bytes: self.memory_bytes,
            heap_bytes: self.heap.heap_bytes,
            live_bytes: self.heap.live_bytes.filter(|live| *live > 0),
            ..row
        });
    }

    /// Adds what processes outside the JVM have used since the last scan.
    pub(super) fn outside(&mut self, rows: Vec<OutsideRow>) {
        let process = &self.process;
        for row in rows {
            self.segments.outside.push(OutsideRow {
                app: process.app.clone(),
                host: process.host.clone(),
                pid: process.pid,
                ..row
            });
        }
    }

    /// Adds who had the CPUs while tasks waited since the last heartbeat.
    pub(super) fn cpu_waits(&mut self, rows: Vec<CpuWaitRow>) {
        let process = &self.process;
        for row in rows {
            self.segments.cpu_waits.push(CpuWaitRow {
                app: process.app.clone(),
                host: process.host.clone(),
                executor: process.executor.clone(),
                ..row
            });
        }
    }

    /// Adds a row from an event, whose fields are named like the columns of its table; `push` gets the row and the
    /// application's id.
    fn add<T: Table>(&mut self, event: &Event, push: impl FnOnce(&mut Self, String, T)) {
        match event.read() {
            Some(row) => {
                let app = self.process.app.clone();
                push(self, app, row);
            }
            None => self.misread_events += 1,
        }
    }

    /// Writes everything; after a failure keeps what it can for the next time and returns the errno.
    pub(super) fn flush(&mut self, last: bool) -> Result<(), i32> {
        if last {
            // It finishes the files passed before.
            self.records.finish();
        }
        if !self.dir.is_there() {
            self.discard();
            return Err(libc::ENOENT);
        }
        let mut done = Ok(());
        let mut note = |result: Result<(), FormatError>| {
            if let Err(e) = result {
                done = Err(errno(&e));
            }
        };
        let dir = &self.dir;
        self.unsaved.retain(|(hash, text)| {
            let saved = dir.save_source(hash, text);
            let keep = saved.is_err() && !last;
            note(saved);
            keep
        });
        let segments = &mut self.segments;
        let samples = segments.samples.rows().iter().map(|row| row.count).sum();
        // Stacks before samples: a reader of a killed profile then finds all stacks of its samples.
        note(flush(&mut segments.stacks).and_then(|()| segments.samples.flush()));
        if let (Some(spool), Some(name)) = (&mut self.spool, segments.samples.take_last()) {
            self.process.lost_samples += spool.add(name, samples);
        }
        if segments.samples.pending() > MOST_ROWS {
            let lost = segments.samples.discard();
            self.process.lost_samples += cpu_samples(&lost);
        }
        segments.flush_others(|e| note(Err(e)));
        // Only the latest row counts; older ones that could not be written are not needed.
        segments.processes.discard();
        segments.processes.push(self.process.clone());
        note(if self.limited {
            segments.processes.flush_latest()
        } else {
            flush(&mut segments.processes)
        });
        done
    }

    /// Drops everything: the profile was deleted.
    fn discard(&mut self) {
        self.unsaved.clear();
        self.segments.discard();
    }
}

/// A frame of a stack that no sampler took.
pub(super) fn frame(kind: FrameKind, class: &str, method: &str) -> Frame {
    Frame {
        kind,
        class: class.to_owned(),
        method: method.to_owned(),
        bci: -1,
        ..Frame::default()
    }
}

/// A sample of a process with its place and kind; the caller sets the rest.
pub(super) fn sample_of(process: &ProcessRow) -> SampleRow {
    SampleRow {
        app: process.app.clone(),
        host: process.host.clone(),
        executor: process.executor.clone(),
        pid: process.pid,
        kind: SampleKind::Cpu,
        ..SampleRow::default()
    }
}

/// Number of CPU samples in rows; waits do not count.
fn cpu_samples(rows: &[SampleRow]) -> u64 {
    let cpu = rows.iter().filter(|row| row.kind == SampleKind::Cpu);
    cpu.map(|row| row.count).sum()
}

pub(super) fn errno(error: &FormatError) -> i32 {
    match error {
        FormatError::Unwritable { source, .. } | FormatError::Io { source, .. } => {
            source.raw_os_error().unwrap_or(libc::EIO)
        }
        FormatError::Refused(_) => libc::EPERM,
        _ => libc::EIO,
    }
}
