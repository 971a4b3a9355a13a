//! `unfuse size`: how long a job takes on another cluster, and which cluster to take.

mod buy;
mod cluster;
mod fit;
mod job_args;
mod predict;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};

/// Predict running times on other clusters, and find the cheapest cluster
///
/// `unfuse size fit` makes a job profile from event logs or profile directories of some runs. The other commands answer from
/// it. docs/sizing.md says which runs are needed and what the models are.
#[derive(Debug, Args)]
pub struct Size {
    #[command(subcommand)]
    question: Question,
}

#[derive(Debug, Subcommand)]
enum Question {
    Fit(fit::Fit),
    Predict(predict::Predict),
    Cheapest(buy::Cheapest),
    Best(buy::Best),
    Curve(buy::CurveOf),
}

impl Size {
    /// Prints the answer to the question.
    pub fn execute(self) -> Result<ExitCode> {
        match self.question {
            Question::Fit(fit) => fit.execute()?,
            Question::Predict(predict) => predict.execute()?,
            Question::Cheapest(cheapest) => cheapest.execute()?,
            Question::Best(best) => best.execute()?,
            Question::Curve(curve) => curve.execute()?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
