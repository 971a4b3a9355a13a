//! `unfuse size fit`: makes a job profile from event logs and profile directories of runs.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use unfuse_report::size::{FitAnswer, keep_application, render_fit};
use unfuse_sizing::{self as sizing, GivenValues, Profile};

use crate::output::{print, write_to};

/// Make a job profile from event logs or profile directories of some runs
#[derive(Debug, Args)]
pub(super) struct Fit {
    /// Event logs, profile directories that `unfuse run` wrote, or directories that contain them
    #[arg(value_name = "LOG|DIR", required = true)]
    logs: Vec<PathBuf>,
    /// Iterations and input of each run: a CSV file with the columns log (name of the event log or profile directory), iterations, bytes
    #[arg(long, value_name = "FILE")]
    runs: Option<PathBuf>,
    /// Only applications of this name
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    /// The job profile to write
    #[arg(
        short,
        long,
        alias = "out",
        value_name = "FILE",
        default_value = "sizing.toml"
    )]
    output: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Fit {
    pub(super) fn execute(self) -> Result<()> {
        let given = self
            .runs
            .as_deref()
            .map(GivenValues::read)
            .transpose()?
            .unwrap_or_default();
        let mut logs = sizing::read(&self.logs, &given)?;
        if let Some(wanted) = &self.app {
            keep_application(&mut logs, wanted)?;
        }
        let left_out: Vec<String> = logs
            .left_out
            .iter()
            .map(|log| format!("{} is left out: {}", log.log, log.why))
            .collect();
        let profile = match Profile::fit(logs.runs) {
            Ok(profile) => profile,
            Err(error) => {
                for line in left_out.iter().chain(&logs.notes) {
                    crate::say!("unfuse: {line}");
                }
                bail!(error);
            }
        };
        logs.notes.extend(profile.confounded());
        let toml = profile.to_toml()?;
        write_to(
            Some(&self.output),
            |out| Ok(out.write_all(toml.as_bytes())?),
        )
        .context("cannot save the job profile")?;
        let saved_as = self.output.display().to_string();
        let fitted = FitAnswer::new(&profile, saved_as, logs.left_out, logs.notes);
        print(None, self.json, &fitted, || render_fit(&fitted))
    }
}
