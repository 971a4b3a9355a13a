//! The input of `unfuse blame`: a profile, or CSV files of any engine.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result, bail};
use unfuse_contention::{
    BlockedTime, INTERVALS_CSV, Input, QueryId, Span, StageIndex, Workload, from_csv, set_operators,
};
use unfuse_files::read_given_text;
use unfuse_format::ProfileDir;
use unfuse_postprocess::Profile;

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

/// If a larger part of folded stacks belongs to no stage, a note says so.
const MOST_OUTSIDE: f64 = 0.1;
/// The most bytes of folded stacks.
const MOST_FOLDED: u64 = 1 << 30;

/// What is read.
#[derive(Debug)]
pub(super) struct Source<'a> {
    /// A local directory.
    pub root: &'a Path,
    /// Its name for messages.
    pub given: &'a Path,
    /// Folded stacks with the operators of its stages.
    pub folded: Option<&'a str>,
}

/// The text of a file, or of standard input for `-`.
pub(super) fn folded(path: &Path) -> Result<String> {
    if path != Path::new("-") {
        return read_given_text(path, MOST_FOLDED)
            .with_context(|| format!("cannot read {}", path.display()));
    }
    let mut text = String::new();
    let read = io::stdin()
        .lock()
        .take(MOST_FOLDED)
        .read_to_string(&mut text);
    read.context("cannot read folded stacks from standard input")?;
    Ok(text)
}

/// Reads a directory, of a profile only the rows that an answer about a part needs; CSV files are no profile.
pub(super) fn read(
    source: &Source<'_>,
    blocked: BlockedTime,
    part: &Part<'_>,
) -> Result<(Option<Profile>, Input, Workload)> {
    let (root, given) = (source.root, source.given);
    let profile = if is_csv(root) {
        None
    } else {
        Some(open(root)?)
    };
    let mut input = if let Some(profile) = &profile {
        let mut index = StageIndex::read(profile)?;
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
    } else {
        from_csv(root)?
    };
    if let Some(folded) = source.folded {
        let outside = set_operators(&mut input.tables, folded).context("--folded")?;
        if outside > MOST_OUTSIDE {
            input.notes.push(format!(
                "{:.0}% of the folded stacks belong to no stage of these queries",
                100.0 * outside
            ));
        }
    }
    let workload = Workload::new(std::mem::take(&mut input.tables))
        .with_context(|| format!("{} has impossible rows", given.display()))?;
    Ok((profile, input, workload))
}

/// Whether a directory holds CSV files of another engine instead of a profile.
pub(super) fn is_csv(dir: &Path) -> bool {
    !remote::is_uri(dir) && !ProfileDir::is_at(dir) && dir.join(INTERVALS_CSV).exists()
}
