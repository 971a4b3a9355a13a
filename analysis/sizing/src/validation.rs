//! Cross-validation: each run is predicted by models that were fitted without it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::point::points;
use crate::{ClosedForm, Model, Point, Replay, Run};

/// Maximum number of fits; with more points, several are held out together.
const FOLDS: usize = 20;

/// Predictions of held-out runs by both models.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Validation {
    /// A row for each run that could be predicted without the runs of its point.
    pub held_out: Vec<HeldOut>,
}

/// A held-out run; all others at its point were held out with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeldOut {
    /// Its log.
    pub log: String,
    /// Its point.
    pub at: Point,
    /// *T_Rec*, s.
    pub seconds: f64,
    /// *T_Est* of the closed form, s.
    pub closed: f64,
    /// *T_Est* of the replay, s.
    pub replay: f64,
}

impl Validation {
    /// Holds out each point in turn. Points that the others cannot predict (the only one with other slots) have no row.
    pub fn new(runs: &[Run]) -> Self {
        let mut points: BTreeMap<[i64; 3], Vec<&Run>> = BTreeMap::new();
        for run in runs {
            points.entry(run.at.key()).or_default().push(run);
        }
        let folds = points.len().min(FOLDS);
        let mut held_out = Vec::new();
        for fold in 0..folds {
            let is_out = |index: usize| index % folds == fold;
            let numbered = || points.values().enumerate();
            let kept: Vec<&Run> = numbered()
                .filter(|(index, _)| !is_out(*index))
                .flat_map(|(_, runs)| runs.iter().copied())
                .collect();
            let (Ok(closed), Ok(replay)) = (ClosedForm::fit(&kept), Replay::fit(&kept)) else {
                continue;
            };
            for run in numbered()
                .filter(|(index, _)| is_out(*index))
                .flat_map(|(_, runs)| runs)
            {
                if let Some(replayed) = replay.seconds(&kept, &run.at) {
                    held_out.push(HeldOut {
                        log: run.log.clone(),
                        at: run.at,
                        seconds: run.seconds,
                        closed: closed.seconds(&run.at),
                        replay: replayed,
                    });
                }
            }
        }
        Self { held_out }
    }

    /// Mean of |T_Est − T_Rec| / T_Rec (section VI-D); `None` without rows.
    pub fn mean_error(&self, model: Model) -> Option<f64> {
        let rows = self.held_out.len();
        let errors = self.held_out.iter().map(|row| row.error(model).abs());
        (rows > 0).then(|| errors.sum::<f64>() / rows as f64)
    }

    /// The model with the smaller mean error; the closed form if there is no data or they are equal.
    pub fn better(&self) -> Model {
        match (
            self.mean_error(Model::ClosedForm),
            self.mean_error(Model::Replay),
        ) {
            (Some(closed), Some(replay)) if replay < closed => Model::Replay,
            _ => Model::ClosedForm,
        }
    }

    /// Number of different points that were held out.
    pub(crate) fn points(&self) -> usize {
        points(self.held_out.iter().map(|row| &row.at))
    }

    /// Root mean square of the relative errors.
    pub(crate) fn spread(&self, model: Model) -> Option<f64> {
        let rows = self.held_out.len();
        let squares = self.held_out.iter().map(|row| row.error(model).powi(2));
        (rows > 0).then(|| (squares.sum::<f64>() / rows as f64).sqrt())
    }
}

impl HeldOut {
    /// (T_Est − T_Rec) / T_Rec.
    pub fn error(&self, model: Model) -> f64 {
        let estimated = match model {
            Model::ClosedForm => self.closed,
            Model::Replay => self.replay,
        };
        estimated / self.seconds - 1.0
    }
}
