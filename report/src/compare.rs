//! Compares a profile with another one. Runs of a query are matched by fingerprint and compared operator by operator,
//! by their means.

use std::collections::{BTreeMap, HashMap};

use crate::Report;
use crate::model::{Comparison, Cost, Pair, PairRow, QuerySummary, UnmatchedQuery};
use crate::numbered::{Key, Numbered};
use crate::query::{self, Costs};
use unfuse_postprocess::{Operator, normalised};

/// The runs of one query, as positions in the list.
pub(crate) type Runs = Vec<usize>;

/// An operator or heading with its means over some runs.
pub(crate) struct Row {
    pub(crate) key: Key,
    /// Number in the plan of the first run that has it; 0 for a heading.
    pub(crate) id: i32,
    pub(crate) name: String,
    detail: String,
    pub(crate) heading: bool,
    depth: usize,
    /// Own CPU time, ns.
    pub(crate) ns: u64,
    /// The least and the most CPU time that it can have in all runs, ns.
    pub(crate) possible_ns: [u64; 2],
    /// Samples of all runs.
    pub(crate) samples: u64,
    /// Rows that it got or, if none, output in all runs; `None` if a run does not have the number.
    pub(crate) rows: Option<i64>,
}

impl Row {
    fn new(name: &str, cost: Cost) -> Self {
        Self {
            key: Key::default(),
            id: 0,
            name: name.to_owned(),
            detail: String::new(),
            heading: false,
            depth: 0,
            ns: cost.cpu_ns,
            possible_ns: [cost.cpu_ns; 2],
            samples: cost.samples,
            rows: None,
        }
    }

    /// Adds what it cost in another run.
    fn add(&mut self, other: &Self) {
        self.ns = self.ns.saturating_add(other.ns);
        self.samples = self.samples.saturating_add(other.samples);
        for (ns, more) in self.possible_ns.iter_mut().zip(other.possible_ns) {
            *ns = ns.saturating_add(more);
        }
        let rows = self.rows.zip(other.rows);
        self.rows = rows.map(|(a, b)| a.saturating_add(b));
    }

    /// CPU time for each row over `runs` runs, ns.
    fn ns_per_row(&self, runs: usize) -> Option<f64> {
        let rows = self.rows.filter(|rows| *rows > 0)?;
        Some(self.ns as f64 * runs as f64 / rows as f64)
    }
}

pub(super) fn compare(before: &Report<'_>, after: &Report<'_>) -> Comparison {
    let (mut old, mut new) = (by_fingerprint(before), by_fingerprint(after));
    let mut pairs = Vec::new();
    for (old_key, new_key, old, new) in take_matched(before, &mut old, after, &mut new) {
        pairs.push(pair(before, &old, after, &new, old_key != new_key));
    }
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.after_ns.abs_diff(pair.before_ns)));
    Comparison {
        before: before.summary.profile.clone(),
        before_total: before.summary.total,
        pairs,
        only_before: unmatched(before, old),
        only_after: unmatched(after, new),
    }
}

/// The runs of each query that both reports have, before and now.
pub(crate) fn matched_runs(before: &Report<'_>, after: &Report<'_>) -> Vec<(Runs, Runs)> {
    let (mut old, mut new) = (by_fingerprint(before), by_fingerprint(after));
    let matched = take_matched(before, &mut old, after, &mut new).into_iter();
    matched.map(|(_, _, old, new)| (old, new)).collect()
}

/// Takes the runs of each query that both reports have out of those of all queries, with its fingerprints before and now.
fn take_matched(
    before: &Report<'_>,
    old: &mut BTreeMap<String, Runs>,
    after: &Report<'_>,
    new: &mut BTreeMap<String, Runs>,
) -> Vec<(String, String, Runs, Runs)> {
    let keys = same_queries(&descriptions(before, old), &descriptions(after, new));
    let taken = keys.into_iter().filter_map(|(old_key, new_key)| {
        let (old, new) = (old.remove(&old_key)?, new.remove(&new_key)?);
        Some((old_key, new_key, old, new))
    });
    taken.collect()
}

fn queries<'a>(report: &'a Report<'_>, runs: &'a Runs) -> impl Iterator<Item = &'a QuerySummary> {
    runs.iter().map(|index| &report.summary.queries[*index])
}

fn by_fingerprint(report: &Report<'_>) -> BTreeMap<String, Runs> {
    let mut groups: BTreeMap<String, Runs> = BTreeMap::new();
    for (index, query) in report.summary.queries.iter().enumerate() {
        groups
            .entry(query.fingerprint.clone())
            .or_default()
            .push(index);
    }
    groups
}

/// The description of each query, without what differs between runs, by fingerprint.
fn descriptions(report: &Report<'_>, groups: &BTreeMap<String, Runs>) -> BTreeMap<String, String> {
    let text = |runs: &Runs| {
        let first = queries(report, runs).next();
        first.map_or_else(String::new, |query| normalised(&query.description))
    };
    groups
        .iter()
        .map(|(key, runs)| (key.clone(), text(runs)))
        .collect()
}

