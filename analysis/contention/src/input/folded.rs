//! Operators of stages from folded stacks, as any profiler writes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;

use crate::{OperatorShare, QueryId, StageId, Tables};

/// Maximum number of characters of a line that an error shows.
const SHOWN: usize = 80;

/// Why folded stacks cannot be used.
#[derive(Debug, Error)]
pub enum FoldedError {
    /// A line is no folded stack.
    #[error(
        "line {line}: {text:?} is no folded stack: expected frames with ; between them, a space, and a number"
    )]
    Line {
        /// Its number, from 1.
        line: usize,
        /// Its begin.
        text: String,
    },
    /// No stack belongs to a stage of the tables.
    #[error("no stack begins with `query NAME stage NUMBER` or `stage NUMBER` of a known stage")]
    NoStage,
}

/// Replaces the shares of operators by those of folded stacks. Such a stack is a line: frames with `;` between them, a space,
/// and a weight. Its first frame ends with `query NAME stage NUMBER`, or with `stage NUMBER` where only one query has such a
/// stage; all attempts of the stage get its operators. The last frame counts as the operator. Returns the weight of the
/// stacks that belong to no known stage, as a part of all (0 to 1).
///
/// # Errors
/// If a line is no folded stack, or no stack belongs to a known stage.
pub fn set_operators(tables: &mut Tables, folded: &str) -> Result<f64, FoldedError> {
    let stages = Stages::new(tables);
    let mut sums: BTreeMap<&[StageId], BTreeMap<&str, f64>> = BTreeMap::new();
    let (mut all, mut known) = (0.0, 0.0);
    for (index, line) in folded.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let (stack, weight) = parse(line).ok_or_else(|| FoldedError::Line {
            line: index + 1,
            text: line.chars().take(SHOWN).collect(),
        })?;
        all += weight;
        let Some((root, frames)) = stack.split_once(';') else {
            continue;
        };
        let of_stage = stages.find(root);
        if of_stage.is_empty() {
            continue;
        }
        known += weight;
        let operator = frames.rsplit(';').next().unwrap_or(frames);
        *sums
            .entry(of_stage)
            .or_default()
            .entry(operator)
            .or_default() += weight;
    }
    if known <= 0.0 {
        return Err(FoldedError::NoStage);
    }
    let mut operators = Vec::new();
    for (attempts, sums) in sums {
        let whole: f64 = sums.values().sum();
        for (operator, weight) in sums.into_iter().filter(|_| whole > 0.0) {
            let operator: Arc<str> = operator.into();
            operators.extend(attempts.iter().map(|stage| OperatorShare {
                stage: *stage,
                operator: Arc::clone(&operator),
                share: weight / whole,
            }));
        }
    }
    tables.operators = operators;
    Ok(1.0 - known / all)
}

/// The stack and the weight of a line.
fn parse(line: &str) -> Option<(&str, f64)> {
    let (stack, weight) = line.trim_end().rsplit_once(' ')?;
    let weight: f64 = weight.parse().ok()?;
    (weight.is_finite() && weight >= 0.0 && !stack.is_empty()).then_some((stack, weight))
}

/// Attempts of stages by the name of their query and their number.
struct Stages {
    by_name: BTreeMap<(String, u32), Vec<StageId>>,
    /// By number alone; empty where several queries have such a stage.
    by_number: BTreeMap<u32, Vec<StageId>>,
}

impl Stages {
    fn new(tables: &Tables) -> Self {
        let names: BTreeMap<QueryId, &String> = tables
            .queries
            .iter()
            .map(|query| (query.id, &query.name))
            .collect();
        let mut stages = Self {
            by_name: BTreeMap::new(),
            by_number: BTreeMap::new(),
        };
        let mut owners: BTreeMap<u32, QueryId> = BTreeMap::new();
        for id in tables.stages.iter().map(|stage| stage.id) {
            if let Some(name) = names.get(&id.query) {
                let key = ((*name).clone(), id.stage);
                stages.by_name.entry(key).or_default().push(id);
            }
            let of_number = stages.by_number.entry(id.stage).or_default();
            if *owners.entry(id.stage).or_insert(id.query) == id.query {
                of_number.push(id);
            } else {
                of_number.clear();
                // No query has this number, so later ones stay out too.
                owners.insert(id.stage, QueryId(u64::MAX));
            }
        }
        stages
    }

