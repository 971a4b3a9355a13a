//! The rules in `rules/advice.toml`.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A rule by its name.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, TS, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum RuleName {
    /// Broadcast a side of a join.
    Broadcast,
    /// Compute with other types than decimals.
    Decimals,
    /// Replace a regular expression.
    RegularExpressions,
    /// Read columnar files instead of text.
    TextFiles,
    /// Write fewer and larger files.
    SmallFiles,
    /// Make a generated method small enough for the JVM's compilers.
    InterpretedCode,
    /// Let Spark fuse operators into generated loops.
    NotFused,
    /// Use fewer partitions.
    TinyTasks,
    /// Do not limit the tasks of a stage by `coalesce`.
    FewTasks,
    /// Do not pass rows to plain Python functions.
    PythonRows,
    /// Split large partitions of a join.
    SkewedJoin,
    /// Write a filter so that files and their blocks can be skipped.
    Pushdown,
    /// Cache a table.
    ReadAgain,
    /// Use CPUs that are idle.
    IdleCpus,
    /// Give the JVM a larger heap.
    Heap,
}

/// A rule; the file explains each field.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, serde(deny_unknown_fields))]
pub(super) struct Rule {
    #[serde(rename = "name")]
    pub(super) kind: RuleName,
    pub(super) at_least: f64,
    /// None where the replay changes something else than the times of tasks.
    pub(super) saves: Option<[f64; 3]>,
    #[serde(default)]
    pub(super) calls: Vec<String>,
    #[serde(default)]
    pub(super) operators: Vec<String>,
    #[serde(default)]
    pub(super) without: Vec<String>,
    pub(super) title: String,
    pub(super) why: String,
    pub(super) action: String,
    pub(super) risk: String,
    pub(super) command: String,
}

#[derive(Deserialize)]
struct Rules {
    rule: Vec<Rule>,
}

/// All rules.
pub(super) static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let rules: Rules = toml::from_str(include_str!("../../rules/advice.toml"))
        .expect("the rules are part of the program, and a test reads them");
    rules.rule
});
