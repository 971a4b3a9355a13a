//! CPU time and memory that the samplers use beside a JVM with many busy threads.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use unfuse_machine::{agent_library, run};
use unfuse_postprocess::{By, Profile, Selection, Totals};

use crate::page::{Figure, Measuring};
use crate::stats;

const MEASURES: [&str; 2] = ["profiler/src", "profiler/codemap/src"];
/// The load of the aim: 64 threads, each on its own CPU, at 200 Hz.
const FULL_LOAD: f64 = 64.0 * 200.0;

/// CPU time and memory of the samplers beside a JVM with many busy threads
#[derive(Debug, Args)]
pub struct Sampler {
    /// Busy Java threads
    #[arg(long, default_value_t = 64)]
    pub threads: u32,
    /// Rate, Hz of each thread's CPU time
    #[arg(long, default_value_t = 200)]
    pub rate: u32,
    /// How long they work, s
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(STARTED_S + 4..))]
    pub seconds: u64,
    /// Runs
    #[arg(long, default_value_t = 3)]
    pub runs: u32,
}

/// When the samplers have started and know the code, s after the JVM's start.
const STARTED_S: u64 = 6;

/// Name, meaning, unit and digits of each figure.
const FIGURES: [(&str, &str, &str, usize); 9] = [
    ("rate", "samples a second of all threads together", "", 0),
    (
        "steady",
        "samplers' CPU time for a sample, once they have started",
        "µs",
        1,
    ),
    (
        "a_sample",
        "samplers' CPU time for a sample, with their start",
        "µs",
        1,
    ),
    ("start", "CPU time to start a sampler", "ms", 2),
    ("core", "samplers at that load, of one core", "%", 2),
    ("others", "manager and writer, of one core", "%", 2),
    ("private", "most private memory of a sampler", "MiB", 2),
    (
        "full_load",
        "samplers at 12,800 samples a second, of one core, extrapolated",
        "%",
        0,
    ),
    (
        "busy",
        "samplers' CPU time for a sample, of as many threads as CPUs",
        "µs",
        1,
    ),
];

/// Resources that one run used.
struct Use {
    samples: f64,
    wall_s: f64,
    /// When the samplers had started.
    started: Look,
    /// Close to the end.
    last: Look,
}

/// CPU time that the processes of a run have used so far, s.
struct Look {
    jvm_cpu_s: f64,
    samplers: Vec<Process>,
    others_cpu_s: f64,
}

struct Process {
    pid: u32,
    cpu_s: f64,
    private_mib: f64,
}

impl Look {
    fn samplers_cpu_s(&self) -> f64 {
        self.samplers.iter().map(|sampler| sampler.cpu_s).sum()
    }
}

impl Use {
    /// CPU time of the samplers for a sample once they had started, s, and that of one to start, s: what it had used by then
    /// beyond its samples.
    fn parts(&self) -> (f64, f64) {
        let Self { started, last, .. } = self;
        // Samples are taken by the JVM's CPU time.
        let before = self.samples * started.jvm_cpu_s / last.jvm_cpu_s;
        let lasted: f64 = started
            .samplers
            .iter()
            .filter_map(|then| {
                let now = last.samplers.iter().find(|now| now.pid == then.pid)?;
                Some(now.cpu_s - then.cpu_s)
            })
            .sum();
        let a_sample_s = lasted / (self.samples - before);
        let start_s = started.samplers_cpu_s() - a_sample_s * before;
        (a_sample_s, start_s / started.samplers.len() as f64)
    }
}

