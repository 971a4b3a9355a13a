//! `unfuse size fit`: a profile of a job from event logs and profile directories of its runs.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use unfuse_report::size::{Fitted, keep_application, render_fit};
use unfuse_sizing::{self as sizing, Given, Profile};

use crate::output::{print, write_to};

/// Make a job's profile from the event logs or profile directories of some runs
#[derive(Debug, Args)]
pub(super) struct Fit {
    /// Event logs, profile directories that `unfuse run` wrote, or directories of either
    #[arg(value_name = "LOG|DIR", required = true)]
    logs: Vec<PathBuf>,
    /// Iterations and size of each run: a CSV file with the columns log (the name of the log or profile directory), iterations, bytes
    #[arg(long, value_name = "FILE")]
    runs: Option<PathBuf>,
    /// Only runs of the application of this name
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    /// The profile to write
    #[arg(short, long, value_name = "FILE", default_value = "sizing.toml")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Fit {
    pub(super) fn execute(self) -> Result<()> {
        let given = self
            .runs
            .as_deref()
            .map(Given::read)
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
        write_to(Some(&self.out), |out| Ok(out.write_all(toml.as_bytes())?))
            .context("the profile is not saved")?;
        let saved_as = self.out.display().to_string();
        let fitted = Fitted::new(&profile, saved_as, logs.left_out, logs.notes);
        print(None, self.json, &fitted, || render_fit(&fitted))
    }
}
