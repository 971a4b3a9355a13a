//! Offers with their intervals, as JSON has them.

use anyhow::Result;
use serde::Serialize;
use unfuse_sizing::{Chance, Market, Model, Offer, Relaxed, Tariff};

use super::asked::{About, Shop};

/// The cluster to take.
#[derive(Serialize)]
pub(super) struct Answer {
    pub currency: String,
    pub tariff: Tariff,
    pub model: Model,
    #[serde(flatten)]
    pub offer: Priced,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Chance>,
    /// With broken numbers of machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Relaxed>,
    pub notes: Vec<String>,
}

/// An offer with the interval of its time.
#[derive(Serialize)]
pub(super) struct Priced {
    #[serde(flatten)]
    pub offer: Offer,
    pub low: f64,
    pub high: f64,
}

/// All that are worth having.
#[derive(Serialize)]
pub(super) struct Curve {
    pub application: String,
    pub currency: String,
    pub tariff: Tariff,
    pub model: Model,
    pub offers: Vec<Priced>,
    pub notes: Vec<String>,
}

impl Priced {
    /// An offer at its estimate, whatever end of the interval was asked for, and what must be said of it.
    fn of(about: &About, offer: Offer) -> Result<(Self, Vec<String>)> {
        let prediction = about.predict(offer.slots)?;
        let offer = Offer {
            seconds: prediction.seconds,
            cost: offer.per_hour * prediction.seconds / 3600.0,
            ..offer
        };
        let priced = Self {
            offer,
            low: prediction.low,
            high: prediction.high,
        };
        Ok((priced, prediction.notes))
    }
}

impl Answer {
    pub(super) fn of(
        about: &About,
        market: &Market,
        shop: &Shop,
        offer: Offer,
        deadline: Option<f64>,
        bound: Option<Relaxed>,
    ) -> Result<Self> {
        let prediction = about.predict(offer.slots)?;
        let (offer, notes) = Priced::of(about, offer)?;
        Ok(Self {
            currency: market.currency.clone(),
            tariff: shop.tariff(),
            model: about.model,
            offer,
            deadline: deadline.map(|deadline| prediction.chance(deadline)),
            bound,
            notes,
        })
    }
}

impl Curve {
    pub(super) fn of(
        about: &About,
        market: &Market,
        shop: &Shop,
        offers: Vec<Offer>,
    ) -> Result<Self> {
        let mut notes = Vec::new();
        let mut priced = Vec::new();
        for offer in offers {
            let (offer, own) = Priced::of(about, offer)?;
            priced.push(offer);
            // Each says its own slots; one of a kind is enough.
            if notes.is_empty() {
                notes = own;
            }
        }
        Ok(Self {
            application: about.profile.application.clone(),
            currency: market.currency.clone(),
            tariff: shop.tariff(),
            model: about.model,
            offers: priced,
            notes,
        })
    }
}
