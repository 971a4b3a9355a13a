//! One query beside another: seconds of blame against seconds of slow-down.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use unfuse_contention::{Culprit, baseline};
use unfuse_format::counted;

use super::judge::RecordedWorkload;
use super::server::{Server, Statement, Times, User};
use super::{Contention, MEASURES};
use crate::page::{Figure, Measuring, slug};
use crate::spark::{Spark, Tool};

/// Victims: queries of TPC-DS with different parts of computing, scanning and shuffling, long enough to be slowed down.
const VICTIMS: [&str; 4] = ["q04", "q23", "q67", "q78"];
/// Culprits, each of which runs longer than any victim: tasks that only sleep, and work in one to six tasks.
const CULPRITS: [(&str, &str); 5] = [
    (
        "sleep in 8 tasks",
        "SELECT count(*) FROM range(0, 480, 1, 8) WHERE length(reflect('java.lang.Thread', 'sleep', 500L)) > 0",
    ),
    (
        "CPU in 1 task",
        "SELECT sum(hash(id, id * 3, id % 17)) FROM range(0, 1200000000, 1, 1)",
    ),
    (
        "CPU in 2 tasks",
        "SELECT sum(hash(id, id * 3, id % 17)) FROM range(0, 2400000000, 1, 2)",
    ),
    (
        "CPU in 6 tasks",
        "SELECT sum(hash(id, id * 3, id % 17)) FROM range(0, 2400000000, 1, 6)",
    ),
    (
        "shuffle in 4 tasks",
        "SELECT count(*) FROM (SELECT k, collect_list(v) FROM (SELECT hash(id) % 2000000 AS k, id AS v FROM range(0, 24000000, 1, 4)) GROUP BY k)",
    ),
];
const BESIDE: &str = "beside";

/// One victim with one culprit in one run.
struct Pair {
    victim: &'static str,
    culprit: &'static str,
    alone_s: f64,
    beside_s: f64,
    /// The result of each method, s.
    said: [f64; METHODS.len()],
}

const METHODS: [&str; 4] = [
    "blame",
    "overlap of queries (Naive-Overlap)",
    "overlap of tasks (Deep-Overlap)",
    "blocked-time analysis",
];

