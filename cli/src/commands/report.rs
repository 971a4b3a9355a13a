//! `unfuse report`: everything in a profile, as one page for the browser.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Error, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use unfuse_postprocess::{Profile, Selection};

use super::{say_problems, why_empty};
use crate::open;
use crate::output::{is_stdout, write_to};
use crate::remote;
use crate::when::{Times, recorded};

/// Write the report: one HTML page for the browser
///
/// It has queries by cost, plans with time bars, stages, flame graphs, generated code, contention and skew, and needs no
/// network and no other file.
#[derive(Debug, Args)]
pub struct Report {
    /// The profile directory that `unfuse run` printed, or its URI (hdfs://…, s3a://…)
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The page to write, or - for standard output
    #[arg(
        short,
        long,
        alias = "out",
        value_name = "FILE",
        default_value = "report.html"
    )]
    output: PathBuf,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Only this Spark application; a profile may have several
    #[arg(long, value_name = "ID", conflicts_with = "against")]
    app: Option<String>,
    /// Compare with this earlier profile
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,
    #[command(flatten)]
    times: Times,
}

impl Report {
    /// Writes the page.
    pub fn execute(self) -> Result<ExitCode> {
        // The bar is hidden if stderr is no terminal.
        let bar = ProgressBar::new(0)
            .with_style(ProgressStyle::with_template("{spinner} [{bar:24}] {msg}")?);
        bar.set_message(format!("reading {}", self.dir.display()));
        let profile = self.read()?;
        let mut report = unfuse_report::Report::new(&profile)?;
        if let Some(before) = &self.against {
            bar.set_message(format!("reading {}", before.display()));
            let before = super::open(before)?;
            report = report.against(&unfuse_report::Report::new(&before)?)?;
        }
        if !self.times.is_all() {
            report = report.with_note(PART_OF_TIME.to_owned());
        }
        bar.set_length(report.summary().queries.len() as u64);
        bar.set_message("analysing queries, contention, skew and advice");
        let found = report.analyses(self.app.as_deref(), &|| bar.inc(1));
        match found.contention {
            Ok(Some(contention)) => report = report.with_contention(contention),
            Ok(None) => {}
            Err(error) => report = report.with_note(missing("contention", &error.into())),
        }
        match found.skew {
            Ok(Some(skew)) => report = report.with_skew(skew),
            Ok(None) => {}
            Err(error) => report = report.with_note(missing("skew", &error.into())),
        }
        match found.advice {
            Ok(Some(advice)) => report = report.with_advice(advice),
            Ok(None) => {}
            Err(error) => report = report.with_note(missing("advice", &error.into())),
        }
        match found.what_if {
            Ok(blocks) => report = report.with_what_if(blocks),
            Err(error) => report = report.with_note(missing("what would help", &error.into())),
        }
        bar.set_message("writing");
        let details = found.details?;
        write_to(Some(&self.output), |mut out| {
            Ok(report.write_html(&mut out, details)?)
        })?;
        bar.finish_and_clear();
        if is_stdout(&self.output) {
            if self.open {
                crate::say!("unfuse: --open needs a file; choose one with -o FILE");
            }
        } else if self.open {
            open::page(&self.output);
        } else {
            crate::say!(
                "unfuse: wrote {} (open it in a browser, or add --open)",
                self.output.display()
            );
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Reads the part of the profile that is asked for.
    fn read(&self) -> Result<Profile> {
        let dir = remote::local(&self.dir)?;
        let selection = Selection {
            period: self.times.period(&dir)?,
            ..Selection::default()
        };
        let mut profile = Profile::open_selected(&dir, selection)?.named(&self.dir);
        say_problems(&profile);
        let is_empty =
            |profile: &Profile| profile.groups.is_empty() && profile.executions.is_empty();
        let shown = self.dir.display();
        if let Some(app) = &self.app {
            profile.keep_application(app);
            if is_empty(&profile) {
                bail!(
                    "{shown} has no application {app}; one that is running appears after some seconds"
                );
            }
        }
        if is_empty(&profile) && !self.times.is_all() {
            bail!(
                "{shown} has nothing of that time; it was recorded {}",
                recorded(&profile.processes)
            );
        }
        if is_empty(&profile) {
            bail!("{shown}: {}", why_empty(&profile));
        }
        Ok(profile)
    }
}

/// What the numbers of a report with --since or --until count.
const PART_OF_TIME: &str = "this report is about a part of the time (--since, --until): CPU time, waits, queries, stages and \
     tasks are of that part; contention and skew count the whole stages that ran in it, and there is no verdict";

/// Reports that a part is missing, and why.
fn missing(what: &str, error: &Error) -> String {
    let note = format!("the report has no {what}: {error:#}");
    crate::say!("unfuse: {note}");
    note
}
