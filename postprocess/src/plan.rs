//! The plan of one execution, and finding generated code in it.

use std::collections::HashSet;

use unfuse_format::{Metric, PlanRow, RegionNode};

use crate::collect::{is_exchange, is_subquery};
use crate::operator::Operator;

/// A node of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanNode {
    /// Pre-order position. A node that adaptive planning removed after it ran has an id after the last one.
    pub id: i32,
    /// Index of the parent in [`Plan::nodes`].
    pub parent: Option<usize>,
    /// Name, such as `HashAggregate`.
    pub operator: String,
    /// The operator as the plan prints it.
    pub detail: String,
    /// Codegen stage it is fused into.
    pub codegen_stage: Option<i32>,
    /// Its region id in that stage.
    pub region: Option<i32>,
    /// Accumulator id and name of each of its metrics.
    pub metrics: Vec<(i64, String)>,
}

/// The last plan of an execution.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Nodes; a child comes after its parent.
    pub nodes: Vec<PlanNode>,
    /// The first `planned` nodes are of the plan itself; later ones were re-planned away.
    pub planned: usize,
}

impl Plan {
    /// Builds a plan from the rows of its highest version.
    pub(crate) fn from_rows(rows: Vec<PlanRow>) -> Self {
        let latest = rows.iter().map(|row| row.version).max();
        let mut rows: Vec<_> = rows
            .into_iter()
            .filter(|row| Some(row.version) == latest)
            .collect();
        rows.sort_by_key(|row| row.node);
        rows.dedup_by_key(|row| row.node);
        let ids: Vec<i32> = rows.iter().map(|row| row.node).collect();
        let nodes: Vec<_> = rows
            .into_iter()
            .enumerate()
            .map(|(index, row)| PlanNode {
                id: row.node,
                // In a damaged profile, parents may come after their children, or form a cycle.
                parent: row
                    .parent
                    .and_then(|parent| ids[..index].binary_search(&parent).ok()),
                operator: row.operator.trim().to_owned(),
                detail: row.detail.trim().to_owned(),
                codegen_stage: row.codegen_stage,
                region: row.region,
                metrics: row
                    .metrics
                    .into_iter()
                    .map(|Metric { id, name, .. }| (id, name))
                    .collect(),
            })
            .collect();
        Self {
            planned: nodes.len(),
            nodes,
        }
    }

    /// Whether it scans files that are not in a file system of this machine, according to the addresses in its scans.
    pub(crate) fn reads_other_machines(&self) -> bool {
        self.nodes.iter().any(|node| {
            let location = node.detail.split_once("Location: ");
            let paths = location.and_then(|(_, rest)| rest.split_once('['));
            let scheme = paths.and_then(|(_, rest)| rest.split_once(':'));
            scheme.is_some_and(|(scheme, _)| {
                scheme != "file" && scheme.chars().all(|c| c.is_ascii_alphanumeric())
            })
        })
    }

    /// The plan nodes of one generated codegen stage, by region id. Ids of codegen stages repeat in an execution
    /// (subqueries have their own count), so the subtree whose operators match best is taken. If none matches, the
    /// stage was re-planned away, and new nodes are added for it.
    pub(crate) fn nodes_of(&mut self, codegen_stage: i32, generated: &[RegionNode]) -> Vec<usize> {
        let best = (0..self.nodes.len())
            .filter(|index| {
                self.nodes[*index].codegen_stage == Some(codegen_stage)
                    && self.nodes[*index].region == Some(0)
            })
            .map(|root| self.stage_under(root, codegen_stage, generated.len()))
            .map(|nodes| (self.likeness(&nodes, generated), nodes))
            .max_by_key(|(likeness, _)| *likeness);
        match best {
            Some((likeness, nodes)) if likeness > 0 && nodes.len() == generated.len() => nodes,
            _ => self.detach(codegen_stage, generated),
        }
    }

    /// Nodes of a codegen stage in order of region ids: they follow its root in pre-order.
    fn stage_under(&self, root: usize, codegen_stage: i32, most: usize) -> Vec<usize> {
        let mut nodes = Vec::new();
        for index in root..self.nodes.len() {
            let node = &self.nodes[index];
            let another =
                index > root && node.region == Some(0) && node.codegen_stage == Some(codegen_stage);
            if another || nodes.len() >= most {
                break;
            }
            if node.codegen_stage == Some(codegen_stage) && node.region == Some(nodes.len() as i32)
            {
                nodes.push(index);
            }
        }
        nodes
    }

    /// How well the operators match: 1 for an equal name, 10 for an equal text.
    fn likeness(&self, nodes: &[usize], generated: &[RegionNode]) -> usize {
        // WholeStageCodegen itself is in every candidate.
        nodes
            .iter()
            .zip(generated)
            .skip(1)
            .map(|(index, other)| {
                let node = &self.nodes[*index];
                usize::from(node.operator == other.operator.trim())
                    + 10 * usize::from(node.detail == other.detail.trim())
            })
            .sum()
    }

    fn detach(&mut self, codegen_stage: i32, generated: &[RegionNode]) -> Vec<usize> {
        let first = self.nodes.len();
        let ids = self.nodes.iter().map(|node| node.id);
        let after_last = ids.max().map_or(0, |last| last.saturating_add(1));
        for (position, region) in generated.iter().enumerate() {
            self.nodes.push(PlanNode {
                id: after_last.saturating_add(position as i32),
                parent: position.checked_sub(1).map(|before| first + before),
                operator: region.operator.trim().to_owned(),
                detail: region.detail.trim().to_owned(),
                codegen_stage: Some(codegen_stage),
                region: Some(region.region),
                metrics: Vec::new(),
            });
        }
        (first..self.nodes.len()).collect()
    }

