//! `cache=TABLE`: the scans of a table in a plan, and what they take if they read rows that Spark has cached.

use std::collections::{BTreeSet, HashMap};

use unfuse_format::{HostRow, StageAttempt};
use unfuse_postprocess::{Attributor, Group, Operator, Owner, Plan, PlanNode, table_name};
use unfuse_sizing::what_if::Change;

use super::operator::{cpu_of_nodes, plan_and_part};
use crate::query::attempts;
use crate::rows::add_values;
use crate::text::{list, shorten};
use crate::words::bytes;
use crate::{Part, Report, ReportError};

/// CPU time of making rows of a cached value, ns: the least, the most likely and the most, about as measured (docs/what-if.md,
/// *Cached tables*).
const VALUE_NS: [f64; 3] = [6.0, 9.0, 13.0];
/// The least that counts for reading a row in generated code, ns, before [`OF_COLUMNS`] multiplies it.
const ROW_NS: f64 = 20.0;
/// What generated code takes to read rows, as a part of what it takes to read columns: the least, the most likely and the most.
const OF_COLUMNS: [f64; 3] = [0.6, 1.0, 2.0];
/// Bytes of cached rows for each byte of a file: the least and the most of what was measured.
const BYTES_OF_FILE: [f64; 2] = [1.5, 4.0];

/// A share of a node's time that is counted as no change.
const NOTHING: f64 = 1e-6;

/// A table that would be cached.
#[derive(Debug, Default)]
pub(crate) struct CachedTable {
    /// Its scans, and the nodes that make rows of what these put out.
    pub(crate) scans: Vec<CachedScan>,
    /// The CPU time of these nodes now, s.
    pub(crate) cpu_s: f64,
    /// Bytes that the cached rows take, at least and at most; none if unknown.
    pub(crate) bytes: Option<[u64; 2]>,
    /// Memory that Spark manages in all JVMs, bytes; 0 if unknown.
    pub(crate) memory: u64,
    /// What the answer does not know.
    pub(super) notes: Vec<String>,
}

/// A node whose work is replaced by reading cached rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CachedScan {
    /// Its number in the plan.
    pub(super) node: i32,
    /// The share of its CPU time that reading cached rows takes: the least, the most likely, the most.
    pub(super) remaining: [f64; 3],
}

impl CachedScan {
    /// The change that it is.
    pub(super) fn change(self) -> Change {
        Change::CachedScan {
            node: self.node,
            remaining: self.remaining[1],
        }
    }

    /// [`Part::range`] of the node, which is `least` and `most` for other changes: reading cached rows may take less or more. It may
    /// also take longer than the node does now; that is no overlap of work, which `least` and `most` are about.
    pub(super) fn range(self, least: f64, most: f64) -> (f64, f64) {
        let [gone_most, likely, gone_least] = self.remaining.map(|share| 1.0 - share);
        // The factors of a change of nothing would be infinite.
        let likely = if likely.abs() < NOTHING {
            NOTHING
        } else {
            likely
        };
        let of = |gone: f64, factor: f64| gone * if gone > 0.0 { factor } else { 1.0 } / likely;
        (of(gone_least, least), of(gone_most, most))
    }
}

