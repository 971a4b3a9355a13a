//! The input: rows as measured, unchecked ([`Workload::new`](crate::Workload::new) checks them).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    Executor, Holder, HostId, Kind, KnownProcess, ProcessId, QueryId, Resource, Source, StageId,
    TaskId,
};

/// A span in one host's clock, ns; the end is exclusive.
///
/// Hosts' clocks need not agree: blame is only found among tasks of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span {
    /// Nanoseconds, not negative.
    pub start: i64,
    /// Nanoseconds, not before `start`.
    pub end: i64,
}

impl Span {
    /// Its length in seconds.
    pub fn seconds(self) -> f64 {
        (self.end - self.start) as f64 / 1e9
    }

    /// The overlap of both, if there is any.
    pub fn intersection(self, other: Span) -> Option<Span> {
        let both = Span {
            start: self.start.max(other.start),
            end: self.end.min(other.end),
        };
        (both.start < both.end).then_some(both)
    }

    /// Its overlap with a window, or all of it without a window.
    pub fn within(self, part: Option<Span>) -> Option<Span> {
        part.map_or(Some(self), |part| self.intersection(part))
    }

    /// The shortest span that contains both.
    pub fn hull(self, other: Span) -> Span {
        Span {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    /// Cuts it into equal parts; the last one gets the rest from rounding.
    pub(crate) fn cut(self, parts: usize) -> Vec<Span> {
        let length = (self.end - self.start) as f64;
        let bound = |part: usize| self.start + (length * part as f64 / parts as f64) as i64;
        let bounds = (0..parts).map(bound).chain([self.end]).collect::<Vec<_>>();
        let pairs = bounds.windows(2).map(|pair| Span {
            start: pair[0],
            end: pair[1],
        });
        pairs.filter(|part| part.start < part.end).collect()
    }

    /// How much of this span the other covers, 0 to 1.
    pub(crate) fn covered_by(self, other: Span) -> f64 {
        match self.intersection(other) {
            Some(both) => (both.end - both.start) as f64 / (self.end - self.start) as f64,
            None => 0.0,
        }
    }
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Its id.
    pub id: HostId,
    /// Its name.
    pub name: String,
}

/// A query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// Its id.
    pub id: QueryId,
    /// Its name in questions, unique among queries.
    pub name: String,
    /// The application whose scheduler runs it; empty if there is only one, or none is known.
    pub application: String,
    /// Its label for users: a title, and `: ` and a description if there is one.
    pub label: String,
    /// The user who runs it.
    pub user: String,
    /// The scheduler pool it runs in.
    pub pool: String,
    /// Its right to resources, relative to 1 (footnote 4): weight 2 halves the blame for the same use.
    pub weight: f64,
}

impl Query {
    /// Its label without the description.
    pub fn title(&self) -> &str {
        // A name can contain a colon.
        let plain = format!("query {}", self.name);
        let from = match self.label.starts_with(&plain) {
            true => plain.len(),
            false => 0,
        };
        let end = self.label[from..].find(": ");
        end.map_or(&self.label, |end| &self.label[..from + end])
    }
}

/// A stage attempt with its place in the query's DAG.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Its id.
    pub id: StageId,
    /// Numbers of the stages that it reads from. Stages without a row (Spark skips what it still has) count as taking
    /// no time.
    pub parents: Vec<u32>,
    /// When it ran, in the driver's clock.
    pub span: Span,
}

/// A task attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// Its stage attempt.
    pub stage: StageId,
    /// The host on which it ran.
    pub host: HostId,
    /// The JVM in which it ran.
    #[serde(default)]
    pub executor: Executor,
    /// When it ran.
    pub span: Span,
    /// False for a row that is not a running task but holds or needs something for its stage: blocks in a cache, tasks
    /// that wait for a slot. Baselines ignore it.
    pub runs: bool,
}

/// The use of one resource by one task in a span.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The task.
    pub task: TaskId,
    /// The kind of wait, which implies the resource.
    pub kind: Kind,
    /// The span. Inside the task's life, except for waits for a slot, which precede it.
    pub span: Span,
    /// δr: units it got, see [`Resource`].
    pub units: f64,
    /// BT: nanoseconds in which it was blocked, at most the length of the span.
    pub blocked_ns: i64,
}

