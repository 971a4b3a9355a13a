//! `unfuse export`: the profile for other tools.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use unfuse_postprocess::{By, Level, Totals, folded};

use super::{Input, write_to};

/// Write the profile in another format
#[derive(Debug, Args)]
pub struct Export {
    #[command(flatten)]
    input: Input,
    /// folded: stacks for flame graph tools; json: totals by operator
    #[arg(long, value_enum)]
    format: Format,
    /// The file to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Folded,
    Json,
}

impl Export {
    /// Writes the file.
    pub fn execute(self) -> Result<ExitCode> {
        let (profile, selection) = self.input.open()?;
        write_to(self.out.as_deref(), |out| {
            match self.format {
                Format::Folded => {
                    for (stack, samples) in folded(&profile, selection, Level::Full) {
                        writeln!(out, "{stack} {samples}")?;
                    }
                }
                Format::Json => {
                    let totals = Totals::of(&profile, selection, By::Operator);
                    serde_json::to_writer_pretty(&mut *out, &totals.rows)?;
                    writeln!(out)?;
                }
            }
            Ok(())
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
