//! Groups runs of the same query.

use std::collections::HashMap;

use crate::model::{Application, Cost, Family, QuerySummary};
use unfuse_postprocess::median;

/// The families of the queries, most CPU time first. Sets each query's family.
pub(super) fn families(queries: &mut [QuerySummary], applications: &[Application]) -> Vec<Family> {
    let mut runs: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
    for (index, query) in queries.iter().enumerate() {
        // Work outside queries has no family.
        if query.query.is_some() {
            let app = applications.get(query.app);
            let key = (
                app.map_or("", |app| app.name.as_str()),
                query.fingerprint.as_str(),
            );
            runs.entry(key).or_default().push(index);
        }
    }
    let mut families: Vec<Family> = runs
        .into_values()
        .map(|runs| family(queries, runs))
        .collect();
    families.sort_by_key(|family| (std::cmp::Reverse(family.cost.cpu_ns), family.runs[0]));
    for (number, family) in families.iter().enumerate() {
        for index in &family.runs {
            queries[*index].family = Some(number);
        }
    }
    families
}

/// The family of at least one run.
fn family(queries: &[QuerySummary], mut runs: Vec<usize>) -> Family {
    runs.sort_by_key(|index| (queries[*index].started_ms, *index));
    let of = || runs.iter().map(|index| &queries[*index]);
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
