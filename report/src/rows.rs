//! How many rows operators get and output, and the cost of a row.

use std::collections::HashMap;

use unfuse_format::ExecutionId;
use unfuse_postprocess::{Operator, Plan, Profile, Stage, is_subquery};

use crate::model::{Cost, PerRow, Range};

/// Metrics with the number of rows that a node outputs, the best first.
const METRICS: [&str; 2] = ["number of output rows", "shuffle records written"];

/// Rows of each plan node; `None` if unknown.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Rows that it output.
    pub(super) out: Vec<Option<i64>>,
    /// Rows that it got.
    pub(super) got: Vec<Option<i64>>,
}

impl Rows {
    /// Computes the rows from the values of the stages' accumulators.
    pub(super) fn from_plan(plan: &Plan, values: &HashMap<i64, i64>) -> Self {
        let count = plan.nodes.len();
        let mut rows = Self {
            out: vec![None; count],
            got: vec![None; count],
        };
        // The sum of the inputs' output so far; none if the output of one is unknown.
        let mut inputs: Vec<Option<Option<i64>>> = vec![None; count];
        // Children come after their parent.
        for index in (0..count).rev() {
            let node = &plan.nodes[index];
            rows.got[index] = inputs[index].flatten();
            let metric = METRICS.iter().find_map(|name| {
                let ids = node.metrics.iter().filter(|(_, known)| known == name);
                ids.map(|(id, _)| *id)
                    .find_map(|id| values.get(&id).copied())
            });
            let kept = rows.got[index].filter(|_| Operator::from_name(&node.operator).keeps_rows);
            rows.out[index] = metric.or(kept);
            if let Some(parent) = node.parent
                && !is_subquery(&node.operator)
            {
                let input = &mut inputs[parent];
                *input = Some(match *input {
                    None => rows.out[index],
                    Some(sum) => sum.zip(rows.out[index]).map(|(a, b)| a.saturating_add(b)),
                });
            }
        }
        rows
    }
}

/// The values of the accumulators of each query's stages. They only grow, so the greatest value is the last one.
pub(super) fn values_of(profile: &Profile) -> HashMap<ExecutionId, HashMap<i64, i64>> {
    let mut values: HashMap<ExecutionId, HashMap<i64, i64>> = HashMap::new();
    for (id, stage) in &profile.stages {
        if let Some(execution) = stage.execution {
            let values = values
                .entry(ExecutionId::new(&id.app, execution))
                .or_default();
            add_values(values, stage);
        }
    }
    values
}

/// Adds the values of a stage's accumulators.
pub(super) fn add_values(values: &mut HashMap<i64, i64>, stage: &Stage) {
    for (id, value) in &stage.values {
        let known = values.entry(*id).or_insert(*value);
        *known = (*known).max(*value);
    }
}

/// The CPU time for each row; `None` if the number is unknown or 0. `range` are the bounds of a share of `whole`.
pub(super) fn per_row(own: Cost, range: Range, whole: Cost, rows: Option<i64>) -> Option<PerRow> {
    let rows = rows.filter(|rows| *rows > 0)? as f64;
    let whole = whole.cpu_ns as f64;
    let ns = own.cpu_ns as f64 / rows;
    Some(PerRow {
        ns,
        // Rounding can put the value outside the range.
        low: (range[0] * whole / rows).min(ns),
        high: (range[1] * whole / rows).max(ns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_costs_its_part_of_the_time() {
        let cost = |cpu_ns| Cost { cpu_ns, samples: 1 };
        let per_row = |rows| per_row(cost(600), [0.5, 0.7], cost(1000), rows);
        let found = per_row(Some(100)).expect("rows are known");
        assert_eq!((found.ns, found.low, found.high), (6.0, 5.0, 7.0));
        assert_eq!(
            (per_row(None), per_row(Some(0)), per_row(Some(-1))),
            (None, None, None)
        );
    }
}
