//! Who slowed a query down: the answer of `unfuse blame` as data ([`Answer`]), as text ([`render`]) and in the report's
//! page ([`contention`]).

mod advice;
mod answer;
mod found;
mod names;
mod notes;
mod page;
mod ranking;
mod simple;
mod text;
mod wanted;
mod window;

use unfuse_contention::{Filter, Options, QueryId};

pub use answer::Answer;
pub use found::Found;
pub use notes::notes;
pub use page::contention;
#[cfg(test)]
pub(crate) use page::declare;
pub use text::render;
pub use wanted::Wanted;
pub use window::Window;

/// What is asked.
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
    /// Rows to show.
    pub top: usize,
}

/// What to rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rank {
    /// Queries and processes.
    Culprit,
    /// Their stages.
    Stage,
    /// Their operators, as far as CPU time goes.
    Operator,
    /// CPU, memory, IO, network, slots.
    Resource,
    /// Ways of waiting.
    Kind,
    /// Hosts.
    Host,
}
