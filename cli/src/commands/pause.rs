//! `unfuse pause` and `unfuse resume`: pause the profiling of a JVM.

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::Args;
use unfuse_profiler::{PauseError, RecordingState, set_recording};

/// Stop sampling a JVM that is being profiled, until `unfuse resume`
///
/// The JVM takes no samples and records no waits meanwhile; `unfuse top` says for how long. Plans, stages and tasks are still
/// recorded, so that queries that run on after the pause have names.
#[derive(Debug, Args)]
pub struct Pause {
    /// Process id of the JVM
    #[arg(long, value_name = "PID")]
    pid: u32,
    /// Do not record plans, stages and tasks either; those that begin in the pause have no operators in the profile
    #[arg(long)]
    all: bool,
}

/// Go on sampling a JVM after `unfuse pause`
#[derive(Debug, Args)]
pub struct Resume {
    /// Process id of the JVM
    #[arg(long, value_name = "PID")]
    pid: u32,
}

impl Pause {
    /// Pauses, and waits until no thread is sampled.
    pub fn execute(self) -> Result<ExitCode> {
        let state = if self.all {
            RecordingState::Off
        } else {
            RecordingState::EventsOnly
        };
        set(self.pid, state)
    }
}

impl Resume {
    /// Resumes, and waits until all samplers run.
    pub fn execute(self) -> Result<ExitCode> {
        set(self.pid, RecordingState::On)
    }
}

fn set(pid: u32, state: RecordingState) -> Result<ExitCode> {
    set_recording(pid, state).map_err(|e| match e {
        PauseError::NotProfiled(_) => anyhow!(
            "{e}. Pass the process id of the JVM itself (`jps -l` lists them); a JVM in a container can be paused from inside the \
             container only"
        ),
        e => e.into(),
    })?;
    Ok(ExitCode::SUCCESS)
}
