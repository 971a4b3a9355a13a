//! `unfuse top`: who uses the CPU.

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use unfuse_postprocess::{By, Profile, Totals};

use super::Input;
use crate::output::write_to;
use crate::table;

/// Show which operators, lines or methods use the CPU
#[derive(Debug, Args)]
pub struct Top {
    #[command(flatten)]
    input: Input,
    /// What to sum by [default: operator; method where no Spark was profiled]
    #[arg(long, value_enum)]
    by: Option<Column>,
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
        }
    }
}

impl Top {
    /// Prints the table.
    pub fn execute(self) -> Result<ExitCode> {
        let (profile, selection) = self.input.open()?;
        let usual = if profile.has_spark() {
            By::Operator
        } else {
            By::Method
        };
        let by = self.by.map_or(usual, By::from);
        let totals = Totals::of(&profile, selection, by);
        write_to(None, |out| {
            if self.json {
                serde_json::to_writer_pretty(&mut *out, &totals.rows)?;
                writeln!(out)?;
            } else {
                write!(
                    out,
                    "{}{}",
                    table::render(&totals, by, self.limit),
                    footnotes(&profile)
                )?;
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

/// What is not in the numbers.
fn footnotes(profile: &Profile) -> String {
    let sum = |count: fn(&unfuse_format::ProcessRow) -> u64| -> u64 {
        profile.processes.iter().map(count).sum()
    };
    let brief_s = sum(|p| p.brief_ns) as f64 / 1e9;
    let brief = format!("threads ended before they could be sampled; they used {brief_s:.1} s");
    let brief_threads = if brief_s < 0.05 {
        0
    } else {
        sum(|p| p.brief_threads)
    };
    [
        (brief_threads, brief.as_str()),
        (sum(|p| p.lost_samples), "samples were lost by the kernel"),
        (
            sum(|p| p.lost_ranges),
            "compiled methods did not fit into the code map (agent option map=MiB)",
        ),
        (
            sum(|p| p.lost_marks),
            "task marks were overwritten before they were read",
        ),
        (
            sum(|p| p.lost_events),
            "events (plans, stages, sources) were lost",
        ),
        (
            sum(|p| p.broken_chains),
            "callchains ended in native code before the first Java frame",
        ),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("note: {count} {what}\n"))
    .collect()
}
