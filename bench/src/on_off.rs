//! The cost of recording while it runs: queries in one warm JVM, with the profiler recording and paused in turn. Both run the
//! same compiled code, so chance in the JIT compiler cancels out. A pause does not remove the agent itself, frame pointers,
//! debug information or lines in generated code. Their cost is not measured here: see `unfuse-bench overhead --breakdown`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use unfuse_format::counted;
use unfuse_machine::run;

use crate::overhead::Set;
use crate::page::{Figure, Measuring};
use crate::random::Random;
use crate::session::{Answer, Round, Session};
use crate::spark::{Setup, Spark, Tool};
use crate::stats;

const MEASURES: [&str; 3] = ["profiler", "jvmti-agent/src", "spark-patches/src"];
/// Number of pairs before the interval is checked.
const FEWEST: usize = 10;

/// Queries in one JVM, recorded and paused in turn, until the interval is narrow
#[derive(Debug, Args)]
pub struct OnOff {
    /// Which queries
    #[arg(long, value_enum, default_value = "tpch")]
    queries: Set,
    /// Samples a second
    #[arg(long, default_value_t = 200)]
    rate: u32,
    /// Length of a block of queries between two switches, about, s. What is sampled at the end of a block is resolved up to a
    /// second later, so short blocks show too little
    #[arg(long, default_value_t = 10.0)]
    block: f64,
    /// Half the width of the 95% intervals to end with, per cent
    #[arg(long, default_value_t = 0.5)]
    precision: f64,
    /// When to end at the latest, minutes
    #[arg(long, default_value_t = 60)]
    minutes: u64,
    /// Rounds of all queries before
    #[arg(long, default_value_t = 3)]
    warm_up: u32,
    /// Where the order begins
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The times of a block.
#[derive(Debug, Clone, Copy, Default)]
struct Took {
    wall_s: f64,
    jvm_cpu_s: f64,
    /// CPU time of the profiler's processes from their start to the first query of the block, s.
    beside_before_s: Option<f64>,
}

/// Two blocks in succession: one with the profiler recording and one with it paused.
struct Pair {
    on: Took,
    off: Took,
    /// CPU time of the profiler's processes from the start of this pair to the start of the next, s. They resolve and write a
    /// part of a block's samples only during the next block.
    beside_s: f64,
}

impl Pair {
    fn log_wall(&self) -> f64 {
        (self.on.wall_s / self.off.wall_s).ln()
    }

    fn log_cpu(&self) -> f64 {
        ((self.on.jvm_cpu_s + self.beside_s) / self.off.jvm_cpu_s).ln()
    }
}

/// A JVM and its queries.
struct Job<'a> {
    spark: &'a Spark,
    session: Session,
    queries: &'a BTreeMap<String, String>,
    bar: &'a ProgressBar,
}

