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
use crate::session::{Answer, Session};
use crate::spark::{Setup, Spark, Tool};
use crate::stats;

const MEASURES: [&str; 3] = ["profiler", "jvmti-agent/src", "spark-patches/src"];
/// Number of pairs before the interval is checked.
const FEWEST: usize = 10;
/// The 22 queries of TPC-H have more generated classes than the 100 that Spark keeps by default. Without this, every run
/// compiles its code again, and the JIT compilers' time hides a few per cent.
const KEEP_CODE: &str = "spark.sql.codegen.cache.maxEntries=2000";

/// Queries in one JVM, recorded and paused in turn, until the interval is narrow
#[derive(Debug, Args)]
pub struct OnOff {
    /// Which queries
    #[arg(long, value_enum, default_value = "tpch")]
    queries: Set,
    /// Samples a second
    #[arg(long, default_value_t = 200)]
    rate: u32,
    /// Length of a block of queries between two switches, about, s. The shorter, the less the machine changes in a pair
    #[arg(long, default_value_t = 1.0)]
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
    /// CPU time of the profiler's processes from their start to the block's first query, s.
    beside_before_s: f64,
    /// The same to the end of the block's last query, s.
    beside_after_s: f64,
}

/// A block twice in succession: once with the profiler recording and once with it paused.
struct Pair {
    /// Number of the block.
    block: usize,
    on_first: bool,
    on: Took,
    off: Took,
}

impl Pair {
    fn log_wall(&self) -> f64 {
        (self.on.wall_s / self.off.wall_s).ln()
    }

    fn log_jvm_cpu(&self) -> f64 {
        (self.on.jvm_cpu_s / self.off.jvm_cpu_s).ln()
    }
}

/// All pairs.
#[derive(Default)]
struct Pairs {
    list: Vec<Pair>,
    /// CPU time of the profiler's processes during all pairs, s. It cannot be divided by pair: they resolve and write a part of a
    /// block's samples only during the next blocks.
    beside_s: f64,
}

