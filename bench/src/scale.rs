//! Commands on the profile of a large application: time and memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

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
    /// A command fails, or the page cannot be written.
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
        let html = temporary.path().join("report.html");
        let victim = (self.queries / 2).to_string();
        let commands: [(&str, &str, Vec<&str>); 3] = [
            ("top", "top", vec![]),
            (
                "report",
                "report",
                vec!["-o", html.to_str().context("a path")?],
            ),
            ("blame", "blame --victim", vec!["--victim", &victim]),
        ];
        let mut figures = Vec::new();
        for (id, name, arguments) in commands {
            let mut seconds = Vec::new();
            let mut memory = Vec::new();
            for _ in 0..self.rounds {
                let run = run(id, &profile, &arguments)?;
                eprintln!("{name}: {:.1} s, {:.0} MiB", run.seconds, run.mib);
                seconds.push(run.seconds);
                memory.push(run.mib);
            }
            let what = format!("{name}: time");
            figures.push(Figure::from_runs(
                &format!("{id}_seconds"),
                &what,
                &seconds,
                "s",
                1,
            ));
            let what = format!("{name}: most memory");
            figures.push(Figure::from_runs(
                &format!("{id}_memory"),
                &what,
                &memory,
                "MiB",
                0,
            ));
        }
        let body = format!(
            "A made-up profile of an hour: {} executors, {} queries of 50 shapes, {} tasks in each of their 3 stages, {} rows of \
             samples for each task; {:.2} GB of Parquet, of which every executor wrote its own segments of 20,000 rows. \
             Each command ran {} times. `blame` asks for one query. Memory is the resident set's high-water mark, \
             read every 10 ms.\n",
            self.executors,
            self.queries,
            self.tasks,
            self.rows,
            bytes(&profile)? as f64 / 1e9,
            self.rounds,
        );
        page.finish(u32::try_from(self.rounds)?, figures, &body)
    }
}

struct Run {
    seconds: f64,
    mib: f64,
}

fn run(command: &str, profile: &Path, arguments: &[&str]) -> Result<Run> {
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

/// The most memory that a process has had, KiB; none once it has ended.
fn high_water(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn bytes(dir: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        sum += match entry.file_type()?.is_dir() {
            true => bytes(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(sum)
}
