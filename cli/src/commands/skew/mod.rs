//! `unfuse skew`: which tasks take longer than others of their stage, and why.

mod log;
mod spark;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use unfuse_eventlog::{EventLog, is_event_log};
use unfuse_provenance::{Options, TaskTraces};
use unfuse_report::ReportError;
use unfuse_report::skew::{Answer, Propagate, RecordFilter, Records, judge, render, with_records};
use unfuse_report::text::list;
use unfuse_skew::{Run, from_event_log, from_profile};

use self::spark::Job;
use crate::output::print;
use crate::remote;

/// Show which stages wait for slow tasks, and why the tasks are slow
///
/// Causes are more data, expensive records, garbage collection, a slow host and others. Stages are sorted by the time that
/// they would save if their slow tasks were like the others. The application may still be running. For a run with --records the
/// answer includes the slow records: their contents, their places, and the results that waited for them (docs/records.md).
#[derive(Debug, Args)]
pub struct Skew {
    /// The profile directory that `unfuse run` printed, or its URI; or an event log of Spark: a file, or a directory eventlog_v2_…
    #[arg(value_name = "DIR|EVENT_LOG")]
    from: PathBuf,
    /// Stages to print, and slow tasks of each
    #[arg(long, alias = "top", value_name = "N", default_value_t = 5)]
    limit: usize,
    /// Only this stage, also if it has no slow tasks
    #[arg(long, value_name = "N")]
    stage: Option<i32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The file to write [default: standard output]
    #[arg(short, long, alias = "out", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Read contents of records that the profile lacks from the input files
    ///
    /// Only from text files on this machine. The profile names the files, and a profile of another user can name any file that
    /// you may read.
    #[arg(long)]
    read_inputs: bool,
    /// Follow the records with a Spark job, if they are too many for this machine: spark-submit with its options
    #[arg(last = true, value_name = "SPARK_SUBMIT")]
    spark_submit: Vec<OsString>,
}

impl Skew {
    /// Prints the answer.
    pub fn execute(self) -> Result<ExitCode> {
        let (run, records, profile) = self.read()?;
        if run.stages.is_empty() {
            bail!(
                "{} has no finished Spark task{}",
                self.from.display(),
                because(&run.notes)
            );
        }
        let findings = judge(&run, |stage| {
            self.stage.is_none_or(|number| stage.stage == number)
        });
        if let (true, Some(number)) = (findings.is_empty(), self.stage) {
            let mut known: Vec<i32> = run.stages.iter().map(|stage| stage.stage).collect();
            known.dedup();
            bail!(
                "{} has no tasks of stage {number}; it has tasks of stages {}",
                self.from.display(),
                list(&known)
            );
        }
        let one_stage = self.stage.is_some();
        let mut answer = Answer::new(findings, records, self.limit, one_stage, run.notes);
        if let Some(root) = &profile {
            answer.name_queries(root);
        }
        print(self.output.as_deref(), self.json, &answer, || {
            render(&answer)
        })?;
        Ok(ExitCode::SUCCESS)
    }

    /// The run, its records if they were followed, and the local directory of a profile.
    fn read(&self) -> Result<(Run, Option<Records>, Option<PathBuf>)> {
        if remote::is_uri(&self.from) || !is_event_log(&self.from) {
            if let Some(job) = Job::new(&self.spark_submit, &self.from) {
                let root = remote::local_without(&self.from, &spark::TABLES)?;
                return self.read_profile(root, Some(&job));
            }
            return self.read_profile(remote::local(&self.from)?, None);
        }
        if !self.spark_submit.is_empty() {
            bail!(
                "{} is an event log, and only profiles have records that a Spark job can follow",
                self.from.display()
            );
        }
        let run = from_event_log(&mut EventLog::open(&self.from)?);
        Ok((run, None, None))
    }

    fn read_profile(
        &self,
        root: PathBuf,
        job: Option<&Job>,
    ) -> Result<(Run, Option<Records>, Option<PathBuf>)> {
        let run = from_profile(&root).with_context(|| {
            format!(
                "{} is neither an event log nor a profile",
                self.from.display()
            )
        })?;
        let filter = RecordFilter {
            app: None,
            stage: self.stage,
            top: self.limit,
        };
        // Joins the whole chain of causes into one line.
        let by_job = job.map(|job| {
            |traces: &TaskTraces, options: &Options| {
                let outcome = job.propagate(traces, options);
                outcome.map_err(|error| ReportError::Refused(format!("{error:#}")))
            }
        });
        let propagate = by_job.as_ref().map(|by_job| by_job as &Propagate<'_>);
        let (mut run, mut records) = with_records(run, &root, &filter, propagate)?;
        if let Some(records) = &mut records {
            let note = if self.read_inputs {
                records.read_inputs()
            } else {
                records.unread_inputs()
            };
            run.notes.extend(note);
        }
        Ok((run, records, Some(root)))
    }
}

fn because(notes: &[String]) -> String {
    match notes {
        [] => String::new(),
        notes => format!(" ({})", notes.join("; ")),
    }
}
