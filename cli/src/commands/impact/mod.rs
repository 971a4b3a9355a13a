//! `unfuse impact`: which resource limits a job.

mod measure;
mod operators;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use unfuse_impact::{Scheme, Table};
use unfuse_report::impact::{Answer, render};

use self::operators::Profiles;
use crate::output::print;

/// The file name of the table that `measure` writes.
const RUNS: &str = "runs.csv";
/// The folder in which `measure` keeps its profiles.
const PROFILES: &str = "profiles";

/// Show which resource limits a job: CPU, disk, network or memory
///
/// The answer comes from running times of the job with slower and faster resources. `unfuse impact measure` makes such runs.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Impact {
    /// A table of runs (CSV or TOML, see docs/impact.md), or the directory that `unfuse impact measure` made
    #[arg(value_name = "TABLE", required_unless_present = "profiles")]
    table: Option<PathBuf>,
    /// Profiles with the schemes that they were recorded at, for impact by operator: 1.2/HDD/1Gbps=DIR
    #[arg(long, value_name = "SCHEME=DIR", num_args = 1.., value_delimiter = ',')]
    profiles: Vec<String>,
    /// The scheme to compare with [default: that of the table, else of the first row or profile]
    #[arg(long, value_name = "SCHEME")]
    base: Option<Scheme>,
    /// Operators to print of each query (text only)
    #[arg(long, alias = "top", default_value_t = 10, value_name = "N")]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The file to write [default: standard output]
    #[arg(short, long, alias = "out", value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Measure(measure::Measure),
    /// What `measure` starts, to restore settings
    #[command(hide = true)]
    Guard,
    #[command(hide = true)]
    Within(measure::Within),
}

impl Impact {
    /// Prints the answer, or measures.
    pub fn execute(self) -> Result<ExitCode> {
        match self.command {
            Some(Command::Measure(measure)) => return measure.execute(),
            Some(Command::Guard) => {
                unfuse_machine::guardian::guard()?;
                return Ok(ExitCode::SUCCESS);
            }
            Some(Command::Within(within)) => return within.execute(),
            None => {}
        }
        let answer = self.answer()?;
        print(self.output.as_deref(), self.json, &answer, || {
            render(&answer, self.limit)
        })?;
        Ok(ExitCode::SUCCESS)
    }

    fn answer(&self) -> Result<Answer> {
        let mut answer = Answer::default();
        let mut base = self.base.clone();
        let mut profiles = Profiles::named(&self.profiles)?;
        if let Some(path) = &self.table {
            let measured = path.is_dir();
            let file = if measured {
                path.join(RUNS)
            } else {
                path.clone()
            };
            if measured && !file.exists() {
                bail!(
                    "{} has no {RUNS}; give a table, a directory that `unfuse impact measure` made, or --profiles",
                    path.display()
                );
            }
            let table = Table::read(&file, base.take())?;
            answer.workloads(&table)?;
            base = Some(table.base);
            if measured {
                profiles.add_of(&path.join(PROFILES))?;
            }
        }
        if !profiles.is_empty() {
            profiles.answer(base, &mut answer)?;
        }
        Ok(answer)
    }
}
