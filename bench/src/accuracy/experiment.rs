//! The queries of an experiment, and the column of the table that counts each sample.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Result, bail};
use unfuse_postprocess::{By, Profile, Selection, Totals};

use crate::event_log::Execution;
use crate::foreign;
use crate::spark::{Canonical, statements_of};

/// The operators of the canonical query, as the columns of table A.1.
pub const OPERATORS: [&str; 4] = ["scan", "filter", "join", "aggregate"];
/// The name of the unaltered query.
pub const REFERENCE: &str = "reference";

/// The queries, and the operators whose samples are counted.
pub struct Experiment {
    /// The texts of the queries by name. An altered query has the name of the column whose operator gets the added work.
    pub queries: BTreeMap<String, String>,
    /// Operators whose samples are counted.
    pub columns: Vec<String>,
    /// Whether the query is the canonical one. Then the columns are [`OPERATORS`], and only the largest stage counts.
    pub canonical: bool,
}

/// Samples of one run, by operator, and Spark's CPU time.
#[derive(Debug, Clone)]
pub struct Distribution {
    /// Samples of each column, in order, then the sum of all other operators.
    pub operators: Vec<f64>,
    /// All samples.
    pub all: f64,
    /// Spark's CPU time, s.
    pub cpu_s: f64,
}

impl Experiment {
    /// The canonical query with the same rounds of work in the filter, the join or the aggregate.
    pub fn with_rounds(rounds: u32) -> Self {
        let reference = Canonical::REFERENCE;
        let spin = |value: &str| format!("spin({value}, {rounds})");
        // Uses only columns that the reference reads, so that the scan stays the same.
        let predicate = format!(
            "date_add(l_commitdate, cast({} - l_suppkey AS int)) > DATE '1993-01-01'",
            spin("l_suppkey")
        );
        let condition = format!("{} = s_suppkey", spin("l_suppkey"));
        let group = spin(reference.group);
        let filter = Canonical {
            predicate: &predicate,
            ..reference
        };
        let join = Canonical {
            condition: &condition,
            ..reference
        };
        let aggregate = Canonical {
            group: &group,
            ..reference
        };
        Self::canonical([
            (REFERENCE, reference),
            ("filter", filter),
            ("join", join),
            ("aggregate", aggregate),
        ])
    }

    /// Forms of the canonical query, by name.
    pub fn canonical<'a>(queries: impl IntoIterator<Item = (&'a str, Canonical<'a>)>) -> Self {
        let queries = queries.into_iter();
        Self {
            queries: queries
                .map(|(name, query)| (name.to_owned(), query.sql()))
                .collect(),
            columns: OPERATORS.map(str::to_owned).to_vec(),
            canonical: true,
        }
    }

    /// Reads another query from a file.
    ///
    /// # Errors
    /// If it lacks the reference or an altered query.
    pub fn read(path: &Path) -> Result<Self> {
        let queries = statements_of(path)?;
        let columns: Vec<String> = queries
            .keys()
            .filter(|name| *name != REFERENCE)
            .cloned()
            .collect();
        if columns.is_empty() || !queries.contains_key(REFERENCE) {
            bail!(
                "{} needs a query after a line `-- {REFERENCE}`, and one after a line `-- OPERATOR`",
                path.display()
            );
        }
        Ok(Self {
            queries,
            columns,
            canonical: false,
        })
    }

    /// The altered columns, with their indices.
    pub fn altered(&self) -> impl Iterator<Item = (usize, &str)> {
        let columns = self.columns.iter().map(String::as_str).enumerate();
        columns.filter(|(_, name)| self.queries.contains_key(*name))
    }

    /// The stages of an execution that count, and their CPU time, s.
    pub fn counted<'a>(&self, execution: &'a Execution) -> (&'a [i32], f64) {
        if self.canonical {
            (std::slice::from_ref(&execution.stage), execution.cpu_s)
        } else {
            (&execution.stages, execution.all_cpu_s)
        }
    }

    /// The column that counts an operator's samples.
    fn column(&self, operator: &str) -> Option<usize> {
        if self.canonical {
            return match operator {
                "Filter" => Some(1),
                "BroadcastHashJoin" => Some(2),
                // The projection computes the grouping key.
                "HashAggregate" | "Project" => Some(3),
                name if name.contains("Scan") || name == "ColumnarToRow" => Some(0),
                _ => None,
            };
        }
        let named = |column: &String| column.split('+').any(|name| name.trim() == operator);
        self.columns.iter().position(named)
    }

    /// Samples by operator in the given stages of a profile, and all samples of these stages.
    pub fn by_regions(&self, profile: &Profile, query: i64, stages: &[i32]) -> (Vec<f64>, f64) {
        let (mut operators, mut all) = (vec![0.0; self.columns.len() + 1], 0.0);
        for stage in stages {
            let selection = Selection {
                query: Some(query),
                stage: Some(*stage),
                ..Selection::default()
            };
            let totals = Totals::new(profile, selection, By::Operator);
            all += totals.samples as f64;
            for row in totals.rows.iter().filter(|row| !row.heading) {
                let index = self.column(&row.operator).unwrap_or(self.columns.len());
                operators[index] += row.samples as f64;
            }
        }
        (operators, all)
    }
}