impl OnOff {
    /// Measures and writes `on-off-SET-RATE.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        let name = format!("on-off-{}-{}", self.queries.name(), self.rate);
        let page = Measuring::begin(results, &name, &MEASURES)?;
        let spark = Spark::install("1")?;
        let queries = self.queries.sql();
        let bar = ProgressBar::new_spinner().with_style(ProgressStyle::with_template(
            "{spinner} {pos} blocks, {msg}, {elapsed}",
        )?);
        let tool = Tool::Unfuse(format!("rate={}", self.rate), Vec::new());
        let mut job = Job {
            spark: &spark,
            session: spark.start(&Setup::default(), &tool)?,
            queries: &queries,
            bar: &bar,
        };
        let blocks = self.blocks(&mut job)?;
        let begun = Instant::now();
        let pairs = self.pairs(&mut job, &blocks)?;
        let took = begun.elapsed();
        bar.finish_and_clear();
        job.session.finish()?;
        let logs = |of: fn(&Pair) -> f64| pairs.iter().map(of).collect::<Vec<f64>>();
        let (cpu, wall) = (logs(Pair::log_cpu), logs(Pair::log_wall));
        let figures = vec![
            Figure::from_logs("cpu", "CPU time, recording ÷ paused", &cpu),
            Figure::from_logs("wall", "wall time, recording ÷ paused", &wall),
            Figure::new(
                "minutes",
                "time that the measurement took",
                took.as_secs_f64() / 60.0,
                "min",
                0,
            )
            .exact(),
        ];
        page.finish(1, figures, &self.body(&blocks, &pairs))
    }

    /// Warms up, and groups the queries into blocks of about the requested length.
    fn blocks(&self, job: &mut Job<'_>) -> Result<Vec<Vec<String>>> {
        let mut blocks: Vec<Vec<String>> = Vec::new();
        let names: Vec<String> = job.queries.keys().cloned().collect();
        for round in 0..self.warm_up.max(1) {
            blocks = Vec::new();
            let mut left = 0.0;
            for name in &names {
                job.bar.set_message(format!("warming up, {name}"));
                let took = job.run(std::slice::from_ref(name), round.cast_signed() - 1000)?;
                if left <= 0.0 {
                    blocks.push(Vec::new());
                    left = self.block;
                }
                left -= took.wall_s;
                blocks.last_mut().context("a block")?.push(name.clone());
            }
            // Repeats a single short query until it fills a block.
            if let [only] = &mut blocks[..]
                && left > 0.0
            {
                let once = self.block - left;
                let times = (self.block / once.max(0.01)).ceil().min(1000.0) as usize;
                let once = only.clone();
                *only = (0..times).flat_map(|_| once.clone()).collect();
            }
        }
        Ok(blocks)
    }

    /// Measures pairs of blocks until both intervals are narrow or the time is over.
    fn pairs(&self, job: &mut Job<'_>, blocks: &[Vec<String>]) -> Result<Vec<Pair>> {
        let until = Instant::now() + Duration::from_secs(60 * self.minutes);
        let mut random = Random(self.seed);
        let mut pairs: Vec<Pair> = Vec::new();
        let mut open: Option<(Took, Took, f64)> = None;
        for number in 0.. {
            let block = &blocks[number % blocks.len()];
            let on_first = random.below(2) == 0;
            let first = job.run_in(on_first, block, number)?;
            let begin = first.beside_before_s.context("a block without a query")?;
            if let Some((on, off, before)) = open.take() {
                let beside_s = begin - before;
                pairs.push(Pair { on, off, beside_s });
            }
            let widest = self.widest(&pairs);
            job.bar.set_message(format!("± {:.2}%", 100.0 * widest));
            if pairs.len() >= FEWEST && 100.0 * widest <= self.precision || Instant::now() >= until
            {
                break;
            }
            let second = job.run_in(!on_first, block, number)?;
            let (on, off) = if on_first {
                (first, second)
            } else {
                (second, first)
            };
            open = Some((on, off, begin));
        }
        if pairs.len() < 2 {
            bail!("no two blocks in {} min: --block is too long", self.minutes);
        }
        Ok(pairs)
    }

    /// Half the width of the wider interval, as a part of the ratio.
    fn widest(&self, pairs: &[Pair]) -> f64 {
        let half = |of: fn(&Pair) -> f64| {
            let logs: Vec<f64> = pairs.iter().map(of).collect();
            stats::mean_and_half_width(&logs).1
        };
        if pairs.len() < 2 {
            return f64::INFINITY;
        }
        half(Pair::log_cpu).max(half(Pair::log_wall))
    }

    fn body(&self, blocks: &[Vec<String>], pairs: &[Pair]) -> String {
        let sum = |of: fn(&Pair) -> f64| pairs.iter().map(of).sum::<f64>();
        let beside = 100.0 * sum(|pair| pair.beside_s) / sum(|pair| pair.on.jvm_cpu_s);
        let mut body = format!(
            "TPC-H SF 1, local[2], Spark 4.3, one JVM with unfuse at {} Hz, waits and heartbeats. The queries are cut into {} of \
             about {:.0} s; each block runs twice in succession, once recorded and once after `unfuse pause --all`, in random order. {} \
             pairs. A ratio is recorded ÷ paused: geometric means and 95% confidence intervals over the pairs. CPU time is that of the \
             JVM and of the profiler's processes, which are {beside:.2}% of the JVM's. A pause takes away samples, waits, heartbeats, \
             task marks and events; it does not take away frame pointers, debug information or lines in generated code.\n\n\
             | block | queries | wall, ratio | CPU, ratio |\n|---|---|---|---|\n",
            self.rate,
            counted(blocks.len(), "block"),
            self.block,
            pairs.len(),
        );
        for (number, block) in blocks.iter().enumerate() {
            let logs = |of: fn(&Pair) -> f64| -> Vec<f64> {
                pairs
                    .iter()
                    .skip(number)
                    .step_by(blocks.len())
                    .map(of)
                    .collect()
            };
            let mut names = block.clone();
            names.dedup();
            let _ = writeln!(
                body,
                "| {} | {} | {} | {} |",
                number + 1,
                names.join(", "),
                stats::geometric_text(&logs(Pair::log_wall)),
                stats::geometric_text(&logs(Pair::log_cpu))
            );
        }
        body + "\n"
    }
}

impl Job<'_> {
    /// Runs a block with the profiler recording, or paused.
    fn run_in(&mut self, on: bool, block: &[String], round: usize) -> Result<Took> {
        let how: &[&str] = if on { &["resume"] } else { &["pause", "--all"] };
        let mut command = self.spark.unfuse();
        run(command
            .args(how)
            .arg("--pid")
            .arg(self.session.pid().to_string()))?;
        let took = self.run(block, round as i32)?;
        self.bar.inc(1);
        Ok(took)
    }

    fn run(&mut self, block: &[String], round: i32) -> Result<Took> {
        let mut sum = Took::default();
        for query in block {
            match self.session.ask(query, &self.queries[query], round)? {
                Answer::Refused(why) => bail!("{} failed: {}", why.query, why.reason),
                Answer::Took(Round {
                    wall_s,
                    jvm_cpu_s,
                    beside_before_s,
                    ..
                }) => {
                    sum.wall_s += wall_s;
                    sum.jvm_cpu_s += jvm_cpu_s;
                    sum.beside_before_s.get_or_insert(beside_before_s);
                }
            }
        }
        Ok(sum)
    }
}
