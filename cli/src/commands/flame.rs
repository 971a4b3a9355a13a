//! `unfuse flame`: a flame graph.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use unfuse_postprocess::plain::Form;
use unfuse_postprocess::{Order, flame_graph, folded};

use super::{Depth, Input, Kind};
use crate::output::write_plain_to;

/// Write an interactive flame graph (SVG, for the browser)
#[derive(Debug, Args)]
pub struct Flame {
    #[command(flatten)]
    input: Input,
    /// Which time
    #[arg(long, value_enum, default_value = "cpu")]
    kind: Kind,
    /// Which frames
    #[arg(long, value_enum, default_value = "operator")]
    level: Depth,
    /// What stands below an operator [default: plan; code with --level full]
    #[arg(long, value_enum)]
    order: Option<By>,
    /// The SVG to write
    #[arg(short, long, alias = "out", value_name = "FILE")]
    output: PathBuf,
}

/// What stands below an operator.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum By {
    /// The operators that it reads rows from, as in the plan; the stages and runs of a query are put together
    Plan,
    /// The operators that its code calls, by stage
    Code,
}

impl Flame {
    /// Writes the graph.
    pub fn execute(self) -> Result<ExitCode> {
        let (profile, selection) = self.input.open_for(self.kind.into())?;
        let order = match (self.order, self.level) {
            (Some(By::Plan), _) | (None, Depth::Operator) => Order::Plan,
            (Some(By::Code), _) | (None, Depth::Full) => Order::Code,
        };
        let folded = folded(&profile, selection, self.level.into(), order);
        let ns = folded.stacks.iter().map(|(_, weight)| weight.ns);
        let seconds = ns.fold(0u64, u64::saturating_add) as f64 / 1e9;
        let time = match self.kind {
            Kind::Cpu => "CPU time",
            Kind::OffCpu => "wait time",
            Kind::Wall => "CPU time and wait time",
        };
        let value = format!("{seconds:.2} s {time}");
        let title = match (selection.query, selection.stage) {
            (Some(query), Some(stage)) => {
                format!("query {query}, stage {stage}: {value}")
            }
            (Some(query), None) => format!("query {query}: {value}"),
            (None, Some(stage)) => format!("stage {stage}: {value}"),
            (None, None) => value,
        };
        let subtitle = selection.query.and_then(|query| {
            let mut ids = profile.executions.keys();
            let id = ids.find(|id| id.execution == query)?;
            Some(profile.query_name(id))
        });
        write_plain_to(Some(&self.output), Form::Text, |out| {
            Ok(flame_graph(&folded, &title, subtitle.as_deref(), out)?)
        })?;
        crate::say!(
            "unfuse: wrote {} (open it in a browser)",
            self.output.display()
        );
        Ok(ExitCode::SUCCESS)
    }
}
