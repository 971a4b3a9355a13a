//! A summary of a job's profile.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use unfuse_sizing::{
    Baselines, Category, ClosedForm, LeftOut, Logs, Model, Profile, Ranges, SizingError, UnitTask,
    Validation,
};

/// The answer of `unfuse size fit`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FitAnswer<'a> {
    /// The file that holds the profile.
    pub profile: String,
    /// The application's name.
    pub application: &'a str,
    /// How its execution time grows with iterations.
    pub category: Category,
    /// Number of runs.
    pub runs: usize,
    /// The ranges of the runs' properties.
    pub ranges: Ranges,
    /// The closed form with its coefficients.
    pub closed_form: &'a ClosedForm,
    /// The measurements behind the coefficients.
    pub baselines: &'a Baselines,
    /// Kinds of tasks, most time first.
    pub unit_tasks: &'a [UnitTask],
    /// How well each model fits.
    pub models: [Fits; 2],
    /// The default model.
    pub chosen: Model,
    /// Errors of held-out runs.
    pub validation: &'a Validation,
    /// Logs that have no usable run.
    pub left_out: Vec<LeftOut>,
    /// Notes on doubtful numbers.
    pub notes: Vec<String>,
}

/// How well a model fits.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Fits {
    /// Which model.
    pub model: Model,
    /// Mean relative error for the runs that it was fitted to.
    pub fit_error: f64,
    /// Mean relative error of held-out runs; none if no run could be held out.
    pub held_out_error: Option<f64>,
}

impl<'a> FitAnswer<'a> {
    /// Summarizes a profile; `left_out` and `notes` are from reading its logs, `saved_as` names its file.
    pub fn new(
        profile: &'a Profile,
        saved_as: String,
        left_out: Vec<LeftOut>,
        notes: Vec<String>,
    ) -> Self {
        let fits = |model| Fits {
            model,
            fit_error: profile.fit_error(model),
            held_out_error: profile.validation.mean_error(model),
        };
        Self {
            profile: saved_as,
            application: &profile.application,
            category: profile.category,
            runs: profile.runs.len(),
            ranges: profile.ranges(),
            closed_form: &profile.closed,
            baselines: &profile.baselines,
            unit_tasks: &profile.units,
            models: [fits(Model::ClosedForm), fits(Model::Replay)],
            chosen: profile.model,
            validation: &profile.validation,
            left_out,
            notes,
        }
    }
}

/// Drops the runs of other applications.
///
/// # Errors
/// [`SizingError::NoApplication`] if there are runs, but none of this application.
pub fn keep_application(logs: &mut Logs, wanted: &str) -> Result<(), SizingError> {
    let known: BTreeSet<String> = logs
        .runs
        .iter()
        .map(|run| run.application.clone())
        .collect();
    logs.runs.retain(|run| run.application == wanted);
    if logs.runs.is_empty() && !known.is_empty() {
        return Err(SizingError::NoApplication {
            wanted: wanted.to_owned(),
            known: known.into_iter().collect(),
        });
    }
    Ok(())
}
