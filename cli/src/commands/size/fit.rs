//! `unfuse size fit`: a profile of a job from event logs and profile directories of its runs.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;
use unfuse_sizing::{
    self as sizing, Baselines, Category, ClosedForm, Given, LeftOut, Model, Profile, Ranges,
    SizingError, UnitTask, Validation,
};

use super::{print, text};
use crate::output::write_to;

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

/// What a fit has to say.
#[derive(Serialize)]
pub(super) struct Fitted<'a> {
    pub profile: String,
    pub application: &'a str,
    pub category: Category,
    pub runs: usize,
    pub ranges: Ranges,
    pub closed_form: &'a ClosedForm,
    pub baselines: &'a Baselines,
    pub unit_tasks: &'a [UnitTask],
    pub models: [Fits; 2],
    pub chosen: Model,
    pub validation: &'a Validation,
    pub left_out: Vec<LeftOut>,
    pub notes: Vec<String>,
}

/// How well a model fits, as mean relative errors.
#[derive(Serialize)]
pub(super) struct Fits {
    pub model: Model,
    pub fit_error: f64,
    pub held_out_error: Option<f64>,
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
            let known: std::collections::BTreeSet<String> = logs
                .runs
                .iter()
                .map(|run| run.application.clone())
                .collect();
            logs.runs.retain(|run| run.application == *wanted);
            if logs.runs.is_empty() && !known.is_empty() {
                let known = known.into_iter().collect();
                return Err(SizingError::NoApplication {
                    wanted: wanted.clone(),
                    known,
                }
                .into());
            }
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
        let fits = |model| Fits {
            model,
            fit_error: profile.fit_error(model),
            held_out_error: profile.validation.mean_error(model),
        };
        let fitted = Fitted {
            profile: self.out.display().to_string(),
            application: &profile.application,
            category: profile.category,
            runs: profile.runs.len(),
            ranges: profile.ranges(),
            closed_form: &profile.closed,
            baselines: &profile.baselines,
            unit_tasks: &profile.units,
            models: [fits(Model::ClosedForm), fits(Model::Replay)],
            chosen: profile.model,
            validation: &profile.validation,
            left_out: logs.left_out,
            notes: logs.notes,
        };
        print(self.json, &fitted, || text::fitted(&fitted))
    }
}
