//! `unfuse flame`: a flame graph.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use unfuse_postprocess::plain::Form;
use unfuse_postprocess::{flame_graph, folded};

use super::{Depth, Input, Kind};
use crate::output::write_plain_to;

/// Write an interactive flame graph (SVG, for a browser)
#[derive(Debug, Args)]
pub struct Flame {
    #[command(flatten)]
    input: Input,
    /// Whose time: of threads that run, that wait, or both
    #[arg(long, value_enum, default_value = "cpu")]
    kind: Kind,
    /// Operators only, or every frame with the operators between
    #[arg(long, value_enum, default_value = "operator")]
    level: Depth,
    /// The SVG to write
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
}

impl Flame {
    /// Writes the graph.
    pub fn execute(self) -> Result<ExitCode> {
        let (profile, selection) = self.input.open_for(self.kind.into())?;
        let stacks = folded(&profile, selection, self.level.into());
        let value: u64 = stacks.iter().map(|(_, value)| value).sum();
        let unit = profile.unit(selection);
        let title = match (selection.query, selection.stage) {
            (Some(query), Some(stage)) => {
                format!("query {query}, stage {stage}: {value} {unit}")
            }
            (Some(query), None) => format!("query {query}: {value} {unit}"),
            (None, Some(stage)) => format!("stage {stage}: {value} {unit}"),
            (None, None) => format!("{value} {unit}"),
        };
        let subtitle = selection.query.and_then(|query| {
            profile
                .descriptions
                .iter()
                .find(|(id, _)| id.execution == query)
                .map(|(_, text)| text.clone())
        });
        write_plain_to(Some(&self.out), Form::Text, |out| {
            Ok(flame_graph(
                &stacks,
                &title,
                subtitle.as_deref(),
                unit,
                out,
            )?)
        })?;
        crate::say!(
            "unfuse: wrote {} (open it in a browser)",
            self.out.display()
        );
        Ok(ExitCode::SUCCESS)
    }
}
