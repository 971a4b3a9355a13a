//! Which queries slowed a query down: the answer of `unfuse blame` as data ([`Answer`]), as text ([`render`]) and in
//! the report's page ([`contention`]).

mod advice;
mod alert;
mod answer;
mod cpu;
mod names;
mod notes;
mod page;
mod proof;
mod ranking;
mod request;
mod simple;
mod sooner;
mod text;
mod victim_paths;
mod window;

use unfuse_contention::{Culprit, Filter, Options, QueryId};

pub use alert::Alert;
pub use answer::Answer;
pub(crate) use cpu::{CpuWaits, cpu_waits};
pub use notes::notes;
pub use page::contention;
#[cfg(test)]
pub(crate) use page::declare;
pub use proof::{Experiment, ProofAnswer, ProofQuery, ProofVerdict};
pub use request::Request;
pub use text::render;
pub use window::Window;

/// A question.
#[derive(Debug)]
pub struct Question<'a> {
    /// Which waits count.
    pub options: &'a Options,
    /// The victim, if there is one.
    pub victim: Option<QueryId>,
    /// Which culprits count.
    pub filter: Filter,
    /// What to rank.
    pub by: Rank,
    /// Number of rows to show.
    pub top: usize,
}

impl Question<'_> {
    /// Whether a culprit of a victim counts, if its user and pool do.
    fn is_about(&self, victim: QueryId, culprit: Culprit) -> bool {
        self.victim.is_none_or(|of| of == victim)
            && !(self.filter.others_only && culprit == Culprit::Query(victim))
    }

    /// Whether it ranks culprits, and all waits of the victims and all culprits count.
    pub fn is_about_all_waits(&self) -> bool {
        let options = self.options;
        self.by == Rank::Culprit
            && options.within.is_none()
            && options.resources.is_empty()
            && options.hosts.is_empty()
            && self.filter.user.is_none()
            && self.filter.pool.is_none()
    }
}

/// What to rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rank {
    /// Queries and processes.
    Culprit,
    /// Their stages.
    Stage,
    /// Their operators, for CPU time.
    Operator,
    /// CPU, memory, IO, network, slots.
    Resource,
    /// Kinds of waits.
    Kind,
    /// Hosts.
    Host,
}
