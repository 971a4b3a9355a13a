//! CPU time that the sampler of Python workers uses, as a part of what the workers use.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Deserialize;
use unfuse_machine::{agent_library, said};

use crate::page::{Figure, Measuring};
use crate::spark::{Spark, Tool};

const MEASURES: [&str; 1] = ["profiler/src/python"];

/// CPU time of the sampler of Python workers
#[derive(Debug, Args)]
pub struct Python {
    /// Rate, Hz of each worker's CPU time
    #[arg(long, default_value_t = 200)]
    rate: u32,
    /// CPU time of the workers of a run, s
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Runs
    #[arg(long, default_value_t = 5)]
    runs: u32,
    /// An agent library of another build, which takes turns with this one
    #[arg(long)]
    against: Option<PathBuf>,
}

/// CPU time of one run after the first query, s.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Used {
    workers_s: f64,
    sampler_s: f64,
}

impl Used {
    fn percent(self) -> f64 {
        100.0 * self.sampler_s / self.workers_s
    }
}

impl Python {
    /// Measures and writes `python.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        let spark = Spark::install("1")?;
        let page = Measuring::begin(results, "python", &MEASURES)?;
        let mut agents = vec![agent_library()?];
        agents.extend(self.against.clone());
        let mut parts = vec![Vec::new(); agents.len()];
        let mut body = format!(
            "Spark with two slots, whose Python workers compute in functions, generators and recursions: about {} s of their \
             CPU time in a run, {} Hz. Counted are the workers and the process `unfuse-python` after the first query. A \
             sample stands for 1/{} s of a worker's CPU time or, while samples cost more than 1% of it, for more{}.\n\n\
             | run | build | workers, s | sampler, s | sampler, % of the workers |\n|---|---|---|---|---|\n",
            self.seconds,
            self.rate,
            self.rate,
            match self.against {
                Some(_) => "; runs of this build and of another one take turns",
                None => "",
            }
        );
        for run in 0..self.runs {
            for turn in 0..agents.len() {
                let build = (turn + run as usize) % agents.len();
                let used = self.run(&spark, &agents[build])?;
                parts[build].push(used.percent());
                let name = ["this", "other"][build.min(1)];
                body += &format!(
                    "| {} | {name} | {:.1} | {:.3} | {:.2} |\n",
                    run + 1,
                    used.workers_s,
                    used.sampler_s,
                    used.percent()
                );
                eprintln!("run {}, {name} build: {:.2}%", run + 1, used.percent());
            }
        }
        let what = [
            (
                "share",
                "sampler of Python workers, of the workers' CPU time",
            ),
            ("other", "the same in the other build"),
        ];
        let figures = what
            .iter()
            .zip(&parts)
            .map(|((name, what), parts)| Figure::from_runs(name, what, parts, "%", 2))
            .collect();
        page.finish(self.runs, figures, &body)
    }

    fn run(&self, spark: &Spark, agent: &Path) -> Result<Used> {
        let dir = tempfile::tempdir()?;
        let program = dir.path().join("python_workers.py");
        std::fs::write(&program, include_str!("../assets/python_workers.py"))?;
        let profile = dir.path().join("profile");
        let agent = format!(
            "-agentpath:{}=dir={},rate={}",
            agent.display(),
            profile.display(),
            self.rate
        );
        let tool = Tool::Other {
            java: vec![agent],
            conf: vec!["spark.ui.enabled=false".to_owned()],
        };
        let mut command = spark.submit(&tool, &profile);
        command.args(["--master", "local[2]"]);
        command.arg(&program).arg(self.seconds.to_string());
        let text = said(&mut command)?;
        let line = text.lines().last().context("the program prints nothing")?;
        let used: Used = serde_json::from_str(line)?;
        ensure!(
            used.workers_s > 0.0 && used.sampler_s > 0.0,
            "nothing was sampled: {line}"
        );
        Ok(used)
    }
}
