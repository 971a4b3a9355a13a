//! What every question has: a profile, a size and iterations; and where machines are bought.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use unfuse_format::Retention;
use unfuse_report::size::Job;
use unfuse_report::text::list;
use unfuse_sizing::{self as sizing, Market, Prices, Profile, Range, Tariff};

/// The job as it is asked about.
#[derive(Debug, Args)]
pub(super) struct Asked {
    /// The profile that `unfuse size fit` wrote
    #[arg(value_name = "PROFILE")]
    profile: PathBuf,
    /// Iterations of the job [default: as in the runs, if they were all the same]
    #[arg(long, value_name = "N")]
    iterations: Option<f64>,
    /// Input of the job, in bytes or such as 12GB [default: as in the runs, if it was always the same]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    size: Option<f64>,
    /// The model to use [default: the one that predicted runs better that it had not seen]
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
    /// The price table, TOML
    #[arg(long, value_name = "FILE")]
    prices: PathBuf,
    /// Spot prices; machines without one are left out
    #[arg(long)]
    spot: bool,
}

impl Asked {
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
        let bytes = chosen("bytes of input", "--size", self.size, known.bytes)?;
        let model = self.model.map(Into::into);
        Ok(Job::new(profile, model, iterations, bytes))
    }
}

/// What was said, or what was always so.
fn chosen(what: &str, option: &str, said: Option<f64>, range: Range) -> Result<f64> {
    match said {
        Some(value) => Ok(value),
        None if range.is_point() => Ok(range.most),
        None => bail!(
            "the runs had {:.0} to {:.0} {what}: say with {option} what you ask about",
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

    /// All clusters that the profile can say something of.
    pub(super) fn market(&self, job: &Job) -> Result<Market> {
        let prices = Prices::read(&self.prices)?;
        let without = prices.without(self.tariff());
        if !without.is_empty() {
            crate::say!(
                "unfuse: left out, as without a spot price: {}",
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

/// Bytes, or a size with a unit.
fn size(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(bytes) => Ok(bytes),
        Err(_) => Retention::parse_size(text).map(|bytes| bytes as f64),
    }
}