/// Times of the operators of a stage, ms, as the DataFlint plugin shows them. It does not wrap the aggregation, for which it
/// shows Spark's metric.
pub fn by_durations(timings: Option<&HashMap<(String, String), f64>>) -> Vec<f64> {
    let of = |operator: &str, metric: &str| {
        let key = (operator.to_owned(), metric.to_owned());
        timings
            .and_then(|timings| timings.get(&key))
            .copied()
            .unwrap_or(0.0)
    };
    vec![
        of("DataFlintScan parquet", "duration"),
        of("DataFlintFilter", "duration"),
        of("DataFlintBroadcastHashJoin", "duration"),
        of("HashAggregate", "time in aggregation build"),
        0.0,
    ]
}

/// Samples by operator in folded stacks of the canonical query, from the names of methods alone, and all samples of its stage.
pub fn by_methods(folded: &str) -> (Vec<f64>, f64) {
    let mut operators = vec![0.0; OPERATORS.len() + 1];
    let mut all = 0.0;
    for (stack, count) in foreign::of_stage(folded) {
        all += count as f64;
        if let Some(place) = place_of(stack) {
            operators[place] += count as f64;
        }
    }
    (operators, all)
}

/// The column that the innermost generated method of a stack names, if there is one. A consume method has the name of its
/// operator. The method that drives the aggregation contains the scan's loop. If all operators are split, it contains no other
/// operator's code, so it counts as the scan.
fn place_of(stack: &str) -> Option<usize> {
    let generated = stack
        .rsplit(';')
        .find_map(|frame| frame.split_once("GeneratedIteratorForCodegenStage"));
    // After the stage number follows `.method`, or `$class.method` for the hash map of an aggregation.
    let name = generated?
        .1
        .trim_start_matches(|c: char| c.is_ascii_digit());
    Some(match name.get(1..)? {
        name if name.starts_with("filter_") => 1,
        name if name.starts_with("bhj_") => 2,
        name if name.starts_with("hashAgg_doAggregateWithKeys_") => 0,
        name if name.starts_with("hashAgg_") || name.starts_with("project_") => 3,
        _ => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_generated_method_names_the_operator() {
        let stage = "a.GeneratedClass$GeneratedIteratorForCodegenStage3";
        let driver = format!("{stage}.hashAgg_doAggregateWithKeys_0$");
        let place = |inner: &str| place_of(&format!("{driver};{stage}{inner}"));
        assert_eq!(place_of("x.ShuffleMapTask.runTask"), None);
        assert_eq!(place_of(&driver), Some(0));
        for (inner, column) in [
            (".columnartorow_nextBatch_0$;b.Reader.next", 0),
            (".filter_doConsume_0$:12_[j];Spin.call", 1),
            (".bhj_doConsume_0", 2),
            (".project_doConsume_1", 3),
            (".hashAgg_doConsume_0", 3),
            (".hashAgg_doAggregateWithKeysOutput_0", 3),
            ("$hashAgg_FastHashMap_0.findOrInsert", 3),
        ] {
            assert_eq!(place(inner), Some(column), "{inner}");
        }
    }

    #[test]
    fn work_is_put_into_one_place_of_a_query() {
        let experiment = Experiment::with_rounds(7);
        let altered: Vec<&str> = experiment.altered().map(|(_, name)| name).collect();
        assert_eq!(altered, OPERATORS[1..]);
        for (name, sql) in &experiment.queries {
            // The query contains the grouping key twice, but Spark computes it once.
            let calls = sql.matches("spin(").count();
            let expected = match name.as_str() {
                REFERENCE => 0,
                "aggregate" => 2,
                _ => 1,
            };
            assert_eq!(calls, expected, "{name}: {sql}");
        }
    }
}
