//! Rows that tell of the same thing at different times, as one: a stage attempt has a row when it is submitted and one
//! when it completes, a SQL execution one when it starts, at each re-planning and when it ends, a process one
//! every few seconds.

use std::collections::{BTreeMap, HashMap};

use crate::{ExecutionId, ExecutionRow, ProcessRow, StageAttempt, StageRow};

/// The last row of each process, in the order in which they began.
pub fn latest_processes(rows: Vec<ProcessRow>) -> Vec<ProcessRow> {
    let mut by_process: HashMap<(String, u32, i64), ProcessRow> = HashMap::new();
    for row in rows {
        let known = by_process
            .entry((row.host.clone(), row.pid, row.start_ns))
            .or_default();
        if row.end_ns >= known.end_ns {
            *known = row;
        }
    }
    let mut processes: Vec<_> = by_process.into_values().collect();
    processes.sort_by_key(|process| process.start_ns);
    processes
}

/// One row for each stage attempt. Of a column that several rows have, the later row counts; accumulators are those of all.
pub fn merge_stages(rows: Vec<StageRow>) -> BTreeMap<StageAttempt, StageRow> {
    let mut merged: BTreeMap<StageAttempt, StageRow> = BTreeMap::new();
    for row in rows {
        let known = merged.entry(row.id()).or_default();
        let StageRow {
            app,
            stage,
            attempt,
            execution,
            name,
            tasks,
            submitted_ms,
            completed_ms,
            failure,
            scopes,
            rdds,
            packages,
            accumulators,
            parents,
            pool,
            pool_weight,
            user,
        } = row;
        (known.app, known.stage, known.attempt) = (app, stage, attempt);
        known.tasks = known.tasks.max(tasks);
        known.accumulators.extend(accumulators);
        replace(&mut known.execution, execution);
        replace(&mut known.submitted_ms, submitted_ms);
        replace(&mut known.completed_ms, completed_ms);
        replace(&mut known.failure, failure);
        replace(&mut known.pool_weight, pool_weight);
        for (known, new) in [
            (&mut known.name, name),
            (&mut known.pool, pool),
            (&mut known.user, user),
        ] {
            if !new.is_empty() {
                *known = new;
            }
        }
        for (known, new) in [
            (&mut known.scopes, scopes),
            (&mut known.rdds, rdds),
            (&mut known.packages, packages),
        ] {
            if !new.is_empty() {
                *known = new;
            }
        }
        if !parents.is_empty() {
            known.parents = parents;
        }
    }
    merged
}

/// One row for each SQL execution. It started at its earliest start, as each adaptive re-planning writes a row with a time of
/// its own; of other columns the later row counts.
pub fn merge_executions(rows: Vec<ExecutionRow>) -> BTreeMap<ExecutionId, ExecutionRow> {
    let mut merged: BTreeMap<ExecutionId, ExecutionRow> = BTreeMap::new();
    for row in rows {
        let known = merged.entry(row.id()).or_default();
        let ExecutionRow {
            app,
            execution,
            description,
            started_ms,
            ended_ms,
            error,
        } = row;
        (known.app, known.execution) = (app, execution);
        if !description.is_empty() {
            known.description = description;
        }
        known.started_ms = [known.started_ms, started_ms].into_iter().flatten().min();
        replace(&mut known.ended_ms, ended_ms);
        replace(&mut known.error, error);
    }
    merged
}

/// Takes a later value, if there is one.
fn replace<T>(known: &mut Option<T>, later: Option<T>) {
    if later.is_some() {
        *known = later;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Accumulator;

    #[test]
    fn a_stage_has_what_its_submission_and_its_completion_say() {
        let submitted = StageRow {
            stage: 3,
            tasks: 7,
            name: "count at Job.scala:1".to_owned(),
            submitted_ms: Some(10),
            parents: vec![1, 2],
            ..StageRow::default()
        };
        let completed = StageRow {
            stage: 3,
            completed_ms: Some(20),
            accumulators: vec![Accumulator::default()],
            ..StageRow::default()
        };
        let other = StageRow {
            stage: 3,
            attempt: 1,
            ..StageRow::default()
        };
        let merged = merge_stages(vec![submitted.clone(), other, completed.clone()]);
        assert_eq!(merged.len(), 2);
        let expected = StageRow {
            completed_ms: completed.completed_ms,
            accumulators: completed.accumulators,
            ..submitted
        };
        assert_eq!(merged[&StageAttempt::new("", 3, 0)], expected);
    }

    #[test]
    fn an_execution_starts_before_its_re_planning() {
        let row = |started_ms, ended_ms| ExecutionRow {
            started_ms,
            ended_ms,
            ..ExecutionRow::default()
        };
        let rows = vec![
            row(Some(10), None),
            row(Some(15), None),
            row(None, Some(20)),
        ];
        let merged = merge_executions(rows);
        assert_eq!(merged[&ExecutionId::default()], row(Some(10), Some(20)));
    }
}
