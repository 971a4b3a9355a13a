//! Time and memory of commands on the profile of a large application.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;

use crate::disk::bytes_below;
use crate::page::{Figure, Measuring};
use crate::synthetic::large;

const MEASURES: [&str; 5] = [
    "postprocess",
    "profiler/format",
    "report/src",
    "analysis/contention",
    "analysis/skew",
];

/// How often the memory of a running command is read.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Commands on a made-up profile of many executors: time and memory
#[derive(Debug, Args)]
pub struct Scale {
    /// Executors in the profile
    #[arg(long, default_value_t = 200)]
    executors: usize,
    /// Queries in the profile
    #[arg(long, default_value_t = 2000)]
    queries: usize,
    /// Tasks in each stage; each query has three stages
    #[arg(long, default_value_t = 200)]
    tasks: usize,
    /// Rows of samples for each task
    #[arg(long, default_value_t = 75)]
    rows: usize,
    /// How often each command runs
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only these commands: top, top_query, report, blame
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only write the profile here
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// Use this profile, which --write made with the same numbers
    #[arg(long, value_name = "DIR", conflicts_with = "write")]
    profile: Option<PathBuf>,
}

impl Scale {
    /// Measures and writes `scale.md`.
    ///
    /// # Errors
    /// If a command fails, or the page cannot be written.
    pub fn measure(&self, results: &Path) -> Result<()> {
        let size = large::Size {
            executors: self.executors,
            queries: self.queries,
            tasks: self.tasks,
            rows: self.rows,
        };
        if let Some(dir) = &self.write {
            return large::write(dir, size);
        }
        let page = Measuring::begin(results, "scale", &MEASURES)?;
        let temporary = tempfile::tempdir()?;
        let profile = match &self.profile {
            Some(profile) => profile.clone(),
            None => {
                let profile = temporary.path().join("profile");
                large::write(&profile, size)?;
                profile
            }
        };
        let html = temporary.path().join("report.html").display().to_string();
        let query = (self.queries / 2).to_string();
        let commands = [
            ("top", "top", vec![]),
            ("top_query", "top", vec!["--query", &query]),
            ("report", "report", vec!["-o", &html]),
            ("blame", "blame", vec!["--victim", &query]),
        ];
        let is_wanted = |id: &str| self.only.is_empty() || self.only.iter().any(|one| one == id);
        if let Some(unknown) = self
            .only
            .iter()
            .find(|id| commands.iter().all(|(known, ..)| known != id))
        {
            bail!("--only names no command of this benchmark: {unknown}");
        }
        let mut figures = Vec::new();
        for (id, command, arguments) in commands.iter().filter(|(id, ..)| is_wanted(id)) {
            let mut runs = Vec::new();
            for _ in 0..self.rounds {
                let run = run(command, &profile, arguments)?;
                eprintln!("{id}: {:.1} s, {:.0} MiB", run.seconds, run.mib);
                runs.push(run);
            }
            let name = match arguments[..] {
                ["-o", _] | [] => (*command).to_owned(),
                _ => format!("{command} {}", arguments.join(" ")),
            };
            let mut add = |suffix: &str, what: &str, value: fn(&Run) -> f64, unit, digits| {
                let values: Vec<f64> = runs.iter().map(value).collect();
                let (id, what) = (format!("{id}_{suffix}"), format!("{name}: {what}"));
                figures.push(Figure::from_runs(&id, &what, &values, unit, digits));
            };
            add("seconds", "time", |run| run.seconds, "s", 1);
            add("memory", "most memory", |run| run.mib, "MiB", 0);
        }
        let body = format!(
            "A made-up profile of an hour: {} executors, {} queries of 50 shapes, {} tasks in each of their 3 stages, {} rows of \
             samples for each task; {:.2} GB of Parquet, of which every executor wrote its own segments of 20,000 rows. \
             Each command ran {} times, the first with what the page cache happened to hold. Memory is the resident set's high-water mark, \
             read every 10 ms.\n",
            self.executors,
            self.queries,
            self.tasks,
            self.rows,
            bytes_below(&profile)? as f64 / 1e9,
            self.rounds,
        );
        page.finish(u32::try_from(self.rounds)?, figures, &body)
    }
}

/// Time and memory of a command.
pub(crate) struct Run {
    /// From its start to its end.
    pub(crate) seconds: f64,
    /// The high-water mark of its resident set.
    pub(crate) mib: f64,
}

/// Runs a command of `unfuse`; `make build` makes it.
pub(crate) fn run(command: &str, profile: &Path, arguments: &[&str]) -> Result<Run> {
    let program = std::env::current_exe()?.with_file_name("unfuse");
    let begun = Instant::now();
    let mut child = Command::new(program)
        .arg(command)
        .arg(profile)
        .args(arguments)
        .stdout(Stdio::null())
        .spawn()?;
    let mut kib = 0;
    let status = loop {
        kib = high_water(child.id()).unwrap_or(kib);
        match child.try_wait()? {
            Some(status) => break status,
            None => std::thread::sleep(LOOK_EVERY),
        }
    };
    if !status.success() {
        bail!("unfuse {command} failed: {status}");
    }
    Ok(Run {
        seconds: begun.elapsed().as_secs_f64(),
        mib: kib as f64 / 1024.0,
    })
}

/// The peak memory of a process, KiB; `None` once it has ended.
fn high_water(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
