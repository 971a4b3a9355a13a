//! `unfuse report`: how long it takes to make and to open, for a day's worth of queries.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::{report, synthetic};

/// Opens a report in Chromium and prints milliseconds, one figure a line.
const OPENER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../report-page/test/open.mjs");

/// Report of a made-up profile: time to build, size, time to open in headless Chromium
#[derive(Debug, Args)]
pub struct Page {
    /// Queries in the profile
    #[arg(long, default_value_t = 5000)]
    queries: usize,
    /// Times each thing is done; the median counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only write the profile here, for tests
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// With --write: a profile whose queries changed, to compare with
    #[arg(long)]
    heavier: bool,
}

impl Page {
    /// Measures and writes `report.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        if let Some(dir) = &self.write {
            return synthetic::write(dir, self.queries, self.heavier);
        }
        let dir = tempfile::tempdir()?;
        let profile = dir.path().join("profile");
        synthetic::write(&profile, self.queries, false)?;
        let page = dir.path().join("report.html");
        let mut build = Vec::new();
        for _ in 0..self.rounds {
            let begun = Instant::now();
            let mut command = Command::new(std::env::current_exe()?.with_file_name("unfuse"));
            run(command.arg("report").arg(&profile).arg("-o").arg(&page))?;
            build.push(begun.elapsed().as_secs_f64());
        }
        let mut opened: [Vec<f64>; 3] = Default::default();
        for _ in 0..self.rounds {
            let text = run(Command::new("node").arg(OPENER).arg(&page))?;
            for (times, line) in opened.iter_mut().zip(text.lines()) {
                times.push(line.parse::<f64>().context("a number")? / 1000.0);
            }
        }
        let [list, page_of_list, query] = &mut opened;
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let body = format!(
            "A made-up profile ({} queries of 50 shapes, 3 stages and 24 tasks each, up to 140 distinct stacks a \
             query; {:.0} MiB of Parquet), median of {} runs.\n\n\
             | | |\n|---|---|\n| build the report | {:.2} s |\n| its size | {:.1} MiB |\n\
             | open it until the list is there | {:.2} s |\n| next page of the list | {:.2} s |\n\
             | open a query until its plan is there | {:.2} s |\n",
            self.queries,
            mib(size(&profile)?),
            self.rounds,
            report::median(&mut build),
            mib(fs::metadata(&page)?.len()),
            report::median(list),
            report::median(page_of_list),
            report::median(query),
        );
        report::write(results, "report", "unfuse-bench report", &body)
    }
}

fn run(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?} failed: {error}");
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn size(dir: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        sum += match entry.file_type()?.is_dir() {
            true => size(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(sum)
}
