//! What `unfuse blame` reads: a profile, or CSV files of any engine.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};
use unfuse_contention::{
    BlockedTime, INTERVALS_CSV, Input, QueryId, Span, StageIndex, Workload, from_csv,
};
use unfuse_format::ProfileDir;

use crate::commands::open;
use crate::remote;

/// The part of a profile that an answer needs; all without either.
#[derive(Debug)]
pub(super) struct Part<'a> {
    /// The query that was slowed down.
    pub victim: Option<&'a str>,
    /// When.
    pub span: Option<Span>,
}

impl Part<'_> {
    /// The queries that can be victims; none if that is any query.
    fn victims(&self, index: &StageIndex<'_>) -> Option<BTreeSet<QueryId>> {
        if let Some(victim) = self.victim {
            return index.query(victim).map(|query| BTreeSet::from([query]));
        }
        let within = self.span.map(|span| index.queries_within(span));
        within.filter(|queries| !queries.is_empty())
    }
}

/// Reads a local directory, which came from `given`; of a profile only the rows that an answer about a part needs.
pub(super) fn read(
    root: &Path,
    given: &Path,
    blocked: BlockedTime,
    part: &Part<'_>,
) -> Result<(Input, Workload)> {
    let mut input = if is_csv(root) {
        from_csv(root)?
    } else {
        let profile = open(root)?;
        let mut index = StageIndex::read(&profile)?;
        let victims = part.victims(&index);
        let input = index.input(blocked, victims.as_ref())?;
        // Samples are not needed: engines that write the tables of tasks or intervals have none.
        if input.tables.tasks.is_empty() && !profile.has_spark() {
            bail!(
                "{} has no tasks; `unfuse blame` compares the tasks of Spark queries",
                given.display()
            );
        }
        input
    };
    let workload = Workload::new(std::mem::take(&mut input.tables))
        .with_context(|| format!("{} has impossible rows", given.display()))?;
    Ok((input, workload))
}

/// Whether a directory holds CSV files of some engine, and no profile.
pub(super) fn is_csv(dir: &Path) -> bool {
    !remote::is_uri(dir) && !ProfileDir::is_at(dir) && dir.join(INTERVALS_CSV).exists()
}
