//! `unfuse history`: the runs of a query over days.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use unfuse_format::ProfileDir;
use unfuse_postprocess::Profile;
use unfuse_report::history::{Answer, render};

use super::open;
use crate::output::print;
use crate::remote;

/// List queries, or compare the runs of one query over days and profiles
#[derive(Debug, Args)]
pub struct History {
    /// The query: its fingerprint, or the beginning of it [default: list all queries]
    #[arg(value_name = "FINGERPRINT")]
    fingerprint: Option<String>,
    /// Profile directories, their URIs, or local directories that contain profiles
    #[arg(long = "in", value_name = "DIR", num_args = 1.., default_value = ".")]
    dirs: Vec<PathBuf>,
    /// Print JSON: the runs of the query with their operators, or an array of queries
    #[arg(long)]
    json: bool,
    /// Rows to print (text only); of runs the latest
    #[arg(long, default_value_t = 40, value_name = "N")]
    limit: usize,
}

impl History {
    /// Prints the table.
    pub fn execute(self) -> Result<ExitCode> {
        let answer = Answer::from_profiles(&self.profiles()?, self.fingerprint.as_deref())?;
        print(None, self.json, &answer, || render(&answer, self.limit))?;
        Ok(ExitCode::SUCCESS)
    }

    fn profiles(&self) -> Result<Vec<Profile>> {
        let mut profiles = Vec::new();
        for dir in &self.dirs {
            for profile in profiles_in(dir)? {
                profiles.push(open(&profile)?);
            }
        }
        if profiles.is_empty() {
            let dirs: Vec<String> = self
                .dirs
                .iter()
                .map(|dir| dir.display().to_string())
                .collect();
            bail!(
                "no profile in {}; name a profile directory with --in",
                dirs.join(", ")
            );
        }
        Ok(profiles)
    }
}

/// The directory itself if it is a profile, otherwise the profiles in it.
pub(super) fn profiles_in(dir: &Path) -> Result<Vec<PathBuf>> {
    if remote::is_uri(dir) || ProfileDir::is_at(dir) {
        return Ok(vec![dir.to_owned()]);
    }
    let entries = dir
        .read_dir()
        .with_context(|| format!("cannot read {}", dir.display()))?;
    let mut inside: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    inside.retain(|dir| ProfileDir::is_at(dir));
    inside.sort();
    Ok(inside)
}
