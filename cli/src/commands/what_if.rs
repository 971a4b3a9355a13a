//! `unfuse what-if`: how long a query or an application would take if something were different.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use unfuse_eventlog::{EventLog, is_event_log};
use unfuse_report::Report;
use unfuse_report::what_if::{Answer, Question, render};
use unfuse_sizing::what_if::{Change, from_event_log};

use super::open;
use crate::output::print;
use crate::remote;

/// Predict how long a query or an application would take if something were different
///
/// The tasks of one recorded run are put on their slots again, with the change. Without a change, the answer is a table of
/// changes and of floors. Several changes hold together.
#[derive(Debug, Args)]
pub struct WhatIf {
    /// The profile directory, or its URI; or an event log of Spark: a file, or a directory eventlog_v2_…
    #[arg(value_name = "PROFILE")]
    from: PathBuf,
    /// slots=N, executors=N, cores=inf, skew=0, gc=0, disk=inf, network=inf, cpu-wait=0, python=5x, operator:NODE=2x,
    /// cache=TABLE or without-query=N
    #[arg(value_name = "CHANGE")]
    changes: Vec<String>,
    /// This query: the id of a Spark SQL execution [default: the whole application]
    #[arg(long, value_name = "N")]
    query: Option<i64>,
    /// The id of the application [default: the one with the most CPU time]
    #[arg(long, value_name = "ID")]
    app: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl WhatIf {
    /// Prints the prediction.
    pub fn execute(self) -> Result<ExitCode> {
        let (changes, cached) = self.changes()?;
        let question = Question {
            changes: &changes,
            cached: &cached,
            query: self.query,
            app: self.app.as_deref(),
        };
        let answer = if remote::is_uri(&self.from) || !is_event_log(&self.from) {
            let profile = open(&self.from).with_context(|| {
                format!(
                    "{} is neither a profile nor an event log",
                    self.from.display()
                )
            })?;
            Answer::from_profile(&Report::new(&profile)?, &question)?
        } else {
            let (application, notes) = from_event_log(&mut EventLog::open(&self.from)?);
            let place = self.from.display().to_string();
            Answer::from_event_log(place, &application, notes, &question)?
        };
        print(None, self.json, &answer, || render(&answer))?;
        Ok(ExitCode::SUCCESS)
    }

    /// The changes, none of which excludes another, and the tables that would be cached.
    fn changes(&self) -> Result<(Vec<Change>, Vec<String>)> {
        let mut changes: Vec<Change> = Vec::new();
        let mut cached: Vec<String> = Vec::new();
        for text in &self.changes {
            if let Some(table) = text.strip_prefix("cache=") {
                if cached.iter().any(|known| known == table) {
                    bail!("{text} is there twice; give it once");
                }
                cached.push(table.to_owned());
                continue;
            }
            let change: Change = text.parse().map_err(anyhow::Error::msg)?;
            if let Some(other) = changes.iter().find(|other| other.excludes(&change)) {
                bail!("{other} and {change} cannot both hold; give one of them");
            }
            changes.push(change);
        }
        Ok((changes, cached))
    }
}
