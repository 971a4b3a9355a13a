//! What there is to tell, for people and programs.

use serde::Serialize;
use unfuse_impact::{Analysis, CONFIDENCE, Table};

use crate::ReportError;

/// The whole answer.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// Of all intervals.
    pub confidence: f64,
    /// By name.
    pub workloads: Vec<Workload>,
    /// Of profiles, most time first.
    pub queries: Vec<Query>,
    /// What had to be left out.
    pub notes: Vec<String>,
}

/// One workload of a table.
#[derive(Debug, Serialize)]
pub struct Workload {
    /// Empty where there is only one.
    pub name: String,
    /// What its runs say.
    #[serde(flatten)]
    pub analysis: Analysis,
}

/// One query of profiles.
#[derive(Debug, Serialize)]
pub struct Query {
    /// The same in every run.
    pub fingerprint: String,
    /// Text or call site.
    pub description: String,
    /// Of its running time; none if its runs do not allow it.
    pub analysis: Option<Analysis>,
    /// Most time first.
    pub operators: Vec<Operator>,
}

/// One operator of a query.
#[derive(Debug, Serialize)]
pub struct Operator {
    /// Plan node; none for a heading.
    pub node: Option<i32>,
    /// Its name, or `[heading]`.
    pub operator: String,
    /// As the plan prints it.
    pub detail: String,
    /// Of the time of its tasks, running and waiting.
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
    /// Adds what a table says.
    ///
    /// # Errors
    /// Those of the table.
    pub fn workloads(&mut self, table: &Table) -> Result<(), ReportError> {
        for (name, runs) in table.workloads()? {
            let analysis = Analysis::new(&runs);
            self.workloads.push(Workload { name, analysis });
        }
        Ok(())
    }
}
