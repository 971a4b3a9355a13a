//! The cost of collecting (figure 14): the users' queries without the agent, with the
//! agent alone, and with all data collected.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use unfuse_format::counted;

use super::scenario::users;
use super::server::{Server, Times};
use super::{Contention, MEASURES};
use crate::page::{Figure, Measuring};
use crate::spark::{Spark, Tool};
use crate::stats;

/// The servers: their names, and the agent's options if they have the agent.
const ARMS: [(&str, Option<&str>); 4] = [
    ("no agent", None),
    ("agent, nothing collected", Some("rate=0,heartbeat=off")),
    (
        "samples, waits, heartbeats of 10 s",
        Some("rate=200,heartbeat=10s"),
    ),
    (
        "samples, waits, heartbeats of 2 s",
        Some("rate=200,heartbeat=2s"),
    ),
];
/// The comparisons: the figure's name, and which two arms are divided.
const RATIOS: [(&str, usize, usize); 3] = [
    ("agent", 1, 0),
    // All data that `unfuse blame` reads, with the default options.
    ("collected", 3, 0),
    // Figure 14 of the paper: intervals of 2 s against those of 10 s.
    ("figure_14", 3, 2),
];
/// Rounds of each server; the first warms it up.
const ROUNDS: u32 = 6;
/// Seconds of a round, by arm.
type Round = [f64; ARMS.len()];

/// Runs and writes `contention-collection.md`.
pub fn measure(asked: &Contention, spark: &Spark, results: &Path) -> Result<()> {
    let page = Measuring::begin(results, "contention-collection", &MEASURES)?;
    let rounds = u64::from(asked.runs * ROUNDS) * ARMS.len() as u64;
    let bar = ProgressBar::new(rounds).with_style(ProgressStyle::with_template(
        "[{bar:24}] {pos} of {len} rounds, {elapsed}",
    )?);
    // The rounds that count, by run.
    let (mut took, mut failed) = (Vec::new(), Vec::new());
    for run in 0..asked.runs {
        took.push(one_run(asked, spark, run as usize, &mut failed, &bar)?);
        let (figures, body) = summary(asked, &took, failed.len());
        page.keep(run + 1, &figures, &body, "This run was not finished.")?;
    }
    bar.finish_and_clear();
    let (figures, body) = summary(asked, &took, failed.len());
    page.finish(asked.runs, figures, &body)
}

/// The figures and the text of the page.
fn summary(asked: &Contention, took: &[Vec<Round>], failed: usize) -> (Vec<Figure>, String) {
    let rounds: usize = took.iter().map(Vec::len).sum();
    let mut body = format!(
        "Six users with {} each on TPC-DS SF {} (local[{}]), who do not think between them; time from the first query's start to \
         the last one's end. A server of each kind is up at the same time, and they take turns: {} rounds each, the first to warm \
         up; {}, {rounds} rounds that count. Rounds in which a query failed ({} did) do not. A ratio is of the same round: medians over \
         the rounds of a run, geometric mean and 95% confidence interval over runs. The paper's figure 14 divides times at intervals of \
         2 s by those at 10 s, without samples, and says that this grows by 1.4% where five times as many queries run at once; the last row \
         is the same division at one concurrency.\n\n| time with | ÷ time with | ratio | rounds |\n|---|---|---|---|\n",
        counted(asked.queries, "query"),
        asked.scale,
        asked.slots,
        ROUNDS,
        counted(took.len(), "run"),
        failed
    );
    let mut figures = Vec::new();
    for (key, with, without) in RATIOS {
        let (mut runs, mut all) = (Vec::new(), Vec::new());
        for run in took {
            let mut logs: Vec<f64> = run
                .iter()
                .map(|round| (round[with] / round[without]).ln())
                .collect();
            all.extend(logs.iter().map(|log| format!("{:.3}", log.exp())));
            runs.push(stats::median(&mut logs));
        }
        let (with, without) = (ARMS[with].0, ARMS[without].0);
        let _ = writeln!(
            body,
            "| {with} | {without} | {} | {} |",
            stats::geometric_text(&runs),
            all.join(", ")
        );
        let what = format!("time with {with} ÷ with {without}");
        figures.push(Figure::from_logs(key, &what, &runs));
    }
    (figures, body)
}

/// The rounds of a run that count, with the time of each arm.
fn one_run(
    asked: &Contention,
    spark: &Spark,
    run: usize,
    failed: &mut Vec<String>,
    bar: &ProgressBar,
) -> Result<Vec<Round>> {
    let queries = spark.queries_of_data()?;
    let (victim, seed) = (&asked.victim, asked.seed);
    let all = users(&queries, victim, asked.queries, 0.0, seed, None)?;
    let start = |(_, options): &(&str, Option<&str>)| {
        let tool = options.map_or(Tool::None, |options| {
            Tool::Unfuse(options.to_owned(), Vec::new())
        });
        Server::start(spark, &tool, asked.slots, "3g")
    };
    let servers = ARMS.iter().map(start).collect::<Result<Vec<Server>>>()?;
    let mut rounds = Vec::new();
    for round in 0..ROUNDS as usize {
        let mut seconds = [0.0; ARMS.len()];
        let failed_before = failed.len();
        for turn in 0..servers.len() {
            let index = (turn + run + round) % servers.len();
            let (times, of_round) = servers[index].run_what_can(&all, |_| Ok(()))?;
            seconds[index] = makespan(&times).context("queries that ran")?;
            failed.extend(of_round);
            bar.inc(1);
        }
        // A round in which a query failed has less work than the others.
        if round > 0 && failed.len() == failed_before {
            rounds.push(seconds);
        }
    }
    if rounds.is_empty() {
        let failed = failed.join(", ");
        bail!("in every round of run {} queries failed: {failed}", run + 1);
    }
    Ok(rounds)
}

/// Seconds from the first start to the last end.
fn makespan(times: &Times) -> Option<f64> {
    let spans = times.values().copied();
    spans.reduce(|a, b| a.hull(b)).map(|whole| whole.seconds())
}