impl CachedTable {
    /// Finds the scans of a table in the plan of a query. `table` is its name, its path, or the end of its path.
    ///
    /// # Errors
    /// If the plan is not known or has no such scan.
    pub(crate) fn find(
        report: &Report<'_>,
        app: &str,
        query: i64,
        table: &str,
    ) -> Result<Self, ReportError> {
        let refused = |text: String| Err(ReportError::Refused(text));
        let shown = shorten(table, 60);
        let Some((plan, part)) = plan_and_part(report, app, query) else {
            return refused(format!(
                "cache={shown}: query {query} has no plan in the profile, so its tables are not known"
            ));
        };
        let nodes = || plan.nodes.iter().enumerate();
        let of_table = |node: &PlanNode| is_file_scan(node) && is_called(node, table);
        let wanted: Vec<usize> = nodes()
            .filter(|(_, node)| of_table(node))
            .map(|(at, _)| at)
            .collect();
        if wanted.is_empty() {
            let known: BTreeSet<String> = nodes()
                .filter(|(_, node)| is_file_scan(node))
                .map(|(_, node)| table_name(node))
                .collect();
            return refused(format!(
                "cache={shown}: query {query} reads no files of a table with this name or path; it reads {}",
                list(&known.into_iter().collect::<Vec<_>>())
            ));
        }
        let cpu_ns = cpu_of_nodes(report, plan, part);
        let values = last_values(report, app, part);
        let metric = |node: &PlanNode, name: &str| {
            let mut ids = node.metrics.iter().filter(|(_, known)| known == name);
            ids.find_map(|(id, _)| values.get(id).copied())
                .map(|value| value.max(0) as f64)
        };
        let mut found = Self::default();
        for at in wanted.iter().copied() {
            let node = &plan.nodes[at];
            // Generated code that reads columns of files does it there.
            let to_rows = above(plan, at, "ColumnarToRow");
            let replaced: Vec<usize> = [Some(at), to_rows]
                .into_iter()
                .flatten()
                .filter(|at| cpu_ns[*at] > 0)
                .collect();
            let replaced_ns: f64 = replaced.iter().map(|at| cpu_ns[*at] as f64).sum();
            if replaced.is_empty() {
                continue;
            }
            let rows = metric(node, "number of output rows");
            let Some(rows) = rows else {
                return refused(format!(
                    "cache={shown}: the rows of node {} are not known, so what reading them would take is not either",
                    node.id
                ));
            };
            found.cpu_s += replaced_ns / 1e9;
            let to_rows_ns = to_rows.map(|at| cpu_ns[at] as f64);
            let remaining = reading_ns(rows, columns(&node.detail), to_rows_ns);
            found.scans.extend(replaced.iter().map(|at| CachedScan {
                node: plan.nodes[*at].id,
                remaining: remaining.map(|ns| ns / replaced_ns),
            }));
        }
        if found.scans.is_empty() {
            return refused(format!(
                "cache={shown}: its scans have no samples, so their time is not known"
            ));
        }
        let read = bytes_read(report, app, part, &wanted);
        found.note_memory(report, app, read)?;
        Ok(found)
    }

    fn note_memory(
        &mut self,
        report: &Report<'_>,
        app: &str,
        read: f64,
    ) -> Result<(), ReportError> {
        self.notes.push(
            "cache=TABLE: the time that Spark takes to fill the cache is not in the answer, and more rows of the table than those \
             that this query reads may have to be cached"
                .to_owned(),
        );
        let hosts = report.profile.rows::<HostRow>()?;
        let own = hosts.iter().filter(|row| row.app == app);
        let mut of_jvm: HashMap<(&str, u32), u64> = HashMap::new();
        for row in own {
            let most = of_jvm.entry((&row.host, row.pid)).or_default();
            *most = (*most).max(row.memory_bytes.unwrap_or(0));
        }
        self.memory = of_jvm.values().fold(0, |sum, of| sum.saturating_add(*of));
        if read > 0.0 {
            self.bytes = Some(BYTES_OF_FILE.map(|factor| (factor * read) as u64));
        }
        self.notes.push(match self.bytes {
            Some([least, most]) if self.memory > 0 => {
                format!(
                    "the cached rows take about {} to {}, judged by the {} of files that the tasks read; other columns of the \
                     table take more. Spark's memory is {}{}",
                    bytes(least),
                    bytes(most),
                    bytes(read as u64),
                    bytes(self.memory),
                    if most > self.memory {
                        ". What does not fit is read again, so the table may not be worth caching"
                    } else {
                        ""
                    }
                )
            }
            _ => "how much memory the cached rows take is not known".to_owned(),
        });
        Ok(())
    }
}

/// CPU time of reading cached rows, ns: the least, the most likely, the most. `to_rows_ns` is what generated code takes now to read the
/// columns of files; none if it gets rows now, too.
fn reading_ns(rows: f64, columns: usize, to_rows_ns: Option<f64>) -> [f64; 3] {
    let in_generated_ns = to_rows_ns.map_or(0.0, |ns| ns.max(rows * ROW_NS));
    [0, 1, 2].map(|at| rows * columns as f64 * VALUE_NS[at] + in_generated_ns * OF_COLUMNS[at])
}

