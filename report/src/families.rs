//! Runs of the same query as one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use unfuse_format::ExecutionId;

use crate::model::{Application, Cost, Family, QuerySummary};
use unfuse_postprocess::{Fingerprint, Profile, median};

/// The family of a query, by its description and plan alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QueryFamily {
    /// Families are numbered from 0.
    pub(super) number: usize,
    /// What to call it.
    pub(super) name: String,
    /// How many runs it has.
    pub(super) runs: usize,
}

/// The family of each query of a profile.
pub(super) fn families_of(profile: &Profile) -> HashMap<ExecutionId, QueryFamily> {
    let processes = profile
        .processes
        .iter()
        .filter(|process| !process.name.is_empty());
    let apps: HashMap<&str, &str> = processes
        .map(|process| (process.app.as_str(), process.name.as_str()))
        .collect();
    let mut families: BTreeMap<(&str, Fingerprint), Vec<&ExecutionId>> = BTreeMap::new();
    let ids: BTreeSet<&ExecutionId> = profile
        .executions
        .keys()
        .chain(profile.plans.keys())
        .collect();
    let description = |id| {
        let known = profile.executions.get(id);
        known.map_or("", |execution| execution.description.as_str())
    };
    for id in ids {
        let fingerprint = Fingerprint::of(description(id), profile.plans.get(id));
        let app = apps.get(id.app.as_str()).copied().unwrap_or_default();
        families.entry((app, fingerprint)).or_default().push(id);
    }
    let mut found = HashMap::new();
    for (number, runs) in families.into_values().enumerate() {
        let family = QueryFamily {
            number,
            name: profile.query_name(runs[0]),
            runs: runs.len(),
        };
        found.extend(runs.into_iter().map(|id| (id.clone(), family.clone())));
    }
    found
}

/// The families of the queries, most CPU first; each query gets its family's position.
pub(super) fn families(queries: &mut [QuerySummary], applications: &[Application]) -> Vec<Family> {
    let mut runs: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
    for (at, query) in queries.iter().enumerate() {
        // Work outside queries is no query.
        if query.query.is_some() {
            let app = applications.get(query.app);
            let key = (
                app.map_or("", |app| app.name.as_str()),
                query.fingerprint.as_str(),
            );
            runs.entry(key).or_default().push(at);
        }
    }
    let mut families: Vec<Family> = runs
        .into_values()
        .map(|runs| family(queries, runs))
        .collect();
    families.sort_by_key(|family| (std::cmp::Reverse(family.cost.cpu_ns), family.runs[0]));
    for (number, family) in families.iter().enumerate() {
        for at in &family.runs {
            queries[*at].family = Some(number);
        }
    }
    families
}

/// Of runs of one query, at least one.
fn family(queries: &[QuerySummary], mut runs: Vec<usize>) -> Family {
    runs.sort_by_key(|at| (queries[*at].started_ms, *at));
    let of = || runs.iter().map(|at| &queries[*at]);
    let mut cost = Cost::default();
    of().for_each(|query| cost.add(query.cost));
    let mut durations: Vec<f64> = of()
        .filter_map(|query| query.duration_ms)
        .map(|ms| ms as f64)
        .collect();
    let mut cpu_ns: Vec<f64> = of().map(|query| query.cost.cpu_ns as f64).collect();
    let middle = median(&mut durations);
    let first = &queries[runs[0]];
    Family {
        name: first.name.clone(),
        fingerprint: first.fingerprint.clone(),
        failed: of().filter(|query| query.error.is_some()).count(),
        duration_ms: durations
            .first()
            .zip(durations.last())
            .map(|(least, most)| [*least, middle, *most].map(|ms| ms.round() as i64)),
        median_cpu_ns: median(&mut cpu_ns) as u64,
        cost,
        runs,
    }
}
