//! The answer as data.

use schemars::JsonSchema;
use serde::Serialize;
use unfuse_impact::{Analysis, CONFIDENCE, Table};

use crate::ReportError;

/// The whole answer.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Answer {
    /// Confidence level of all intervals, 0 to 1.
    pub confidence: f64,
    /// Workloads of tables, by name.
    pub workloads: Vec<Workload>,
    /// Queries of profiles, most time first.
    pub queries: Vec<Query>,
    /// Notes on data that was left out.
    pub notes: Vec<String>,
}

/// One workload of a table.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Workload {
    /// Its name; empty if there is only one workload.
    pub name: String,
    /// The analysis of its runs.
    #[serde(flatten)]
    pub analysis: Analysis,
}

/// One query of profiles.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Query {
    /// The fingerprint, which all runs share.
    pub fingerprint: String,
    /// Its text, or what its plan does if the description only says where it came from.
    pub description: String,
    /// The analysis of its running time; none if there are too few runs.
    pub analysis: Option<Analysis>,
    /// Operators, most time first.
    pub operators: Vec<Operator>,
}

/// One operator of a query.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Operator {
    /// Plan node; none for a heading.
    pub node: Option<i32>,
    /// Its name, or `[heading]`.
    pub operator: String,
    /// The operator as the plan prints it.
    pub detail: String,
    /// The analysis of the time of its tasks, running and waiting.
    pub analysis: Analysis,
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            confidence: CONFIDENCE,
            workloads: Vec::new(),
            queries: Vec::new(),
            notes: Vec::new(),
        }
    }
}

impl Answer {
    /// Adds the workloads of a table.
    ///
    /// # Errors
    /// If the table's runs cannot be analysed.
    pub fn workloads(&mut self, table: &Table) -> Result<(), ReportError> {
        for (name, runs) in table.workloads()? {
            let analysis = Analysis::new(&runs);
            self.workloads.push(Workload { name, analysis });
        }
        Ok(())
    }
}