/// Bytes of files that the tasks read in the stages in which some nodes have samples; 0 where other threads read for them, because
/// Spark does not count such bytes as the tasks' input.
fn bytes_read(report: &Report<'_>, app: &str, part: &Part, nodes: &[usize]) -> f64 {
    let mut attributor = Attributor::new(report.profile);
    let mut is_own = |group: &&Group| match attributor.attribute(group).owner {
        Owner::Node(_, node) => nodes.contains(&node),
        Owner::Heading(_) => false,
    };
    let waits = part.waits.iter().map(|at| &report.profile.waits[*at].0);
    let mut delegated = waits.filter(|group| report.profile.is_read_by_another_thread(group));
    if delegated.any(|group| is_own(&group)) {
        return 0.0;
    }
    let groups = part.groups.iter().map(|at| &report.profile.groups[*at].0);
    let own = groups.filter(is_own);
    let stages: BTreeSet<(i32, i32)> = own
        .filter_map(|group| Some((group.stage?, group.attempt?)))
        .collect();
    let tasks = stages.iter().flat_map(|(stage, attempt)| {
        let id = StageAttempt::new(app, *stage, *attempt);
        report.tasks.get(&id).into_iter().flatten()
    });
    tasks.fold(0.0, |sum, task| sum + task.input_bytes.max(0) as f64)
}

/// Last values of a query's accumulators.
fn last_values(report: &Report<'_>, app: &str, part: &Part) -> HashMap<i64, i64> {
    let mut values = HashMap::new();
    for (stage, attempt) in attempts(report.profile, part) {
        let id = StageAttempt::new(app, stage, attempt);
        if let Some(known) = report.profile.stages.get(&id) {
            add_values(&mut values, known);
        }
    }
    values
}

/// The node of a kind that gets the rows of another one, through nodes that only pass them on.
pub(crate) fn above(plan: &Plan, at: usize, operator: &str) -> Option<usize> {
    let mut parent = plan.nodes.get(at)?.parent?;
    while plan.nodes.get(parent)?.operator == "InputAdapter" {
        parent = plan.nodes[parent].parent?;
    }
    (plan.nodes[parent].operator == operator).then_some(parent)
}

/// The scans of files in a plan, without those that filled a cache: they are in the plan of each query that reads it.
pub(crate) fn file_scans(plan: &Plan) -> impl Iterator<Item = &PlanNode> {
    let is_cached = |node: &PlanNode| {
        let above = std::iter::successors(node.parent, |at| plan.nodes.get(*at)?.parent);
        // No plan is deeper than it is large.
        let mut above = above.take(plan.nodes.len());
        above.any(|at| plan.nodes.get(at).is_some_and(reads_cache))
    };
    let scans = plan.nodes.iter().filter(|node| is_file_scan(node));
    scans.filter(move |node| !is_cached(node))
}

/// Whether a node reads rows that Spark has cached.
fn reads_cache(node: &PlanNode) -> bool {
    Operator::from_name(&node.operator).reads_cache
}

/// Whether a node reads files.
pub(crate) fn is_file_scan(node: &PlanNode) -> bool {
    let mut words = node.operator.split_whitespace();
    match words.next() {
        Some("Scan") => {
            words.next().is_some_and(|format| format != "ExistingRDD") && !reads_cache(node)
        }
        Some("BatchScan") => true,
        _ => false,
    }
}

/// Whether `table` is the name, the path or the end of the path of a node's table.
fn is_called(node: &PlanNode, table: &str) -> bool {
    let wanted = table.trim_end_matches('/');
    if wanted.is_empty() {
        return false;
    }
    table_name(node) == wanted
        || node.operator.split_whitespace().any(|word| {
            // `parquet` is the format.
            word == wanted && word.contains('.')
        })
        || has_path(&node.detail, wanted)
}

/// Whether the list of paths in the text of a scan contains a path or the end of one.
fn has_path(detail: &str, wanted: &str) -> bool {
    let Some((_, location)) = detail.split_once("Location: ") else {
        return false;
    };
    let Some((_, paths)) = location.split_once('[') else {
        return false;
    };
    let paths = paths.split(']').next().unwrap_or(paths);
    paths.split(", ").any(|path| {
        let path = path.trim_end_matches('/');
        path == wanted
            || path.strip_suffix(wanted).is_some_and(|rest| {
                rest.ends_with('/') || rest.ends_with(':') || wanted.starts_with('/')
            })
    })
}

