//! `unfuse advise`: what to change so that queries take less time.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use unfuse_report::Report;
use unfuse_report::advise::{Answer, QUERIES, Question, render};

use super::open;
use crate::output::print;

/// Suggest what to change, ranked by the time that it saves
///
/// Each suggestion has the evidence, the setting, hint or rewrite, its risk, and a prediction from the recorded run.
#[derive(Debug, Args)]
pub struct Advise {
    /// The profile directory, or its URI
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Only this query: the id of a Spark SQL execution [default: the queries with the most wall time]
    #[arg(long, value_name = "N")]
    query: Option<i64>,
    /// Only queries of this application
    #[arg(long, value_name = "ID")]
    app: Option<String>,
    /// Different queries to look at
    #[arg(long, default_value_t = QUERIES, value_name = "N")]
    queries: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Suggestions to print (text only)
    #[arg(long, default_value_t = 5, value_name = "N")]
    limit: usize,
}

impl Advise {
    /// Prints the suggestions.
    pub fn execute(self) -> Result<ExitCode> {
        let profile = open(&self.dir)?;
        let report = Report::new(&profile)?;
        let question = Question {
            query: self.query,
            app: self.app.as_deref(),
            queries: self.queries,
        };
        let answer = Answer::new(&report, &question)?;
        print(None, self.json, &answer, || render(&answer, self.limit))?;
        Ok(ExitCode::SUCCESS)
    }
}
