//! Follows records with a job on the user's Spark.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use indicatif::ProgressBar;
use unfuse_provenance::spark::{Answer, JOB, Plan};
use unfuse_provenance::{Options, Outcome, TaskTraces};

use super::log::last_lines;
use crate::remote;

/// Tables that this machine does not need, because the job reads them.
pub(super) use unfuse_provenance::spark::TABLES;

/// The command that starts the job, and the place of the profile.
pub(super) struct Job<'a> {
    submit: &'a OsString,
    options: &'a [OsString],
    profile: &'a Path,
}

impl<'a> Job<'a> {
    /// `None` if no command is given.
    pub(super) fn new(command: &'a [OsString], profile: &'a Path) -> Option<Self> {
        let (submit, options) = command.split_first()?;
        Some(Self {
            submit,
            options,
            profile,
        })
    }

    /// Runs the job to its end, and reads its answer.
    pub(super) fn propagate(&self, traces: &TaskTraces, options: &Options) -> Result<Outcome> {
        let work = tempfile::Builder::new()
            .prefix("unfuse-skew-")
            .tempdir()
            .context(
                "cannot create a directory for the job; set TMPDIR to a disk with free space",
            )?;
        let path = |name: &str| work.path().join(name);
        let (script, plan, answer, log) = (
            path("unfuse_skew.py"),
            path("plan.json"),
            path("answer.json"),
            path("log"),
        );
        fs::write(&script, JOB)?;
        serde_json::to_writer(
            std::io::BufWriter::new(File::create(&plan)?),
            &Plan::new(traces, options),
        )?;
        let mut command = Command::new(self.submit);
        command
            .args(self.options)
            .arg(&script)
            .arg(self.uri()?)
            .args([&plan, &answer]);
        if let Err(error) = self.run(&mut command, &log) {
            if fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
                // The message names the log in it.
                let _ = work.keep();
            }
            return Err(error);
        }
        let Ok(text) = fs::read(&answer) else {
            bail!(
                "{} wrote no answer: the driver of the job must run on this machine (--deploy-mode client)",
                self.submit.to_string_lossy()
            );
        };
        let answer: Answer =
            serde_json::from_slice(&text).context("the job's answer is damaged")?;
        Ok(answer.outcome(traces, options))
    }

    /// The profile's address, as Spark needs it.
    fn uri(&self) -> Result<OsString> {
        if remote::is_uri(self.profile) {
            return Ok(self.profile.as_os_str().to_owned());
        }
        let mut uri = OsString::from("file://");
        uri.push(fs::canonicalize(self.profile)?);
        Ok(uri)
    }

    fn run(&self, command: &mut Command, log: &PathBuf) -> Result<()> {
        let bar = ProgressBar::new_spinner().with_message("following records on Spark");
        bar.enable_steady_tick(Duration::from_millis(200));
        let out = File::create(log)?;
        let status = command
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .status();
        bar.finish_and_clear();
        let name = self.submit.to_string_lossy();
        let status = match status {
            Ok(status) => status,
            Err(error) if error.kind() == ErrorKind::NotFound => bail!(
                "{name} was not found; give spark-submit and its options after --, such as /opt/spark/bin/spark-submit --master \
                 yarn"
            ),
            Err(error) => return Err(error).with_context(|| format!("cannot run {name}")),
        };
        if !status.success() {
            bail!(
                "the Spark job failed ({status}):\n{}\nIts output is in {}. The job needs Spark 3.3 or newer in client mode, and \
                 executors that can read {}",
                last_lines(log),
                log.display(),
                self.profile.display()
            );
        }
        Ok(())
    }
}
