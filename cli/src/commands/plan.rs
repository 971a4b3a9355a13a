//! `unfuse plan`: the plan of a query with the cost of each operator.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use unfuse_postprocess::{Profile, Selection};
use unfuse_report::Report;
use unfuse_report::plan::{Answer, render};

use super::say_problems;
use crate::output::print;
use crate::remote;
use crate::when::Times;

/// Print the plan of a query with the CPU time, waits and rows of each operator
///
/// Below an operator are the lines of code that take most of its time.
#[derive(Debug, Args)]
pub struct Plan {
    /// The profile directory, or its URI
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Only this query: the id of a Spark SQL execution [default: the one with most CPU time]
    #[arg(long, value_name = "N")]
    query: Option<i64>,
    #[command(flatten)]
    times: Times,
    /// Also print operators that only pass rows on
    #[arg(long)]
    all: bool,
    /// Print JSON: an array of plans
    #[arg(long)]
    json: bool,
    /// Plans to print, most CPU time first
    #[arg(long, default_value_t = 1, value_name = "N")]
    limit: usize,
}

impl Plan {
    /// Prints the plans.
    pub fn execute(self) -> Result<ExitCode> {
        let dir = remote::local(&self.dir)?;
        let selection = Selection {
            query: self.query,
            period: self.times.period(&dir)?,
            ..Selection::default()
        };
        let profile = Profile::open_selected(&dir, selection)?.named(&self.dir);
        say_problems(&profile);
        if profile.groups.is_empty() {
            crate::say!(
                "unfuse: {} has no samples, so the CPU time of operators is not known",
                self.dir.display()
            );
        }
        let report = Report::new(&profile)?;
        let plans = Answer::of_report(&report, self.query, self.limit)?;
        print(None, self.json, &plans, || render(&plans, self.all))?;
        Ok(ExitCode::SUCCESS)
    }
}
