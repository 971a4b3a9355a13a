//! Growth during a long run: memory of the JVM and of the processes beside it, the code map, and the
//! profile. The program creates and drops classes and threads all the time.

use std::fmt::Write;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use unfuse_codemap::Stats;
use unfuse_machine::{agent_library, run};

use crate::disk::bytes_below;
use crate::page::{Figure, Measuring, slug};
use crate::plot::{self, Panel};
use crate::stats;

/// Time between two readings.
const EVERY: Duration = Duration::from_secs(5);
/// The share of the time that counts as warm-up.
const WARM_UP: f64 = 0.25;
/// Number of pieces into which the rest is cut. Their means are the points of the line, because
/// neighbouring readings are not independent.
const PIECES: usize = 15;
const MEASURES: [&str; 3] = ["profiler", "jvmti-agent/src", "spark-patches/src"];
/// Environment variable of the JVM, which the processes forked from it inherit.
const MARK: &str = "UNFUSE_SOAK";

/// Memory of a JVM that makes and drops classes and threads all the time, and of all that belongs to it
#[derive(Debug, Args)]
pub struct Soak {
    /// How long it runs, minutes
    #[arg(long, default_value_t = 20.0)]
    pub minutes: f64,
    /// Rate, Hz of each thread's CPU time
    #[arg(long, default_value_t = 200)]
    pub rate: u32,
    /// Also runs it without unfuse, at the same time
    #[arg(long)]
    pub pair: bool,
}

/// Readings of one value over time: (minute, value).
struct Curve {
    name: &'static str,
    unit: &'static str,
    points: Vec<(f64, f64)>,
}

/// Memory of some processes, KiB.
#[derive(Debug, Default, Clone, Copy)]
struct Memory {
    rss: f64,
    pss: f64,
    processes: u32,
}

/// The values that are read, with their units; the last two only with `--pair`.
const NAMES: [(&str, &str); 12] = [
    ("JVM, RSS", "KiB"),
    ("JVM, PSS", "KiB"),
    ("manager and writer, RSS", "KiB"),
    ("manager and writer, PSS", "KiB"),
    ("samplers, RSS", "KiB"),
    ("samplers, PSS", "KiB"),
    ("number of samplers", ""),
    ("code map, handed out", "KiB"),
    ("code map, records", ""),
    ("profile directory", "KiB"),
    ("JVM without unfuse, RSS", "KiB"),
    ("JVM without unfuse, PSS", "KiB"),
];

