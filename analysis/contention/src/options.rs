//! What to analyse, and how.

use std::collections::BTreeSet;

use crate::windows::comparisons;
use crate::{HostId, InputError, QueryId, Resource, Span, StageId, Workload, critical_path};

/// How often rows may be compared with stages: so often takes about a minute. Where all tasks run at the same time it grows with
/// their square.
pub(crate) const MOST_COMPARISONS: u64 = 2_000_000_000;

/// Which stages of a victim query count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VictimStages {
    /// Those on the critical path: only their delays made the query late.
    #[default]
    CriticalPath,
    /// All.
    All,
}

impl VictimStages {
    /// Those of a query.
    pub fn select(self, workload: &Workload, query: QueryId) -> Vec<StageId> {
        match self {
            VictimStages::CriticalPath => critical_path(workload, query),
            VictimStages::All => workload.stages_of(query).map(|stage| stage.id).collect(),
        }
    }
}

/// How a vertex' blocked seconds are shared out among culprits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Split {
    /// As eq. 10 has it: by blame summed over all windows. Windows in which the victim got little weigh more.
    #[default]
    Pooled,
    /// Each window's blocked seconds go to those who used the resource in that window.
    ByWindow,
}

/// What to analyse, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The victim queries; all queries if empty. Default: empty.
    pub victims: BTreeSet<QueryId>,
    /// Which of their stages count. Default: the critical path.
    pub stages: VictimStages,
    /// Only this part of the hosts' time. Default: all.
    pub within: Option<Span>,
    /// Only these resources; all if empty. Default: empty.
    pub resources: BTreeSet<Resource>,
    /// Only these hosts; all if empty. Default: empty.
    pub hosts: BTreeSet<HostId>,
    /// How blocked seconds are shared out. Default: pooled.
    pub split: Split,
    /// Whether the victim's other tasks can be blamed. The paper's eq. 5 has them, its levels 4 to 6 leave them
    /// out, which puts what a query does to itself down to its neighbours. Default: true.
    pub own_tasks: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            victims: BTreeSet::new(),
            stages: VictimStages::default(),
            within: None,
            resources: BTreeSet::new(),
            hosts: BTreeSet::new(),
            split: Split::default(),
            own_tasks: true,
        }
    }
}

impl Options {
    /// Checks that an answer takes a minute or so, and not hours.
    ///
    /// # Errors
    /// [`InputError::TooMany`].
    pub fn check(&self, workload: &Workload) -> Result<(), InputError> {
        match comparisons(workload, self.within) {
            count @ MOST_COMPARISONS.. => Err(InputError::TooMany(count)),
            _ => Ok(()),
        }
    }

    /// The victims among a workload's queries, by id.
    pub(crate) fn victims_of(&self, workload: &Workload) -> Vec<QueryId> {
        let all = workload.tables().queries.iter().map(|query| query.id);
        all.filter(|query| self.victims.is_empty() || self.victims.contains(query))
            .collect()
    }

    /// Their stages that count.
    pub(crate) fn victim_stages(&self, workload: &Workload) -> BTreeSet<StageId> {
        let victims = self.victims_of(workload).into_iter();
        victims
            .flat_map(|query| self.stages.select(workload, query))
            .collect()
    }

    pub(crate) fn covers(&self, resource: Resource, host: HostId) -> bool {
        (self.resources.is_empty() || self.resources.contains(&resource))
            && (self.hosts.is_empty() || self.hosts.contains(&host))
    }
}
