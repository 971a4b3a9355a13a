//! Queries that others slow down, while the application runs.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::answer::Answer;
use crate::what_if::DIVISION;
use crate::words::time;

/// A query whose tasks waited because of others for at least a given part of their time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Alert {
    /// The value for `--victim`.
    pub victim: String,
    /// What to call it.
    pub label: String,
    /// Part of its tasks' time that others cost, 0 to 1.
    pub by_others: f64,
    /// The same in s, summed over tasks.
    pub by_others_seconds: f64,
    /// The query or process outside Spark with the largest part.
    pub main_culprit: String,
    /// Blocked time that it caused, s, summed over tasks.
    pub main_culprit_seconds: f64,
    /// Lower end of the range of these seconds: waits for a CPU that the kernel counted are exact, and others are shared out by
    /// use.
    pub main_culprit_seconds_low: f64,
    /// Upper end.
    pub main_culprit_seconds_high: f64,
    /// The application of the victim; empty for CSV files.
    pub application: String,
    /// The id of the victim's Spark SQL execution.
    pub execution: Option<i64>,
}

impl Answer {
    /// The victims that others cost at least this part of their tasks' time (0 to 1), in the order of the answer.
    pub fn alerts(&self, at_least: f64) -> impl Iterator<Item = Alert> {
        self.victims.iter().filter_map(move |victim| {
            // Waits for a slot come before the tasks' time.
            let all = victim.task_seconds.max(victim.blocked_seconds);
            let by_others = victim.by_others_seconds / all;
            let (culprit, seconds, counted) = victim.main_other.clone()?;
            let shared_out = (seconds - counted).max(0.0);
            (all > 0.0 && by_others >= at_least).then(|| Alert {
                victim: victim.name.clone(),
                label: victim.label.clone(),
                by_others,
                by_others_seconds: victim.by_others_seconds,
                main_culprit: culprit,
                main_culprit_seconds: seconds,
                main_culprit_seconds_low: counted + DIVISION.0 * shared_out,
                main_culprit_seconds_high: counted + DIVISION.1 * shared_out,
                application: victim.application.clone(),
                execution: victim.execution,
            })
        })
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "{} waits for others in {:.0}% of its tasks' time ({}), most of all for {}",
            self.label,
            100.0 * self.by_others,
            time((self.by_others_seconds.max(0.0) * 1e9) as u64),
            self.main_culprit
        )
    }
}
