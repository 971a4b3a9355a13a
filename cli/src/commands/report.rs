//! `unfuse report`: everything a profile says, as one page for the browser.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Error, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::{open, why_empty};
use crate::output::write_to;

/// Write one HTML page: queries by cost, plans with time bars, stages, flame graphs, source, contention, skew
#[derive(Debug, Args)]
pub struct Report {
    /// The profile directory that `unfuse run` printed, or its URI on a file system of Hadoop
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The page to write, - for stdout; it needs no network and no other file
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// Only this Spark application, of the several that a profile may hold
    #[arg(long, value_name = "ID", conflicts_with = "against")]
    app: Option<String>,
    /// Compare with this profile: it is what was before
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,
}

impl Report {
    /// Writes the page.
    pub fn execute(self) -> Result<ExitCode> {
        // Hidden where stderr is no terminal.
        let bar = ProgressBar::new(0)
            .with_style(ProgressStyle::with_template("{spinner} [{bar:24}] {msg}")?);
        bar.set_message(format!("reading {}", self.dir.display()));
        let mut profile = open(&self.dir)?;
        if let Some(app) = &self.app {
            profile.keep_application(app);
            if profile.groups.is_empty() && profile.executions.is_empty() {
                bail!(
                    "{}: no profile of application {app}; a running one appears after some seconds",
                    self.dir.display()
                );
            }
        }
        if profile.groups.is_empty() && profile.executions.is_empty() {
            bail!("{}: {}", self.dir.display(), why_empty(&profile));
        }
        let mut report = unfuse_report::Report::of(&profile)?;
        if let Some(before) = &self.against {
            bar.set_message(format!("reading {}", before.display()));
            let before = open(before)?;
            report = report.against(&unfuse_report::Report::of(&before)?);
        }
        bar.set_message("who slowed whom down");
        let parts = |done: usize, all: usize| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        };
        match unfuse_report::blame::contention(&profile, report.summary(), &parts) {
            Ok(Some(contention)) => report = report.with_contention(contention),
            Ok(None) => {}
            Err(error) => report = report.with_note(missing("contention", &error.into())),
        }
        bar.set_message("which tasks are slow");
        match unfuse_report::skew::skew(profile.path(), self.app.as_deref(), report.summary()) {
            Ok(Some(skew)) => report = report.with_skew(skew),
            Ok(None) => {}
            Err(error) => report = report.with_note(missing("skew", &error.into())),
        }
        bar.set_position(0);
        bar.set_length(report.summary().queries.len() as u64);
        bar.set_message("writing");
        write_to(Some(&self.out), |mut out| {
            Ok(report.write_html(&mut out, &|| bar.inc(1))?)
        })?;
        bar.finish_and_clear();
        if self.out.as_os_str() != "-" {
            crate::say!(
                "unfuse: wrote {} (open it in a browser)",
                self.out.display()
            );
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Says that a part cannot be told, and why; the others can.
fn missing(what: &str, error: &Error) -> String {
    let note = format!("the report says nothing of {what}: {error:#}");
    crate::say!("unfuse: {note}");
    note
}
