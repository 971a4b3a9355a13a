//! Who is to blame for the waits of victim stages, over all windows (eqs. 9 and 10): levels 3 and 4 of the graph.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rayon::prelude::*;

use crate::shares::Shares;
use crate::timeline::{Slices, TimelineShares};
use crate::waits::{Victim, Victims, Wait};
use crate::{
    Culprit, Explainer, Explanation, HostId, Kind, Note, Options, QueryId, Source, StageId, TaskId,
    Timeline, Workload,
};

/// A level-3 vertex, and its blocked seconds by source, in order.
pub(crate) type Attributed = (Victim, Box<[(Source, f64)]>);

/// Blocked seconds of single tasks whose cause is known for the task, by culprit: waits for CPUs that the kernel counted, and for
/// locks with a known holder. Other waits are divided for a stage.
pub type TaskWaits = BTreeMap<(TaskId, Culprit), f64>;

/// Blocked seconds of victim queries, and the sources to which they are attributed.
///
/// It takes far less memory than a [`Graph`](crate::Graph) of the same victims, and the paths to each victim are made when they
/// are asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Blame {
    /// Victims without any wait are among them, too.
    victims: Vec<QueryId>,
    /// Their stages that count.
    pub(crate) stages: BTreeSet<StageId>,
    /// In order, so those of a query come one after the other.
    pub(crate) by_victim: Vec<Attributed>,
    /// Notes on assumptions behind the numbers.
    pub notes: Vec<Note>,
    /// Blocked seconds of each victim query whose cause the kernel recorded, by culprit; they are part of the above.
    pub counted: BTreeMap<(QueryId, Culprit), f64>,
}

/// What the waits on one host add up to.
struct OnHost<T> {
    by_victim: Vec<Attributed>,
    notes: Vec<Note>,
    counted: BTreeMap<(QueryId, Culprit), f64>,
    also: T,
}

impl Blame {
    /// Attributes the waits of the victims that `options` names.
    pub fn new(workload: &Workload, options: &Options) -> Self {
        let stages = options.victim_stages(workload);
        Self::with(workload, options, stages, |(), _| {}).0
    }

    /// The same, and the timelines of the victims in `slices` equal parts each, in one pass over the windows.
    ///
    /// Each slice is computed on its own, as if it were [`within`](Options::within) it, but the ends of slices do not cut
    /// windows: the measurements of a window count in both slices in proportion to time.
    pub fn with_timelines(
        workload: &Workload,
        options: &Options,
        slices: usize,
    ) -> (Self, BTreeMap<QueryId, Timeline>) {
        let stages = options.victim_stages(workload);
        let slices = Slices::new(workload, &stages, options.split, slices);
        let add = |shares: &mut TimelineShares, wait: &Wait<'_>| slices.add(shares, wait);
        let (blame, shares) = Self::with(workload, options, stages, add);
        let shares = shares.into_iter().flatten().collect();
        (blame, slices.timelines(shares))
    }

    /// The same, and what each task waited for by itself.
    pub fn with_task_waits(workload: &Workload, options: &Options) -> (Self, TaskWaits) {
        let stages = options.victim_stages(workload);
        let add = |waits: &mut TaskWaits, wait: &Wait<'_>| {
            if let Some((source, seconds)) = wait.of_task() {
                *waits.entry((wait.task, source.culprit())).or_default() += seconds;
            }
        };
        let (blame, waits) = Self::with(workload, options, stages, add);
        // A task runs on one host.
        (blame, waits.into_iter().flatten().collect())
    }

    /// Calls `also` for each wait, with a value for its host.
    fn with<T: Default + Send>(
        workload: &Workload,
        options: &Options,
        stages: BTreeSet<StageId>,
        also: impl Fn(&mut T, &Wait<'_>) + Sync,
    ) -> (Self, Vec<T>) {
        let victims = Victims::new(workload, options, &stages);
        // Nothing of one host depends on another one.
        let hosts: Vec<HostId> = workload.schedule().hosts.keys().copied().collect();
        let hosts: Vec<OnHost<T>> = hosts
            .into_par_iter()
            .map(|host| OnHost::new(&victims, host, options, &also))
            .collect();
        let mut blame = Self {
            victims: options.victims_of(workload),
            stages,
            by_victim: Vec::with_capacity(hosts.iter().map(|host| host.by_victim.len()).sum()),
            notes: Vec::new(),
            counted: BTreeMap::new(),
        };
        let mut others = Vec::with_capacity(hosts.len());
        for mut host in hosts {
            blame.by_victim.append(&mut host.by_victim);
            blame.notes.append(&mut host.notes);
            for (key, seconds) in host.counted {
                *blame.counted.entry(key).or_default() += seconds;
            }
            others.push(host.also);
        }
        blame
            .by_victim
            .par_sort_unstable_by_key(|(victim, _)| *victim);
        (blame, others)
    }

    /// The victims, by id.
    pub fn victims(&self) -> &[QueryId] {
        &self.victims
    }

    /// Blocked seconds of a victim, summed over its tasks.
    pub fn seconds(&self, victim: QueryId) -> f64 {
        let sources = self.of(victim).iter().flat_map(|(_, sources)| sources);
        sources.map(|(_, seconds)| seconds).sum()
    }

    /// Blocked seconds of a victim whose cause the kernel recorded, by culprit.
    pub fn counted_of(&self, victim: QueryId) -> impl Iterator<Item = (Culprit, f64)> {
        let first = (victim, Culprit::Query(QueryId(0)));
        let rows = self.counted.range(first..);
        let rows = rows.take_while(move |((query, _), _)| *query == victim);
        rows.map(|((_, culprit), seconds)| (*culprit, *seconds))
    }

    /// All paths from culprits to victims, strongest first.
    pub fn explanations(&self, workload: &Workload) -> Vec<Explanation> {
        let mut explainer = Explainer::new(workload, self);
        let (mut paths, mut of_victim) = (Vec::new(), Vec::new());
        for victim in &self.victims {
            explainer.explain(*victim, &mut of_victim);
            paths.append(&mut of_victim);
        }
        paths.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        paths
    }

    pub(crate) fn of(&self, victim: QueryId) -> &[Attributed] {
        let query = |((stage, ..), _): &(Victim, _)| stage.query;
        let first = self.by_victim.partition_point(|row| query(row) < victim);
        let rest = &self.by_victim[first..];
        &rest[..rest.partition_point(|row| query(row) == victim)]
    }
}

impl<T: Default> OnHost<T> {
    fn new(
        victims: &Victims<'_>,
        host: HostId,
        options: &Options,
        also: impl Fn(&mut T, &Wait<'_>),
    ) -> Self {
        let mut shares: HashMap<(StageId, Kind), Shares, ahash::RandomState> = HashMap::default();
        let mut counted: BTreeMap<(QueryId, Culprit), f64> = BTreeMap::new();
        let mut more = T::default();
        let notes = victims.waits_on(host, |wait| {
            also(&mut more, wait);
            if let Some((source, seconds)) = wait.counted() {
                let key = (wait.stage.query, source.culprit());
                *counted.entry(key).or_default() += seconds;
            }
            let shares = shares.entry((wait.stage, wait.kind)).or_default();
            shares.add(wait, 1.0, options.split);
        });
        let by_victim = shares.into_iter();
        Self {
            by_victim: by_victim
                .map(|((stage, kind), shares)| {
                    ((stage, kind, host), shares.seconds().into_boxed_slice())
                })
                .collect(),
            notes,
            counted,
            also: more,
        }
    }
}
