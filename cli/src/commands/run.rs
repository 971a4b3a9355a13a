//! `unfuse run`: a command with the agent in its JVMs.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use unfuse_format::{LiveMarker, ProcessRow, ProfileDir, Retention};
use unfuse_machine as machine;

use crate::remote;

/// How long to wait for the writers after the command has ended.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Run a spark-submit, pyspark, spark-sql, python or java command under the profiler
#[derive(Debug, Args)]
pub struct Run {
    /// Samples a second of CPU time, for each thread
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub rate: u32,
    /// Profile directory, or its URI on a file system of Hadoop [default: unfuse-DATE-TIME in this directory]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Delete the oldest of the profile beyond this size, such as 2GB: for jobs that never end
    #[arg(long, value_name = "SIZE", value_parser = Retention::parse_size)]
    pub keep: Option<u64>,
    /// Delete what is older, such as 12h or 7d
    #[arg(long, value_name = "AGE", value_parser = Retention::parse_age)]
    pub keep_for: Option<Duration>,
    /// Profile the driver only; executor processes are started without the agent
    #[arg(long)]
    pub driver_only: bool,
    /// Follow records through the tasks, to find the slow ones (`unfuse skew`): with the content of the slowest, or without
    #[arg(long, value_name = "CONTENT", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub records: Option<Records>,
    /// More options for the agent, as in -agentpath (key=value,…)
    #[arg(long, value_name = "OPTIONS")]
    pub agent_options: Option<String>,
    /// The command
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// What is kept of records that are followed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Records {
    /// Times and places, and the beginning of the slowest ones' content
    On,
    /// Times and places only
    Redacted,
}

impl Run {
    /// Runs the command; the exit code is the command's own.
    pub fn execute(self) -> Result<ExitCode> {
        let out = self.out.clone().unwrap_or_else(default_out);
        if remote::is_uri(&out) {
            if self.keep.is_some() || self.keep_for.is_some() {
                bail!(
                    "--keep and --keep-for hold for local directories, not for {}: leave them out, or choose a directory with --out",
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
            crate::say!("unfuse: {out} was deleted while the command ran; there is no profile");
            return Ok(exit_code(status));
        }
        if !LiveMarker::wait_for_all(&dir, PATIENCE) {
            crate::say!(
                "unfuse: a profiled process is still running; {} grows until it ends",
                out.display()
            );
        }
        tell(&dir, &out);
        Ok(exit_code(status))
    }

    /// The same where Spark's processes copy their profile to a file system of Hadoop.
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

    /// Runs the command to its end; none if it cannot be run, which is said.
    fn run(&self, dir: &Path) -> Result<Option<ExitStatus>> {
        let mut command = self.prepare(dir)?;
        // Ctrl-C is the command's to handle; the profile is wanted all the more then.
        let _ignored = [Signal::SIGINT, Signal::SIGQUIT].map(IgnoredSignal::new);
        let status = command
            .status()
            .with_context(|| format!("cannot run {}", self.command[0].to_string_lossy()));
        Ok(status.map_err(|e| crate::say!("unfuse: {e:#}")).ok())
    }

    /// The command with the agent added the way its kind takes it.
    fn prepare(&self, dir: &Path) -> Result<Command> {
        let agent = self.agent_flag(dir)?;
        let program = &self.command[0];
        let mut command = Command::new(program);
        if Path::new(program).file_name() == Some(OsStr::new("java")) {
            command.arg(agent).args(&self.command[1..]);
        } else {
            // spark-submit and all that start Spark through it take JVM options for the driver here.
            let mut options = std::env::var_os("SPARK_SUBMIT_OPTS").unwrap_or_default();
            if !options.is_empty() {
                options.push(" ");
            }
            options.push(agent);
            command
                .args(&self.command[1..])
                .env("SPARK_SUBMIT_OPTS", options);
        }
        Ok(command)
    }

    fn agent_flag(&self, dir: &Path) -> Result<String> {
        let library = machine::agent_library()?;
        for path in [dir, &library] {
            let text = path.to_string_lossy();
            if text.contains([',', ' ', '"']) {
                bail!(
                    "{text}: a path with a comma, a space or a quote cannot be passed to the agent; choose another with --out"
                );
            }
        }
        let mut flag = format!(
            "-agentpath:{}=dir={},rate={}",
            library.display(),
            dir.display(),
            self.rate
        );
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

/// A signal that is ignored for as long as this lives.
struct IgnoredSignal {
    signal: Signal,
    before: Option<SigAction>,
}

impl IgnoredSignal {
    fn new(signal: Signal) -> Self {
        // A handler, not SIG_IGN: an ignored signal would stay ignored in the command.
        let action = SigAction::new(
            SigHandler::Handler(nothing),
            SaFlags::SA_RESTART,
            SigSet::empty(),
        );
        // SAFETY: the handler does nothing.
        let before = unsafe { sigaction(signal, &action) }.ok();
        Self { signal, before }
    }
}

extern "C" fn nothing(_: i32) {}

impl Drop for IgnoredSignal {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // SAFETY: restores what was there.
            let _ = unsafe { sigaction(self.signal, before) };
        }
    }
}

pub(super) fn default_out() -> PathBuf {
    let now = machine::local_time("%Y%m%d-%H%M%S");
    let name = format!("unfuse-{now}");
    // Two runs in one second get two directories.
    (1..)
        .map(|n| {
            if n == 1 {
                name.clone()
            } else {
                format!("{name}-{n}")
            }
        })
        .map(PathBuf::from)
        .find(|path| !path.exists())
        .unwrap_or_else(|| PathBuf::from(name))
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    ExitCode::from(code as u8)
}

/// Where the profile is and what to type next.
pub(super) fn tell(dir: &ProfileDir, out: &Path) {
    let out = out.display();
    let processes = dir
        .read::<ProcessRow>()
        .map(|read| read.rows)
        .unwrap_or_default();
    let failures = LiveMarker::failures(dir);
    if processes.is_empty() && !failures.is_empty() {
        // The agent has said why.
        return;
    }
    if processes.is_empty() {
        crate::say!(
            "unfuse: no JVM was profiled. The command must be java, or start Spark through spark-submit \
             (pyspark, spark-sql and python with PySpark do); see `unfuse doctor`"
        );
        return;
    }
    let next = if processes.iter().any(|process| !process.app.is_empty()) {
        format!("unfuse top {out}   |   unfuse flame {out} -o flame.svg   |   unfuse source {out}")
    } else {
        format!("unfuse top {out}   |   unfuse flame {out} --level full -o flame.svg")
    };
    for failure in failures {
        crate::say!("unfuse: the profile in {out} is not complete: {failure}");
    }
    let hint = if std::io::stderr().is_terminal() {
        "\nunfuse: next: "
    } else {
        "; next: "
    };
    crate::say!("unfuse: profile in {out}{hint}{next}");
}
