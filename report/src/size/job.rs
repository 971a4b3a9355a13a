//! The job that a question is about.

use unfuse_sizing::{
    Market, Model, Point, Prediction, Profile, RelaxedOptimum, SizingError, relaxed,
};

/// A job with the work that it is asked to do.
#[derive(Debug)]
pub struct Job {
    pub(super) profile: Profile,
    pub(super) model: Model,
    iterations: f64,
    bytes: f64,
}

impl Job {
    /// A job of so many iterations over so many bytes of input. Without a model, the profile's better one predicts.
    pub fn new(profile: Profile, model: Option<Model>, iterations: f64, bytes: f64) -> Self {
        Self {
            model: model.unwrap_or(profile.model),
            profile,
            iterations,
            bytes,
        }
    }

    /// What is known of the job from its runs.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    fn at(&self, slots: f64) -> Point {
        Point {
            slots,
            iterations: self.iterations,
            bytes: self.bytes,
        }
    }

    /// How long the job takes on a number of slots.
    ///
    /// # Errors
    /// If the profile's runs do not tell.
    pub fn predict(&self, slots: f64) -> Result<Prediction, SizingError> {
        self.profile.predict(&self.at(slots), Some(self.model))
    }

    /// What no cluster costs less than, if it is to end before a deadline in s. Only the closed form is convex, so only it
    /// has a bound.
    pub(super) fn bound(
        &self,
        market: &Market,
        deadline: f64,
    ) -> Result<Option<RelaxedOptimum>, SizingError> {
        if self.model != Model::ClosedForm {
            return Ok(None);
        }
        let terms = self.profile.closed.by_slots(&self.at(1.0));
        relaxed(market, terms, deadline)
    }
}