impl Pairs {
    /// The logarithms of these pairs, without the part that comes from the order: the second run of a block is faster because
    /// caches are warm. Both orders have the same weight.
    fn logs<'a>(pairs: impl Iterator<Item = &'a Pair> + Clone, of: fn(&Pair) -> f64) -> Vec<f64> {
        let mean = |on_first: bool| {
            let same = pairs.clone().filter(|pair| pair.on_first == on_first);
            stats::mean_and_half_width(&same.map(of).collect::<Vec<f64>>()).0
        };
        let half = (mean(true) - mean(false)) / 2.0;
        // Not a number if there is one order only.
        let half = if half.is_finite() { half } else { 0.0 };
        pairs
            .map(|pair| of(pair) - if pair.on_first { half } else { -half })
            .collect()
    }

    /// CPU time of the profiler's processes as a part of the JVM's while it is recorded.
    fn beside(&self) -> f64 {
        let recorded: f64 = self.list.iter().map(|pair| pair.on.jvm_cpu_s).sum();
        self.beside_s / recorded
    }

    /// The logarithms of the ratios of all CPU time.
    fn cpu_logs(&self) -> Vec<f64> {
        let beside = self.beside().ln_1p();
        let jvm = Self::logs(self.list.iter(), Pair::log_jvm_cpu);
        jvm.into_iter().map(|log| log + beside).collect()
    }

    fn wall_logs(&self) -> Vec<f64> {
        Self::logs(self.list.iter(), Pair::log_wall)
    }

    /// Half the width of the wider interval, as a part of the ratio.
    fn widest(&self) -> f64 {
        let half = |logs: &[f64]| stats::mean_and_half_width(logs).1;
        half(&self.cpu_logs()).max(half(&self.wall_logs()))
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
        let setup = Setup {
            settings: &[KEEP_CODE],
            ..Setup::default()
        };
        let mut job = Job {
            spark: &spark,
            session: spark.start(&setup, &tool)?,
            queries: &queries,
            bar: &bar,
        };
        let blocks = self.blocks(&mut job)?;
        let begun = Instant::now();
        let pairs = self.pairs(&mut job, &blocks)?;
        let took = begun.elapsed();
        bar.finish_and_clear();
        job.session.finish()?;
        let jvm = Pairs::logs(pairs.list.iter(), Pair::log_jvm_cpu);
        let figures = vec![
            Figure::from_logs("cpu", "CPU time, recording ÷ paused", &pairs.cpu_logs()),
            Figure::from_logs("wall", "wall time, recording ÷ paused", &pairs.wall_logs()),
            Figure::from_logs("jvm", "CPU time of the JVM alone, recording ÷ paused", &jvm),
            Figure::new(
                "beside",
                "CPU time of the profiler's processes, of the JVM's",
                100.0 * pairs.beside(),
                "%",
                2,
            )
            .exact(),
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
    fn pairs(&self, job: &mut Job<'_>, blocks: &[Vec<String>]) -> Result<Pairs> {
        let until = Instant::now() + Duration::from_secs(60 * self.minutes);
        let mut random = Random(self.seed);
        let mut on_first = Vec::new();
        let mut pairs = Pairs::default();
        let mut begin = None;
        for number in 0.. {
            if Instant::now() >= until {
                break;
            }
            let (round, block) = (number / blocks.len(), number % blocks.len());
            if block == 0 {
                // Each block has both orders in every two rounds.
                on_first = match round % 2 {
                    0 => blocks.iter().map(|_| random.below(2) == 0).collect(),
                    _ => on_first.iter().map(|first: &bool| !first).collect(),
                };
            }
            let first = job.run_in(on_first[block], &blocks[block], number)?;
            let before = *begin.get_or_insert(first.beside_before_s);
            let second = job.run_in(!on_first[block], &blocks[block], number)?;
            pairs.beside_s = second.beside_after_s - before;
            let (on, off) = match on_first[block] {
                true => (first, second),
                false => (second, first),
            };
            pairs.list.push(Pair {
                block,
                on_first: on_first[block],
                on,
                off,
            });
            let widest = 100.0 * pairs.widest();
            job.bar.set_message(format!("± {widest:.2}%"));
            if pairs.list.len() >= FEWEST && widest <= self.precision {
                break;
            }
        }
        if pairs.list.len() < 2 {
            bail!("no two pairs in {} min: --block is too long", self.minutes);
        }
        Ok(pairs)
    }

    fn body(&self, blocks: &[Vec<String>], pairs: &Pairs) -> String {
        let mut body = format!(
            "TPC-H SF 1, local[2], Spark 4.3, {KEEP_CODE}, one JVM with unfuse at {} Hz, waits and heartbeats. The queries are cut into {} of \
             about {:.0} s or of one query; each block runs twice in succession, once recorded and once after `unfuse pause --all`. The \
             order is random in every other round, and reversed in the next: the second run of a block is faster, so both orders have \
             the same weight. {} pairs. A ratio is recorded ÷ paused: geometric means and 95% confidence intervals over the pairs. CPU \
             time is that of the JVM and of the profiler's processes; the latter have no interval. A pause takes away samples, waits, \
             heartbeats, task marks and events; it does not take away frame pointers, debug information or lines in generated \
             code.\n\n\
             | block | queries | wall, ratio | CPU of the JVM, ratio |\n|---|---|---|---|\n",
            self.rate,
            counted(blocks.len(), "block"),
            self.block,
            pairs.list.len(),
        );
        for (number, block) in blocks.iter().enumerate() {
            let of_block = pairs.list.iter().filter(|pair| pair.block == number);
            let mut names = block.clone();
            names.dedup();
            let _ = writeln!(
                body,
                "| {} | {} | {} | {} |",
                number + 1,
                names.join(", "),
                stats::geometric_text(&Pairs::logs(of_block.clone(), Pair::log_wall)),
                stats::geometric_text(&Pairs::logs(of_block, Pair::log_jvm_cpu))
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
        let mut sum: Option<Took> = None;
        for query in block {
            match self.session.ask(query, &self.queries[query], round)? {
                Answer::Refused(why) => bail!("{} failed: {}", why.query, why.reason),
                Answer::Took(round) => {
                    let sum = sum.get_or_insert(Took {
                        beside_before_s: round.beside_before_s,
                        ..Took::default()
                    });
                    sum.wall_s += round.wall_s;
                    sum.jvm_cpu_s += round.jvm_cpu_s;
                    sum.beside_after_s = round.beside_before_s + round.beside_cpu_s;
                }
            }
        }
        sum.context("a block without a query")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_a_pair_does_not_change_the_ratio() {
        let took = |jvm_cpu_s: f64| Took {
            jvm_cpu_s,
            ..Took::default()
        };
        // Recording costs 2%; the first run of a pair takes 10% longer. Three of four pairs record first.
        let pairs: Vec<Pair> = [true, true, true, false]
            .map(|on_first| Pair {
                block: 0,
                on_first,
                on: took(if on_first { 1.02 * 1.1 } else { 1.02 }),
                off: took(if on_first { 1.0 } else { 1.1 }),
            })
            .into();
        let logs = Pairs::logs(pairs.iter(), Pair::log_jvm_cpu);
        let (ratio, _) = stats::geometric(&logs);
        assert!((ratio - 1.02).abs() < 1e-9, "{ratio}");
    }
}
