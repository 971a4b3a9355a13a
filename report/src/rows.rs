//! How many rows operators put out and get, and what a row costs.

use std::collections::HashMap;

use unfuse_format::ExecutionId;
use unfuse_postprocess::{Operator, Plan, Profile, Stage, is_subquery};

use crate::model::{Cost, PerRow, Range};

/// Metrics that say how many rows a node puts out, the best first.
const METRICS: [&str; 2] = ["number of output rows", "shuffle records written"];

/// Rows of each plan node.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// That it put out.
    pub(super) out: Vec<Option<i64>>,
    /// That it got.
    pub(super) got: Vec<Option<i64>>,
}

impl Rows {
    /// By the values of the stages' accumulators.
    pub(super) fn of(plan: &Plan, values: &HashMap<i64, i64>) -> Self {
        let count = plan.nodes.len();
        let mut rows = Self {
            out: vec![None; count],
            got: vec![None; count],
        };
        // What the inputs put out so far; none where one of them does not say.
        let mut inputs: Vec<Option<Option<i64>>> = vec![None; count];
        // Children come after their parent.
        for at in (0..count).rev() {
            let node = &plan.nodes[at];
            rows.got[at] = inputs[at].flatten();
            let metric = METRICS.iter().find_map(|name| {
                let ids = node.metrics.iter().filter(|(_, known)| known == name);
                ids.map(|(id, _)| *id)
                    .find_map(|id| values.get(&id).copied())
            });
            let kept = rows.got[at].filter(|_| Operator::of(&node.operator).keeps_rows);
            rows.out[at] = metric.or(kept);
            if let Some(parent) = node.parent
                && !is_subquery(&node.operator)
            {
                let input = &mut inputs[parent];
                *input = Some(match *input {
                    None => rows.out[at],
                    Some(sum) => sum.zip(rows.out[at]).map(|(a, b)| a.saturating_add(b)),
                });
            }
        }
        rows
    }
}

/// The values of the accumulators of each query's stages. They only grow, so the greatest value is the last.
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

/// The CPU time of each of so many rows; none of unknown rows, or none. The range is of a share of `whole`.
pub(super) fn per_row(own: Cost, range: Range, whole: Cost, rows: Option<i64>) -> Option<PerRow> {
    let rows = rows.filter(|rows| *rows > 0)? as f64;
    let whole = whole.cpu_ns as f64;
    let ns = own.cpu_ns as f64 / rows;
    Some(PerRow {
        ns,
        // Rounding may leave the value out at either end.
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
