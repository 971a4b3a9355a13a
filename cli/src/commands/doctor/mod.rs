//! `unfuse doctor`: what works on this machine, and how to fix what does not.

mod checks;
mod plugin;
mod redact;
mod report;

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use self::checks::Checks;
use crate::output::{form, write_plain_to};

/// Check whether profiling works on this machine: perf_event, JDKs, Spark
///
/// The exit code is 1 if profiling cannot work.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Print a text for a bug report: versions, kernel, permissions, JDKs, Spark and failed checks, without names of users and
    /// hosts, paths below a home directory, and command lines
    #[arg(long)]
    report: bool,
    /// Also check what the Spark plugin needs (spark.plugins=io.unfuse.spark.UnfusePlugin), and list what it cannot do
    #[arg(long)]
    spark: bool,
}

impl Doctor {
    /// Prints the findings; exit code 1 if profiling cannot work.
    pub fn execute(self) -> Result<ExitCode> {
        let checks = Checks::run(self.spark);
        let text = if self.report {
            report::render(&checks)
        } else {
            checks.render()
        };
        write_plain_to(None, form(false), |out| Ok(out.write_all(text.as_bytes())?))?;
        Ok(if checks.has_failed() {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }
}
