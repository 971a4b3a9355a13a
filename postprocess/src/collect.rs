//! Who collects the rows that the tasks of a stage pack for the driver: a broadcast, a subquery or the result.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::plan::Plan;

/// Who collects the rows of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Collector {
    /// A broadcast or a subquery: index of its plan node.
    Node(usize),
    /// The program that runs the query.
    Result,
}

/// The collector above the nodes that a stage updated, and whether all of them agree; `None` without such a node.
pub(crate) fn collector(plan: &Plan, accumulators: &HashSet<i64>) -> Option<(Collector, bool)> {
    let (mut votes, mut by_shuffles) = (BTreeMap::new(), BTreeMap::new());
    let collectors = nearest(plan, &originals(plan));
    for index in (0..plan.nodes.len()).filter(|index| plan.updated(*index, accumulators, "")) {
        // The readers of a reused shuffle update the metrics of the original, which may be anywhere in the plan.
        let votes = match is_shuffle(plan, index) {
            true => &mut by_shuffles,
            false => &mut votes,
        };
        if let Some(collector) = collectors[index] {
            *votes.entry(collector).or_insert(0u32) += 1;
        }
    }
    let votes = if votes.is_empty() { by_shuffles } else { votes };
    // Of equal counts, the first one in the plan.
    let (first, _) = votes.iter().rev().max_by_key(|(_, votes)| **votes)?;
    Some((*first, votes.len() == 1))
}

/// The nearest collector above each node, or the one that this reuses; `None` where a shuffle is between them and takes
/// the rows.
fn nearest(plan: &Plan, originals: &HashMap<(&str, &str), usize>) -> Vec<Option<Collector>> {
    let mut found: Vec<Option<Collector>> = Vec::with_capacity(plan.nodes.len());
    // Children come after their parent.
    for node in &plan.nodes {
        found.push(match node.parent {
            None => Some(Collector::Result),
            Some(parent) if collects(&plan.nodes[parent].operator) => {
                let original = originals.get(&text(plan, parent)).copied();
                Some(Collector::Node(original.unwrap_or(parent)))
            }
            Some(parent) if is_shuffle(plan, parent) => None,
            Some(parent) => found[parent],
        });
    }
    found
}

/// Plans repeat a subquery where it is reused. By its text, the first node that is not below a reuse.
fn originals(plan: &Plan) -> HashMap<(&str, &str), usize> {
    let is_reused = |parent: usize| plan.nodes[parent].operator.starts_with("Reused");
    let mut found = HashMap::new();
    for index in (0..plan.nodes.len()).filter(|index| collects(&plan.nodes[*index].operator)) {
        if !plan.nodes[index].parent.is_some_and(is_reused) {
            found.entry(text(plan, index)).or_insert(index);
        }
    }
    found
}

fn text(plan: &Plan, index: usize) -> (&str, &str) {
    let node = &plan.nodes[index];
    (&node.operator, &node.detail)
}

fn collects(operator: &str) -> bool {
    operator.contains("BroadcastExchange") || is_subquery(operator)
}

fn is_shuffle(plan: &Plan, index: usize) -> bool {
    let operator = plan.nodes[index].operator.as_str();
    is_exchange(operator) && !operator.contains("BroadcastExchange")
}

/// Whether an operator moves rows to another stage, or to all of its tasks.
pub fn is_exchange(operator: &str) -> bool {
    operator.contains("Exchange")
}

/// Whether an operator is a subquery, which Spark lists after the children of the operator that uses it.
pub fn is_subquery(operator: &str) -> bool {
    operator.starts_with("Subquery") || operator.starts_with("ReusedSubquery")
}

#[cfg(test)]
mod tests {
    use unfuse_format::{Metric, PlanRow};

    use super::*;
    use crate::plan::PlanNode;

    /// A node with one metric, whose accumulator has the node's number.
    fn row(node: i32, parent: Option<i32>, operator: &str) -> PlanRow {
        PlanRow {
            node,
            parent,
            operator: operator.into(),
            detail: operator.into(),
            metrics: vec![Metric {
                id: i64::from(node),
                name: "number of output rows".into(),
                ..Metric::default()
            }],
            ..PlanRow::default()
        }
    }

    fn plan() -> Plan {
        Plan::from_rows(vec![
            row(0, None, "AdaptiveSparkPlan"),
            row(1, Some(0), "BroadcastHashJoin"),
            row(2, Some(1), "Exchange"),
            row(3, Some(2), "Scan a"),
            row(4, Some(1), "BroadcastExchange"),
            row(5, Some(4), "Filter"),
            row(6, Some(5), "Scan b"),
            row(7, Some(5), "Subquery one"),
            row(8, Some(7), "HashAggregate"),
            row(9, Some(5), "ReusedSubquery"),
            row(10, Some(9), "Subquery one"),
        ])
    }

    fn collector(updated: &[i64]) -> Option<(Collector, bool)> {
        super::collector(&plan(), &updated.iter().copied().collect())
    }

    #[test]
    fn the_node_above_those_that_ran_collects() {
        assert_eq!(collector(&[5, 6]), Some((Collector::Node(4), true)));
        assert_eq!(collector(&[8]), Some((Collector::Node(7), true)));
        assert_eq!(collector(&[1]), Some((Collector::Result, true)));
        assert_eq!(collector(&[2]), Some((Collector::Result, true)));
    }

    #[test]
    fn what_nothing_or_several_things_tell_is_not_sure() {
        assert_eq!(collector(&[]), None);
        assert_eq!(collector(&[3]), None, "the shuffle takes these rows");
        assert_eq!(collector(&[1, 5, 6]), Some((Collector::Node(4), false)));
    }

    #[test]
    fn readers_of_a_reused_shuffle_are_told_by_the_rest() {
        assert_eq!(collector(&[2, 8]), Some((Collector::Node(7), true)));
    }

    #[test]
    fn a_reused_subquery_is_the_one_that_ran() {
        let mut plan = plan();
        // The plan repeats its aggregation.
        plan.nodes.push(PlanNode {
            parent: Some(10),
            ..plan.nodes[8].clone()
        });
        let collector = super::collector(&plan, &HashSet::from([8]));
        assert_eq!(collector, Some((Collector::Node(7), true)));
    }
}
