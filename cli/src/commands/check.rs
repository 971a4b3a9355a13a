//! `unfuse check`: whether queries became slower, for CI pipelines.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{ArgGroup, Args};
use unfuse_report::Report;
use unfuse_report::check::{
    Answer, Baseline, Limit, ProfileRuns, Question, junit, markdown, render,
};

use super::open;
use crate::is_broken_pipe;
use crate::output::{print, write_to};

/// Compare the queries of a profile with an earlier one, and fail if one became slower
///
/// A query is the same if description and plan are the same, or else the description alone if it is unique. Wall time, CPU
/// time and the CPU time of each operator are compared. A change is a regression only if its whole range is above
/// --max-regression, and so is that for each row. A wall time must also have grown without waits for a CPU. The ranges hold
/// together with 95% probability, however many comparisons there are. Wall times of single runs are never a regression: record
/// several runs on both sides.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("base").required(true).args(["against", "baseline"]),
    after_help = "Exit codes: 0 no regression, 1 a regression or a query that failed and did not before, 2 wrong use, or \
                  nothing to compare\n"
)]
pub struct Check {
    /// The profile directory, or its URI
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Compare with this earlier profile
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,
    /// Compare with the last 20 runs of each query, in this directory
    #[arg(long, value_name = "DIR")]
    baseline: Option<PathBuf>,
    /// Add the runs of queries without a regression to the baseline; make it if it is not there
    #[arg(long, requires = "baseline", conflicts_with = "against")]
    update: bool,
    /// By how much a time may grow: a percentage, or a part below 1
    #[arg(long, default_value = "5%", value_name = "PERCENT")]
    max_regression: Limit,
    /// Leave out the first N runs of each query in an application, which load and compile code
    #[arg(long, default_value_t = 0, value_name = "N")]
    warm_up: usize,
    /// Write a test report for a CI server: JUnit's XML, a test case for each query
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write a table for a comment on a pull request
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Rows to print (text and Markdown only)
    #[arg(long, default_value_t = 20, value_name = "N")]
    limit: usize,
}

impl Check {
    /// Prints what changed. The exit code says whether there is a regression.
    pub fn execute(self) -> Result<ExitCode> {
        let question = Question {
            limit: self.max_regression,
            warm_up: self.warm_up,
        };
        let profile = open(&self.dir)?;
        let report = Report::new(&profile)?;
        let answer = match (&self.against, &self.baseline) {
            (Some(against), _) => {
                let other = open(against)?;
                let before = ProfileRuns::new(&Report::new(&other)?, self.warm_up);
                Answer::from_profiles(&ProfileRuns::new(&report, self.warm_up), &before, question)?
            }
            (None, baseline) => {
                let path = baseline.as_deref().unwrap_or(Path::new("."));
                self.with_baseline(&report, path, question)?
            }
        };
        if let Some(path) = &self.junit {
            write_to(Some(path), |out| {
                Ok(out.write_all(junit(&answer).as_bytes())?)
            })?;
        }
        if let Some(path) = &self.markdown {
            let text = markdown(&answer, self.limit);
            write_to(Some(path), |out| Ok(out.write_all(text.as_bytes())?))?;
        }
        // The code counts even if a reader such as `head` ends early.
        match print(None, self.json, &answer, || render(&answer, self.limit)) {
            Err(error) if !is_broken_pipe(&error) => return Err(error),
            _ => {}
        }
        if answer.failed {
            crate::say!("unfuse: the check failed: a query failed or is slower than it may be");
            return Ok(ExitCode::FAILURE);
        }
        Ok(ExitCode::SUCCESS)
    }

    fn with_baseline(
        &self,
        report: &Report<'_>,
        path: &Path,
        question: Question,
    ) -> Result<Answer> {
        let runs = ProfileRuns::by_application(report, self.warm_up);
        let baseline = Baseline::read(path, &runs, self.update)?;
        let answer = Answer::from_baseline(&runs, &baseline, question, self.update)?;
        if self.update {
            let updated = baseline.update(&runs, &answer)?;
            crate::say!(
                "unfuse: {} now has the runs of {}",
                path.display(),
                unfuse_format::counted(updated, "query")
            );
            for kept in baseline.kept(&answer) {
                crate::say!(
                    "unfuse: {} stays as it is, because its query failed or is slower; remove the file to accept that, and \
                     update again",
                    kept.display()
                );
            }
        }
        Ok(answer)
    }
}
