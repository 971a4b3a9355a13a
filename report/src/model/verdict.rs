//! The page's data on the verdict.

use serde::Serialize;
use ts_rs::TS;

/// Where the time went, in numbers and sentences.
#[derive(Debug, Clone, Default, PartialEq, Serialize, TS)]
pub struct Verdict {
    /// What the parts add up to, in words: `time of 2 slots and CPU time of other threads`.
    pub whole: String,
    /// The sum of the parts, ns.
    pub whole_ns: u64,
    /// Running time of the applications, ms.
    pub duration_ms: u64,
    /// Average number of task slots; none if unknown.
    pub slots: Option<f64>,
    /// The parts of the time, in the order of their kinds. They add up to the whole.
    pub parts: Vec<VerdictPart>,
    /// Sentences, most important first.
    pub sentences: Vec<Sentence>,
}

/// A part of the time.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct VerdictPart {
    /// Its name: `operators`, `disk read`, `JIT compilation` …
    pub name: String,
    /// Its kind.
    pub kind: PartKind,
    /// The time, ns.
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
    /// Waits of tasks.
    Waiting,
    /// Time of tasks without CPU samples or recorded waits.
    Unknown,
    /// Time of slots while Spark launched a task or received its result.
    Scheduling,
    /// CPU time of the JVM's and Spark's own threads, outside the slots.
    Beside,
    /// Slots without a task.
    Idle,
}

/// A sentence of the verdict.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct Sentence {
    /// Its topic.
    pub kind: SentenceKind,
    /// Plain text in one line.
    pub text: String,
    /// Where the page shows the details.
    pub evidence: Option<Evidence>,
    /// The command that shows the details.
    pub command: Option<String>,
}

/// The topic of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum SentenceKind {
    /// Where the time went.
    Time,
    /// How certain the numbers are.
    Certainty,
    /// An operator with a high cost.
    Operator,
    /// Something unusual.
    Unusual,
    /// What to do next.
    Next,
}

/// A place in the page.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct Evidence {
    /// Position in the list of queries; none for a page on all queries.
    pub query: Option<usize>,
    /// The tab: `plan`, `stages`, `flame`, `source`, `contention`, `skew`.
    pub tab: String,
    /// Index of the plan node.
    pub node: Option<usize>,
}
