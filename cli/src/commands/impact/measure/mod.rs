//! `unfuse impact measure`: runs a command at several schemes.

mod levels;
mod machine;
mod plan;
mod runs;
mod stop;
mod within;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use self::levels::Levels;
use self::machine::Machine;
use self::plan::Plan;
pub(super) use self::within::Within;
use crate::fresh::default_out;

/// Run a command with slower and faster CPUs, disks and networks, and show which of them limits it
///
/// The command must do the same work each time. unfuse restores all settings at the end, also after an error or Ctrl-C.
/// --dry-run prints what it would change.
#[derive(Debug, Args)]
pub struct Measure {
    /// Levels of resources, the slowest first: cpu=1,2 (CPUs) or cpu=1.2GHz,2.4GHz; disk=disk,ram or disk=50MBps,ram;
    /// network=100mbit,loopback [default: cpu with half and all CPUs, and disk=disk,ram with --input]
    #[arg(long, value_name = "RESOURCE=LEVEL,…", num_args = 1..)]
    schemes: Vec<String>,
    /// A file or directory that the command reads; at the level `ram` the command reads a copy in memory
    #[arg(long, value_name = "PATH")]
    input: Vec<PathBuf>,
    /// Runs at each scheme
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Runs before the measured ones
    #[arg(long, value_name = "N", default_value_t = 1)]
    warm_up: u32,
    /// Profile every run, for impact by operator
    #[arg(long)]
    profile: bool,
    /// Print the runs and the changes of settings, and make none
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Directory for the table, logs and profiles [default: unfuse-DATE-TIME in this directory]
    #[arg(short, long, alias = "out", value_name = "DIR")]
    output: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Measure {
    /// Measures and prints the answer.
    pub fn execute(self) -> Result<ExitCode> {
        let inputs = machine::inputs(&self.input)?;
        let levels = Levels::parse(&self.schemes, &inputs)?;
        let machine = Machine::find(&levels, inputs)?;
        let plan = Plan {
            schemes: levels.schemes(),
            levels,
            repeat: self.repeat,
            warm_up: self.warm_up,
            profile: self.profile,
            out: self.output.unwrap_or_else(default_out),
            command: self.command,
        };
        if self.dry_run {
            print!("{}", plan.tell(&machine)?);
            return Ok(ExitCode::SUCCESS);
        }
        let Some(stopped) = runs::make(&plan, machine)? else {
            let mut show = std::process::Command::new(std::env::current_exe()?);
            show.arg("impact").arg(&plan.out);
            if self.json {
                show.arg("--json");
            }
            let shown = show.status()?;
            return Ok(if shown.success() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            });
        };
        Ok(ExitCode::from(128 + stopped))
    }
}
