//! The input: rows as they were measured, not yet checked ([`Workload::new`](crate::Workload::new) does that).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Executor, HostId, Kind, KnownProcess, QueryId, Resource, StageId, TaskId};

/// A span of one host's clock, in nanoseconds; the end is not part of it.
///
/// Hosts' clocks need not agree: blame is only ever found among tasks of one host.
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

    /// What both have, if they have anything.
    pub fn intersection(self, other: Span) -> Option<Span> {
        let both = Span {
            start: self.start.max(other.start),
            end: self.end.min(other.end),
        };
        (both.start < both.end).then_some(both)
    }

    /// What of it is in a part of the time, or all of it where none is asked for.
    pub fn within(self, part: Option<Span>) -> Option<Span> {
        part.map_or(Some(self), |part| self.intersection(part))
    }

    /// The shortest span that holds both.
    pub fn hull(self, other: Span) -> Span {
        Span {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    /// Cut into as many equal parts; of rounding, the last gets the rest.
    pub(crate) fn cut(self, parts: usize) -> Vec<Span> {
        let length = (self.end - self.start) as f64;
        let bound = |at: usize| self.start + (length * at as f64 / parts as f64) as i64;
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
    /// Its handle.
    pub id: HostId,
    /// Its name.
    pub name: String,
}

/// A query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// Its handle.
    pub id: QueryId,
    /// What it is asked for by; no other query has it.
    pub name: String,
    /// The application whose scheduler runs it; empty where there is but one, or none is known.
    pub application: String,
    /// What it is called for people: a title, and `: ` and a description where there is one.
    pub label: String,
    /// Who runs it.
    pub user: String,
    /// The scheduler pool it runs in.
    pub pool: String,
    /// Its right to resources, relative to 1 (footnote 4): what has weight 2 is blamed half for the same use.
    pub weight: f64,
}

impl Query {
    /// Its label without the description.
    pub fn title(&self) -> &str {
        // A name can have a colon of its own.
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
    /// Its handle.
    pub id: StageId,
    /// Numbers of the stages it reads from. Stages that have no row (Spark skips what it still has) count as
    /// taking no time.
    pub parents: Vec<u32>,
    /// When it ran, by the driver's clock.
    pub span: Span,
}

/// A task attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its handle.
    pub id: TaskId,
    /// The stage attempt it is of.
    pub stage: StageId,
    /// Where it ran.
    pub host: HostId,
    /// In which JVM there.
    #[serde(default)]
    pub executor: Executor,
    /// When it ran.
    pub span: Span,
    /// False for what is no running task but holds or wants something for its stage: blocks in a cache, tasks that
    /// wait for a slot. Baselines do not count it.
    pub runs: bool,
}

/// What one task did with one resource during some time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The task.
    pub task: TaskId,
    /// The resource and the kind of waiting.
    pub kind: Kind,
    /// When. Inside the task's life, but for waiting for a slot, which comes before it.
    pub span: Span,
    /// δr: units it got, see [`Resource`].
    pub units: f64,
    /// BT: nanoseconds in which it could not go on, at most the span.
    pub blocked_ns: i64,
}

/// C of eq. 3: what a host can give.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// The host.
    pub host: HostId,
    /// Of memory whose it is, of slots those of which application; of no matter for what the whole host shares.
    #[serde(default)]
    pub executor: Executor,
    /// The resource.
    pub resource: Resource,
    /// Units a second, more than 0.
    pub per_second: f64,
}

/// What of a resource lay idle, where no capacity is known but for how long it had nothing to do (disks).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Idle {
    /// The host.
    pub host: HostId,
    /// The resource.
    pub resource: Resource,
    /// When.
    pub span: Span,
    /// Units that could have been used beside those that were.
    pub units: f64,
}

/// What a known process used. What a host used beyond all tasks is an external one's; tell it for spans over which tasks were
/// measured too, or what they did in a burst looks like others' work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnownUse {
    /// The host.
    pub host: HostId,
    /// The process.
    pub process: KnownProcess,
    /// The resource.
    pub resource: Resource,
    /// When.
    pub span: Span,
    /// Units used.
    pub units: f64,
}

/// A moment at which a host reported; windows are cut there (section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The host.
    pub host: HostId,
    /// Nanoseconds of its clock.
    pub at: i64,
}

/// The part of a stage's CPU time that one operator took; profiles know it, the paper did not.
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
    /// What tasks used and waited for.
    pub intervals: Vec<Interval>,
    /// What hosts can give. Where none is known, what is used counts as the capacity, and a note says so.
    pub capacities: Vec<Capacity>,
    /// What known processes used.
    pub known: Vec<KnownUse>,
    /// What lay idle.
    #[serde(default)]
    pub idle: Vec<Idle>,
    /// Where to cut windows besides task boundaries. Pass the ends of the interval rows for the finest windows.
    pub heartbeats: Vec<Heartbeat>,
    /// Shares of stages' CPU time by operator, if known.
    pub operators: Vec<OperatorShare>,
}
