//! `unfuse record`: profiles a JVM that is already running.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use unfuse_files::Directory;
use unfuse_format::{FormatError, ProfileDir};
use unfuse_machine as machine;
use unfuse_profiler::attach::{Recorder, Recording};
use unfuse_profiler::{Config, LaunchError, Threads};

use crate::attach::Jvm;
use crate::fresh::{PATIENCE, default_out, recording, tell, tell_completeness};

/// Time for the JVM to recompile its hot methods before samples count.
const WARM_UP: Duration = Duration::from_secs(1);

/// Profile a JVM that is already running
///
/// The agent leaves the JVM after the recording. Needs perf_event (`unfuse doctor` checks it). docs/attach.md says what such
/// a profile lacks.
#[derive(Debug, Args)]
pub struct Record {
    /// Process id of the JVM
    #[arg(long, value_name = "PID")]
    pid: u32,
    /// How long to record, such as 30s or 5m; Ctrl-C ends it earlier
    #[arg(long = "for", value_name = "DURATION", default_value = "30s", value_parser = recording)]
    duration: Duration,
    /// Samples a second of CPU time, for each thread
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// Profile directory [default: unfuse-DATE-TIME in this directory]
    #[arg(short, long, alias = "out", value_name = "DIR")]
    output: Option<PathBuf>,
    /// Do not have the JVM compile its code again; code that it compiled before has no lines in the profile then
    #[arg(long)]
    keep_code: bool,
}

impl Record {
    /// Records, and prints where the profile is.
    pub fn execute(self) -> Result<ExitCode> {
        let jvm = Jvm::find(self.pid)?;
        let library = std::fs::canonicalize(machine::agent_library()?)?;
        let out = self.output.clone().unwrap_or_else(default_out);
        // Blocks the signals from here on: Ctrl-C ends the recording, not the clean-up.
        let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
        signals.thread_block()?;
        let stop = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC)?;
        let config = Config {
            dir: out.clone(),
            rate_hz: self.rate,
            threads: Threads::All,
            ..Config::default()
        };
        // Keeps this handle until the end, because another process may be able to rename the directory.
        let made = Directory::create_new(&out).map_err(FormatError::from)?;
        let begun = open(&out, made.as_ref()).and_then(|dir| {
            let recording = self.begin(&jvm, &library, config, dir.clone(), &stop)?;
            Ok((dir, recording))
        });
        let (dir, mut recording) = match begun {
            Ok(begun) => begun,
            Err(e) => {
                if let Some(made) = made {
                    let _ = made.delete();
                }
                return Err(e);
            }
        };
        recording.wait(self.duration, &stop);
        if !recording.finish(PATIENCE) {
            crate::say!("unfuse: the writer is still writing to {}", out.display());
        }
        if let Some(failure) = recording.failure() {
            crate::say!("unfuse: {failure}");
        }
        match recording.detach() {
            _ if recording.jvm_has_ended() => {
                crate::say!("unfuse: JVM {} ended before the recording did", self.pid);
            }
            Ok(()) => {}
            Err(e) => crate::say!(
                "unfuse: the agent did not detach from JVM {} in time ({e})",
                self.pid
            ),
        }
        tell(&dir, &out);
        tell_completeness(&dir);
        Ok(ExitCode::SUCCESS)
    }

    fn begin(
        &self,
        jvm: &Jvm,
        library: &Path,
        config: Config,
        dir: ProfileDir,
        stop: &SignalFd,
    ) -> Result<Recording> {
        let recorder =
            Recorder::new(config, dir, self.pid, jvm.owner()).map_err(|e| match e {
                LaunchError::PerfDenied(e) => anyhow::anyhow!(
                    "the kernel denies perf_event_open ({e}), which a recording needs; `unfuse doctor` says how to \
                     allow it"
                ),
                e => anyhow::anyhow!("{e}"),
            })?;
        if library.to_string_lossy().contains('\0') {
            bail!(
                "the JVM cannot load {}: the path has a zero byte",
                library.display()
            );
        }
        let mut options = recorder.options();
        if self.keep_code {
            options.push_str(",keep-code=on");
        }
        jvm.load(library, &options)?;
        let profiling = || format!("JVM {} cannot be profiled", self.pid);
        let handshake = recorder.connect().with_context(profiling)?;
        if handshake.recompiles() {
            handshake.wait(WARM_UP, stop);
        }
        handshake.go().with_context(profiling)
    }
}

/// The profile directory. If it is new, `made` is its handle.
fn open(out: &Path, made: Option<&Directory>) -> Result<ProfileDir> {
    Ok(match made {
        Some(made) => ProfileDir::create_in(made.clone())?,
        None => ProfileDir::create(out)?,
    })
}
