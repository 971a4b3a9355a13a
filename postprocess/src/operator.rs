//! What plan nodes do, by the rules in `rules/operators.toml`.

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
    /// Makes one row from each row.
    Project,
    /// Makes one row from each group.
    Aggregate,
    /// Combines rows of two inputs.
    Join,
    /// Moves rows to other tasks.
    Exchange,
    /// Orders rows.
    Sort,
    /// Computes over neighbouring rows.
    Window,
    /// Makes several rows from one.
    Generate,
    /// Calls Python.
    Python,
    /// Writes rows.
    Write,
    /// Anything else.
    #[default]
    Other,
}

/// Properties of a plan node that follow from its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Operator {
    /// What it does.
    pub kind: OperatorKind,
    /// Whether it passes rows on and does no work of its own.
    pub passes: bool,
    /// Whether it outputs as many rows as it gets.
    pub keeps_rows: bool,
    /// Whether it reads rows that Spark has cached.
    pub reads_cache: bool,
}

#[derive(Deserialize)]
struct OperatorRules {
    operator: Vec<OperatorRule>,
    words: BTreeMap<OperatorKind, WordRule>,
}

/// A rule for names that no other rule begins.
#[derive(Deserialize)]
#[cfg_attr(test, serde(deny_unknown_fields))]
struct WordRule {
    words: Vec<String>,
    #[cfg(test)]
    example: String,
}

#[derive(Deserialize)]
#[cfg_attr(test, serde(deny_unknown_fields))]
struct OperatorRule {
    kind: OperatorKind,
    #[serde(default)]
    passes: bool,
    #[serde(default)]
    keeps_rows: bool,
    #[serde(default)]
    reads_cache: bool,
    names: Vec<String>,
}

static RULES: LazyLock<OperatorRules> =
    LazyLock::new(|| load(include_str!("../rules/operators.toml")));

/// Beginnings of names with their rules, by the first byte.
static BEGINNINGS: LazyLock<BTreeMap<u8, Vec<(&str, &OperatorRule)>>> = LazyLock::new(|| {
    let mut all: BTreeMap<u8, Vec<_>> = BTreeMap::new();
    for rule in &RULES.operator {
        for begin in &rule.names {
            let first = begin.bytes().next().unwrap_or_default();
            all.entry(first).or_default().push((begin.as_str(), rule));
        }
    }
    all
});

impl Operator {
    /// Looks up the name of a plan node, such as `HashAggregate` or `Scan parquet`.
    pub fn from_name(name: &str) -> Self {
        let first = name.bytes().next().unwrap_or_default();
        let known = BEGINNINGS.get(&first).map_or(&[][..], Vec::as_slice);
        let fitting = known.iter().filter(|(begin, _)| name.starts_with(begin));
        if let Some((_, rule)) = fitting.max_by_key(|(begin, _)| begin.len()) {
            return Self {
                kind: rule.kind,
                passes: rule.passes,
                keeps_rows: rule.keeps_rows,
                reads_cache: rule.reads_cache,
            };
        }
        // The last word in the name decides: in the order of kinds, a Python aggregate would be an aggregate.
        let word = |(kind, rule): (&OperatorKind, &WordRule)| {
            let positions = rule
                .words
                .iter()
                .filter_map(|word| name.rfind(word.as_str()));
            Some((positions.max()?, *kind))
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
            ("AggregateInPandas", OperatorKind::Python),
            ("Subquery", OperatorKind::Other),
            ("", OperatorKind::Other),
        ] {
            assert_eq!(Operator::from_name(name).kind, kind, "{name}");
        }
        assert!(Operator::from_name("WholeStageCodegen (3)").passes);
        assert!(!Operator::from_name("ColumnarToRow").passes);
        assert!(
            Operator::from_name("Project").keeps_rows && !Operator::from_name("Filter").keeps_rows
        );
        for (name, reads_cache) in [
            ("Scan In-memory table sales", true),
            ("InMemoryTableScan", true),
            ("Scan parquet sales", false),
        ] {
            let known = Operator::from_name(name);
            assert_eq!(
                (known.kind, known.reads_cache),
                (OperatorKind::Scan, reads_cache),
                "{name}"
            );
        }
    }

    #[test]
    fn examples_find_their_rules() {
        for rule in &RULES.operator {
            for name in &rule.names {
                let found = Operator::from_name(name);
                let said = Operator {
                    kind: rule.kind,
                    passes: rule.passes,
                    keeps_rows: rule.keeps_rows,
                    reads_cache: rule.reads_cache,
                };
                assert_eq!(found, said, "{name}");
            }
        }
        for (kind, rule) in &RULES.words {
            assert_eq!(Operator::from_name(&rule.example).kind, *kind);
            let begins = |name: &String| rule.example.starts_with(name.as_str());
            let mut names = RULES.operator.iter().flat_map(|rule| &rule.names);
            assert!(!names.any(begins), "{} needs no word", rule.example);
        }
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
