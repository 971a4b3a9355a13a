//! `unfuse schema`: the JSON schemas of what `--json` prints.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use unfuse_report::schemas::SCHEMAS;

use crate::output::{form, write_plain_to};

/// Print the JSON schema of a command's answer
///
/// New fields can come with each version; readers ignore those they do not know.
#[derive(Debug, Args)]
#[command(after_help = describe())]
pub struct Schema {
    /// The name of the schema; without it, the names are printed
    name: Option<String>,
}

impl Schema {
    /// Prints the schema, or the names of all.
    pub fn execute(self) -> Result<ExitCode> {
        let text = match &self.name {
            None => describe(),
            Some(name) => match SCHEMAS.iter().find(|(known, ..)| known == name) {
                Some((_, _, schema)) => (*schema).to_owned(),
                None => bail!("there is no schema {name}; `unfuse schema` lists them"),
            },
        };
        write_plain_to(None, form(self.name.is_some()), |out| {
            Ok(out.write_all(text.as_bytes())?)
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The names as plain text.
fn describe() -> String {
    let names = SCHEMAS.iter();
    let lines = names.map(|(name, command, _)| format!("  {name:<13} {command}\n"));
    format!("Schemas:\n{}", lines.collect::<String>())
}