/// The number of columns that a scan puts out, at least 1.
pub(crate) fn columns(detail: &str) -> usize {
    let list = detail.split_once('[').map_or("", |(_, rest)| rest);
    let list = list.split(']').next().unwrap_or(list);
    let shown = list.split(',').filter(|column| !column.trim().is_empty());
    let mut count = 0;
    for column in shown {
        // `... 5 more fields`
        let more = column.trim().strip_prefix("... ").and_then(|rest| {
            let number = rest.split(' ').next()?;
            number.parse::<usize>().ok()
        });
        count += more.unwrap_or(1);
    }
    count.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(operator: &str, detail: &str) -> PlanNode {
        PlanNode {
            id: 7,
            parent: None,
            operator: operator.to_owned(),
            detail: detail.to_owned(),
            codegen_stage: None,
            region: None,
            metrics: Vec::new(),
        }
    }

    #[test]
    fn a_table_is_called_by_its_name_its_path_or_the_end_of_that() {
        let files = scan(
            "Scan parquet ",
            "FileScan parquet [a#1L,b#2] Batched: true, Format: Parquet, Location: InMemoryFileIndex(1 \
             paths)[file:/data/tpch/lineitem.parquet], PartitionFilters: [], ReadSchema: struct<a:bigint,b:int>",
        );
        for table in [
            "lineitem",
            "lineitem.parquet",
            "tpch/lineitem.parquet",
            "/data/tpch/lineitem.parquet",
            "file:/data/tpch/lineitem.parquet",
            "file:/data/tpch/lineitem.parquet/",
        ] {
            assert!(is_called(&files, table), "{table}");
        }
        for table in [
            "",
            "/",
            "item",
            "item.parquet",
            "tpch",
            "orders",
            "a",
            "bigint",
            "parquet]",
        ] {
            assert!(!is_called(&files, table), "{table}");
        }
        let named = scan(
            "Scan parquet spark_catalog.default.sales",
            "FileScan parquet spark_catalog.default.sales[a#1] Batched: true, Location: InMemoryFileIndex(1 paths)[file:/w/sales]",
        );
        assert!(is_called(&named, "sales") && is_called(&named, "spark_catalog.default.sales"));
        assert!(!is_file_scan(&scan("Scan ExistingRDD", "")));
        assert!(!is_file_scan(&scan("Scan In-memory table sales", "")));
        // What fills a cache is in the plan of each query that reads it.
        let below = |parent, node: PlanNode| PlanNode {
            parent: Some(parent),
            ..node
        };
        let nodes = vec![
            scan("Union", ""),
            below(0, scan("Scan In-memory table sales", "")),
            below(1, scan("ColumnarToRow", "")),
            below(2, files.clone()),
            below(0, named.clone()),
        ];
        let plan = Plan {
            planned: nodes.len(),
            nodes,
        };
        let read: Vec<&str> = file_scans(&plan).map(|node| &*node.operator).collect();
        assert_eq!(read, [&*named.operator]);
        assert!(!is_file_scan(&scan("InMemoryTableScan", "")));
    }

    #[test]
    fn columns_are_counted_also_those_that_are_not_shown() {
        assert_eq!(columns("FileScan parquet [a#1,b#2L] Batched: true"), 2);
        assert_eq!(
            columns("FileScan csv [a#1,b#2,... 25 more fields] Batched"),
            27
        );
        assert_eq!(columns("FileScan parquet [] Batched: true"), 1);
        assert_eq!(columns(""), 1);
    }

    #[test]
    fn generated_code_reads_rows_of_a_cache_and_columns_of_files() {
        let million = |columns_ns| reading_ns(1e6, 4, columns_ns).map(|ns| (ns / 1e6).round());
        assert_eq!(million(None), [24.0, 36.0, 52.0]);
        assert_eq!(million(Some(0.0)), [36.0, 56.0, 92.0]);
        assert_eq!(million(Some(50e6)), [54.0, 86.0, 152.0]);
    }

    #[test]
    fn the_range_is_that_of_what_reading_cached_rows_takes() {
        // What remains at both ends of the range.
        let ends = |remaining: [f64; 3], least, most| {
            let scan = CachedScan { node: 1, remaining };
            let (low, high) = scan.range(least, most);
            [low, high].map(|factor| 1.0 - (1.0 - remaining[1]) * factor)
        };
        for (remaining, least, most, expected) in [
            ([0.1, 0.2, 0.6], 1.0, 1.0, [0.6, 0.1]),
            ([0.1, 0.2, 0.6], 0.5, 1.0, [0.8, 0.1]),
            // It is slower at one end, or most likely, or at both ends.
            ([0.5, 0.9, 2.0], 0.5, 1.0, [2.0, 0.5]),
            ([0.7, 1.1, 1.9], 0.5, 1.0, [1.9, 0.7]),
            ([1.1, 1.5, 2.0], 0.5, 1.2, [2.0, 1.1]),
        ] {
            let found = ends(remaining, least, most);
            for (found, expected) in found.into_iter().zip(expected) {
                assert!((found - expected).abs() < 1e-9, "{remaining:?}: {found}");
            }
        }
    }
}
