//! Runs of one query in a profile.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use unfuse_format::ExecutionId;

use crate::fingerprint::Fingerprint;
use crate::profile::Profile;

/// The runs of one query: the same application name, description and plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryFamily {
    /// The number of the family, from 0.
    pub number: usize,
    /// Its name, see [`crate::query_name()`].
    pub name: String,
    /// Number of runs.
    pub runs: usize,
    /// The first run. Nodes of the final plan have the same index in the plans of all runs.
    pub first: ExecutionId,
}

/// The family of each query of a profile.
pub fn families(profile: &Profile) -> HashMap<ExecutionId, QueryFamily> {
    let processes = profile.processes.iter();
    let apps: HashMap<&str, &str> = processes
        .filter(|process| !process.name.is_empty())
        .map(|process| (process.app.as_str(), process.name.as_str()))
        .collect();
    let mut runs: BTreeMap<(&str, Fingerprint), Vec<&ExecutionId>> = BTreeMap::new();
    let ids: BTreeSet<&ExecutionId> = profile
        .executions
        .keys()
        .chain(profile.plans.keys())
        .collect();
    for id in ids {
        let known = profile.executions.get(id);
        let description = known.map_or("", |execution| execution.description.as_str());
        let fingerprint = Fingerprint::new(description, profile.plans.get(id));
        let app = apps.get(id.app.as_str()).copied().unwrap_or_default();
        runs.entry((app, fingerprint)).or_default().push(id);
    }
    let mut found = HashMap::new();
    for (number, runs) in runs.into_values().enumerate() {
        let family = QueryFamily {
            number,
            name: profile.query_name(runs[0]),
            runs: runs.len(),
            first: runs[0].clone(),
        };
        found.extend(runs.into_iter().map(|id| (id.clone(), family.clone())));
    }
    found
}
