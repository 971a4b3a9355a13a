//! The answers as data, as JSON has them.

use serde::Serialize;
use unfuse_sizing::{
    Chance, Cluster, Market, Model, Offer, Prediction, RelaxedOptimum, SizingError, Tariff, best,
    cheapest, curve,
};

use super::Job;
use crate::ReportError;

/// How long a job takes on one cluster.
#[derive(Debug, Serialize)]
pub struct Predicted {
    /// Its machines; none where only slots were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Cluster>,
    /// The time with its interval.
    #[serde(flatten)]
    pub prediction: Prediction,
    /// How likely the deadline is met, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Chance>,
}

/// The cluster to take.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// That of the prices.
    pub currency: String,
    /// Which of the prices count.
    pub tariff: Tariff,
    /// The model that predicted the time.
    pub model: Model,
    /// The cluster, its time and its price.
    #[serde(flatten)]
    pub offer: Priced,
    /// How likely the deadline is met, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Chance>,
    /// The least cost with broken numbers of machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<RelaxedOptimum>,
    /// What is doubtful.
    pub notes: Vec<String>,
}

/// An offer with the interval of its time.
#[derive(Debug, Serialize)]
pub struct Priced {
    /// The cluster with its estimated time and cost.
    #[serde(flatten)]
    pub offer: Offer,
    /// Lower end of the interval that holds 95 of 100 runs, s.
    pub low: f64,
    /// Upper end, s.
    pub high: f64,
}

/// All clusters that are worth having.
#[derive(Debug, Serialize)]
pub struct Curve {
    /// The application's name.
    pub application: String,
    /// That of the prices.
    pub currency: String,
    /// Which of the prices count.
    pub tariff: Tariff,
    /// The model that predicted the times.
    pub model: Model,
    /// Fastest first.
    pub offers: Vec<Priced>,
    /// What is doubtful.
    pub notes: Vec<String>,
}

impl Predicted {
    /// How long a job takes on a number of slots, and how likely that is before a deadline in s.
    ///
    /// # Errors
    /// If the profile's runs do not tell.
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

impl Priced {
    /// An offer at its estimate, whatever end of the interval was asked for.
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
    /// The cheapest cluster on which a job ends before a deadline in s. If it is to be `sure`, the upper end of the
    /// interval must be before it, too.
    ///
    /// # Errors
    /// If no cluster ends before it, or the profile's runs do not tell.
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
        // The answer holds without it.
        match job.bound(market, deadline) {
            Ok(bound) => answer.bound = bound,
            Err(error) => answer
                .notes
                .push(format!("no bound of the cost is known: {error}")),
        }
        Ok(answer)
    }

    /// The fastest cluster on which a job costs no more than a budget and, if there is a deadline in s, ends before it.
    ///
    /// # Errors
    /// If nothing is to be had for the budget, if what is ends too late, or if the profile's runs do not tell.
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
            // Says so if nothing meets it at any price.
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
            offer: Priced::new(offer, &prediction),
            deadline: deadline.map(|deadline| prediction.chance(deadline)),
            bound: None,
            notes: prediction.notes,
        })
    }
}

impl Curve {
    /// The clusters that no other is both faster and cheaper than.
    ///
    /// # Errors
    /// If the profile's runs do not tell how long the job takes on the market's clusters.
    pub fn new(job: &Job, market: &Market, tariff: Tariff) -> Result<Self, SizingError> {
        let time = |slots: f64| Ok(job.predict(slots)?.seconds);
        let mut priced = Vec::new();
        let mut all_notes = Vec::new();
        for offer in curve(market, &time)? {
            let prediction = job.predict(offer.slots)?;
            priced.push(Priced::new(offer, &prediction));
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
            application: job.profile.application.clone(),
            currency: market.currency.clone(),
            tariff,
            model: job.model,
            offers: priced,
            notes,
        })
    }
}
