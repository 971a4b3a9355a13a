//! Queries that others slow down, while the application runs.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::answer::Answer;
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
    /// The culprit with the largest part.
    pub main_culprit: String,
}

impl Answer {
    /// The victims that others cost at least this part of their tasks' time (0 to 1), in the order of the answer.
    pub fn alerts(&self, at_least: f64) -> impl Iterator<Item = Alert> {
        self.victims.iter().filter_map(move |victim| {
            // Waits for a slot come before the tasks' time.
            let all = victim.task_seconds.max(victim.blocked_seconds);
            let by_others = victim.by_others_seconds / all;
            let culprit = victim.main_culprit.as_ref()?;
            (all > 0.0 && by_others >= at_least).then(|| Alert {
                victim: victim.name.clone(),
                label: victim.label.clone(),
                by_others,
                by_others_seconds: victim.by_others_seconds,
                main_culprit: culprit.clone(),
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
