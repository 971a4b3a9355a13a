//! Samples, their stacks, and the JVMs that were sampled.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::{FrameKind, SampleKind, StackId};

table! {
    /// Samples of one thread in one time window that share stage attempt, task attempt and stack.
    pub struct SampleRow in Samples {
        /// Spark application id; empty outside Spark.
        pub app: String,
        /// Host name.
        pub host: String,
        /// Executor id (`driver` in the driver); empty outside Spark.
        pub executor: String,
        /// The JVM's process id.
        pub pid: u32,
        /// The thread's id in the kernel.
        pub tid: u32,
        /// The thread's name.
        pub thread: String,
        /// Stage, where the thread ran a task.
        pub stage: Option<i32>,
        /// Attempt number of the stage.
        pub stage_attempt: Option<i32>,
        /// Task attempt id (unique in the application).
        pub task: Option<i64>,
        /// Time of the first sample, ns since the epoch; off the CPU, the beginning of the first wait.
        pub start_ns: i64,
        /// Time of the last sample, ns since the epoch; off the CPU, the end of the last wait.
        pub end_ns: i64,
        /// `cpu`, or `off-cpu` for waits: then `count` counts waits and `weight_ns` is the time waited.
        pub kind: SampleKind,
        /// The callchain, see `stacks`.
        pub stack: StackId,
        /// Number of samples or waits.
        pub count: u64,
        /// CPU time or waiting time that they stand for, ns.
        pub weight_ns: u64,
    }
}

table! {
    /// A distinct callchain. Its id is a hash of the frames, so equal stacks of different processes have equal ids. A stack may
    /// occur in several segments.
    pub struct StackRow in Stacks by super::stacks::batch {
        /// Hash of the frames.
        pub stack: StackId,
        /// Frames, root first.
        pub frames: Vec<Arc<Frame>> => Frame,
    }
}

impl StackRow {
    /// The row of these frames (root first).
    pub fn from_frames(frames: Vec<Frame>) -> Self {
        let mut hasher = DefaultHasher::new();
        frames.hash(&mut hasher);
        Self {
            stack: StackId(hasher.finish().cast_signed()),
            frames: frames.into_iter().map(Arc::new).collect(),
        }
    }
}

/// [`Frame::method`] of code that the JVM had not described, or not yet; its kind is `unknown`.
pub const UNDESCRIBED: &str = "[code cache]";
/// Method of a frame that stands for the instruction at a sample's address. Its signature has the code from there on, in
/// hexadecimal digits.
pub const INSTRUCTION: &str = "[instruction]";
/// [`Frame::method`] of the root where the callers further up are not known; its kind is `unknown`.
pub const NO_CALLERS: &str = "[callers unknown]";

part! {
    /// One frame of a callchain.
    #[derive(Eq, Hash)]
    pub struct Frame {
        /// `java`, `interpreted`, `native`, `kernel`, `stub`, `python` (in a worker process; the frames before it are those of Spark's
        /// code that talks to the worker), `wait` (a leaf that says what the thread waited for: `[run queue]`, a CPU; `[waiting]`,
        /// unknown, with the stack of the last CPU sample) or `unknown` (`[code cache]`, code that the JVM had not described;
        /// `[callers unknown]`, a root whose callers are unknown).
        pub kind: FrameKind,
        /// Binary class name with dots; empty where the frame is no Java frame.
        pub class: String,
        /// Method name, native symbol, stub name, or name of a Python function.
        pub method: String,
        /// JVM signature of the method; of a Python frame the text of its line, if its file could be read.
        pub signature: String,
        /// Source file of a Java frame, library of a native one, path of a Python file as the interpreter knows it.
        pub file: String,
        /// Source line; 0 if unknown.
        pub line: u32,
        /// Bytecode index; -1 if unknown.
        pub bci: i32,
        /// Whether the JIT compiler inlined this frame into the one before it.
        pub inlined: bool,
        /// Of a leaf in compiled code: the line that the compiler described just before it, if that is another line of the same
        /// method; 0 otherwise. The code may belong to any line between the two.
        pub line_before: u32,
    }
}

impl Frame {
    /// Whether it stands for code that the JVM had not described, or for callers that are not known.
    pub fn is_undescribed(&self) -> bool {
        self.kind == FrameKind::Unknown && [UNDESCRIBED, NO_CALLERS].contains(&self.method.as_str())
    }
}

/// The `source` of processes whose tables were made from an event log.
pub const EVENT_LOG: &str = "event log";

table! {
    /// A profiled JVM; its latest row counts.
    pub struct ProcessRow in Processes {
        /// Spark application id; empty outside Spark.
        pub app: String,
        /// Spark application name; empty outside Spark.
        pub name: String,
        /// Spark version; empty outside Spark.
        pub spark: String,
        /// Host name.
        pub host: String,
        /// Executor id (`driver` in the driver); empty outside Spark.
        pub executor: String,
        /// Process id.
        pub pid: u32,
        /// Samples a second and thread that were asked for.
        pub rate_hz: u32,
        /// `perf` (perf_event task-clock), `timer` (per-thread CPU timer in the process), or `event log` (no samples: the tables were
        /// made from an event log of Spark).
        pub source: String,
        /// Share of the tasks that was profiled; null for all. `weight_ns` of samples in tasks is divided by it, `count` is not.
        pub task_fraction: Option<f64>,
        /// When profiling began, ns since the epoch.
        pub start_ns: i64,
        /// When this row was written, ns since the epoch.
        pub end_ns: i64,
        /// Whether the process had ended and everything was written; null in older profiles.
        pub ended: Option<bool>,
        /// Samples taken.
        pub samples: u64,
        /// Samples the kernel had to drop.
        pub lost_samples: u64,
        /// Code ranges that did not fit into the code map.
        pub lost_ranges: u64,
        /// Task marks that were overwritten before a sampler read them.
        pub lost_marks: u64,
        /// Events (plans, stages, sources) that were dropped.
        pub lost_events: u64,
        /// Callchains that ended before the thread's first frame.
        pub broken_chains: u64,
        /// Of a JVM that ran before it was profiled: the earliest time from which on at most 1% of the samples are incomplete,
        /// whenever the profile is ended, ns since the epoch; null in others.
        pub complete_from_ns: Option<i64>,
        /// Of such a JVM: samples in code that it had not described, or with unknown callers.
        pub incomplete_samples: u64,
        /// Threads that ended before they could be sampled.
        pub brief_threads: u64,
        /// CPU time of such threads, as far as it was measured, ns.
        pub brief_ns: u64,
        /// How long the recording was paused, ns.
        pub paused_ns: u64,
        /// Duration of all recorded waits, ns.
        pub waiting_ns: u64,
        /// Duration of the waits for something that have the stack of the CPU sample before, because switches could not be
        /// sampled, ns.
        pub guessed_ns: u64,
        /// Duration of the waits without a stack, ns.
        pub stackless_ns: u64,
    }
}
