//! Plans: their nodes, and which of them are fused into which generated loop.

use unfuse_eventlog::PlanNode;
use unfuse_format::{Metric, PlanRow};
use unfuse_postprocess::is_subquery;

/// The codegen stage that a node belongs to.
#[derive(Clone, Copy)]
struct Fused {
    /// Its number.
    stage: i32,
    /// Position of its node `WholeStageCodegen (N)`.
    root: usize,
}

/// A row for each node; `of` has what they share.
pub(crate) fn rows(of: &PlanRow, nodes: Vec<PlanNode>) -> Vec<PlanRow> {
    // The codegen stages of the nodes before, and how many regions each has given to its nodes.
    let mut fused: Vec<Option<Fused>> = Vec::new();
    let mut regions = vec![0; nodes.len()];
    let mut rows: Vec<PlanRow> = Vec::new();
    for (at, node) in nodes.into_iter().enumerate() {
        let outer = node
            .parent
            .filter(|parent| passes_on(&rows[*parent].operator) && !is_subquery(&node.name))
            .and_then(|parent| fused[parent]);
        let own = codegen_stage(&node.name).map(|stage| Fused { stage, root: at });
        let stage = own.or(outer);
        let region = stage.map(|stage| {
            let region = regions[stage.root];
            regions[stage.root] += 1;
            region
        });
        fused.push(stage);
        let metrics = node.metrics.into_iter().map(|metric| Metric {
            id: metric.id,
            name: metric.name,
            kind: metric.kind,
        });
        let number = |at: usize| i32::try_from(at).unwrap_or(i32::MAX);
        rows.push(PlanRow {
            node: number(at),
            parent: node.parent.map(number),
            operator: node.name,
            detail: node.detail,
            codegen_stage: stage.map(|stage| stage.stage),
            region,
            metrics: metrics.collect(),
            ..of.clone()
        });
    }
    rows
}

/// Whether a node's children are in the same generated loop.
fn passes_on(operator: &str) -> bool {
    operator != "InputAdapter"
}

/// The number in `WholeStageCodegen (2)`.
fn codegen_stage(operator: &str) -> Option<i32> {
    operator
        .strip_prefix("WholeStageCodegen (")?
        .strip_suffix(')')?
        .parse()
        .ok()
}
