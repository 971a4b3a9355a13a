//! Offers with their intervals, as JSON has them.

use anyhow::Result;
use serde::Serialize;
use unfuse_sizing::{Chance, Market, Model, Offer, Prediction, Relaxed, Tariff};

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
    /// An offer at its estimate, whatever end of the interval was asked for.
    fn of(offer: Offer, prediction: &Prediction) -> Self {
        Self {
            offer: Offer {
                seconds: prediction.seconds,
                cost: offer.per_hour * prediction.seconds / 3600.0,
                ..offer
            },
            low: prediction.low,
            high: prediction.high,
        }
    }
}

impl Answer {
    pub(super) fn of(
        about: &About,
        market: &Market,
        shop: &Shop,
        offer: Offer,
        deadline: Option<f64>,
    ) -> Result<Self> {
        let prediction = about.predict(offer.slots)?;
        Ok(Self {
            currency: market.currency.clone(),
            tariff: shop.tariff(),
            model: about.model,
            offer: Priced::of(offer, &prediction),
            deadline: deadline.map(|deadline| prediction.chance(deadline)),
            bound: None,
            notes: prediction.notes,
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
        let mut priced = Vec::new();
        let mut all_notes = Vec::new();
        for offer in offers {
            let prediction = about.predict(offer.slots)?;
            priced.push(Priced::of(offer, &prediction));
            all_notes.push(prediction.notes);
        }
        // Each note says its own slots: those of the fastest and of the cheapest are enough.
        let mut notes = all_notes.first().cloned().unwrap_or_default();
        for note in all_notes.pop().unwrap_or_default() {
            if !notes.contains(&note) {
                notes.push(note);
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
