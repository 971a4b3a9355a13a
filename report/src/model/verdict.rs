//! What the page gets of the verdict.

use serde::Serialize;
use ts_rs::TS;

/// Where the time went, in numbers and in sentences.
#[derive(Debug, Clone, Default, PartialEq, Serialize, TS)]
pub struct Verdict {
    /// What the parts add up to: `time of 2 slots and CPU time of other threads`.
    pub whole: String,
    /// How much that is, ns.
    pub whole_ns: u64,
    /// How long the applications ran, ms.
    pub duration_ms: u64,
    /// Task slots, on average; none where unknown.
    pub slots: Option<f64>,
    /// Where it went, in the order of their kinds. They add up to the whole.
    pub parts: Vec<VerdictPart>,
    /// What to say of it, most important first.
    pub sentences: Vec<Sentence>,
}

/// A part of the time.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct VerdictPart {
    /// What it is: `operators`, `disk read`, `JIT compilation` …
    pub name: String,
    /// What kind of time it is.
    pub kind: PartKind,
    /// How much, ns.
    pub ns: u64,
}

/// Kinds of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum PartKind {
    /// CPU time of tasks in operators.
    Operators,
    /// Other CPU time of tasks.
    Tasks,
    /// Tasks waited.
    Waiting,
    /// Tasks had their slot, and neither CPU samples nor waits say what for.
    Unknown,
    /// A slot had a task that was on its way, or whose result was.
    Scheduling,
    /// CPU time of the JVM's and of Spark's own threads, beside the slots.
    Beside,
    /// Slots without a task.
    Idle,
}

/// A sentence of the verdict.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct Sentence {
    /// What it is about.
    pub kind: SentenceKind,
    /// Plain text in one line.
    pub text: String,
    /// Where the page shows more.
    pub evidence: Option<Evidence>,
    /// The command that shows more.
    pub command: Option<String>,
}

/// What a sentence is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum SentenceKind {
    /// Where the time went.
    Time,
    /// How far the numbers can be trusted.
    Certainty,
    /// An operator that costs much.
    Operator,
    /// Something that is not as it should be.
    Unusual,
    /// What to do next.
    Next,
}

/// A place in the page.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct Evidence {
    /// Position in the list of queries; none for a page about all queries.
    pub query: Option<usize>,
    /// The tab: `plan`, `stages`, `flame`, `source`, `contention`, `skew`.
    pub tab: String,
    /// Index of the plan node.
    pub node: Option<usize>,
}
