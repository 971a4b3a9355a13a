//! How long a Spark job takes on another cluster, and which cluster is the cheapest.
//!
//! The closed form is that of OptEx (Sidhanta, Golab, Mukhopadhyay: *OptEx: A Deadline-Aware Cost Optimization Model
//! for Spark*, CCGrid 2016); equations, sections and tables in these docs are that paper's. A second model, of our own,
//! replays the measured stages on another number of slots.
//!
//! Data goes through stages, each with its own type:
//!
//! * [`Run`]: one run of the job from an event log or a profile directory, at a [`Point`] (slots, iterations, size).
//! * [`ClosedForm`]: equation 8, fitted. [`Replay`]: stages, tasks and their order, scaled. [`Validation`]: how well
//!   each predicts runs that it has not seen.
//! * [`Profile`]: all of it, as stored in a file. [`Prediction`]: seconds with an interval.
//! * [`Prices`]: prices of machines. [`Offer`]: a cluster with its time and cost; [`cheapest`], [`best`] and [`curve`]
//!   answer section V.
//!
//! ```
//! use unfuse_sizing::*;
//!
//! // A job of 10 s, and 120 s of work that any number of slots shares.
//! let time = |slots: f64| Ok(10.0 + 120.0 / slots);
//! let prices = Prices::parse(
//!     "currency = 'USD'\n[[instance]]\nname = 'small'\nslots = 2\non_demand = 0.10\n", "prices.toml",
//! )?;
//! let market = Market::new(&prices, Tariff::OnDemand, 1.0, 16.0)?;
//! let offer = cheapest(&market, &time, None, 30.0)?;
//! assert_eq!(offer.cluster.to_string(), "4 small"); // 8 slots take 25 s, 6 take exactly 30
//! # Ok::<(), SizingError>(())
//! ```

mod category;
mod closed_form;
mod cluster;
mod error;
mod input;
mod least_squares;
mod point;
mod prediction;
mod profile;
mod replay;
mod run;
#[cfg(test)]
mod tests;
mod validation;
pub mod what_if;

pub use category::Category;
pub use closed_form::{ClosedForm, Terms};
pub use cluster::{
    Cluster, Instance, Market, Offer, Prices, RelaxedOptimum, Tariff, Time, best, cheapest, curve,
    relaxed,
};
pub use error::SizingError;
pub use input::{GivenValues, LeftOut, Logs, read};
pub use point::{Point, Range, Ranges};
pub use prediction::{Chance, Prediction};
pub use profile::{Baselines, Model, Profile, UnitTask};
pub use replay::{Replay, makespan};
pub use run::{Phases, Run, Stage, Times};
pub use validation::{HeldOut, Validation};
