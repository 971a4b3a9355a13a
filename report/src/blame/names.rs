//! Names of queries and culprits.

use unfuse_contention::{Culprit, Query, QueryId, Workload};

/// The name of a query in tables.
pub(super) fn label(workload: &Workload, query: QueryId) -> String {
    workload
        .query(query)
        .map_or_else(String::new, |query| query.label.clone())
}

/// The name of a query in a sentence.
pub(super) fn title(workload: &Workload, query: QueryId) -> &str {
    workload.query(query).map_or("", Query::title)
}

/// The name of a culprit in tables.
pub(super) fn name_of(workload: &Workload, culprit: Culprit) -> String {
    match culprit {
        Culprit::Query(query) => label(workload, query),
        Culprit::Known(process) => process.name().to_owned(),
        Culprit::Unknown => "Unknown".to_owned(),
    }
}
