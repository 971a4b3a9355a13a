//! `unfuse top`: who uses the CPU, and who waits.

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use unfuse_postprocess::{By, Totals, notes};

use super::{Input, Kind};
use crate::output::{form, write_plain_to};

/// Show which operators, lines or methods use the CPU, or wait
#[derive(Debug, Args)]
pub struct Top {
    #[command(flatten)]
    input: Input,
    /// What to sum by [default: operator; method where no Spark was profiled]
    #[arg(long, value_enum)]
    by: Option<Column>,
    /// Whose time: of threads that run, that wait, or both
    #[arg(long, value_enum, default_value = "cpu")]
    kind: Kind,
    /// Print JSON: an array of objects, most samples first
    #[arg(long)]
    json: bool,
    /// Rows to show (text only)
    #[arg(long, default_value_t = 40, value_name = "N")]
    limit: usize,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Column {
    Operator,
    Line,
    Method,
    Stage,
    Query,
    Thread,
    /// What placed the samples on operators, and what that is worth
    Rule,
}

impl From<Column> for By {
    fn from(column: Column) -> Self {
        match column {
            Column::Operator => Self::Operator,
            Column::Line => Self::Line,
            Column::Method => Self::Method,
            Column::Stage => Self::Stage,
            Column::Query => Self::Query,
            Column::Thread => Self::Thread,
            Column::Rule => Self::Rule,
        }
    }
}

impl Top {
    /// Prints the table.
    pub fn execute(self) -> Result<ExitCode> {
        let (profile, selection) = self.input.open_for(self.kind.into())?;
        let usual = if profile.has_spark() {
            By::Operator
        } else {
            By::Method
        };
        let by = self.by.map_or(usual, By::from);
        let totals = Totals::of(&profile, selection, by);
        write_plain_to(None, form(self.json), |out| {
            if self.json {
                serde_json::to_writer_pretty(&mut *out, &totals.rows)?;
                writeln!(out)?;
            } else {
                write!(
                    out,
                    "{}",
                    unfuse_report::top::render(&totals, by, selection.time, self.limit)
                )?;
                for note in notes(&profile.processes) {
                    writeln!(out, "note: {note}")?;
                }
            }
            Ok(())
        })?;
        if !self.json && std::io::stdout().is_terminal() {
            let dir = profile.path().display();
            println!(
                "\nnext: unfuse flame {dir} -o flame.svg   |   unfuse source {dir}   |   --by line"
            );
        }
        Ok(ExitCode::SUCCESS)
    }
}
