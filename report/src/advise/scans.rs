//! Scans that read what filters drop, and tables that are read again and again.

use std::collections::BTreeMap;

use unfuse_format::counted;
use unfuse_postprocess::{PlanNode, table_name};

use super::facts::{Facts, node_name, sum};
use super::found::Found;
use crate::what_if::{CachedTable, Remedy, Saving, above, file_scans, is_file_scan};
use crate::words::percent;
use crate::{Report, ReportError};

/// A filter that keeps a larger share of the rows than this gains little from files that are skipped.
const MOST_KEPT: f64 = 0.2;
/// Reads of a table from which on its rows are worth memory.
const READS: usize = 3;

/// How often each table is read, by application and table.
pub(super) type Reads<'a> = BTreeMap<(&'a str, String), usize>;

/// Filters that keep few of the rows that a scan reads, where the scan has no condition to skip files by.
pub(super) fn pushdown(facts: &Facts<'_>) -> Vec<Found> {
    let nodes = facts.plan.nodes.iter().enumerate();
    let scans = nodes.filter(|(_, node)| is_file_scan(node) && has_no_condition(&node.detail));
    scans
        .filter_map(|(at, scan)| {
            let mut own = vec![at];
            if let Some(rows) = above(facts.plan, at, "ColumnarToRow") {
                own.push(rows);
            }
            let filter = above(facts.plan, *own.last()?, "Filter")?;
            own.push(filter);
            let filter = &facts.plan.nodes[filter];
            let rows = |node| facts.metric(node, "number of output rows");
            let (read, kept) = (rows(scan)?, rows(filter)?);
            let share = kept as f64 / read.max(1) as f64;
            if read == 0 || share > MOST_KEPT {
                return None;
            }
            let (stacks, cpu_s) = sum(facts.of_nodes(&own));
            Some(Found {
                subject: node_name(filter),
                detail: format!(
                    "keeps {} of the {} of {}",
                    percent(share),
                    counted(read, "row"),
                    table_name(scan)
                ),
                seconds: facts.with_cpu_waits(cpu_s),
                remedy: Remedy::Saving(Saving {
                    stacks,
                    ..Saving::default()
                }),
                ..Found::default()
            })
        })
        .collect()
}

/// Whether the text of a scan of columnar files says that it has no condition by which blocks of rows can be skipped.
pub(super) fn has_no_condition(detail: &str) -> bool {
    let Some((_, pushed)) = detail.split_once("PushedFilters: [") else {
        return false;
    };
    // Names of tables and constants may contain brackets; then the answer is no.
    let Some((pushed, _)) = pushed.split_once(']') else {
        return false;
    };
    let mut conditions = pushed.split(", ").filter(|one| !one.is_empty());
    conditions.all(|one| one.starts_with("IsNotNull("))
}

/// Tables that several queries, or several runs of one, read from files.
pub(super) fn read_again(
    report: &Report<'_>,
    facts: &Facts<'_>,
    (app, query): (&str, i64),
    reads: &Reads<'_>,
) -> Result<Vec<Found>, ReportError> {
    let mut own: BTreeMap<String, &PlanNode> = BTreeMap::new();
    for scan in file_scans(facts.plan) {
        own.entry(table_name(scan)).or_insert(scan);
    }
    let mut found = Vec::new();
    for table in own.into_keys() {
        let times = reads.get(&(app, table.clone())).copied().unwrap_or(0);
        if times < READS {
            continue;
        }
        let cached = match CachedTable::find(report, app, query, &table) {
            Ok(cached) => cached,
            // Such as a scan without samples.
            Err(ReportError::Refused(_)) => continue,
            Err(other) => return Err(other),
        };
        let fits = match cached.bytes {
            Some([_, most]) if cached.memory > 0 => most <= cached.memory,
            _ => true,
        };
        if fits {
            found.push(Found {
                subject: table,
                detail: counted(times, "time"),
                seconds: facts.with_cpu_waits(cached.cpu_s),
                remedy: Remedy::Cached(cached.scans),
                ..Found::default()
            });
        }
    }
    Ok(found)
}
