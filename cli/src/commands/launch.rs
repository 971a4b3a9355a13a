use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use nix::unistd::getppid;
use unfuse_profiler::LaunchError;
use unfuse_profiler::attach::Recorder;
use unfuse_profiler::options::Options;

/// Start the processes that profile a JVM, for the Spark plugin in it
///
/// Prints the options that lead the JVM's agent to this process, waits for the agent, starts the processes and ends. The
/// plugin reports a failure, so that goes to standard output too.
#[derive(Debug, Args)]
#[command(hide = true)]
pub struct Launch {
    /// The JVM's process id; the JVM is this process's parent
    #[arg(long, value_name = "PID")]
    pid: u32,
    /// The agent's options
    #[arg(long, value_name = "KEY=VALUE,…", allow_hyphen_values = true)]
    options: String,
}

impl Launch {
    pub fn execute(self) -> Result<ExitCode> {
        let launched = self.launch();
        if let Err(refusal) = launched {
            print(&format!("refused: {refusal}"))?;
            return Ok(ExitCode::FAILURE);
        }
        Ok(ExitCode::SUCCESS)
    }

    fn launch(&self) -> Result<()> {
        if getppid().as_raw() as u32 != self.pid {
            bail!(
                "process {} is not the parent of this one; Spark's plugin starts `unfuse launch`, and `unfuse record` \
                 profiles other JVMs",
                self.pid
            );
        }
        // The agent reports what it does not understand.
        let options = Options::parse_for_plugin(&self.options);
        let dir = options.config.uri.clone();
        let dir = dir.unwrap_or_else(|| options.config.dir.display().to_string());
        let (recorder, denied) =
            Recorder::for_plugin(options.config, self.pid).map_err(|e| match e {
                LaunchError::PerfDenied(e) => {
                    anyhow::anyhow!(
                        "perf_event_open is not allowed here ({e}), which source=perf needs"
                    )
                }
                e => e.into(),
            })?;
        if let Some(denied) = denied {
            crate::say!(
                "unfuse: perf_event_open is not allowed here ({denied}): the profile has plans, stages and tasks, but no \
                 samples; allow perf_event (`unfuse doctor` says how), or use -agentpath, which has CPU timers"
            );
        }
        print(&recorder.options())?;
        recorder.connect()?.leave()?;
        crate::say!("unfuse: profiling to {dir}");
        Ok(())
    }
}

/// Prints a line for the plugin.
fn print(line: &str) -> Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{}", line.replace('\n', " "))
        .and_then(|()| out.flush())
        .context("the plugin does not listen")
}
