//! `unfuse agent`: the options of the agent.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use unfuse_profiler::options::{AgentOption, OPTIONS};

use crate::output::{form, write_plain_to};

/// List the options of the agent
///
/// Give them after the path of the agent, -agentpath:/path/libunfuse.so=KEY=VALUE,…, or with
/// `unfuse run --agent-options KEY=VALUE,…`. With the Spark plugin, each is a setting: spark.unfuse.KEY=VALUE.
#[derive(Debug, Args)]
#[command(after_help = describe())]
pub struct Agent {}

impl Agent {
    /// Prints the list.
    pub fn execute(&self) -> Result<ExitCode> {
        write_plain_to(None, form(false), |out| Ok(write!(out, "{}", describe())?))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The options as plain text.
fn describe() -> String {
    let mut text = "Agent options:\n".to_owned();
    for option in OPTIONS {
        let AgentOption {
            name,
            values,
            default,
            meaning,
            ..
        } = option;
        let _ = write!(
            text,
            "  {name}={values}  [default: {default}]\n      {meaning}\n"
        );
    }
    text.replace(['`', '*'], "")
}
