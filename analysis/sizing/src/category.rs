//! Application categories by library, section III-A.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The library whose methods start most of a job's stages.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// RDDs alone. The paper has no such category; it counts Wordcount as streaming.
    Core,
    /// Spark SQL and DataFrames.
    Sql,
    /// Spark Streaming and structured streaming.
    Streaming,
    /// MLlib.
    MLlib,
    /// GraphX and libraries based on it.
    GraphX,
}

impl Category {
    /// The category of a stage, by the stack that started it (Spark's "Details") and whether it was part of a SQL
    /// query. MLlib and GraphX use SQL and RDDs themselves, so they are tested first.
    pub fn from_stage(details: &str, sql: bool) -> Self {
        let has = |parts: &[&str]| parts.iter().any(|part| details.contains(part));
        if has(&["spark.streaming.", "execution.streaming."]) {
            Self::Streaming
        } else if has(&["spark.graphx.", "graphframes."]) {
            Self::GraphX
        } else if has(&["spark.ml.", "spark.mllib."]) {
            Self::MLlib
        } else if sql || has(&["spark.sql."]) {
            Self::Sql
        } else {
            Self::Core
        }
    }

    /// The category of an application, from the category of each stage and its weight (task seconds). A library needs a
    /// fifth of the work, because its jobs read and prepare data with others.
    pub fn from_stages(stages: &[(Category, f64)]) -> Self {
        let total: f64 = stages.iter().map(|(_, weight)| weight).sum();
        let of = |category| {
            let own = stages.iter().filter(|(of, _)| *of == category);
            own.map(|(_, weight)| weight).sum::<f64>()
        };
        [Self::Streaming, Self::GraphX, Self::MLlib, Self::Sql]
            .into_iter()
            .find(|category| of(*category) > 0.0 && of(*category) >= 0.2 * total)
            .unwrap_or(Self::Core)
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Core => "RDDs alone",
            Self::Sql => "SQL",
            Self::Streaming => "streaming",
            Self::MLlib => "MLlib",
            Self::GraphX => "GraphX",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_that_started_a_stage_is_told() {
        for (details, sql, category) in [
            (
                "org.apache.spark.rdd.RDD.collect(RDD.scala:1029)",
                false,
                Category::Core,
            ),
            (
                "org.apache.spark.rdd.RDD.collect(RDD.scala:1029)",
                true,
                Category::Sql,
            ),
            (
                "org.apache.spark.sql.Dataset.count(Dataset.scala:1)",
                false,
                Category::Sql,
            ),
            (
                "rdd.RDD.treeAggregate\norg.apache.spark.ml.clustering.KMeans.fit",
                true,
                Category::MLlib,
            ),
            (
                "org.apache.spark.graphx.Pregel$.apply(Pregel.scala:1)",
                false,
                Category::GraphX,
            ),
            (
                "org.apache.spark.sql.execution.streaming.MicroBatchExecution",
                true,
                Category::Streaming,
            ),
        ] {
            assert_eq!(Category::from_stage(details, sql), category, "{details}");
        }
    }

    #[test]
    fn a_library_counts_from_a_fifth_of_the_work() {
        let mixed = |of_library| {
            Category::from_stages(&[
                (Category::Sql, 10.0 - of_library),
                (Category::MLlib, of_library),
            ])
        };
        assert_eq!(mixed(1.9), Category::Sql);
        assert_eq!(mixed(2.1), Category::MLlib);
        assert_eq!(Category::from_stages(&[]), Category::Core);
    }
}
