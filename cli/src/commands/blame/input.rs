//! What `unfuse blame` reads: a profile, or CSV files of any engine.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};
use unfuse_contention::{BlockedTime, INTERVALS_CSV, Input, StageIndex, Workload, from_csv};
use unfuse_format::ProfileDir;

use crate::commands::open;
use crate::remote;

/// Reads a local directory, which came from `given`; with a `victim`, of a profile only the rows that decide who slowed it
/// down.
pub(super) fn read(
    root: &Path,
    given: &Path,
    blocked: BlockedTime,
    victim: Option<&str>,
) -> Result<(Input, Workload)> {
    let mut input = if is_csv(root) {
        from_csv(root)?
    } else {
        let profile = open(root)?;
        let mut index = StageIndex::read(&profile)?;
        let victim = victim.and_then(|name| index.query(name));
        let victims = victim.map(|query| BTreeSet::from([query]));
        let input = index.input(blocked, victims.as_ref())?;
        // Samples are not needed: engines that write the tables of tasks or intervals have none.
        if input.tables.tasks.is_empty() && !profile.has_spark() {
            bail!(
                "{}: no task was recorded, and only tasks can be in each other's way",
                given.display()
            );
        }
        input
    };
    let workload = Workload::new(std::mem::take(&mut input.tables))
        .with_context(|| format!("{}: rows that cannot be", given.display()))?;
    Ok((input, workload))
}

/// Whether a directory holds CSV files of some engine, and no profile.
pub(super) fn is_csv(dir: &Path) -> bool {
    !remote::is_uri(dir) && !ProfileDir::is_at(dir) && dir.join(INTERVALS_CSV).exists()
}
