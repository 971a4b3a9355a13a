//! A price table, TOML.

use std::collections::BTreeSet;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unfuse_files::read_given_text;

use crate::SizingError;

/// The largest table that is read, bytes.
const LARGEST: u64 = 16 << 20;
/// Maximum number of types in a table. Clouds have about a thousand.
const MOST_INSTANCES: usize = 2_000;

/// The machines on offer, with their prices.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Currency of all prices, such as USD.
    pub currency: String,
    /// The machines.
    #[serde(rename = "instance")]
    pub instances: Vec<Instance>,
}

/// A type of machine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Its name.
    pub name: String,
    /// Number of tasks that it runs at once.
    pub slots: u32,
    /// Speed of a slot relative to those of the profile.
    #[serde(default = "one")]
    pub speed: f64,
    /// Hourly price.
    pub on_demand: f64,
    /// Hourly price of a machine that can be reclaimed.
    pub spot: Option<f64>,
    /// Maximum number of machines.
    pub at_most: Option<u32>,
}

/// The price that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tariff {
    /// For permanent machines.
    OnDemand,
    /// For machines that can be reclaimed; those without such a price are left out.
    Spot,
}

fn one() -> f64 {
    1.0
}

impl Prices {
    /// Reads a table.
    ///
    /// # Errors
    /// If the file cannot be read or is invalid; the error has the file and the reason.
    pub fn read(path: &Path) -> Result<Self, SizingError> {
        let file = path.display().to_string();
        let text = read_given_text(path, LARGEST).map_err(|error| SizingError::File {
            file: file.clone(),
            why: format!("cannot be read ({error}); docs/sizing.md shows what a price table has"),
        })?;
        Self::parse(&text, &file)
    }

    /// Parses a table; `file` is for errors.
    ///
    /// # Errors
    /// As [`Prices::read`].
    pub fn parse(text: &str, file: &str) -> Result<Self, SizingError> {
        let wrong = |why: String| SizingError::File {
            file: file.to_owned(),
            why,
        };
        let prices: Self = toml::from_str(text).map_err(|error| {
            wrong(format!(
                "is no price table (docs/sizing.md): {}",
                error.to_string().trim_end()
            ))
        })?;
        if prices.instances.len() > MOST_INSTANCES {
            return Err(wrong(format!(
                "has {} instances, and {MOST_INSTANCES} are the limit: remove those that you would not use",
                prices.instances.len()
            )));
        }
        let mut names = BTreeSet::new();
        for instance in &prices.instances {
            let name = &instance.name;
            if name.is_empty() || name.contains(['=', '+', ',']) {
                return Err(wrong(format!(
                    "{name:?} cannot be a name: it is empty or has one of = + ,"
                )));
            }
            if !names.insert(name) {
                return Err(wrong(format!("{name} occurs twice")));
            }
            if instance.slots == 0 {
                return Err(wrong(format!("{name} has no slots")));
            }
            if !(instance.speed.is_finite() && (0.01..=100.0).contains(&instance.speed)) {
                return Err(wrong(format!(
                    "{name}: a speed of {} is impossible; it must be 0.01 to 100",
                    instance.speed
                )));
            }
            for price in [Some(instance.on_demand), instance.spot]
                .into_iter()
                .flatten()
            {
                if !(price.is_finite() && price > 0.0) {
                    return Err(wrong(format!(
                        "{name}: a price of {price} is impossible; it must be above zero"
                    )));
                }
            }
        }
        if prices.instances.is_empty() {
            return Err(wrong("has no instance".into()));
        }
        Ok(prices)
    }

    /// Machines without a price of a tariff.
    pub fn without(&self, tariff: Tariff) -> Vec<&str> {
        let unpriced = self
            .instances
            .iter()
            .filter(|instance| instance.price(tariff).is_none());
        unpriced.map(|instance| instance.name.as_str()).collect()
    }
}

impl Instance {
    /// Its hourly price in a tariff, if it has one.
    pub fn price(&self, tariff: Tariff) -> Option<f64> {
        match tariff {
            Tariff::OnDemand => Some(self.on_demand),
            Tariff::Spot => self.spot,
        }
    }

    /// Its slots, in slots of the profile's speed.
    pub fn capacity(&self) -> f64 {
        f64::from(self.slots) * self.speed
    }
}
