//! The input of `unfuse blame`: a profile, or CSV files of any engine.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};
use unfuse_contention::{
    BlockedTime, INTERVALS_CSV, Input, QueryId, Span, StageIndex, Workload, from_csv,
};
use unfuse_format::ProfileDir;

use crate::commands::open;
use crate::remote;

/// The part of a profile that an answer needs. Without a victim and a span it is the whole profile.
#[derive(Debug)]
pub(super) struct Part<'a> {
    /// The query that was slowed down.
    pub victim: Option<&'a str>,
    /// The time that is asked about.
    pub span: Option<Span>,
}

impl Part<'_> {
    /// The queries that can be victims; `None` if any query can be one.
    fn victims(&self, index: &StageIndex<'_>) -> Option<BTreeSet<QueryId>> {
        if let Some(victim) = self.victim {
            return index.query(victim).map(|query| BTreeSet::from([query]));
        }
        let within = self.span.map(|span| index.queries_within(span));
        within.filter(|queries| !queries.is_empty())
    }
}

/// Reads a local directory, of a profile only the rows that an
/// answer about a part needs. `given` is its name for messages.
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
        // Samples are optional: engines that write the tables of tasks or intervals take none.
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

/// Whether a directory holds CSV files of another engine instead of a profile.
pub(super) fn is_csv(dir: &Path) -> bool {
    !remote::is_uri(dir) && !ProfileDir::is_at(dir) && dir.join(INTERVALS_CSV).exists()
}