    fn find(&self, root: &str) -> &[StageId] {
        let Some((before, number)) = root.rsplit_once("stage ") else {
            return &[];
        };
        let Ok(number) = number.trim().parse() else {
            return &[];
        };
        let found = match before.trim_end().split_once("query ") {
            Some((_, name)) => self.by_name.get(&(name.to_owned(), number)),
            None => self.by_number.get(&number),
        };
        found.map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Query, Span, Stage};

    fn stage(query: u64, stage: u32, attempt: u32) -> StageId {
        StageId {
            query: QueryId(query),
            stage,
            attempt,
        }
    }

    fn tables(stages: &[StageId]) -> Tables {
        let query = |id: u64| Query {
            id: QueryId(id),
            name: id.to_string(),
            application: String::new(),
            label: String::new(),
            user: String::new(),
            pool: String::new(),
            weight: 1.0,
        };
        Tables {
            queries: vec![query(1), query(2)],
            stages: stages
                .iter()
                .map(|id| Stage {
                    id: *id,
                    parents: Vec::new(),
                    span: Span { start: 0, end: 1 },
                })
                .collect(),
            ..Tables::default()
        }
    }

    fn shares(tables: &Tables) -> Vec<(StageId, &str, f64)> {
        let rows = tables.operators.iter();
        rows.map(|row| (row.stage, &*row.operator, row.share))
            .collect()
    }

    #[test]
    fn the_last_frame_of_a_stage_is_the_operator() {
        let mut tables = tables(&[stage(1, 4, 0), stage(1, 4, 1), stage(2, 5, 0)]);
        let text = "query 1 stage 4;Exchange 30\nquery 1 stage 4;Exchange;Project a; b 10\n\
                    stage 5;main;Filter 7\nC2 CompilerThre 3\n\nquery 9 stage 4;Sort 50\n";
        let outside = set_operators(&mut tables, text).expect("stacks");
        assert!((outside - 0.53).abs() < 1e-12, "{outside}");
        let expected = [
            (stage(1, 4, 0), " b", 0.25),
            (stage(1, 4, 1), " b", 0.25),
            (stage(1, 4, 0), "Exchange", 0.75),
            (stage(1, 4, 1), "Exchange", 0.75),
            (stage(2, 5, 0), "Filter", 1.0),
        ];
        assert_eq!(shares(&tables), expected);
    }

    #[test]
    fn a_number_that_several_queries_have_needs_the_query() {
        let mut tables = tables(&[stage(1, 4, 0), stage(2, 4, 0), stage(2, 4, 1)]);
        let error = set_operators(&mut tables, "stage 4;Sort 1").expect_err("ambiguous");
        assert!(matches!(error, FoldedError::NoStage), "{error}");
        set_operators(&mut tables, "app: query 2 stage 4;Sort 1").expect("a query");
        assert_eq!(shares(&tables).len(), 2);
    }

    #[test]
    fn a_line_that_is_no_stack_is_refused_with_its_number() {
        let mut tables = tables(&[stage(1, 4, 0)]);
        for line in [
            "nothing",
            "stage 4;Sort x",
            "stage 4;Sort -1",
            "stage 4;Sort inf",
            " 5",
        ] {
            let text = format!("stage 4;Sort 1\n{line}");
            let error = set_operators(&mut tables, &text).expect_err(line);
            assert!(error.to_string().starts_with("line 2: "), "{error}");
        }
    }
}
