use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use nix::unistd::getppid;
use unfuse_profiler::attach::Recorder;
use unfuse_profiler::options::Options;
use unfuse_profiler::{LaunchError, SourceChoice};

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
    /// The JVM has frame pointers in all its code (-XX:+PreserveFramePointer), so CPU timers can take samples
    #[arg(long)]
    frame_pointers: bool,
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
        let mut options = Options::parse_for_plugin(&self.options);
        if options.config.source == SourceChoice::Timer && !self.frame_pointers {
            crate::say!(
                "unfuse: option source=timer needs a JVM with -XX:+PreserveFramePointer; using source=auto"
            );
            options.config.source = SourceChoice::Auto;
        }
        let dir = options.config.uri.clone();
        let dir = dir.unwrap_or_else(|| options.config.dir.display().to_string());
        let (recorder, denied) =
            Recorder::for_plugin(options.config, self.pid, self.frame_pointers).map_err(
                |e| match e {
                    LaunchError::PerfDenied(e) => {
                        anyhow::anyhow!(
                            "perf_event_open is not allowed here ({e}), which source=perf needs"
                        )
                    }
                    e => e.into(),
                },
            )?;
        match denied {
            Some(denied) if recorder.has_timers() => crate::say!(
                "unfuse: perf_event_open is not allowed here ({denied}); sampling with CPU timers inside the JVM instead \
                 (`unfuse doctor` says how to allow it)"
            ),
            Some(denied) => crate::say!(
                "unfuse: perf_event_open is not allowed here ({denied}): the profile has plans, stages and tasks, but no \
                 samples; allow perf_event (`unfuse doctor` says how), or add -XX:+PreserveFramePointer to the options of \
                 driver and executors, with which CPU timers take the samples"
            ),
            None => {}
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
