//! Clusters, their prices, and section V's questions.

mod market;
mod prices;
mod questions;
mod relaxed;

pub use self::market::{Cluster, Market};
pub use self::prices::{Instance, Prices, Tariff};
pub use self::questions::{Offer, Time, best, cheapest, curve};
pub use self::relaxed::{RelaxedOptimum, relaxed};
