//! Options that all questions share: a job profile, the
//! size of the input, iterations, a model, and prices.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use unfuse_format::units;
use unfuse_report::size::Job;
use unfuse_report::text::list;
use unfuse_sizing::{self as sizing, Market, Prices, Profile, Range, Tariff};

/// The job as it is asked about.
#[derive(Debug, Args)]
pub(super) struct JobArgs {
    /// The job profile that `unfuse size fit` wrote
    #[arg(value_name = "PROFILE")]
    profile: PathBuf,
    /// Iterations of the job [default: as in the runs, if it was the same in all]
    #[arg(long, value_name = "N")]
    iterations: Option<f64>,
    /// Input of the job, such as 12GB [default: as in the runs, if it was the same in all]
    #[arg(long, alias = "size", value_name = "SIZE", value_parser = units::parse_size)]
    input_size: Option<u64>,
    /// The model [default: the model with the lower error on held-out runs]
    #[arg(long, value_enum)]
    model: Option<Model>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Model {
    /// Equation 8 of OptEx
    ClosedForm,
    /// The measured stages on other slots
    Replay,
}

impl From<Model> for sizing::Model {
    fn from(model: Model) -> Self {
        match model {
            Model::ClosedForm => Self::ClosedForm,
            Model::Replay => Self::Replay,
        }
    }
}

/// Where machines are bought.
#[derive(Debug, Args)]
pub(super) struct Shop {
    /// The price table (TOML, see docs/sizing.md)
    #[arg(long, value_name = "FILE")]
    prices: PathBuf,
    /// Use spot prices; machines without one are left out
    #[arg(long)]
    spot: bool,
}

impl JobArgs {
    /// Reads the profile and completes the question.
    pub(super) fn open(&self) -> Result<Job> {
        let profile = Profile::read(&self.profile)?;
        let known = profile.ranges();
        let iterations = chosen(
            "iterations",
            "--iterations",
            self.iterations,
            known.iterations,
        )?;
        let bytes = self.input_size.map(|bytes| bytes as f64);
        let bytes = chosen("bytes of input", "--input-size", bytes, known.bytes)?;
        let model = self.model.map(Into::into);
        Ok(Job::new(profile, model, iterations, bytes))
    }
}

/// The value of the option, or the value that all runs had.
fn chosen(what: &str, option: &str, said: Option<f64>, range: Range) -> Result<f64> {
    match said {
        Some(value) => Ok(value),
        None if range.is_point() => Ok(range.most),
        None => bail!(
            "the runs had {:.0} to {:.0} {what}: choose a number with {option}",
            range.least,
            range.most
        ),
    }
}

impl Shop {
    pub(super) fn tariff(&self) -> Tariff {
        if self.spot {
            Tariff::Spot
        } else {
            Tariff::OnDemand
        }
    }

    /// All clusters within the range that the profile can predict.
    pub(super) fn market(&self, job: &Job) -> Result<Market> {
        let prices = Prices::read(&self.prices)?;
        let without = prices.without(self.tariff());
        if !without.is_empty() {
            crate::say!(
                "unfuse: machines without a spot price are left out: {}",
                list(&without)
            );
        }
        let reach = job.profile().reach();
        Ok(Market::new(
            &prices,
            self.tariff(),
            reach.least,
            reach.most,
        )?)
    }
}

/// A deadline, after the start of the job.
pub(super) fn deadline(text: &str) -> Result<Duration, String> {
    let deadline = units::parse_duration(text)?;
    if deadline.is_zero() {
        return Err("a duration above 0 is expected".to_owned());
    }
    Ok(deadline)
}
