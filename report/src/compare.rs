//! Compares a profile with another one. Runs of a query are matched by fingerprint and compared operator by operator,
//! by their means.

use std::collections::{BTreeMap, HashMap};

use crate::Report;
use crate::model::{Comparison, Pair, PairRow, QuerySummary, UnmatchedQuery};
use crate::numbered::{Key, Numbered};
use crate::query::{self, Costs};
use unfuse_postprocess::{Operator, normalised};

/// The runs of one query, as positions in the list.
type Runs = Vec<usize>;

/// An operator or heading with its means over some runs.
struct Row {
    key: Key,
    name: String,
    detail: String,
    heading: bool,
    depth: usize,
    ns: u64,
    /// Rows that it got or, if none, output in all runs; `None` if a run does not have the number.
    rows: Option<i64>,
}

impl Row {
    /// CPU time for each row over `runs` runs, ns.
    fn ns_per_row(&self, runs: usize) -> Option<f64> {
        let rows = self.rows.filter(|rows| *rows > 0)?;
        Some(self.ns as f64 * runs as f64 / rows as f64)
    }
}

pub(super) fn compare(before: &Report<'_>, after: &Report<'_>) -> Comparison {
    let (mut old, mut new) = (by_fingerprint(before), by_fingerprint(after));
    let mut pairs = Vec::new();
    let both: Vec<String> = new
        .keys()
        .filter(|key| old.contains_key(*key))
        .cloned()
        .collect();
    for key in both {
        if let (Some(old), Some(new)) = (old.remove(&key), new.remove(&key)) {
            pairs.push(pair(before, &old, after, &new, false));
        }
    }
    for (old_key, new_key) in same_descriptions(before, &old, after, &new) {
        if let (Some(old), Some(new)) = (old.remove(&old_key), new.remove(&new_key)) {
            pairs.push(pair(before, &old, after, &new, true));
        }
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

/// Matches queries whose plans differ if their description is unique on both sides.
fn same_descriptions(
    before: &Report<'_>,
    old: &BTreeMap<String, Runs>,
    after: &Report<'_>,
    new: &BTreeMap<String, Runs>,
) -> Vec<(String, String)> {
    let only = |report: &Report<'_>, groups: &BTreeMap<String, Runs>| {
        let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (key, runs) in groups {
            let text = queries(report, runs)
                .next()
                .map(|query| normalised(&query.description));
            by_text
                .entry(text.unwrap_or_default())
                .or_default()
                .push(key.clone());
        }
        by_text.retain(|text, keys| keys.len() == 1 && !text.is_empty());
        by_text
    };
    let old = only(before, old);
    only(after, new)
        .into_iter()
        .filter_map(|(text, keys)| Some((old.get(&text)?[0].clone(), keys[0].clone())))
        .collect()
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
fn rows(report: &Report<'_>, runs: &Runs) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut positions: HashMap<Key, usize> = HashMap::new();
    for run in runs {
        let part = &report.parts[*run];
        let costs = Costs::new(report.profile, part);
        let plan = part.plan(report.profile);
        let mut depths: Vec<usize> = Vec::new();
        let mut numbered = Numbered::default();
        let mut add =
            |name: &str, detail: &str, heading: bool, depth: usize, ns: u64, count: Option<i64>| {
                let key = numbered.key(normalised(&format!("{name}\n{detail}")));
                let index = *positions.entry(key.clone()).or_insert_with(|| {
                    rows.push(Row {
                        key,
                        name: name.to_owned(),
                        detail: detail.to_owned(),
                        heading,
                        depth,
                        ns: 0,
                        rows: Some(0),
                    });
                    rows.len() - 1
                });
                let row = &mut rows[index];
                row.ns = row.ns.saturating_add(ns);
                row.rows = row.rows.zip(count).map(|(a, b)| a.saturating_add(b));
            };
        let counts = query::rows(report.profile, part);
        let nodes = plan.map_or(&[][..], |plan| &plan.nodes);
        for (index, (node, share)) in nodes.iter().zip(&costs.nodes).enumerate() {
            let depth = node.parent.map_or(0, |parent| depths[parent] + 1);
            depths.push(depth);
            let ns = share.cost.cpu_ns;
            let works = !Operator::from_name(&node.operator).passes;
            let count = counts.got[index].or(counts.out[index]).filter(|_| works);
            add(&node.operator, &node.detail, false, depth, ns, count);
        }
        for (name, share) in &costs.headings {
            add(name, "", true, 0, share.cost.cpu_ns, None);
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
