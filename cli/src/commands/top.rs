//! `unfuse top`: the operators, lines or methods that use the CPU or wait.

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use unfuse_postprocess::{By, Period, Profile, Selection, Time, notes};
use unfuse_report::top::Top as Table;
use unfuse_report::{Report, verdict};

use super::{Input, Kind};
use crate::output::{form, write_plain_to};

/// List operators, lines or methods by CPU time or wait time
#[derive(Debug, Args)]
pub struct Top {
    #[command(flatten)]
    input: Input,
    /// What a row stands for [default: operator; method if the profile is not of Spark]
    #[arg(long, value_enum)]
    by: Option<Column>,
    /// Which time
    #[arg(long, value_enum, default_value = "cpu")]
    kind: Kind,
    /// Print a row for each run of a query, not one for all its runs
    #[arg(long)]
    runs: bool,
    /// Print JSON: an array of objects, most time first, with a row for each run
    #[arg(long)]
    json: bool,
    /// Rows to print (text only)
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
        let table = Table::new(&profile, selection, by);
        let verdict = match (self.json, self.by) {
            (false, None) => verdict(&profile, selection),
            _ => String::new(),
        };
        write_plain_to(None, form(self.json), |out| {
            if self.json {
                serde_json::to_writer_pretty(&mut *out, &table.rows())?;
                writeln!(out)?;
            } else {
                write!(out, "{verdict}{}", table.render(self.runs, self.limit))?;
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

/// The verdict on the CPU time of the whole profile, with an empty line after it. Empty for a part
/// of the profile, and for waits.
fn verdict(profile: &Profile, selection: Selection) -> String {
    let is_part =
        selection.query.is_some() || selection.stage.is_some() || selection.period != Period::ALL;
    if is_part || selection.time != Time::Cpu {
        return String::new();
    }
    match Report::new(profile).and_then(|report| report.summary_with_verdict()) {
        Ok(summary) => verdict::render(&summary.verdict, verdict::COLUMNS, verdict::LINES) + "\n",
        Err(error) => format!("unfuse: no verdict: {error}\n\n"),
    }
}
