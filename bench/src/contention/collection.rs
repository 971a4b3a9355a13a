//! What collecting costs (figure 14): the users' queries with and without it.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};

use super::scenario::users;
use super::server::{Server, Times};
use super::{Contention, Part};
use crate::report;
use crate::spark::{Spark, Tool};

const HEARTBEATS: [&str; 3] = ["off", "2s", "100ms"];
/// Rounds of each server; the first warms it up.
const ROUNDS: u32 = 4;

/// Runs and writes `contention-collection.md`.
pub fn measure(asked: &Contention, spark: &Spark, results: &Path) -> Result<()> {
    let queries = spark.queries_of_data()?;
    let all = users(&queries, &asked.victim, asked.queries, asked.seed, None)?;
    let rounds = u64::from(asked.runs * ROUNDS) * HEARTBEATS.len() as u64;
    let bar = ProgressBar::new(rounds).with_style(ProgressStyle::with_template(
        "[{bar:24}] {pos} of {len} rounds, {elapsed}",
    )?);
    // Of each run, by heartbeat, seconds of each round that counts.
    let mut took = vec![vec![Vec::new(); HEARTBEATS.len()]; asked.runs as usize];
    for (run, took) in took.iter_mut().enumerate() {
        let servers = HEARTBEATS
            .iter()
            .map(|heartbeat| {
                let options = format!("rate=0,heartbeat={heartbeat}");
                let tool = Tool::Unfuse(options, Vec::new());
                Server::start(spark, &tool, asked.slots, "2g")
            })
            .collect::<Result<Vec<Server>>>()?;
        for round in 0..ROUNDS as usize {
            for turn in 0..servers.len() {
                let at = (turn + run + round) % servers.len();
                let times = servers[at].run(&all)?;
                if round > 0 {
                    took[at].push(makespan(&times).context("queries that ran")?);
                }
                bar.inc(1);
            }
        }
    }
    bar.finish_and_clear();
    let mut body = format!(
        "Six users with {} queries each on TPC-DS SF {} (local[{}]); time from the first query's start to the last one's end. Servers \
         without collection and with it are up at the same time and take turns, {} rounds each, the first to warm up; {} runs. All have \
         the agent, without sampling. Ratios are of the same round: medians over rounds, geometric mean and 95% confidence interval \
         over runs.\n\n| heartbeat | time, ratio to `heartbeat=off` |\n|---|---|\n",
        asked.queries, asked.scale, asked.slots, ROUNDS, asked.runs
    );
    for (at, heartbeat) in HEARTBEATS.iter().enumerate().skip(1) {
        let runs: Vec<f64> = took
            .iter()
            .map(|run| {
                let pairs = run[at].iter().zip(&run[0]);
                let mut logs: Vec<f64> =
                    pairs.map(|(with, without)| (with / without).ln()).collect();
                report::median(&mut logs)
            })
            .collect();
        let _ = writeln!(body, "| {heartbeat} | {} |", report::geometric(&runs));
    }
    let command = asked.command(Part::Collection);
    report::write(results, "contention-collection", &command, &body)
}

/// Seconds from the first start to the last end.
fn makespan(times: &Times) -> Option<f64> {
    let spans = times.values().copied();
    spans.reduce(|a, b| a.hull(b)).map(|whole| whole.seconds())
}
