//! What plan nodes do: the rules in `rules/operators.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::rules::load;

/// What an operator does.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum OperatorKind {
    /// Reads a source.
    Scan,
    /// Drops rows.
    Filter,
    /// Makes each row a new one.
    Project,
    /// Makes one row of a group.
    Aggregate,
    /// Combines rows of two inputs.
    Join,
    /// Moves rows to other tasks.
    Exchange,
    /// Orders rows.
    Sort,
    /// Computes over the neighbours of a row.
    Window,
    /// Makes several rows of one.
    Generate,
    /// Calls Python.
    Python,
    /// Writes rows.
    Write,
    /// Anything else.
    #[default]
    Other,
}

/// What is known of a plan node by its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Operator {
    /// What it does.
    pub kind: OperatorKind,
    /// Whether it hands rows on and does no work of its own.
    pub passes: bool,
    /// Whether it puts out as many rows as it takes in.
    pub keeps_rows: bool,
}

#[derive(Deserialize)]
struct OperatorRules {
    operator: Vec<OperatorRule>,
    words: BTreeMap<OperatorKind, Vec<String>>,
}

#[derive(Deserialize)]
#[cfg_attr(test, serde(deny_unknown_fields))]
struct OperatorRule {
    kind: OperatorKind,
    #[serde(default)]
    passes: bool,
    #[serde(default)]
    keeps_rows: bool,
    names: Vec<String>,
}

static RULES: LazyLock<OperatorRules> =
    LazyLock::new(|| load(include_str!("../rules/operators.toml")));

impl Operator {
    /// By the name of a plan node, such as `HashAggregate` or `Scan parquet`.
    pub fn of(name: &str) -> Self {
        let fits = |rule: &'static OperatorRule| {
            let names = rule.names.iter().filter(|begin| name.starts_with(*begin));
            Some((names.map(String::len).max()?, rule))
        };
        let rule = RULES.operator.iter().filter_map(fits);
        if let Some((_, rule)) = rule.max_by_key(|(length, _)| *length) {
            return Self {
                kind: rule.kind,
                passes: rule.passes,
                keeps_rows: rule.keeps_rows,
            };
        }
        // In the order of the kinds a Python aggregate would be an aggregate: what it says last counts least.
        let word = |(kind, words): (&OperatorKind, &Vec<String>)| {
            let at = words.iter().filter_map(|word| name.rfind(word.as_str()));
            Some((at.max()?, *kind))
        };
        let kind = RULES.words.iter().filter_map(word).max();
        Self {
            kind: kind.map_or(OperatorKind::Other, |(_, kind)| kind),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_known_by_their_names() {
        for (name, kind) in [
            (
                "Scan parquet spark_catalog.default.lineitem",
                OperatorKind::Scan,
            ),
            ("HashAggregate", OperatorKind::Aggregate),
            ("SortAggregate", OperatorKind::Aggregate),
            ("Sort", OperatorKind::Sort),
            ("SortMergeJoin", OperatorKind::Join),
            ("WindowInPandas", OperatorKind::Python),
            ("Window", OperatorKind::Window),
            (
                "Execute InsertIntoHadoopFsRelationCommand",
                OperatorKind::Write,
            ),
            ("CometHashAggregate", OperatorKind::Aggregate),
            ("CometSortMergeJoin", OperatorKind::Join),
            ("VeloxColumnarToRow", OperatorKind::Project),
            ("Subquery", OperatorKind::Other),
            ("", OperatorKind::Other),
        ] {
            assert_eq!(Operator::of(name).kind, kind, "{name}");
        }
        assert!(Operator::of("WholeStageCodegen (3)").passes);
        assert!(!Operator::of("ColumnarToRow").passes);
        assert!(Operator::of("Project").keeps_rows && !Operator::of("Filter").keeps_rows);
    }

    #[test]
    fn a_name_is_in_one_rule_only() {
        let mut names: Vec<&str> = RULES
            .operator
            .iter()
            .flat_map(|rule| &rule.names)
            .map(String::as_str)
            .collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(
            RULES
                .operator
                .iter()
                .all(|rule| !rule.passes || rule.keeps_rows)
        );
    }
}
