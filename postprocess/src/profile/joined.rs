//! Stages, executions, plans and generated sources, each merged from its rows.

use std::collections::{BTreeMap, HashMap};

use unfuse_format::{
    Accumulator, CodegenRow, ExecutionId, ExecutionRow, PlanRow, SourceRow, StageAttempt, StageRow,
    merge_executions, merge_stages,
};

use super::{Execution, Stage};
use crate::plan::Plan;

pub(super) fn stages(rows: Vec<StageRow>) -> HashMap<StageAttempt, Stage> {
    let merged = merge_stages(rows).into_iter();
    merged.map(|(id, row)| (id, Stage::from(row))).collect()
}

impl From<StageRow> for Stage {
    fn from(row: StageRow) -> Self {
        let number = |a: &Accumulator| Some((a.id, a.value.parse().ok()?));
        Self {
            execution: row.execution,
            accumulators: row.accumulators.iter().map(|a| a.id).collect(),
            values: row.accumulators.iter().filter_map(number).collect(),
            name: row.name,
            tasks: row.tasks,
            submitted_ms: row.submitted_ms,
            completed_ms: row.completed_ms,
            failure: row.failure,
        }
    }
}

pub(super) fn executions(rows: Vec<ExecutionRow>) -> BTreeMap<ExecutionId, Execution> {
    let executions = merge_executions(rows).into_iter().map(|(id, row)| {
        let execution = Execution {
            description: row.description,
            started_ms: row.started_ms,
            ended_ms: row.ended_ms,
            error: row.error,
        };
        (id, execution)
    });
    executions.collect()
}

pub(super) fn plans(rows: Vec<PlanRow>) -> HashMap<ExecutionId, Plan> {
    let mut by_execution: HashMap<ExecutionId, Vec<PlanRow>> = HashMap::new();
    for row in rows {
        by_execution
            .entry(ExecutionId::new(&row.app, row.execution))
            .or_default()
            .push(row);
    }
    by_execution
        .into_iter()
        .map(|(key, rows)| (key, Plan::from_rows(rows)))
        .collect()
}

pub(super) fn generated(
    rows: Vec<CodegenRow>,
    plans: &mut HashMap<ExecutionId, Plan>,
) -> HashMap<ExecutionId, HashMap<String, Vec<usize>>> {
    let mut generated: HashMap<ExecutionId, HashMap<String, Vec<usize>>> = HashMap::new();
    for row in rows {
        let Some(execution) = row.execution else {
            continue;
        };
        let key = ExecutionId::new(row.app, execution);
        let texts = generated.entry(key.clone()).or_default();
        texts.entry(row.hash).or_insert_with(|| {
            plans
                .entry(key)
                .or_default()
                .nodes_of(row.codegen_stage, &row.nodes)
        });
    }
    generated
}

/// Gives each text that the second compiler made of a body the operators of that body: the driver reports them only
/// under the first text's hash. There are two compilers, so a body has at most one other text.
pub(super) fn share_bodies(
    sources: &[SourceRow],
    generated: &mut HashMap<ExecutionId, HashMap<String, Vec<usize>>>,
) {
    let others: HashMap<(&str, &str), &str> = sources
        .iter()
        .filter(|row| !row.body.is_empty())
        .map(|row| ((row.app.as_str(), row.body.as_str()), row.hash.as_str()))
        .collect();
    if others.is_empty() {
        return;
    }
    for (ExecutionId { app, .. }, texts) in generated {
        let shared: Vec<(String, Vec<usize>)> = texts
            .iter()
            .filter_map(|(body, nodes)| {
                let other = others.get(&(app.as_str(), body.as_str()))?;
                Some(((*other).to_owned(), nodes.clone()))
            })
            .collect();
        texts.extend(shared);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_the_other_compiler_has_the_operators_of_its_body() {
        let source = |app: &str, hash: &str, body: &str| SourceRow {
            app: app.to_owned(),
            hash: hash.to_owned(),
            body: body.to_owned(),
            ..SourceRow::default()
        };
        let texts = HashMap::from([("b0d1".to_owned(), vec![3, 1])]);
        let execution = |app: &str| ExecutionId::new(app, 7);
        let mut generated = HashMap::from([
            (execution("app"), texts.clone()),
            (execution("other"), texts),
        ]);
        let sources = [source("app", "b0d1", ""), source("app", "0123", "b0d1")];
        share_bodies(&sources, &mut generated);
        let of = |app: &str| generated[&execution(app)].get("0123").cloned();
        assert_eq!(of("app"), Some(vec![3, 1]));
        assert_eq!(of("other"), None, "of another application");
    }
}
