//! `unfuse report`: the time to write the report and to open it, for a day of queries.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::disk::bytes_below;
use crate::page::{Figure, Measuring};
use crate::synthetic;

const MEASURES: [&str; 5] = [
    "postprocess",
    "profiler/format",
    "report/page/src",
    "analysis/contention",
    "analysis/skew",
];

/// Opens a report in Chromium and prints times in ms, one on each line.
const OPENER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../report/page/test/open.mjs");

/// Report of a made-up profile: time to build, size, time to open in headless Chromium
#[derive(Debug, Args)]
pub struct HtmlReport {
    /// Queries in the profile
    #[arg(long, default_value_t = 5000)]
    queries: usize,
    /// How often each thing is done
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only write the profile here, for tests
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// With --write: a profile whose queries changed, to compare with
    #[arg(long)]
    heavier: bool,
}

impl HtmlReport {
    /// Measures and writes `report.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        if let Some(dir) = &self.write {
            return synthetic::write(dir, self.queries, self.heavier);
        }
        let page = Measuring::begin(results, "report", &MEASURES)?;
        let dir = tempfile::tempdir()?;
        let profile = dir.path().join("profile");
        synthetic::write(&profile, self.queries, false)?;
        let html = dir.path().join("report.html");
        let mut build = Vec::new();
        for _ in 0..self.rounds {
            let begun = Instant::now();
            let mut command = Command::new(std::env::current_exe()?.with_file_name("unfuse"));
            run(command.arg("report").arg(&profile).arg("-o").arg(&html))?;
            build.push(begun.elapsed().as_secs_f64());
        }
        let mut opened: [Vec<f64>; 3] = Default::default();
        for _ in 0..self.rounds {
            let text = run(Command::new("node").arg(OPENER).arg(&html))?;
            for (times, line) in opened.iter_mut().zip(text.lines()) {
                times.push(line.parse::<f64>().context("a number")? / 1000.0);
            }
        }
        let [list, page_of_list, query] = &opened;
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let body = format!(
            "A made-up profile: {} queries of 50 shapes, 3 stages and 24 tasks each, up to 140 distinct stacks a \
             query; {:.0} MiB of Parquet. `unfuse report` made it {} times and headless Chromium opened it as often; the figures \
             are means.\n",
            self.queries,
            mib(bytes_below(&profile)?),
            self.rounds,
        );
        let size_mib = mib(fs::metadata(&html)?.len());
        let seconds =
            |name: &str, what: &str, runs: &[f64]| Figure::from_runs(name, what, runs, "s", 2);
        let figures = vec![
            seconds("build", "build the report", &build),
            Figure::new("size", "size of the report", size_mib, "MiB", 1).exact(),
            seconds("open", "open it until the list is there", list),
            seconds("next", "next page of the list", page_of_list),
            seconds("query", "open a query until its plan is there", query),
        ];
        page.finish(u32::try_from(self.rounds)?, figures, &body)
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