/// Runs all pairs and writes `contention-pairs.md`.
pub fn measure(asked: &Contention, spark: &Spark, results: &Path) -> Result<()> {
    let page = Measuring::begin(results, "contention-pairs", &MEASURES)?;
    let queries = spark.queries_of_data()?;
    let victims: Vec<(&'static str, &String)> = VICTIMS
        .iter()
        .filter_map(|name| Some((*name, queries.get(*name)?)))
        .collect();
    let bar = ProgressBar::new(u64::from(asked.runs) * victims.len() as u64).with_style(
        ProgressStyle::with_template("[{bar:24}] {pos} of {len} victims, {msg}, {elapsed}")?,
    );
    // Many slots, but too few for all tasks of both queries, because waiting for slots is a part of the experiment.
    let slots = 16;
    let tool = Tool::Unfuse("rate=200".to_owned(), Vec::new());
    let mut pairs = Vec::new();
    for run in 0..asked.runs {
        let server = Server::start(spark, &tool, slots, "3g")?;
        let mut ran = Vec::new();
        for (victim, sql) in &victims {
            bar.set_message((*victim).to_owned());
            ran.push((*victim, with_all(&server, run, victim, sql)?));
            bar.inc(1);
        }
        let recorded = RecordedWorkload::open(&server.stop()?)?;
        for (victim, times) in &ran {
            for (number, (culprit, _)) in CULPRITS.iter().enumerate() {
                pairs.push(pair(&recorded, times, run, (victim, culprit), number)?);
            }
        }
    }
    bar.finish_and_clear();
    let body = body(asked, slots, &pairs);
    page.finish(asked.runs, figures(&pairs), &body)
}

/// Correlation of each method's result with the slow-down. The interval (Fisher's z) assumes independent pairs. Those of one
/// victim are not independent, so the interval is too narrow.
fn figures(pairs: &[Pair]) -> Vec<Figure> {
    let slower: Vec<f64> = pairs
        .iter()
        .map(|pair| pair.beside_s - pair.alone_s)
        .collect();
    let of = |(index, method): (usize, &&str)| {
        let said: Vec<f64> = pairs.iter().map(|pair| pair.said[index]).collect();
        let r = pearson(&said, &slower);
        let half = 1.96 / (pairs.len().max(4) as f64 - 3.0).sqrt();
        let ends = [r.atanh() - half, r.atanh() + half].map(f64::tanh);
        let (name, what) = (
            format!("r_{}", slug(method)),
            format!("Pearson's r with the slow-down: {method}"),
        );
        Figure::new(&name, &what, r, "", 2).within(Some(ends))
    };
    METHODS.iter().enumerate().map(of).collect()
}

fn name(run: u32, victim: &str, beside: &str) -> String {
    format!("{run}-{victim}-{beside}")
}

/// Runs a victim to warm up, alone, and beside each culprit, one after the other.
fn with_all(server: &Server, run: u32, victim: &str, sql: &str) -> Result<Times> {
    let one = |statements: Vec<Statement>| User {
        name: "victim".to_owned(),
        statements,
    };
    let called = |beside: &str| Statement::new(&name(run, victim, beside), sql);
    let alone = ["warm", "warmer", "alone", "alone again"].map(called);
    let mut times = server.run(&[one(alone.to_vec())])?;
    for (number, (_, culprit)) in CULPRITS.iter().enumerate() {
        let beside = name(run, victim, &format!("{BESIDE}{number}"));
        let culprit = User {
            name: "culprit".to_owned(),
            statements: vec![Statement::new(&beside, culprit)],
        };
        let victim = called(&number.to_string()).after(&beside, 1_000);
        times.append(&mut server.run(&[one(vec![victim]), culprit])?);
    }
    Ok(times)
}

fn pair(
    recorded: &RecordedWorkload,
    times: &Times,
    run: u32,
    (victim, culprit): (&'static str, &'static str),
    number: usize,
) -> Result<Pair> {
    let seconds = |beside: &str| {
        let span = times.get(&name(run, victim, beside));
        span.map(|span| span.seconds()).context("a victim that ran")
    };
    let of_victim = recorded.query(&name(run, victim, &number.to_string()))?;
    let of_culprit = recorded.query(&name(run, victim, &format!("{BESIDE}{number}")))?;
    let victims = [of_victim].into();
    let overlap = |overlaps: baseline::Overlaps| {
        let seconds = overlaps
            .get(&of_victim)
            .and_then(|rows| rows.get(&of_culprit));
        seconds.copied().unwrap_or(0.0)
    };
    let blocked = baseline::blocked_time(&recorded.workload, &victims, None);
    Ok(Pair {
        victim,
        culprit,
        alone_s: (seconds("alone")? + seconds("alone again")?) / 2.0,
        beside_s: seconds(&number.to_string())?,
        said: [
            recorded.blamed(of_victim, Culprit::Query(of_culprit)),
            overlap(baseline::naive_overlap(&recorded.workload, &victims, None)),
            overlap(baseline::deep_overlap(&recorded.workload, &victims, None)),
            blocked.values().flat_map(|by| by.values()).sum(),
        ],
    })
}

fn body(asked: &Contention, slots: u32, pairs: &[Pair]) -> String {
    let mut body = format!(
        "Queries of TPC-DS SF {} alone and beside one other query, on a Thrift server (local[{slots}], {}, each a server of its \
         own, the mean of two runs alone). The slow-down is known, and there is one culprit: which method finds it? \
         Blame and overlap of tasks are sums over tasks, so only their proportions can be compared with it.\n\n\
         | method | Pearson's r with the slow-down | Spearman's ρ | says of those that sleep, relative to the mean of all |\n|---|---|---|---|\n",
        asked.scale,
        counted(asked.runs, "run")
    );
    let slower: Vec<f64> = pairs
        .iter()
        .map(|pair| pair.beside_s - pair.alone_s)
        .collect();
    for (index, method) in METHODS.iter().enumerate() {
        let said: Vec<f64> = pairs.iter().map(|pair| pair.said[index]).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let idle: Vec<f64> = pairs
            .iter()
            .filter(|pair| pair.culprit.starts_with("sleep"))
            .map(|pair| pair.said[index])
            .collect();
        let _ = writeln!(
            body,
            "| {method} | {:.2} | {:.2} | {:.2} |",
            pearson(&said, &slower),
            pearson(&ranks(&said), &ranks(&slower)),
            mean(&idle) / mean(&said).max(1e-9),
        );
    }
    body += "\n| victim | beside | alone, s | beside, s | slower by, s | blame, s | overlap of queries, s | of tasks, s | blocked on IO and network, s |\n\
             |---|---|---|---|---|---|---|---|---|\n";
    for pair in pairs {
        let _ = writeln!(
            body,
            "| {} | {} | {:.2} | {:.2} | {:+.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
            pair.victim,
            pair.culprit,
            pair.alone_s,
            pair.beside_s,
            pair.beside_s - pair.alone_s,
            pair.said[0],
            pair.said[1],
            pair.said[2],
            pair.said[3],
        );
    }
    body
}

/// Pearson's correlation; 0 if one list does not vary.
fn pearson(a: &[f64], b: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let sum = |of: fn(f64, f64) -> f64| -> f64 {
        a.iter()
            .zip(b)
            .map(|(a, b)| of(a - mean_a, b - mean_b))
            .sum()
    };
    let spread = (sum(|a, _| a * a) * sum(|_, b| b * b)).sqrt();
    if spread > 0.0 {
        sum(|a, b| a * b) / spread
    } else {
        0.0
    }
}

/// Ranks of values; equal values share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let place = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + (equal as f64 + 1.0) / 2.0
    };
    values.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlations_are_those_of_textbooks() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0], [1.0, 8.0, 27.0, 64.0]);
        assert!((pearson(&a, &b) - 0.951).abs() < 1e-3);
        assert_eq!(pearson(&ranks(&a), &ranks(&b)), 1.0);
        assert_eq!(pearson(&a, &[2.0; 4]), 0.0);
        assert_eq!(ranks(&[5.0, 1.0, 5.0]), [2.5, 1.0, 2.5]);
    }
}
