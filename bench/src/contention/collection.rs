//! What collecting costs (figure 14): the users' queries with and without it.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
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
    let all = users(
        &queries,
        &asked.victim,
        asked.queries,
        0.0,
        asked.seed,
        None,
    )?;
    let rounds = u64::from(asked.runs * ROUNDS) * HEARTBEATS.len() as u64;
    let bar = ProgressBar::new(rounds).with_style(ProgressStyle::with_template(
        "[{bar:24}] {pos} of {len} rounds, {elapsed}",
    )?);
    // Of each run, the rounds that count: seconds by heartbeat.
    let mut took: Vec<Vec<[f64; HEARTBEATS.len()]>> = Vec::new();
    let mut failed = Vec::new();
    for run in 0..asked.runs as usize {
        let servers = HEARTBEATS
            .iter()
            .map(|heartbeat| {
                let options = format!("rate=0,heartbeat={heartbeat}");
                let tool = Tool::Unfuse(options, Vec::new());
                Server::start(spark, &tool, asked.slots, "3g")
            })
            .collect::<Result<Vec<Server>>>()?;
        let mut rounds = Vec::new();
        for round in 0..ROUNDS as usize {
            let mut seconds = [0.0; HEARTBEATS.len()];
            let failed_before = failed.len();
            for turn in 0..servers.len() {
                let at = (turn + run + round) % servers.len();
                let (times, of_round) = servers[at].run_what_can(&all, |_| Ok(()))?;
                seconds[at] = makespan(&times).context("queries that ran")?;
                failed.extend(of_round);
                bar.inc(1);
            }
            // A round in which a query failed has less to do than the others.
            if round > 0 && failed.len() == failed_before {
                rounds.push(seconds);
            }
        }
        if rounds.is_empty() {
            bail!(
                "in every round of run {} queries failed: {}",
                run + 1,
                failed.join(", ")
            );
        }
        took.push(rounds);
    }
    bar.finish_and_clear();
    let mut body = format!(
        "Six users with {} queries each on TPC-DS SF {} (local[{}]); time from the first query's start to the last one's end. Servers \
         without collection and with it are up at the same time and take turns, {} rounds each, the first to warm up; {} runs. All have \
         the agent, without sampling. Ratios are of the same round: medians over rounds, geometric mean and 95% confidence interval \
         over runs. Rounds in which a query failed ({} did) do not count.\n\n| heartbeat | time, ratio to `heartbeat=off` | rounds |\n|---|---|---|\n",
        asked.queries,
        asked.scale,
        asked.slots,
        ROUNDS,
        asked.runs,
        failed.len()
    );
    for (at, heartbeat) in HEARTBEATS.iter().enumerate().skip(1) {
        let (mut runs, mut all) = (Vec::new(), Vec::new());
        for run in &took {
            let ratios = run.iter().map(|round| round[at] / round[0]);
            let mut ratios: Vec<f64> = ratios.collect();
            all.extend(ratios.iter().map(|ratio| format!("{ratio:.3}")));
            ratios.iter_mut().for_each(|ratio| *ratio = ratio.ln());
            runs.push(report::median(&mut ratios));
        }
        let ratio = report::geometric(&runs);
        let _ = writeln!(body, "| {heartbeat} | {ratio} | {} |", all.join(", "));
    }
    let command = asked.command(Part::Collection);
    report::write(results, "contention-collection", &command, &body)
}

/// Seconds from the first start to the last end.
fn makespan(times: &Times) -> Option<f64> {
    let spans = times.values().copied();
    spans.reduce(|a, b| a.hull(b)).map(|whole| whole.seconds())
}