impl Soak {
    /// Measures and writes `soak.md` and `soak.svg`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        let page = Measuring::begin(results, "soak", &MEASURES)?;
        let scratch = tempfile::tempdir()?;
        let dir = scratch.path();
        let source = dir.join("Churning.java");
        fs::write(&source, include_str!("../assets/Churning.java"))?;
        run(Command::new("javac").arg("-d").arg(dir).arg(&source))
            .context("install a JDK 17 or newer")?;
        let (curves, map) = self.run(dir)?;
        fs::create_dir_all(results)?;
        let panels: Vec<Panel> = curves.iter().map(Curve::panel).collect();
        plot::curves(&results.join("soak.svg"), "minutes", &panels)?;
        page.finish(1, figures(&curves), &self.body(&curves, map))
    }

    fn run(&self, dir: &Path) -> Result<(Vec<Curve>, Stats)> {
        let seconds = (60.0 * self.minutes).ceil() as u64;
        let agent = agent_library()?;
        let profile = dir.join("profile");
        let flag = format!(
            "-agentpath:{}=dir={},rate={}",
            agent.display(),
            profile.display(),
            self.rate
        );
        let mut with = Jvm::start(dir, seconds, Some(flag))?;
        let mut without = if self.pair {
            Some(Jvm::start(dir, seconds, None)?)
        } else {
            None
        };
        let bar = ProgressBar::new(seconds).with_style(ProgressStyle::with_template(
            "[{bar:24}] {elapsed} of {len} s, {pos}",
        )?);
        let mut curves: Vec<Curve> = NAMES
            .into_iter()
            .take(NAMES.len() - if self.pair { 0 } else { 2 })
            .map(|(name, unit)| Curve {
                name,
                unit,
                points: Vec::new(),
            })
            .collect();
        let begun = Instant::now();
        let mut map = Stats::default();
        let mut next = EVERY;
        while next.as_secs() < seconds {
            sleep(next.saturating_sub(begun.elapsed()));
            next += EVERY;
            bar.set_position(begun.elapsed().as_secs());
            let minute = begun.elapsed().as_secs_f64() / 60.0;
            let memory = with.memory()?;
            let (samplers, others) = beside(&with)?;
            map = map_of(with.pid())?;
            let mut values = vec![memory.rss, memory.pss];
            values.extend([others.rss, others.pss, samplers.rss, samplers.pss]);
            values.push(f64::from(samplers.processes));
            values.push(map.used_bytes as f64 / 1024.0);
            values.push((map.inserted - map.recycled) as f64);
            values.push(bytes_below(&profile)? as f64 / 1024.0);
            if let Some(without) = &mut without {
                let memory = without.memory()?;
                values.extend([memory.rss, memory.pss]);
            }
            for (curve, value) in curves.iter_mut().zip(values) {
                curve.points.push((minute, value));
            }
        }
        bar.finish_and_clear();
        for jvm in [Some(with), without].into_iter().flatten() {
            jvm.end()?;
        }
        Ok((curves, map))
    }

    fn body(&self, curves: &[Curve], map: Stats) -> String {
        let mut body = format!(
            "A JVM with a heap of 128 MiB (serial collector) that all the time defines a class under a new loader and \
             a hidden one in a new thread, runs each for 25 ms, drops them and sleeps for 50 ms (the thread lives a second longer); {} Hz, {} minutes: {} \
             pieces of code came and {} went. Everything is read every {} s. The slope is that of the least-squares \
             line after the first quarter, with its 95% confidence interval, through the means of {PIECES} pieces of \
             the time. *Not shown* means that the interval contains 0: growth up to the upper end of the \
             interval cannot be separated from no growth in this time. The profile directory grows with what is sampled. The memory that the map has handed out never falls: it is the largest number of blocks of each size at one time.\n\n\
             | what | at the first quarter | at the end | slope, a minute | it |\n|---|---|---|---|---|\n",
            self.rate,
            self.minutes,
            map.inserted,
            map.unloaded,
            EVERY.as_secs(),
        );
        for curve in curves {
            let _ = writeln!(body, "{}", curve.row());
        }
        body += "\n![Curves](soak.svg)\n";
        body
    }
}

/// The slopes, and how much steeper the slopes of the JVM's memory are than without unfuse.
fn figures(curves: &[Curve]) -> Vec<Figure> {
    let of = |curve: &Curve| stats::line(&curve.pieces());
    let mut figures: Vec<Figure> = curves
        .iter()
        .map(|curve| {
            let line = of(curve);
            let unit = format!("{} a minute", curve.unit);
            Figure::new(
                &slug(curve.name),
                curve.name,
                line.slope,
                unit.trim_start(),
                1,
            )
            .within(Some([
                line.slope - line.half_width,
                line.slope + line.half_width,
            ]))
        })
        .collect();
    for memory in ["RSS", "PSS"] {
        let named = |name: String| curves.iter().find(|curve| curve.name == name);
        let with = named(format!("JVM, {memory}"));
        let without = named(format!("JVM without unfuse, {memory}"));
        if let (Some(with), Some(without)) = (with.map(of), without.map(of)) {
            let more = with.slope - without.slope;
            let half = with.half_width.hypot(without.half_width);
            let (name, what) = (
                format!("jvm_more_{}", memory.to_lowercase()),
                format!("JVM, {memory}: more than without unfuse"),
            );
            figures.push(
                Figure::new(&name, &what, more, "KiB a minute", 1)
                    .within(Some([more - half, more + half])),
            );
        }
    }
    figures
}

/// A running program; killed when dropped.
struct Jvm {
    process: Child,
    /// The entry in the environment of this JVM and of the processes forked from it.
    mark: String,
}

impl Jvm {
    fn start(classes: &Path, seconds: u64, flag: Option<String>) -> Result<Self> {
        let mark = format!("{}-{}", std::process::id(), flag.is_some());
        let process = Command::new("java")
            .args(flag)
            .args(["-Xms128m", "-Xmx128m", "-XX:+AlwaysPreTouch"])
            .args(["-XX:+UseSerialGC", "-cp"])
            .arg(classes)
            .args(["Churning", &seconds.to_string()])
            .env(MARK, &mark)
            .env("MALLOC_ARENA_MAX", "2")
            .stdout(Stdio::null())
            .spawn()
            .context("cannot run java")?;
        Ok(Self {
            process,
            mark: format!("{MARK}={mark}"),
        })
    }

    fn pid(&self) -> u32 {
        self.process.id()
    }