/// C of eq. 3: a capacity of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// The host.
    pub host: HostId,
    /// For memory the executor, for slots its application; irrelevant for resources that the whole host shares.
    #[serde(default)]
    pub executor: Executor,
    /// The resource.
    pub resource: Resource,
    /// Units a second, more than 0.
    pub per_second: f64,
}

/// The idle part of a resource, if no capacity is known but its idle time is (disks).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Idle {
    /// The host.
    pub host: HostId,
    /// The resource.
    pub resource: Resource,
    /// The span.
    pub span: Span,
    /// Units that could have been used in addition.
    pub units: f64,
}

/// Use by a known process. Use of a host outside all tasks is that of an external process; report it for spans over
/// which tasks were measured too, or their bursts look like the work of others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnownUse {
    /// The host.
    pub host: HostId,
    /// The process.
    pub process: KnownProcess,
    /// The resource.
    pub resource: Resource,
    /// The span.
    pub span: Span,
    /// Units used.
    pub units: f64,
}

/// The name of a process outside Spark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamedProcess {
    /// Its id.
    pub id: ProcessId,
    /// Its name for users.
    pub name: String,
}

/// CPU time that no neighbour used: something held tasks back while they waited for a CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Withheld {
    /// The host.
    pub host: HostId,
    /// The tasks that it held back; all of the host without an executor.
    #[serde(default)]
    pub executor: Option<Executor>,
    /// What held them back: [`KnownProcess::OwnLimit`] or [`KnownProcess::Hypervisor`]. Limits come before hypervisors:
    /// what is not running because of its own limit would not run on any machine.
    pub process: KnownProcess,
    /// The span.
    pub span: Span,
    /// The part of these tasks' run-queue waits that it caused, of what the causes before it left; 0 to 1.
    pub part: f64,
    /// CPU seconds by which the capacity of the host was smaller.
    pub units: f64,
}

/// Time in which a task could run while its CPU ran something else: counted by the kernel, where it was recorded. The rest of
/// its run-queue waits is shared out by use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queued {
    /// The task that waited.
    pub task: TaskId,
    /// The span.
    pub span: Span,
    /// What its CPU ran.
    pub source: Source,
    /// For how long, s; at most the span.
    pub seconds: f64,
}

/// Time in which a task waited for a lock that another thread held. The rest of its waits for locks is shared out by use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// The task that waited.
    pub task: TaskId,
    /// The span.
    pub span: Span,
    /// What held the lock.
    pub holder: Holder,
    /// For how long, s; at most the span.
    pub seconds: f64,
}

/// A moment at which a host reported; windows are cut there (section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The host.
    pub host: HostId,
    /// Time in its clock, ns.
    pub at: i64,
}

/// The part of a stage's CPU time used by one operator; profiles have it, the paper does not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperatorShare {
    /// The stage.
    pub stage: StageId,
    /// The operator.
    pub operator: Arc<str>,
    /// 0 to 1; those of a stage sum to at most 1.
    pub share: f64,
}

/// All input tables. The order of rows never matters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tables {
    /// Machines.
    pub hosts: Vec<Host>,
    /// Queries.
    pub queries: Vec<Query>,
    /// Stage attempts.
    pub stages: Vec<Stage>,
    /// Task attempts.
    pub tasks: Vec<Task>,
    /// Use and waits of tasks.
    pub intervals: Vec<Interval>,
    /// Capacities of hosts. Where none is known, the use counts as the capacity, with a note.
    pub capacities: Vec<Capacity>,
    /// Use by known processes.
    pub known: Vec<KnownUse>,
    /// Idle resources.
    #[serde(default)]
    pub idle: Vec<Idle>,
    /// Names of processes.
    #[serde(default)]
    pub processes: Vec<NamedProcess>,
    /// CPU time that no neighbour used.
    #[serde(default)]
    pub withheld: Vec<Withheld>,
    /// Run-queue waits whose causes were counted.
    #[serde(default)]
    pub queued: Vec<Queued>,
    /// Waits for locks with known holders.
    #[serde(default)]
    pub held: Vec<Held>,
    /// Times at which windows are cut, besides the bounds of tasks. Pass the ends of the interval rows for the finest
    /// windows.
    pub heartbeats: Vec<Heartbeat>,
    /// Shares of stages' CPU time by operator, if known.
    pub operators: Vec<OperatorShare>,
}
