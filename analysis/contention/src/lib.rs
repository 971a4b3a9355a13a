//! Contention among concurrent queries: which query slowed which other one down.
//!
//! The model is that of iQCAR (Kalmegh, Babu, Roy: *iQCAR: inter-Query Contention Analyzer for Data Analytics
//! Frameworks*, SIGMOD 2019); equations, sections and figures in these docs are that paper's.
//!
//! A task that gets 30 bytes a second from a disk of 210 bytes a second is slowed 6 times. Others used the rest: tasks
//! of other queries, known processes, or unknown users. The user of 120 has blame 4, the user of 60 has blame 2. Only
//! time in which the task was blocked counts. Summed over windows, tasks, hosts and resources, this divides a query's
//! blocked time among its culprits.
//!
//! Data goes through stages, each with its own type:
//!
//! * [`Tables`]: rows as measured. [`Workload`]: the same, checked.
//! * [`Cell`]: one resource of one host in one [window](windows), with slowdown and blame.
//! * [`Blame`]: blocked seconds of victim queries by source. [`Timeline`]: the same by time and culprit.
//! * [`Graph`]: the same from victim queries down to culprit queries, in seven levels.
//! * [`Explanation`]: one path through it. [`Filter`], [`top`] and others answer questions with them.
//! * [`Suggestion`]: what the user can do. [`baseline`]: the results of simpler methods. [`Proof`]: that of an experiment.
//!
//! ```
//! use unfuse_contention::*;
//!
//! let second = Span { start: 0, end: 1_000_000_000 };
//! let mut tables = Tables::default();
//! tables.hosts.push(Host { id: HostId(0), name: "worker-1".into() });
//! let executor = Executor::default();
//! tables.capacities.push(Capacity { host: HostId(0), executor, resource: Resource::Io, per_second: 210.0 });
//! for (number, units) in [(1, 30.0), (2, 60.0), (3, 120.0)] {
//!     let query = QueryId(number);
//!     let stage = StageId { query, stage: 0, attempt: 0 };
//!     let task = TaskId(number);
//!     tables.queries.push(Query {
//!         id: query, name: format!("q{number}"), application: String::new(), label: format!("q{number}"),
//!         user: String::new(), pool: String::new(), weight: 1.0,
//!     });
//!     tables.stages.push(Stage { id: stage, parents: vec![], span: second });
//!     tables.tasks.push(Task { id: task, stage, host: HostId(0), executor, span: second, runs: true });
//!     tables.intervals.push(Interval { task, kind: Kind::IoRead, span: second, units, blocked_ns: 600_000_000 });
//! }
//! let workload = Workload::new(tables)?;
//! let blame = Blame::new(&workload, &Options { victims: [QueryId(1)].into(), ..Options::default() });
//! let worst = &blame.explanations(&workload)[0];
//! assert_eq!(worst.culprit, Culprit::Query(QueryId(3)));
//! assert!((worst.seconds - 0.4).abs() < 1e-9); // 4 of 6 parts of 0.6 blocked seconds
//! # Ok::<(), InputError>(())
//! ```

pub mod baseline;
mod blame;
mod causes;
mod cell;
mod critical_path;
mod culprit;
mod error;
mod explanation;
mod graph;
mod ids;
mod input;
mod lives;
mod operators;
mod options;
mod pool;
mod proof;
mod questions;
mod ratp;
mod resource;
mod rules;
mod schedule;
mod shares;
mod tables;
#[cfg(test)]
mod tests;
mod timeline;
mod users;
mod waits;
mod windows;
mod workload;

pub use blame::{Blame, TaskWaits};
pub use cell::{CapacityBasis, Cell, CellCulprit, TaskUse, WithheldPart};
pub use critical_path::critical_path;
pub use culprit::{Culprit, Holder, Source};
pub use error::InputError;
pub use explanation::{Explainer, Explanation, strongest};
pub use graph::{ByVictim, Edge, Flow, Graph, Impact, Key, Node, NodeIndex, Note};
pub use ids::{Executor, HostId, ProcessId, QueryId, StageId, TaskId};
pub use input::{
    BlockedTime, CsvError, FoldedError, INTERVALS_CSV, Input, StageIndex, from_csv, from_profile,
    set_operators,
};
pub use operators::COLLECTION;
pub use options::{Options, Split, VictimStages};
pub use proof::{LEAST_PAIRS, Proof, ProofPair, ProofSlice, Range};
pub use questions::{By, Entity, Filter, RankingRow, culprits, hot_resources, slow_nodes, top};
pub use ratp::Ratp;
pub use resource::{Kind, KnownProcess, Resource};
pub use rules::{Evidence, Suggestion, Thresholds, suggestions};
pub use tables::{
    Capacity, Heartbeat, Held, Host, Idle, Interval, KnownUse, NamedProcess, OperatorShare, Query,
    Queued, Span, Stage, Tables, Task, Withheld,
};
pub use timeline::{Slice, Timeline};
pub use windows::{cells, windows};
pub use workload::Workload;