    fn memory(&mut self) -> Result<Memory> {
        if let Some(status) = self.process.try_wait()? {
            bail!("the JVM ended before its time: {status}");
        }
        memory_of(self.pid()).context("the JVM is gone")
    }

    fn end(mut self) -> Result<()> {
        if !self.process.wait()?.success() {
            bail!("the JVM failed");
        }
        Ok(())
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Curve {
    /// The points of the line: the means of the pieces after the first quarter.
    fn pieces(&self) -> Vec<(f64, f64)> {
        let after = &self.points[(self.points.len() as f64 * WARM_UP) as usize..];
        after
            .chunks(after.len().div_ceil(PIECES).max(1))
            .map(|piece| {
                let count = piece.len() as f64;
                let mean = |of: fn(&(f64, f64)) -> f64| piece.iter().map(of).sum::<f64>() / count;
                (mean(|point| point.0), mean(|point| point.1))
            })
            .collect()
    }

    fn verdict(&self) -> &'static str {
        let line = stats::line(&self.pieces());
        if line.slope > line.half_width {
            "grows"
        } else if line.slope < -line.half_width {
            "shrinks"
        } else {
            "not shown"
        }
    }

    fn row(&self) -> String {
        let pieces = self.pieces();
        let line = stats::line(&pieces);
        let ends = [pieces.first(), pieces.last()].map(|point| point.map_or(0.0, |(_, y)| *y));
        format!(
            "| {} | {:.0} {unit} | {:.0} {unit} | {:+.1} ({:+.1} to {:+.1}) {unit} | {} |",
            self.name,
            ends[0],
            ends[1],
            line.slope,
            line.slope - line.half_width,
            line.slope + line.half_width,
            self.verdict(),
            unit = self.unit,
        )
    }

    fn panel(&self) -> Panel {
        let pieces = self.pieces();
        let line = stats::line(&pieces);
        let at = |point: Option<&(f64, f64)>| {
            let x = point.map_or(0.0, |(x, _)| *x);
            (x, line.start + line.slope * x)
        };
        let mib = self.unit == "KiB";
        let scale = if mib { 1.0 / 1024.0 } else { 1.0 };
        let scaled = |(x, y): (f64, f64)| (x, y * scale);
        Panel {
            title: format!(
                "{}{}: {}",
                self.name,
                if mib { ", MiB" } else { "" },
                self.verdict()
            ),
            points: self.points.iter().copied().map(scaled).collect(),
            trend: Some([at(pieces.first()), at(pieces.last())].map(scaled)),
        }
    }
}

/// Memory of the samplers of a JVM, and of manager and writer.
fn beside(jvm: &Jvm) -> Result<(Memory, Memory)> {
    let (mut samplers, mut others) = (Memory::default(), Memory::default());
    for entry in fs::read_dir("/proc")?.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        let marked = read("environ")
            .split(|byte| *byte == 0)
            .any(|variable| variable == jvm.mark.as_bytes());
        // A process that has just ended has none.
        let Some(memory) = memory_of(pid).filter(|_| marked && pid != jvm.pid()) else {
            continue;
        };
        if read("comm").starts_with(b"unfuse-s-") {
            samplers.add(memory);
        } else {
            others.add(memory);
        }
    }
    if others.processes == 0 {
        bail!("no process of unfuse's beside the JVM; run `unfuse doctor`");
    }
    Ok((samplers, others))
}

impl Memory {
    fn add(&mut self, other: Self) {
        self.rss += other.rss;
        self.pss += other.pss;
        self.processes += other.processes;
    }
}

fn memory_of(pid: u32) -> Option<Memory> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let field = |name: &str| -> Option<f64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Some(Memory {
        rss: field("Rss:")?,
        pss: field("Pss:")?,
        processes: 1,
    })
}

/// The counters of a JVM's code map, read from its memory.
fn map_of(jvm: u32) -> Result<Stats> {
    let maps = fs::read_to_string(format!("/proc/{jvm}/maps"))?;
    let start = maps
        .lines()
        .find(|line| line.contains("/memfd:unfuse-codemap"))
        .and_then(|line| u64::from_str_radix(line.split('-').next()?, 16).ok())
        .context("the JVM has no code map")?;
    let mut bytes = [0; 8 * Stats::WORDS];
    File::open(format!("/proc/{jvm}/mem"))?.read_exact_at(&mut bytes, start)?;
    let words: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|word| {
            word.iter()
                .rev()
                .fold(0, |all, byte| all << 8 | u64::from(*byte))
        })
        .collect();
    Ok(Stats::from_words(&words))
}
