//! Names of queries and culprits.

use schemars::JsonSchema;
use serde::Serialize;
use ts_rs::TS;
use unfuse_contention::{Culprit, KnownProcess, Query, QueryId, Workload};

/// What a culprit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CulpritKind {
    /// Another query.
    Query,
    /// Garbage collection.
    Gc,
    /// Other work of the JVMs outside tasks, such as just-in-time compilation.
    Jvm,
    /// Processes outside Spark, with or without a name.
    Process,
    /// The hypervisor.
    Hypervisor,
    /// The CPU limit of the JVM's own control group.
    OwnLimit,
    /// The victim's own other tasks.
    #[serde(rename = "self")]
    Itself,
    /// No known user.
    Nobody,
}

impl CulpritKind {
    /// That of a culprit of one victim, or of several.
    pub(super) fn new(culprit: Culprit, victim: Option<QueryId>) -> Self {
        match culprit {
            Culprit::Query(query) if victim == Some(query) => Self::Itself,
            Culprit::Query(_) => Self::Query,
            Culprit::Known(KnownProcess::Gc) => Self::Gc,
            Culprit::Known(KnownProcess::Jit | KnownProcess::Jvm) => Self::Jvm,
            Culprit::Known(KnownProcess::Hypervisor) => Self::Hypervisor,
            Culprit::Known(KnownProcess::OwnLimit) => Self::OwnLimit,
            Culprit::Known(_) => Self::Process,
            Culprit::Unknown => Self::Nobody,
        }
    }
}

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
        Culprit::Known(process) => workload.process_name(process).to_owned(),
        Culprit::Unknown => "Unknown".to_owned(),
    }
}
