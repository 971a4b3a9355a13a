//! `unfuse why`: divides a query's wall time into parts that add up to it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use unfuse_report::Report;
use unfuse_report::why::{Answer, Question, render};

use super::open;
use crate::output::print;

/// Say where the wall time of a query went, or why it takes longer than before
///
/// The parts add up to the wall time, or with --against or --against-query to the difference.
#[derive(Debug, Args)]
pub struct Why {
    /// The profile directory, or its URI
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Compare with the runs of the same query in this profile
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,
    /// Only this run: the id of a Spark SQL execution [default: the longest, or all runs of the query that changed most]
    #[arg(long, value_name = "N")]
    query: Option<i64>,
    /// Compare with this run, of the other profile if there is one
    #[arg(long, value_name = "N")]
    against_query: Option<i64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Parts to print (text only)
    #[arg(long, default_value_t = 12, value_name = "N")]
    limit: usize,
}

impl Why {
    /// Prints the parts.
    pub fn execute(self) -> Result<ExitCode> {
        let profile = open(&self.dir)?;
        let report = Report::new(&profile)?;
        let other = self.against.as_deref().map(open).transpose()?;
        let other = other.as_ref().map(Report::new).transpose()?;
        let question = Question {
            query: self.query,
            against: other.as_ref(),
            against_query: self.against_query,
        };
        let answer = Answer::new(&report, question)?;
        print(None, self.json, &answer, || render(&answer, self.limit))?;
        Ok(ExitCode::SUCCESS)
    }
}
