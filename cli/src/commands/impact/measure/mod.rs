//! `unfuse impact measure`: makes the runs.

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

/// Run a command with slower and faster CPUs, disks and networks, in turns, and show what limits it
///
/// The command must do the same work each time. Settings are restored however this ends. --dry-run shows them.
#[derive(Debug, Args)]
pub struct Measure {
    /// Levels of resources, the slowest first: cpu=1,2 (CPUs) or cpu=1.2GHz,2.4GHz; disk=disk,ram or disk=50MBps,ram;
    /// network=100mbit,loopback [default: cpu at half and all of this machine, disk=disk,ram with --input]
    #[arg(long, value_name = "RESOURCE=LEVEL,…", num_args = 1..)]
    schemes: Vec<String>,
    /// A file or directory that the command reads; `ram` is a copy in memory, the others read from the disk
    #[arg(long, value_name = "PATH")]
    input: Vec<PathBuf>,
    /// Runs at each scheme
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Runs before those that count
    #[arg(long, value_name = "N", default_value_t = 1)]
    warm_up: u32,
    /// Record every run with the profiler, for impact by operator
    #[arg(long)]
    profile: bool,
    /// Show what would be done and changed
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Directory for the table, logs and profiles [default: unfuse-DATE-TIME in this directory]
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The command
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Measure {
    /// Measures and prints the answer.
    pub fn execute(self) -> Result<ExitCode> {
        let inputs = machine::inputs(&self.input)?;
        let levels = Levels::of(&self.schemes, &inputs)?;
        let machine = Machine::find(&levels, inputs)?;
        let plan = Plan {
            schemes: levels.schemes(),
            levels,
            repeat: self.repeat,
            warm_up: self.warm_up,
            profile: self.profile,
            out: self.out.unwrap_or_else(default_out),
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
