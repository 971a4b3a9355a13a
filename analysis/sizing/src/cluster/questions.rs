//! The cheapest cluster for a deadline, the fastest for a budget, and the curve between them.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Cluster, Market};
use crate::SizingError;

/// Completion time in s on a number of slots.
pub type Time<'a> = dyn Fn(f64) -> Result<f64, SizingError> + 'a;

/// A cluster with the time and cost of the job.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Offer {
    /// The machines.
    pub cluster: Cluster,
    /// Its capacity.
    pub slots: f64,
    /// *T_Est*, s.
    pub seconds: f64,
    /// Hourly price.
    pub per_hour: f64,
    /// Price of the job, equation 9.
    pub cost: f64,
}

impl Market {
    /// The cheapest cluster of each capacity with its time.
    ///
    /// # Errors
    /// If the time cannot be predicted.
    pub fn offers(&self, time: &Time) -> Result<Vec<Offer>, SizingError> {
        let offer = |(slots, price, counts): &(f64, f64, Vec<(usize, u32)>)| {
            let seconds = time(*slots)?;
            Ok(Offer {
                cluster: self.cluster(counts),
                slots: *slots,
                seconds,
                per_hour: *price,
                cost: price * seconds / 3600.0,
            })
        };
        self.clusters.iter().map(offer).collect()
    }

    fn money(&self, amount: f64) -> String {
        format!("{amount:.4} {}", self.currency)
    }
}

/// The cheapest cluster that meets a deadline in s: objective 9 under T_Est < SLO. For more certainty, `end` replaces
/// the time in the comparison, such as the upper end of an interval.
///
/// # Errors
/// [`SizingError::NoCluster`] with the best possible cluster, if none meets it.
pub fn cheapest(
    market: &Market,
    time: &Time,
    end: Option<&Time>,
    deadline: f64,
) -> Result<Offer, SizingError> {
    positive("the deadline", deadline)?;
    let offers = market.offers(time)?;
    let ends: Vec<f64> = offers
        .iter()
        .map(|offer| end.map_or(Ok(offer.seconds), |end| end(offer.slots)))
        .collect::<Result<_, _>>()?;
    let with_ends = || offers.iter().zip(&ends);
    let in_time = with_ends().filter(|(_, end)| **end < deadline);
    let found = in_time.map(|(offer, _)| offer).min_by(|a, b| {
        a.cost
            .total_cmp(&b.cost)
            .then(a.seconds.total_cmp(&b.seconds))
    });
    if let Some(offer) = found {
        return Ok(offer.clone());
    }
    let fastest = with_ends().min_by(|(_, a), (_, b)| a.total_cmp(b));
    let nothing = SizingError::NoMachines {
        least: market.least,
        most: market.most,
    };
    let (fastest, end) = fastest.ok_or(nothing)?;
    Err(SizingError::NoCluster {
        deadline,
        seconds: *end,
        cluster: fastest.cluster.to_string(),
        cost: market.money(fastest.cost),
        least: market.least,
        most: market.most,
    })
}

/// The fastest cluster on which the job is within a budget; of equally fast ones the cheapest.
///
/// # Errors
/// [`SizingError::NoBudget`] with the cheapest cluster, if none is within it.
pub fn best(market: &Market, time: &Time, budget: f64) -> Result<Offer, SizingError> {
    positive("the budget", budget)?;
    let offers = market.offers(time)?;
    let affordable = offers.iter().filter(|offer| offer.cost <= budget);
    let found = affordable.min_by(|a, b| {
        a.seconds
            .total_cmp(&b.seconds)
            .then(a.cost.total_cmp(&b.cost))
    });
    if let Some(offer) = found {
        return Ok(offer.clone());
    }
    let cheapest = offers.iter().min_by(|a, b| a.cost.total_cmp(&b.cost));
    let nothing = SizingError::NoMachines {
        least: market.least,
        most: market.most,
    };
    let cheapest = cheapest.ok_or(nothing)?;
    Err(SizingError::NoBudget {
        budget: market.money(budget),
        cluster: cheapest.cluster.to_string(),
        seconds: cheapest.seconds,
        cost: market.money(cheapest.cost),
    })
}

/// The offers that no other one beats in both time and cost (Pareto), the fastest first.
///
/// # Errors
/// If the time cannot be predicted.
pub fn curve(market: &Market, time: &Time) -> Result<Vec<Offer>, SizingError> {
    let mut offers = market.offers(time)?;
    offers.sort_by(|a, b| {
        a.seconds
            .total_cmp(&b.seconds)
            .then(a.cost.total_cmp(&b.cost))
    });
    let mut least = f64::INFINITY;
    offers.retain(|offer| {
        let cheaper = offer.cost < least;
        least = least.min(offer.cost);
        cheaper
    });
    Ok(offers)
}

pub(super) fn positive(what: &str, value: f64) -> Result<(), SizingError> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(SizingError::Amount {
        what: what.to_owned(),
        value,
    })
}
