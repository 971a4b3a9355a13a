//! The answers as data, which `--json` prints.

use schemars::JsonSchema;
use serde::Serialize;
use unfuse_sizing::{
    Chance, Cluster, Market, Model, Offer, Prediction, RelaxedOptimum, SizingError, Tariff, best,
    cheapest, curve,
};

use super::Job;
use crate::ReportError;

/// How long a job takes on one cluster.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PredictionAnswer {
    /// Its machines; none if the question was about slots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Cluster>,
    /// The time and its interval.
    #[serde(flatten)]
    pub prediction: Prediction,
    /// The probability that the job meets the deadline, 0 to 1, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Chance>,
}

/// The best cluster.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Answer {
    /// The currency of the prices.
    pub currency: String,
    /// The tariff of the prices.
    pub tariff: Tariff,
    /// The model that predicted the time.
    pub model: Model,
    /// The cluster with its time and price.
    #[serde(flatten)]
    pub offer: PricedOffer,
    /// The probability that the job meets the deadline, 0 to 1, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Chance>,
    /// The least cost with fractional numbers of machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<RelaxedOptimum>,
    /// Notes on doubtful numbers.
    pub notes: Vec<String>,
}

/// An offer with the interval of its time.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PricedOffer {
    /// The cluster with its estimated time and cost.
    #[serde(flatten)]
    pub offer: Offer,
    /// Lower end of the interval that contains 95 of 100 runs, s.
    pub low: f64,
    /// Upper end, s.
    pub high: f64,
}

/// All clusters that no other one beats in both time and cost.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Curve {
    /// The application's name.
    pub application: String,
    /// The currency of the prices.
    pub currency: String,
    /// The tariff of the prices.
    pub tariff: Tariff,
    /// The model that predicted the times.
    pub model: Model,
    /// The offers, fastest first.
    pub offers: Vec<PricedOffer>,
    /// Notes on doubtful numbers.
    pub notes: Vec<String>,
}

impl PredictionAnswer {
    /// Predicts the time of a job on a number of slots and, if there is a deadline in s, the probability that the job
    /// meets it.
    ///
    /// # Errors
    /// If the profile's runs do not allow a prediction.
    pub fn new(
        job: &Job,
        cluster: Option<Cluster>,
        slots: f64,
        deadline: Option<f64>,
    ) -> Result<Self, SizingError> {
        let prediction = job.predict(slots)?;
        Ok(Self {
            cluster,
            deadline: deadline.map(|deadline| prediction.chance(deadline)),
            prediction,
        })
    }
}

impl PricedOffer {
    /// An offer at its estimate, even if the question was about an end of the interval.
    fn new(offer: Offer, prediction: &Prediction) -> Self {
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
    /// The cheapest cluster on which a job ends before a deadline in s. If `sure`, the upper end of the interval must
    /// be before it, too.
    ///
    /// # Errors
    /// If no cluster meets the deadline, or the profile's runs do not allow a prediction.
    pub fn cheapest(
        job: &Job,
        market: &Market,
        tariff: Tariff,
        deadline: f64,
        sure: bool,
    ) -> Result<Self, SizingError> {
        let time = |slots: f64| Ok(job.predict(slots)?.seconds);
        if sure {
            let upper = |slots: f64| Ok(job.predict(slots)?.high);
            let offer = cheapest(market, &time, Some(&upper), deadline)?;
            return Self::new(job, market, tariff, offer, Some(deadline));
        }
        let offer = cheapest(market, &time, None, deadline)?;
        let mut answer = Self::new(job, market, tariff, offer, Some(deadline))?;
        // The answer is valid without the bound.
        match job.bound(market, deadline) {
            Ok(bound) => answer.bound = bound,
            Err(error) => answer
                .notes
                .push(format!("no bound of the cost is known: {error}")),
        }
        Ok(answer)
    }

    /// The fastest cluster on which a job costs at most a budget and, if there is a deadline in s, meets it.
    ///
    /// # Errors
    /// If no cluster is within the budget, if those that are miss the deadline, or if the profile's runs do not allow a
    /// prediction.
    pub fn best(
        job: &Job,
        market: &Market,
        tariff: Tariff,
        budget: f64,
        deadline: Option<f64>,
    ) -> Result<Self, ReportError> {
        let time = |slots: f64| Ok(job.predict(slots)?.seconds);
        let offer = best(market, &time, budget)?;
        if let Some(deadline) = deadline.filter(|deadline| offer.seconds >= *deadline) {
            // Fails if no cluster meets it at any price.
            let needed = cheapest(market, &time, None, deadline)?;
            return Err(ReportError::Refused(format!(
                "{budget} {currency} are not enough for a deadline of {deadline:.1} s: the fastest for it is {cluster}, which takes {seconds:.1} s; \
                 the cheapest that is in time is {other} and costs {cost:.4} {currency}",
                currency = market.currency,
                cluster = offer.cluster,
                seconds = offer.seconds,
                other = needed.cluster,
                cost = needed.cost,
            )));
        }
        Ok(Self::new(job, market, tariff, offer, deadline)?)
    }

    fn new(
        job: &Job,
        market: &Market,
        tariff: Tariff,
        offer: Offer,
        deadline: Option<f64>,
    ) -> Result<Self, SizingError> {
        let prediction = job.predict(offer.slots)?;
        Ok(Self {
            currency: market.currency.clone(),
            tariff,
            model: job.model,
            offer: PricedOffer::new(offer, &prediction),
            deadline: deadline.map(|deadline| prediction.chance(deadline)),
            bound: None,
            notes: prediction.notes,
        })
    }
}

impl Curve {
    /// The clusters that no other one beats in both time and cost.
    ///
    /// # Errors
    /// If the profile's runs do not allow a prediction for the market's clusters.
    pub fn new(job: &Job, market: &Market, tariff: Tariff) -> Result<Self, SizingError> {
        let time = |slots: f64| Ok(job.predict(slots)?.seconds);
        let mut priced = Vec::new();
        let mut all_notes = Vec::new();
        for offer in curve(market, &time)? {
            let prediction = job.predict(offer.slots)?;
            priced.push(PricedOffer::new(offer, &prediction));
            all_notes.push(prediction.notes);
        }
        // Each note mentions its number of slots; those of the fastest and the cheapest cluster are enough.
        let mut notes = all_notes.first().cloned().unwrap_or_default();
        for note in all_notes.pop().unwrap_or_default() {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        Ok(Self {
            application: job.profile.application.clone(),
            currency: market.currency.clone(),
            tariff,
            model: job.model,
            offers: priced,
            notes,
        })
    }
}
