//! What every question has: a profile, a size and iterations; and where machines are bought.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use unfuse_format::Retention;
use unfuse_sizing::{
    self as sizing, Cluster, Market, Point, Prediction, Prices, Profile, Range, Relaxed,
    SizingError, Tariff, relaxed,
};

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

/// A profile, and what is asked of it.
pub(super) struct About {
    pub profile: Profile,
    pub model: sizing::Model,
    iterations: f64,
    bytes: f64,
}

impl Asked {
    /// Reads the profile and completes the question.
    pub(super) fn open(&self) -> Result<About> {
        let profile = Profile::read(&self.profile)?;
        let ranges = profile.ranges();
        let (iterations, bytes) = (ranges.iterations, ranges.bytes);
        Ok(About {
            model: self.model.map_or(profile.model, Into::into),
            iterations: chosen("iterations", "--iterations", self.iterations, iterations)?,
            bytes: chosen("bytes of input", "--size", self.size, bytes)?,
            profile,
        })
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

impl About {
    fn at(&self, slots: f64) -> Point {
        Point {
            slots,
            iterations: self.iterations,
            bytes: self.bytes,
        }
    }

    pub(super) fn predict(&self, slots: f64) -> Result<Prediction, SizingError> {
        self.profile.predict(&self.at(slots), Some(self.model))
    }

    /// What no cluster costs less than; only the closed form is convex, so of it.
    pub(super) fn bound(
        &self,
        market: &Market,
        deadline: f64,
    ) -> Result<Option<Relaxed>, SizingError> {
        if self.model != sizing::Model::ClosedForm {
            return Ok(None);
        }
        let terms = self.profile.closed.by_slots(&self.at(1.0));
        relaxed(market, terms, deadline)
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
    pub(super) fn market(&self, about: &About) -> Result<Market> {
        let prices = Prices::read(&self.prices)?;
        let without = prices.without(self.tariff());
        if !without.is_empty() {
            crate::say!(
                "unfuse: left out, as without a spot price: {}",
                unfuse_report::text::list(&without)
            );
        }
        let reach = about.profile.reach();
        Ok(Market::new(
            &prices,
            self.tariff(),
            reach.least,
            reach.most,
        )?)
    }
}

/// Machines as `TYPE=N,TYPE=N`, with their slots.
pub(super) fn cluster(text: &str, prices: &Path) -> Result<(Cluster, f64)> {
    let table = Prices::read(prices)?;
    let mut machines = Vec::new();
    let mut slots = 0.0;
    for part in text.split(',') {
        let named = part
            .split_once('=')
            .map(|(name, count)| (name.trim(), count.trim().parse::<u32>()));
        let Some((name, Ok(count))) = named else {
            bail!("--cluster {text}: {part:?} is not TYPE=N, such as m5.xlarge=3");
        };
        let Some(instance) = table
            .instances
            .iter()
            .find(|instance| instance.name == name)
        else {
            let known: Vec<&String> = table
                .instances
                .iter()
                .map(|instance| &instance.name)
                .collect();
            bail!(
                "{} has no {name}; it has {}",
                prices.display(),
                unfuse_report::text::list(&known)
            );
        };
        if let Some(most) = instance.at_most.filter(|most| count > *most) {
            bail!(
                "--cluster {text}: of {name} there are {most} at most, by {}",
                prices.display()
            );
        }
        slots += f64::from(count) * instance.capacity();
        machines.push((name.to_owned(), count));
    }
    Ok((Cluster(machines), slots))
}

/// Bytes, or a size with a unit.
fn size(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(bytes) => Ok(bytes),
        Err(_) => Retention::parse_size(text).map(|bytes| bytes as f64),
    }
}