impl Sampler {
    /// Measures and writes `sampler.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        let page = Measuring::begin(results, "sampler", &MEASURES)?;
        let scratch = tempfile::tempdir()?;
        let dir = scratch.path();
        fs::write(dir.join("Busy.java"), include_str!("../assets/Busy.java"))?;
        run(Command::new("javac")
            .arg("-d")
            .arg(dir)
            .arg(dir.join("Busy.java")))
        .context("install a JDK 17 or newer")?;
        let mut body = format!(
            "A JVM with {} threads that compute, {} Hz of each thread's CPU time, {} s. Samples are taken by CPU time, so the \
             machine's cores bound how many there are: this is not the load of 64 threads on 64 cores. What samplers would use \
             there is extrapolated: CPU time for a sample times {FULL_LOAD} samples a second; nothing shows that it stays \
             proportional. Threads that share a CPU have few samples each, so their samplers take few of them at a wake-up. In \
             another JVM of each run as many threads as there are CPUs compute, which is the load of Spark's tasks. A sampler has \
             started {STARTED_S} s after the JVM. What all samplers have used by then, without the CPU time for their samples, \
             is their start; CPU time for a sample is that of the time from then on. Private memory is \
             that of smaps_rollup near the end.\n\n\
             | run | samples | samples a second | samplers' CPU for a sample, µs | with their start, µs | to start one, ms \
             | samplers, % of one core | manager and writer, % | private memory of a sampler, MiB: median (most) \
             | for a sample of as many threads as CPUs, µs |\n|---|---|---|---|---|---|---|---|---|---|\n",
            self.threads, self.rate, self.seconds
        );
        let mut runs: [Vec<f64>; 9] = Default::default();
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
        for run in 1..=self.runs {
            let used = self.run(dir, &dir.join(format!("profile-{run}")), self.threads)?;
            let busy = self.run(dir, &dir.join(format!("busy-{run}")), cpus)?;
            let cpu_s = used.last.samplers_cpu_s();
            let (sample_s, start_s) = used.parts();
            let mut memory: Vec<f64> = used
                .last
                .samplers
                .iter()
                .map(|sampler| sampler.private_mib)
                .collect();
            let median = stats::median(&mut memory);
            let most = memory.last().copied().unwrap_or(0.0);
            let with_start_us = 1e6 * cpu_s / used.samples;
            let measured = [
                used.samples / used.wall_s,
                1e6 * sample_s,
                with_start_us,
                1e3 * start_s,
                100.0 * cpu_s / used.wall_s,
                100.0 * used.last.others_cpu_s / used.wall_s,
                most,
                1e6 * sample_s * FULL_LOAD / 1e4,
                1e6 * busy.parts().0,
            ];
            for (all, one) in runs.iter_mut().zip(measured) {
                all.push(one);
            }
            let [rate, us, with_us, start, core, others, most, _, busy] = measured;
            body += &format!(
                "| {run} | {} | {rate:.0} | {us:.1} | {with_us:.1} | {start:.2} | {core:.2} | {others:.2} | {median:.2} ({most:.2}) | {busy:.1} |\n",
                used.samples,
            );
            eprintln!(
                "run {run}: the JVM used {:.1} s of CPU",
                used.last.jvm_cpu_s
            );
        }
        let figures = FIGURES
            .iter()
            .zip(&runs)
            .map(|((name, what, unit, digits), runs)| {
                Figure::from_runs(name, what, runs, unit, *digits)
            })
            .collect();
        page.finish(self.runs, figures, &body)
    }

    fn run(&self, classes: &Path, profile: &Path, threads: u32) -> Result<Use> {
        let agent = agent_library()?;
        let begun = Instant::now();
        let mut jvm = Command::new("java")
            .arg(format!(
                "-agentpath:{}=dir={},rate={}",
                agent.display(),
                profile.display(),
                self.rate
            ))
            .arg("-cp")
            .arg(classes)
            .args(["Busy", &threads.to_string(), &self.seconds.to_string()])
            .stdout(Stdio::null())
            .spawn()
            .context("cannot run java")?;
        sleep(Duration::from_secs(STARTED_S));
        let started = look(jvm.id())?;
        // Close to the end, while all processes still run.
        let last = Duration::from_secs(self.seconds - 1);
        sleep(last.saturating_sub(begun.elapsed()));
        let wall_s = begun.elapsed().as_secs_f64();
        let last = look(jvm.id())?;
        if !jvm.wait()?.success() {
            bail!("the JVM failed");
        }
        let totals = Totals::new(&Profile::open(profile)?, Selection::default(), By::Method);
        // Scales the samples of the whole run to the time until the processes were read.
        let samples = totals.samples as f64 * (wall_s / begun.elapsed().as_secs_f64()).min(1.0);
        Ok(Use {
            samples: samples.round(),
            wall_s,
            started,
            last,
        })
    }
}

fn look(jvm: u32) -> Result<Look> {
    let (samplers, others): (Vec<_>, Vec<_>) = ours(jvm)?
        .into_iter()
        .partition(|(name, _)| name.starts_with("unfuse-s-"));
    Ok(Look {
        jvm_cpu_s: cpu_s(jvm).unwrap_or(0.0),
        samplers: samplers.into_iter().map(|(_, process)| process).collect(),
        others_cpu_s: others.iter().map(|(_, process)| process.cpu_s).sum(),
    })
}

/// Processes of unfuse that started after a JVM, with their names. Benchmarks run one JVM at a
/// time, so they belong to it.
fn ours(jvm: u32) -> Result<Vec<(String, Process)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if pid <= jvm || !name.starts_with("unfuse-") || name.starts_with("unfuse-bench") {
            continue;
        }
        // A process that has just ended has neither.
        if let (Some(cpu_s), Some(private_mib)) = (cpu_s(pid), private_mib(pid)) {
            let process = Process {
                pid,
                cpu_s,
                private_mib,
            };
            found.push((name.trim().to_owned(), process));
        }
    }
    if found.is_empty() {
        bail!("no process of unfuse's beside the JVM; run `unfuse doctor`");
    }
    Ok(found)
}

/// CPU time of the threads of a process, s.
fn cpu_s(pid: u32) -> Option<f64> {
    let mut ns = 0.0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        ns += text.split(' ').next()?.parse::<f64>().ok()?;
    }
    Some(ns / 1e9)
}

fn private_mib(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let kib: f64 = text
        .lines()
        .filter(|line| line.starts_with("Private_Clean:") || line.starts_with("Private_Dirty:"))
        .filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok())
        .sum();
    Some(kib / 1024.0)
}
