//! The first step of a run: enters its confinement, then executes the command.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use clap::Args;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use unfuse_machine::confine::Confinement;

/// Run a command in a confinement
#[derive(Debug, Args)]
pub struct Within {
    /// A confinement, as JSON
    confinement: String,
    /// The command
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl Within {
    /// Executes the command in place of this process. Returns only if that fails.
    pub fn execute(self) -> Result<ExitCode> {
        let confinement: Confinement = serde_json::from_str(&self.confinement)
            .context("`unfuse impact within` is a part of `unfuse impact measure`")?;
        // If `measure` is killed, the command must not run on.
        set_pdeathsig(Signal::SIGTERM)?;
        confinement.enter()?;
        let error = Command::new(&self.command[0])
            .args(&self.command[1..])
            .exec();
        Err(error).with_context(|| format!("cannot run {}", self.command[0].to_string_lossy()))
    }
}
