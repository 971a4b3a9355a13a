//! Frames of Spark's own code outside fused code at which another plan node takes over: the rules in
//! `rules/boundaries.toml`.

use std::sync::LazyLock;

use serde::Deserialize;
use unfuse_format::Frame;

use crate::rule::BoundaryKind;
use crate::rules::{ClassRule, begins, load};

/// The plan node that owns a boundary frame; `rules/boundaries.toml` explains each variant.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum Boundary {
    #[serde(rename = "source")]
    Source(Vec<String>),
    #[serde(rename = "exchange read")]
    ExchangeRead,
    #[serde(rename = "exchange write")]
    ExchangeWrite,
    #[serde(rename = "collect")]
    Collect,
    #[serde(rename = "node")]
    Node(Vec<String>),
    /// An operator for which [`is_mapping`] holds, if an iterator calls the frame.
    #[serde(rename = "mapped")]
    Mapped,
    /// The node of this stage with the class's name: `Foo` for `FooExec`.
    #[serde(skip)]
    NamedAsClass,
}

impl Boundary {
    /// The kind of code.
    pub(crate) fn kind(&self) -> BoundaryKind {
        match self {
            Self::Source(_) => BoundaryKind::Scan,
            Self::ExchangeRead => BoundaryKind::ShuffleRead,
            Self::ExchangeWrite => BoundaryKind::ShuffleWrite,
            Self::Collect => BoundaryKind::Collect,
            Self::Node(_) | Self::Mapped | Self::NamedAsClass => BoundaryKind::Operator,
        }
    }
}

#[derive(Deserialize)]
struct Boundaries {
    mapping: Vec<String>,
    named_as_class: ClassNames,
    boundary: Vec<Group>,
}

/// How classes are named after the operators that they implement.
#[derive(Deserialize)]
struct ClassNames {
    package: String,
    suffixes: Vec<String>,
    except: Vec<String>,
}

/// Classes that belong to the same node.
#[derive(Deserialize)]
struct Group {
    to: Boundary,
    rules: Vec<ClassRule>,
}

static GROUPS: LazyLock<Boundaries> =
    LazyLock::new(|| load(include_str!("../rules/boundaries.toml")));

/// Prefixes of frames, the longest first.
static RULES: LazyLock<Vec<(&'static str, &'static Boundary)>> = LazyLock::new(|| {
    let groups = GROUPS.boundary.iter();
    let mut rules: Vec<_> = groups
        .flat_map(|group| {
            let classes = group.rules.iter().map(|rule| rule.class.as_str());
            classes.map(|class| (class, &group.to))
        })
        .collect();
    rules.sort_by_key(|(class, _)| std::cmp::Reverse(class.len()));
    rules
});

/// Whether an operator passes a function to an iterator.
pub(crate) fn is_mapping(operator: &str) -> bool {
    GROUPS.mapping.iter().any(|mapping| mapping == operator)
}

/// The boundary at a generated function that an iterator calls.
pub(crate) static MAPPED: Boundary = Boundary::Mapped;

/// Classes of operators that no rule names.
static OTHERS: Boundary = Boundary::NamedAsClass;

/// The rule for a frame.
pub(crate) fn find(frame: &Frame) -> Option<&'static Boundary> {
    // Most frames are not Spark's.
    if !frame.class.starts_with("org.apache.spark.") {
        return None;
    }
    RULES
        .iter()
        .find(|(prefix, _)| begins(frame, prefix))
        .map(|(_, boundary)| *boundary)
        .or_else(|| operator_of(&frame.class).map(|_| &OTHERS))
}

/// The operator that a class of Spark implements, by its name: `Foo` for `…FooExec$$anon$1`.
pub(crate) fn operator_of(class: &str) -> Option<&str> {
    let rule = &GROUPS.named_as_class;
    let path = class.strip_prefix(rule.package.as_str())?;
    let outer = path.split('$').next().unwrap_or(path);
    let simple = outer.rsplit('.').next().unwrap_or(outer);
    let mut suffixes = rule.suffixes.iter();
    let operator = suffixes.find_map(|suffix| simple.strip_suffix(suffix.as_str()))?;
    let is_excepted = rule.except.iter().any(|name| name == operator);
    (!operator.is_empty() && !is_excepted).then_some(operator)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::rules::frame;

    /// The rule for any method of a class.
    fn found(class: &str) -> Option<&'static Boundary> {
        find(&frame(&format!("{class}.call")))
    }

    fn node(name: &str) -> Boundary {
        Boundary::Node(vec![name.to_owned()])
    }

    #[test]
    fn examples_find_their_rules() {
        let mut classes = HashSet::new();
        for group in &GROUPS.boundary {
            for rule in &group.rules {
                let frame = frame(&format!("{}{}", rule.class, rule.example));
                assert_eq!(find(&frame), Some(&group.to), "{}", rule.class);
                assert!(classes.insert(&rule.class), "{} is there twice", rule.class);
            }
        }
    }

    #[test]
    fn operators_that_are_not_fused_iterate_in_evaluators() {
        for class in [
            "org.apache.spark.sql.execution.FilterExec",
            "org.apache.spark.sql.execution.FilterEvaluatorFactory$FilterPartitionEvaluator",
        ] {
            assert_eq!(found(class), Some(&node("Filter")));
        }
    }

    #[test]
    fn operators_without_a_rule_are_named_as_their_class() {
        let execution = |class: &str| {
            operator_of(&format!("org.apache.spark.sql.execution.{class}")).map(str::to_owned)
        };
        assert_eq!(execution("UnionExec"), Some("Union".to_owned()));
        assert_eq!(
            execution("streaming.StateStoreSaveExec$$anon$3"),
            Some("StateStoreSave".to_owned())
        );
        assert_eq!(execution("WholeStageCodegenExec$$anon$1"), None);
        assert_eq!(execution("WholeStageCodegenEvaluatorFactory"), None);
        assert_eq!(execution("BufferedRowIterator"), None);
        assert_eq!(operator_of("org.apache.spark.executor.Executor"), None);
        assert_eq!(
            found("org.apache.spark.sql.execution.UnionExec"),
            Some(&Boundary::NamedAsClass)
        );
        assert_eq!(
            found("org.apache.spark.sql.execution.SparkPlan$$Lambda/0x1"),
            Some(&Boundary::Collect)
        );
        let metric = frame("org.apache.spark.sql.execution.SparkPlan.longMetric");
        assert_eq!(find(&metric), None, "operators of all kinds call it");
    }

    #[test]
    fn readers_and_writers_of_files_differ() {
        let kind = |class: &str| {
            let found = found(&format!(
                "org.apache.spark.sql.execution.datasources.{class}"
            ));
            found.map(Boundary::kind)
        };
        assert_eq!(kind("FileScanRDD$$anon$1"), Some(BoundaryKind::Scan));
        assert_eq!(kind("FileFormatWriter$"), Some(BoundaryKind::Operator));
        assert_eq!(kind("csv.CsvOutputWriter"), Some(BoundaryKind::Operator));
        assert_eq!(kind("csv.CSVFileFormat"), Some(BoundaryKind::Scan));
        assert_eq!(kind("SomethingElse"), None);
        assert_eq!(found("java.lang.String"), None);
    }
}
