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
    #[arg(long, default_value_t = 30)]
    pub seconds: u64,
    /// Runs
    #[arg(long, default_value_t = 3)]
    pub runs: u32,
}

/// Resources that one run used.
struct Use {
    samples: f64,
    jvm_cpu_s: f64,
    wall_s: f64,
    samplers: Vec<Process>,
    others_cpu_s: f64,
}

struct Process {
    cpu_s: f64,
    private_mib: f64,
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
             proportional. Private memory is that of smaps_rollup near the end.\n\n\
             | run | samples | samples a second | samplers' CPU for a sample, µs | samplers, % of one core | manager and writer, % \
             | private memory of a sampler, MiB: median (most) |\n|---|---|---|---|---|---|---|\n",
            self.threads, self.rate, self.seconds
        );
        let mut runs: [Vec<f64>; 6] = Default::default();
        for run in 1..=self.runs {
            let used = self.run(dir, &dir.join(format!("profile-{run}")))?;
            let cpu_s: f64 = used.samplers.iter().map(|sampler| sampler.cpu_s).sum();
            let mut memory: Vec<f64> = used
                .samplers
                .iter()
                .map(|sampler| sampler.private_mib)
                .collect();
            let median = stats::median(&mut memory);
            let most = memory.last().copied().unwrap_or(0.0);
            let a_sample_us = 1e6 * cpu_s / used.samples;
            let measured = [
                used.samples / used.wall_s,
                a_sample_us,
                100.0 * cpu_s / used.wall_s,
                100.0 * used.others_cpu_s / used.wall_s,
                most,
                a_sample_us * FULL_LOAD / 1e4,
            ];
            for (all, one) in runs.iter_mut().zip(measured) {
                all.push(one);
            }
            let [rate, us, core, others, most, _] = measured;
            body += &format!(
                "| {run} | {} | {rate:.0} | {us:.1} | {core:.2} | {others:.2} | {median:.2} ({most:.2}) |\n",
                used.samples,
            );
            eprintln!("run {run}: the JVM used {:.1} s of CPU", used.jvm_cpu_s);
        }
        let what: [(&str, &str, &str, usize); 6] = [
            ("rate", "samples a second of all threads together", "", 0),
            ("a_sample", "samplers' CPU time for a sample", "µs", 1),
            ("core", "samplers at that load, of one core", "%", 2),
            ("others", "manager and writer, of one core", "%", 2),
            ("private", "most private memory of a sampler", "MiB", 2),
            (
                "full_load",
                "samplers at 12,800 samples a second, of one core, extrapolated",
                "%",
                0,
            ),
        ];
        let figures = what
            .iter()
            .zip(&runs)
            .map(|((name, what, unit, digits), runs)| {
                Figure::from_runs(name, what, runs, unit, *digits)
            })
            .collect();
        page.finish(self.runs, figures, &body)
    }

    fn run(&self, classes: &Path, profile: &Path) -> Result<Use> {
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
            .args(["Busy", &self.threads.to_string(), &self.seconds.to_string()])
            .stdout(Stdio::null())
            .spawn()
            .context("cannot run java")?;
        // Reads close to the end, while all processes still run.
        sleep(Duration::from_secs(self.seconds.max(3) - 1));
        let wall_s = begun.elapsed().as_secs_f64();
        let (samplers, others): (Vec<_>, Vec<_>) = ours(jvm.id())?
            .into_iter()
            .partition(|(name, _)| name.starts_with("unfuse-s-"));
        let jvm_cpu_s = cpu_s(jvm.id()).unwrap_or(0.0);
        if !jvm.wait()?.success() {
            bail!("the JVM failed");
        }
        let totals = Totals::new(&Profile::open(profile)?, Selection::default(), By::Method);
        // Scales the samples of the whole run to the time until the processes were read.
        let samples = totals.samples as f64 * (wall_s / begun.elapsed().as_secs_f64()).min(1.0);
        Ok(Use {
            samples: samples.round(),
            jvm_cpu_s,
            wall_s,
            samplers: samplers.into_iter().map(|(_, process)| process).collect(),
            others_cpu_s: others.iter().map(|(_, process)| process.cpu_s).sum(),
        })
    }
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
            let process = Process { cpu_s, private_mib };
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
