//! Predicts seconds with an interval, and refuses questions outside the data.

use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};
use unfuse_format::counted;

use crate::point::points;
use crate::{Model, Point, Profile, Range, SizingError, Terms};

/// There are no predictions beyond the runs by more than this factor. Up to it, intervals grow by the factor.
const FURTHEST: f64 = 2.0;
/// Confidence level of an interval, 0 to 1.
const CONFIDENCE: f64 = 0.95;
/// With fewer points, Student's t makes intervals half as wide again as with many.
const FEW: usize = 5;

/// The predicted time of a job.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Prediction {
    /// The point.
    pub at: Point,
    /// The model.
    pub model: Model,
    /// *T_Est*, s.
    pub seconds: f64,
    /// Lower end of the interval that contains 95 of 100 runs, s.
    pub low: f64,
    /// Its upper end, s.
    pub high: f64,
    /// The terms of equation 3, for the closed form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terms: Option<Terms>,
    /// Notes on doubtful numbers.
    pub notes: Vec<String>,
    /// Standard deviation, s.
    #[serde(skip)]
    deviation: f64,
    /// Degrees of freedom of the deviation.
    #[serde(skip)]
    freedom: f64,
}

/// The probability of meeting a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Chance {
    /// The deadline, s.
    pub deadline: f64,
    /// Whether *T_Est* is before it.
    pub in_time: bool,
    /// The probability, 0 to 1.
    pub probability: f64,
}

impl Profile {
    /// Predicts the completion time at a point with a model, or with the better one.
    ///
    /// # Errors
    /// If the point is impossible, far beyond the runs, or differs in a variable that no runs differ in.
    pub fn predict(&self, point: &Point, model: Option<Model>) -> Result<Prediction, SizingError> {
        let (beyond, mut notes) = self.check(point)?;
        let model = model.unwrap_or(self.model);
        let seconds = self.seconds(point, model)?;
        // Without held-out runs only the fit's own errors remain, which are too small.
        let of_fit = self.fit_spread(model);
        let (spread, points) = match self.validation.spread(model) {
            Some(spread) => (spread.max(of_fit), self.validation.points()),
            None => {
                notes.push(
                    "no run could be held out, so the interval shows only the error of the fit and is too narrow"
                        .into(),
                );
                (of_fit, points(self.runs.iter().map(|run| &run.at)))
            }
        };
        // Repetitions of a point have the same prediction, so they have similar errors.
        let freedom = points.saturating_sub(1).max(1) as f64;
        if points < FEW {
            notes.push(format!(
                "the runs are at only {}, so the error of predictions is uncertain and the interval wide",
                counted(points, "different point")
            ));
        }
        notes.extend(self.confounded());
        let leverage = self.closed.leverage(&self.runs, point);
        let deviation = seconds * spread * (1.0 + leverage).sqrt() * beyond;
        let half = deviation * quantile(freedom);
        if !(seconds.is_finite() && half.is_finite()) {
            // Only a profile that was edited by hand has such factors.
            return Err(SizingError::Amount {
                what: "a predicted time (the profile has impossible factors: fit it again)".into(),
                value: seconds + half,
            });
        }
        Ok(Prediction {
            at: *point,
            model,
            seconds,
            low: (seconds - half).max(0.0),
            high: seconds + half,
            terms: (model == Model::ClosedForm).then(|| self.closed.terms(point)),
            notes,
            deviation,
            freedom,
        })
    }

    /// The range of slots with predictions.
    pub fn reach(&self) -> Range {
        let Range { least, most } = self.ranges().slots;
        Range {
            least: least / FURTHEST,
            most: most * FURTHEST,
        }
    }

    /// *T_Est* of a model at any point, s.
    pub(crate) fn seconds(&self, point: &Point, model: Model) -> Result<f64, SizingError> {
        match model {
            Model::ClosedForm => Ok(self.closed.seconds(point)),
            Model::Replay => {
                let runs: Vec<_> = self.runs.iter().collect();
                let ranges = self.ranges();
                self.replay
                    .seconds(&runs, point)
                    .ok_or_else(|| SizingError::NeverVaried {
                        what: "iterations",
                        known: number(ranges.iterations.most),
                        value: number(point.iterations),
                    })
            }
        }
    }

    /// The factor by which a point is beyond the runs, with notes.
    fn check(&self, point: &Point) -> Result<(f64, Vec<String>), SizingError> {
        let mut notes = Vec::new();
        let mut furthest: f64 = 1.0;
        for (what, range, value) in self.ranges().with(point) {
            if !(value.is_finite() && value > 0.0) {
                return Err(SizingError::Amount {
                    what: what.into(),
                    value,
                });
            }
            let beyond = range.beyond(value);
            if beyond > 1.0 && range.is_point() {
                return Err(SizingError::NeverVaried {
                    what,
                    known: number(range.most),
                    value: number(value),
                });
            }
            if beyond > FURTHEST * 1.0001 {
                return Err(SizingError::TooFar {
                    what,
                    value: number(value),
                    factor: beyond,
                    least: number(range.least),
                    most: number(range.most),
                });
            }
            if beyond > 1.0 {
                notes.push(format!(
                    "{} {what} are outside the runs of the profile ({} to {}), so the interval is {beyond:.1} times as wide",
                    number(value), number(range.least), number(range.most)
                ));
            }
            furthest = furthest.max(beyond);
        }
        Ok((furthest, notes))
    }
}

impl Prediction {
    /// The probability that it ends before a deadline in s.
    pub fn chance(&self, deadline: f64) -> Chance {
        let in_time = self.seconds < deadline;
        let probability = match StudentsT::new(self.seconds, self.deviation, self.freedom) {
            Ok(times) => times.cdf(deadline),
            // Without deviation, the model fits every run exactly.
            Err(_) => f64::from(u8::from(in_time)),
        };
        Chance {
            deadline,
            in_time,
            probability,
        }
    }
}

/// Half the width of the interval, in deviations.
fn quantile(freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(2.0, |times| times.inverse_cdf(0.5 + CONFIDENCE / 2.0))
}

/// A number as users write it.
pub(crate) fn number(value: f64) -> String {
    if value.fract().abs() < 1e-9 && value.abs() < 1e15 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}