/// Matches queries before with those now, each given as its description by its fingerprint: those with the same
/// fingerprint, then those whose plans differ if their description is unique among the rest on both sides.
pub(crate) fn same_queries(
    old: &BTreeMap<String, String>,
    new: &BTreeMap<String, String>,
) -> Vec<(String, String)> {
    let both = new.keys().filter(|key| old.contains_key(*key));
    let mut pairs: Vec<(String, String)> = both.map(|key| (key.clone(), key.clone())).collect();
    let only = |texts: &BTreeMap<String, String>, others: &BTreeMap<String, String>| {
        let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (key, text) in texts.iter().filter(|(key, _)| !others.contains_key(*key)) {
            by_text.entry(text.clone()).or_default().push(key.clone());
        }
        by_text.retain(|text, keys| keys.len() == 1 && !text.is_empty());
        by_text
    };
    let of_old = only(old, new);
    let by_text = only(new, old)
        .into_iter()
        .filter_map(|(text, keys)| Some((of_old.get(&text)?[0].clone(), keys[0].clone())));
    pairs.extend(by_text);
    pairs
}

fn pair(before: &Report<'_>, old: &Runs, after: &Report<'_>, new: &Runs, replanned: bool) -> Pair {
    let (old_rows, new_rows) = (rows(before, old), rows(after, new));
    let old_by_key: HashMap<&Key, &Row> = old_rows.iter().map(|row| (&row.key, row)).collect();
    let mut all: Vec<PairRow> = Vec::new();
    for row in &new_rows {
        // Headings without samples count as 0, not as missing.
        let nothing = row.heading.then_some(0);
        let before = old_by_key.get(&row.key);
        let ns = before.map(|before| before.ns).or(nothing);
        let per_row = before.and_then(|before| before.ns_per_row(old.len()));
        all.push(PairRow {
            before_ns_per_row: per_row,
            after_ns_per_row: row.ns_per_row(new.len()),
            ..pair_row(row, ns, Some(row.ns))
        });
    }
    for row in &old_rows {
        if !new_rows.iter().any(|other| other.key == row.key) {
            all.push(PairRow {
                before_ns_per_row: row.ns_per_row(old.len()),
                ..pair_row(row, Some(row.ns), row.heading.then_some(0))
            });
        }
    }
    let first = &after.summary.queries[new[0]];
    Pair {
        description: first.description.clone(),
        fingerprint: first.fingerprint.clone(),
        replanned,
        before_runs: old.len(),
        after_runs: new.len(),
        before_ns: mean_ns(before, old),
        after_ns: mean_ns(after, new),
        rows: all,
    }
}

fn pair_row(row: &Row, before_ns: Option<u64>, after_ns: Option<u64>) -> PairRow {
    PairRow {
        name: row.name.clone(),
        detail: row.detail.clone(),
        heading: row.heading,
        depth: row.depth,
        before_ns,
        after_ns,
        before_ns_per_row: None,
        after_ns_per_row: None,
    }
}

/// Operators in the order of the plan, then headings.
pub(crate) fn rows(report: &Report<'_>, runs: &Runs) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut positions: HashMap<Key, usize> = HashMap::new();
    for run in runs {
        let part = &report.parts[*run];
        let costs = Costs::new(report.profile, part);
        let plan = part.plan(report.profile);
        let mut depths: Vec<usize> = Vec::new();
        let mut numbered = Numbered::default();
        let mut add = |mut row: Row| {
            row.key = numbered.key(normalised(&format!("{}\n{}", row.name, row.detail)));
            match positions.get(&row.key) {
                Some(index) => rows[*index].add(&row),
                None => {
                    positions.insert(row.key.clone(), rows.len());
                    rows.push(row);
                }
            }
        };
        let counts = query::rows(report.profile, part);
        let nodes = plan.map_or(&[][..], |plan| &plan.nodes);
        for (index, (node, share)) in nodes.iter().zip(&costs.nodes).enumerate() {
            let depth = node.parent.map_or(0, |parent| depths[parent] + 1);
            depths.push(depth);
            let works = !Operator::from_name(&node.operator).passes;
            let count = counts.got[index].or(counts.out[index]).filter(|_| works);
            add(Row {
                id: node.id,
                detail: node.detail.clone(),
                depth,
                rows: count,
                possible_ns: costs.possible_ns(share),
                ..Row::new(&node.operator, share.cost)
            });
        }
        for (name, share) in &costs.headings {
            add(Row {
                heading: true,
                ..Row::new(name, share.cost)
            });
        }
    }
    for row in &mut rows {
        row.ns /= runs.len().max(1) as u64;
    }
    rows.sort_by_key(|row| row.heading);
    rows
}

fn mean_ns(report: &Report<'_>, runs: &Runs) -> u64 {
    let costs = queries(report, runs).map(|query| query.cost.cpu_ns);
    costs.fold(0, u64::saturating_add) / runs.len().max(1) as u64
}

fn unmatched(report: &Report<'_>, groups: BTreeMap<String, Runs>) -> Vec<UnmatchedQuery> {
    let mut unmatched: Vec<_> = groups
        .into_iter()
        .map(|(fingerprint, runs)| UnmatchedQuery {
            description: report.summary.queries[runs[0]].description.clone(),
            fingerprint,
            runs: runs.len(),
            cpu_ns: mean_ns(report, &runs),
        })
        .collect();
    unmatched.sort_by_key(|query| std::cmp::Reverse(query.cpu_ns));
    unmatched
}
