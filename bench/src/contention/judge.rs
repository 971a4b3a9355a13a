//! The results of blame for a profile, and those of simpler methods.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use unfuse_contention::{
    Blame, BlockedTime, By, Culprit, Entity, Filter, Kind, KnownProcess, Options, QueryId,
    Resource, Span, Workload, baseline, from_profile, top,
};
use unfuse_postprocess::Profile;

/// Number of most-blamed culprits that are named.
const LEADERS: usize = 4;

/// A profile's contention tables.
pub struct RecordedWorkload {
    /// The tables, checked.
    pub workload: Workload,
}

/// The culprit's ranks among all that is blamed for the victim's waits.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    /// Its rank for the resource, from 1; `None` if it is not blamed.
    pub place: Option<usize>,
    /// Its share of the victim's waits for the resource, 0 to 1.
    pub share: f64,
    /// The most-blamed culprits for the resource, with
    /// their shares of the victim's waits for it.
    pub leaders: Vec<(String, f64)>,
    /// Its rank over all resources.
    pub place_of_all: Option<usize>,
    /// Its share of all waits of the victim: the DOR.
    pub share_of_all: f64,
    /// Its rank by overlap of queries; `None` if it is not a query.
    pub by_queries: Option<usize>,
    /// Its rank by overlap of tasks.
    pub by_tasks: Option<usize>,
}

impl RecordedWorkload {
    /// Reads a profile.
    pub fn open(profile: &Path) -> Result<Self> {
        Self::from_profile(&Profile::open(profile)?)
    }

    /// From a profile that was read.
    pub fn from_profile(profile: &Profile) -> Result<Self> {
        let input = from_profile(profile, BlockedTime::Measured)?;
        Ok(Self {
            workload: Workload::new(input.tables)?,
        })
    }

    /// The same without what the kernel counted of waits for CPUs: they are shared out by use.
    pub fn by_use(&self) -> Result<Self> {
        let mut tables = self.workload.tables().clone();
        tables.queued.clear();
        Ok(Self {
            workload: Workload::new(tables)?,
        })
    }

    /// How a query's waits for CPUs are divided: seconds by culprit, and how many of all were counted.
    pub fn queued(&self, victim: QueryId) -> (BTreeMap<Culprit, f64>, f64) {
        let options = Options {
            victims: [victim].into(),
            ..Options::default()
        };
        let blame = Blame::new(&self.workload, &options);
        let mut seconds: BTreeMap<Culprit, f64> = BTreeMap::new();
        for path in blame.explanations(&self.workload) {
            if path.kind == Kind::RunQueue {
                *seconds.entry(path.culprit).or_default() += path.seconds;
            }
        }
        (seconds, blame.counted.values().sum())
    }

    /// The query whose statement has this name.
    pub fn query(&self, name: &str) -> Result<QueryId> {
        let mark = format!("/* {name} */");
        let mut queries = self.workload.tables().queries.iter();
        queries
            .find(|query| query.label.contains(&mark))
            .map(|query| query.id)
            .with_context(|| format!("the profile has no query {name}"))
    }

    /// The process outside Spark that runs this command, if any has a name.
    pub fn process(&self, command: &str) -> Option<KnownProcess> {
        let mut named = self.workload.tables().processes.iter();
        let found = named.find(|process| process.name.starts_with(&format!("{command} (")));
        found.map(|process| KnownProcess::Outside(process.id))
    }

    /// The name of a culprit. A query has the name of its statement.
    fn name(&self, culprit: Culprit) -> String {
        match culprit {
            Culprit::Query(id) => {
                let label = self.workload.query(id).map_or("", |query| &query.label);
                let name = label
                    .split_once("/* ")
                    .and_then(|(_, rest)| rest.split_once(" */"));
                name.map_or_else(|| format!("query {}", id.0), |(name, _)| name.to_owned())
            }
            Culprit::Known(process) => self.workload.process_name(process).to_owned(),
            Culprit::Unknown => "nobody known".to_owned(),
        }
    }

    /// Ranks one culprit of one victim within a span of time.
    pub fn verdict(
        &self,
        victim: QueryId,
        culprit: Culprit,
        resource: Resource,
        within: Span,
    ) -> Verdict {
        let workload = &self.workload;
        let options = Options {
            victims: [victim].into(),
            within: Some(within),
            ..Options::default()
        };
        let paths = Blame::new(workload, &options).explanations(workload);
        let ranked = |resource: Option<Resource>| {
            let filter = Filter {
                resource,
                others_only: true,
                ..Filter::default()
            };
            let rows = top(workload, &paths, &filter, By::Culprit, usize::MAX);
            let place = rows
                .iter()
                .position(|row| row.entity == Entity::Culprit(culprit));
            let share = place.map_or(0.0, |index| rows[index].responsibility);
            (place.map(|index| index + 1), share, rows)
        };
        let (place, share, rows) = ranked(Some(resource));
        let (place_of_all, share_of_all, _) = ranked(None);
        let of_resource: f64 = paths
            .iter()
            .filter(|path| path.resource == resource)
            .map(|path| path.weight)
            .sum();
        let leaders = rows
            .iter()
            .take(LEADERS)
            .filter_map(|row| match row.entity {
                Entity::Culprit(culprit) => {
                    Some((self.name(culprit), row.responsibility / of_resource))
                }
                _ => None,
            });
        let by = |overlaps: &baseline::Overlaps| place_of(overlaps.get(&victim), culprit);
        let victims = [victim].into();
        Verdict {
            place,
            leaders: leaders.collect(),
            share: if of_resource > 0.0 {
                share / of_resource
            } else {
                0.0
            },
            place_of_all,
            share_of_all,
            by_queries: by(&baseline::naive_overlap(workload, &victims, Some(within))),
            by_tasks: by(&baseline::deep_overlap(workload, &victims, Some(within))),
        }
    }

    /// Seconds of the victim's blocked time that a culprit accounts for.
    pub fn blamed(&self, victim: QueryId, culprit: Culprit) -> f64 {
        let options = Options {
            victims: [victim].into(),
            ..Options::default()
        };
        let paths = Blame::new(&self.workload, &options).explanations(&self.workload);
        let its = paths.iter().filter(|path| path.culprit == culprit);
        its.map(|path| path.seconds).sum()
    }
}

fn place_of(overlap: Option<&BTreeMap<QueryId, f64>>, culprit: Culprit) -> Option<usize> {
    let Culprit::Query(culprit) = culprit else {
        return None;
    };
    let mut rows: Vec<(&QueryId, &f64)> = overlap?.iter().collect();
    rows.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    rows.iter()
        .position(|(query, _)| **query == culprit)
        .map(|index| index + 1)
}
