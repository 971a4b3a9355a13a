//! What queries and culprits are called.

use unfuse_contention::{Culprit, Query, QueryId, Workload};

/// A query as the tables name it.
pub(super) fn label(workload: &Workload, query: QueryId) -> String {
    workload
        .query(query)
        .map_or_else(String::new, |query| query.label.clone())
}

/// What a query is called in a sentence.
pub(super) fn title(workload: &Workload, query: QueryId) -> &str {
    workload.query(query).map_or("", Query::title)
}

/// A culprit as the tables name it.
pub(super) fn name_of(workload: &Workload, culprit: Culprit) -> String {
    match culprit {
        Culprit::Query(query) => label(workload, query),
        Culprit::Known(process) => process.name().to_owned(),
        Culprit::Unknown => "Unknown".to_owned(),
    }
}
