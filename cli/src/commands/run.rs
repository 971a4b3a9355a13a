//! `unfuse run`: runs a command with the agent in its JVMs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use unfuse_format::{LiveMarker, ProfileDir, Retention};

use crate::fresh::{PATIENCE, default_out, tell};
use crate::launch::{agent_flag, exit_code, run};
use crate::remote;

/// Profile a spark-submit, pyspark, spark-sql, python or java command
///
/// The exit code is that of the command. Next, look at the profile: `unfuse report DIR`, `unfuse top DIR`.
#[derive(Debug, Args)]
pub struct Run {
    /// Samples a second of CPU time, for each thread
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub rate: u32,
    /// Profile directory, or its URI (hdfs://…, s3a://…) [default: unfuse-DATE-TIME in this directory]
    #[arg(short, long, alias = "out", value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Delete the oldest samples when the profile exceeds this size, such as 2GB; for jobs that never end
    #[arg(long, value_name = "SIZE", value_parser = Retention::size_limit)]
    pub keep: Option<u64>,
    /// Delete samples that are older than this, such as 12h or 7d
    #[arg(long, value_name = "DURATION", value_parser = Retention::age_limit)]
    pub keep_for: Option<Duration>,
    /// Profile the driver only; executors start without the agent
    #[arg(long)]
    pub driver_only: bool,
    /// Follow records through the tasks; `unfuse skew` shows the slow ones
    #[arg(long, value_name = "CONTENT", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub records: Option<Records>,
    /// More options for the agent, see `unfuse help agent`
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub agent_options: Option<String>,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// What is kept of records that are followed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Records {
    /// With the beginning of the slowest records' contents
    On,
    /// Without contents
    Redacted,
}

impl Run {
    /// Runs the command, and returns its exit code.
    pub fn execute(self) -> Result<ExitCode> {
        let out = self.output.clone().unwrap_or_else(default_out);
        if remote::is_uri(&out) {
            if self.keep.is_some() || self.keep_for.is_some() {
                bail!(
                    "--keep and --keep-for need a local directory, and {} is a URI: leave them out, or choose a directory with -o",
                    out.display()
                );
            }
            return self.execute_far(&out);
        }
        let dir = ProfileDir::create(&out)?;
        let dir = ProfileDir::open(&std::fs::canonicalize(dir.path())?)?;
        let Some(status) = self.run(dir.path())? else {
            return Ok(ExitCode::from(127));
        };
        if !dir.is_there() {
            let out = out.display();
            crate::say!("unfuse: there is no profile: {out} was deleted while the command ran");
            return Ok(exit_code(status));
        }
        if !LiveMarker::wait_for_all(&dir, PATIENCE) {
            crate::say!(
                "unfuse: a profiled process is still running and writes to {} until it ends",
                out.display()
            );
        }
        tell(&dir, &out);
        Ok(exit_code(status))
    }

    /// The same for a profile at a URI, to which Spark's processes copy it.
    fn execute_far(&self, uri: &Path) -> Result<ExitCode> {
        let Some(status) = self.run(uri)? else {
            return Ok(ExitCode::from(127));
        };
        let uri = uri.display();
        crate::say!(
            "unfuse: profile in {uri}; next: unfuse top {uri}   |   unfuse flame {uri} -o flame.svg"
        );
        Ok(exit_code(status))
    }

    fn run(&self, dir: &Path) -> Result<Option<ExitStatus>> {
        Ok(run(&self.command, &self.agent_flag(dir)?))
    }

    /// The JVM option that loads the agent, with the agent's options.
    fn agent_flag(&self, dir: &Path) -> Result<String> {
        let mut flag = agent_flag(dir, self.rate)?;
        if let Some(bytes) = self.keep {
            flag.push_str(&format!(",keep={}k", bytes >> 10));
        }
        if let Some(age) = self.keep_for {
            flag.push_str(&format!(",keep_for={}s", age.as_secs()));
        }
        if !self.driver_only {
            flag.push_str(",executors=on");
        }
        match self.records {
            Some(Records::On) => flag.push_str(",records=on"),
            Some(Records::Redacted) => flag.push_str(",records=redacted"),
            None => {}
        }
        if let Some(more) = &self.agent_options {
            flag.push(',');
            flag.push_str(more);
        }
        Ok(flag)
    }
}
