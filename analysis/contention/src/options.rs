//! What to analyse, and how.

use std::collections::BTreeSet;

use crate::windows::comparisons;
use crate::{HostId, InputError, QueryId, Resource, Span, StageId, Workload, critical_path};

/// Maximum number of comparisons of rows with stages, which takes about a minute. If all tasks run at the same time, it
/// grows with their square.
pub(crate) const MOST_COMPARISONS: u64 = 2_000_000_000;

/// Which stages of a victim query count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VictimStages {
    /// Stages on the critical path: only their delays made the query late.
    #[default]
    CriticalPath,
    /// All stages.
    All,
}

impl VictimStages {
    /// The stages of a query that count.
    pub fn select(self, workload: &Workload, query: QueryId) -> Vec<StageId> {
        match self {
            VictimStages::CriticalPath => critical_path(workload, query),
            VictimStages::All => workload.stages_of(query).map(|stage| stage.id).collect(),
        }
    }
}

/// How a vertex's blocked seconds are divided among culprits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Split {
    /// As in eq. 10: by blame summed over all windows. Windows in which the victim got little weigh more.
    #[default]
    Pooled,
    /// In each window separately: its blocked seconds are divided among the users in that window.
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
    /// How blocked seconds are divided. Default: pooled.
    pub split: Split,
    /// Whether the victim's other tasks can be culprits. The paper's eq. 5 includes them, but its levels 4 to 6 omit
    /// them, which attributes a query's own effect to its neighbours. Default: true.
    pub own_tasks: bool,
    /// Whether the use of a query is divided by the weight of its scheduler pool, which is its right to the resource
    /// (footnote 4). Neighbours slow a victim down by what they have a right to, too. Default: false.
    pub weighted: bool,
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
            weighted: false,
        }
    }
}

impl Options {
    /// Checks that the answer takes about a minute, not hours.
    ///
    /// # Errors
    /// [`InputError::TooMany`] if it would take longer.
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

    /// By what the use of a query is divided.
    pub(crate) fn weight(&self, workload: &Workload, query: QueryId) -> f64 {
        if self.weighted {
            workload.weight(query)
        } else {
            1.0
        }
    }

    pub(crate) fn covers(&self, resource: Resource, host: HostId) -> bool {
        (self.resources.is_empty() || self.resources.contains(&resource))
            && (self.hosts.is_empty() || self.hosts.contains(&host))
    }
}