    /// The nodes from the root down to `index`, without those that only pass rows on.
    pub fn path(&self, index: usize) -> Vec<usize> {
        let above = |index: &usize| self.nodes.get(*index).and_then(|node| node.parent);
        let nodes = std::iter::successors(Some(index), above);
        let works = |node: &usize| {
            *node == index || !Operator::from_name(&self.nodes[*node].operator).passes
        };
        let mut path: Vec<usize> = nodes.filter(works).collect();
        path.reverse();
        path
    }

    /// Nodes of the same stage below `index`, nearest first, down to the exchanges that it reads.
    pub fn below(&self, index: usize) -> Vec<usize> {
        let mut found = vec![index];
        let mut next = 0;
        while let Some(parent) = found.get(next).copied() {
            next += 1;
            if parent != index && is_exchange(&self.nodes[parent].operator) {
                continue;
            }
            // Children come after their parent. Subqueries run in stages of their own.
            found.extend((parent + 1..self.nodes.len()).filter(|c| {
                self.nodes[*c].parent == Some(parent) && !is_subquery(&self.nodes[*c].operator)
            }));
        }
        found.remove(0);
        found
    }

    /// `index` and the nodes of the same stage above it, nearest first, up to the exchange that it writes.
    pub fn above(&self, index: usize) -> Vec<usize> {
        let above = |at: &usize| {
            let node = &self.nodes[*at];
            node.parent.filter(|_| !is_subquery(&node.operator))
        };
        let nodes = std::iter::successors(Some(index), above);
        let is_own = |at: &usize| *at == index || !is_exchange(&self.nodes[*at].operator);
        nodes.take_while(is_own).collect()
    }

    /// Whether a metric of the node with this name is among the accumulators.
    pub(crate) fn updated(&self, index: usize, accumulators: &HashSet<i64>, name: &str) -> bool {
        self.nodes[index]
            .metrics
            .iter()
            .any(|(id, metric)| accumulators.contains(id) && metric.contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(
        node: i32,
        parent: Option<i32>,
        operator: &str,
        stage: Option<i32>,
        region: Option<i32>,
    ) -> PlanRow {
        PlanRow {
            node,
            parent,
            operator: operator.into(),
            detail: format!("{operator}#{node}"),
            codegen_stage: stage,
            region,
            ..PlanRow::default()
        }
    }

    fn generated(names: &[(&str, &str)]) -> Vec<RegionNode> {
        names
            .iter()
            .enumerate()
            .map(|(region, (operator, detail))| RegionNode {
                region: region as i32,
                operator: (*operator).into(),
                detail: (*detail).into(),
            })
            .collect()
    }

    /// A query with a subquery: both have a codegen stage 1.
    fn plan() -> Plan {
        Plan::from_rows(vec![
            row(0, None, "WholeStageCodegen (1)", Some(1), Some(0)),
            row(1, Some(0), "Filter", Some(1), Some(1)),
            row(2, Some(1), "Scan", None, None),
            row(3, Some(1), "Subquery", None, None),
            row(4, Some(3), "WholeStageCodegen (1)", Some(1), Some(0)),
            row(5, Some(4), "Filter", Some(1), Some(1)),
        ])
    }

    #[test]
    fn the_addresses_of_scans_say_whether_other_machines_are_read() {
        let scan = |paths| format!("FileScan parquet [a#1L] Location: X(1 paths)[{paths}]");
        let reads_others = |detail: &str| {
            let node = PlanRow {
                detail: detail.to_owned(),
                ..row(0, None, "Scan parquet", None, None)
            };
            Plan::from_rows(vec![node]).reads_other_machines()
        };
        assert!(!reads_others(&scan("file:/data/a.parquet")));
        assert!(reads_others(&scan("s3a://bucket/a.parquet")));
        assert!(reads_others(&scan("hdfs://host/very/lo...")));
        assert!(!reads_others(&scan("")));
        assert!(!reads_others("Filter (a#1 = s3a://x)"));
    }

    #[test]
    fn stages_with_one_id_are_told_apart_by_their_operators() {
        let mut plan = plan();
        let wsc = ("WholeStageCodegen (1)", "");
        assert_eq!(
            plan.nodes_of(1, &generated(&[wsc, ("Filter", "Filter#5")])),
            [4, 5]
        );
        assert_eq!(
            plan.nodes_of(1, &generated(&[wsc, ("Filter", "Filter#1")])),
            [0, 1]
        );
    }

    #[test]
    fn a_stage_that_left_the_plan_gets_nodes_of_its_own() {
        let mut plan = plan();
        let nodes = plan.nodes_of(
            7,
            &generated(&[("WholeStageCodegen (7)", ""), ("Sort", "Sort [a]")]),
        );
        assert_eq!(nodes, [6, 7]);
        assert_eq!(
            (plan.nodes[7].id, plan.nodes[7].operator.as_str()),
            (7, "Sort")
        );
    }

    #[test]
    fn the_highest_version_counts() {
        let old = PlanRow {
            version: 1,
            ..row(0, None, "Old", None, None)
        };
        let new = PlanRow {
            version: 2,
            ..row(0, None, "New", None, None)
        };
        assert_eq!(Plan::from_rows(vec![old, new]).nodes[0].operator, "New");
    }

    #[test]
    fn a_parent_comes_before_its_children_or_there_is_none() {
        let plan = Plan::from_rows(vec![
            row(0, Some(1), "A", None, None),
            row(1, Some(1), "B", None, None),
            row(2, Some(1), "C", None, None),
        ]);
        let parents: Vec<_> = plan.nodes.iter().map(|node| node.parent).collect();
        assert_eq!(parents, [None, None, Some(1)]);
    }
}
