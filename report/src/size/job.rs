//! The job of a question.

use unfuse_sizing::{
    Market, Model, Point, Prediction, Profile, RelaxedOptimum, SizingError, relaxed,
};

/// A job with the amount of its work.
#[derive(Debug)]
pub struct Job {
    pub(super) profile: Profile,
    pub(super) model: Model,
    iterations: f64,
    bytes: f64,
}

impl Job {
    /// A job with `iterations` iterations over `bytes` bytes of input. Without a model, the profile's better one
    /// predicts.
    pub fn new(profile: Profile, model: Option<Model>, iterations: f64, bytes: f64) -> Self {
        Self {
            model: model.unwrap_or(profile.model),
            profile,
            iterations,
            bytes,
        }
    }

    /// The job's profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    fn point(&self, slots: f64) -> Point {
        Point {
            slots,
            iterations: self.iterations,
            bytes: self.bytes,
        }
    }

    /// Predicts the job's time on a number of slots.
    ///
    /// # Errors
    /// If the profile's runs do not allow a prediction.
    pub fn predict(&self, slots: f64) -> Result<Prediction, SizingError> {
        self.profile.predict(&self.point(slots), Some(self.model))
    }

    /// A lower bound of the cost of all clusters on which the job meets a deadline in s. Only the closed form is
    /// convex, so only it has a bound.
    pub(super) fn bound(
        &self,
        market: &Market,
        deadline: f64,
    ) -> Result<Option<RelaxedOptimum>, SizingError> {
        if self.model != Model::ClosedForm {
            return Ok(None);
        }
        let terms = self.profile.closed.by_slots(&self.point(1.0));
        relaxed(market, terms, deadline)
    }
}
