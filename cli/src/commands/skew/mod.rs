//! `unfuse skew`: which tasks take longer than their like, and why.

mod advice;
mod answer;
mod records;
mod records_text;
mod spark;
mod text;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use unfuse_eventlog::{EventLog, is_event_log};
use unfuse_skew::{Finding, Options, Run, detect, from_event_log, from_profile};

use self::answer::Answer;
use self::records::{Notes, Records, records};
use self::spark::Job;
use super::list;
use crate::output::write_to;
use crate::remote;

/// Show which stages wait for slow tasks, and why these are slow: more data, expensive records, garbage collection, a slow host …
///
/// It takes a profile directory or Spark's own event log, of an application that has ended or of one that runs. Stages come with
/// what they would save if their slow tasks were like the others, the largest first. Of a run with `--records` it shows the slow
/// records too: what is in them, where they are, and which results had to wait for them (docs/skew.md).
#[derive(Debug, Args)]
pub struct Skew {
    /// The profile directory that `unfuse run` printed, or its URI; or an event log: a file, or a directory eventlog_v2_…
    #[arg(value_name = "DIR|EVENT_LOG")]
    from: PathBuf,
    /// Stages to show, and slow tasks of each
    #[arg(long, value_name = "K", default_value_t = 5)]
    top: usize,
    /// Only this stage, skewed or not
    #[arg(long, value_name = "N")]
    stage: Option<i32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The file to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Where records outgrow this machine, follow them by a Spark job: a spark-submit with its options
    #[arg(last = true, value_name = "SPARK_SUBMIT")]
    spark_submit: Vec<OsString>,
}

impl Skew {
    /// Prints the answer.
    pub fn execute(self) -> Result<ExitCode> {
        let (run, records) = self.read()?;
        if run.stages.is_empty() {
            bail!(
                "{}: no task of Spark has ended in it{}",
                self.from.display(),
                because(&run.notes)
            );
        }
        let mut findings: Vec<Finding> = run
            .stages
            .iter()
            .filter(|stage| self.stage.is_none_or(|number| stage.stage == number))
            .map(|stage| detect(stage, &Options::default()))
            .collect();
        if let (true, Some(number)) = (findings.is_empty(), self.stage) {
            let mut known: Vec<i32> = run.stages.iter().map(|stage| stage.stage).collect();
            known.dedup();
            bail!(
                "{} has no tasks of stage {number}; it has those of stages {}",
                self.from.display(),
                list(&known)
            );
        }
        findings.sort_by(|a, b| b.saved_ms.total_cmp(&a.saved_ms));
        let mut answer = Answer::of(findings, self.top, self.stage.is_some(), run.notes);
        if let Some((records, notes)) = records {
            answer.records = Some(records);
            answer.notes.extend(notes);
        }
        write_to(self.out.as_deref(), |out| {
            let text = if self.json {
                serde_json::to_string_pretty(&answer)? + "\n"
            } else {
                text::render(&answer)
            };
            Ok(out.write_all(text.as_bytes())?)
        })?;
        Ok(ExitCode::SUCCESS)
    }

    /// The run, and of one whose records were followed what these say.
    fn read(&self) -> Result<(Run, Option<(Records, Notes)>)> {
        if remote::is_uri(&self.from) || !is_event_log(&self.from) {
            if let Some(job) = Job::of(&self.spark_submit, &self.from) {
                let root = remote::local_without(&self.from, &spark::TABLES)?;
                let run = self.read_profile(&root)?;
                let records = records(&root, &run, self.top, Some(&job))?;
                return Ok((run, records));
            }
            let root = remote::local(&self.from)?;
            let mut run = self.read_profile(&root)?;
            // Tasks can be told without.
            let records = records(&root, &run, self.top, None).unwrap_or_else(|error| {
                run.notes
                    .push(format!("nothing is told of records: {error:#}"));
                None
            });
            return Ok((run, records));
        }
        if !self.spark_submit.is_empty() {
            bail!(
                "{} is an event log, which has no records for a Spark job to follow",
                self.from.display()
            );
        }
        Ok((from_event_log(&mut EventLog::open(&self.from)?), None))
    }

    fn read_profile(&self, root: &Path) -> Result<Run> {
        from_profile(root).with_context(|| {
            format!(
                "{} is neither an event log nor a profile",
                self.from.display()
            )
        })
    }
}

fn because(notes: &[String]) -> String {
    match notes {
        [] => String::new(),
        notes => format!(" ({})", notes.join("; ")),
    }
}
