//! Cost of operators over all runs of their query.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use unfuse_postprocess::Evidence;

use crate::model::{Cost, Evidence as PlaceInPage, HotLine, PerRow, QuerySummary};
use crate::rows::per_row;

/// Cost of a plan node in one run.
#[derive(Debug, Clone)]
pub(crate) struct NodeCost {
    /// Index in the plan.
    pub(crate) index: usize,
    /// Number in the plan.
    pub(crate) id: i32,
    pub(crate) operator: String,
    pub(crate) cost: Cost,
    pub(crate) evidence: Evidence,
    pub(crate) rows: Option<i64>,
    pub(crate) rows_in: Option<i64>,
    pub(crate) hot_lines: Vec<HotLine>,
}

/// An operator over all runs.
#[derive(Debug, Clone)]
pub(super) struct OperatorCost {
    /// Position of the query's family.
    pub(super) family: usize,
    /// Position of the run with the most CPU time, and the node's index in its plan.
    pub(super) place: (usize, usize),
    /// Number in the plan.
    pub(super) id: i32,
    pub(super) operator: String,
    pub(super) cost: Cost,
    pub(super) evidence: Evidence,
    /// The sum over the runs; none if a run does not have the number.
    pub(super) rows: Option<i64>,
    pub(super) rows_in: Option<i64>,
    /// The line with the most CPU time.
    pub(super) hot_line: Option<HotLine>,
    hot_lines: BTreeMap<(String, Option<String>), HotLine>,
}

impl OperatorCost {
    /// CPU time for each row that it got or, if none, output; `whole` is the whole of its share.
    pub(super) fn per_row(&self, whole: Cost) -> Option<(PerRow, &'static str)> {
        let range = self.evidence.bounds(whole.cpu_ns, whole.samples).into();
        let per_row = |rows| per_row(self.cost, range, whole, rows);
        let input = per_row(self.rows_in).map(|cost| (cost, "input"));
        input.or(per_row(self.rows).map(|cost| (cost, "output")))
    }

    /// Its place in the page.
    pub(super) fn evidence_link(&self) -> PlaceInPage {
        PlaceInPage {
            query: Some(self.place.0),
            tab: "plan".to_owned(),
            node: Some(self.place.1),
        }
    }

    fn add(&mut self, node: NodeCost) {
        self.cost.add(node.cost);
        self.evidence.add_all(node.evidence);
        let sum = |a: Option<i64>, b: Option<i64>| a.zip(b).map(|(a, b)| a.saturating_add(b));
        self.rows = sum(self.rows, node.rows);
        self.rows_in = sum(self.rows_in, node.rows_in);
        for line in node.hot_lines {
            let key = (line.place.clone(), line.hash.clone());
            match self.hot_lines.get_mut(&key) {
                Some(known) => known.cost.add(line.cost),
                None => {
                    self.hot_lines.insert(key, line);
                }
            }
        }
    }
}

/// The operators with samples, most CPU time first. `runs` are in the order of `queries`.
pub(super) fn operators(queries: &[QuerySummary], runs: Vec<Vec<NodeCost>>) -> Vec<OperatorCost> {
    let mut operators: BTreeMap<(usize, i32, String), OperatorCost> = BTreeMap::new();
    for (index, nodes) in runs.into_iter().enumerate() {
        let Some(family) = queries.get(index).and_then(|query| query.family) else {
            continue;
        };
        for node in nodes {
            let key = (family, node.id, node.operator.clone());
            let operator = operators.entry(key).or_insert_with(|| OperatorCost {
                family,
                // Queries are sorted by CPU time.
                place: (index, node.index),
                id: node.id,
                operator: node.operator.clone(),
                cost: Cost::default(),
                evidence: Evidence::default(),
                rows: Some(0),
                rows_in: Some(0),
                hot_line: None,
                hot_lines: BTreeMap::new(),
            });
            operator.add(node);
        }
    }
    let mut operators: Vec<OperatorCost> = operators.into_values().collect();
    operators.retain(|operator| operator.cost.cpu_ns > 0);
    operators.sort_by_key(|operator| Reverse(operator.cost.cpu_ns));
    for operator in &mut operators {
        let lines = std::mem::take(&mut operator.hot_lines).into_values();
        operator.hot_line = lines.max_by_key(|line| line.cost.cpu_ns);
    }
    operators
}
