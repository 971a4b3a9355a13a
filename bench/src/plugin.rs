//! The Spark plugin against the JVM flag: whether both give the operators of a query the same shares.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use unfuse_format::counted;
use unfuse_postprocess::{By, Profile, Selection, Standing, Totals};

use crate::event_log::executions;
use crate::page::{ATTRIBUTION, Figure, Measuring};
use crate::spark::{Canonical, Setup, Spark, Tool, Work};
use crate::stats;

/// Whether the Spark plugin gives the operators of a query the same shares as the JVM flag
#[derive(Debug, Args)]
pub struct Plugin {
    /// Pairs of runs: one JVM with the plugin, one with the flag
    #[arg(long, default_value_t = 6)]
    runs: u32,
    /// Rounds of the queries in each JVM that count
    #[arg(long, default_value_t = 2)]
    rounds: u32,
    /// Samples a second of CPU time
    #[arg(long, default_value_t = 500)]
    rate: u32,
    /// Queries of TPC-DS, beside the canonical one
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "q07,q19,q36,q48,q51,q67,q79,q98"
    )]
    queries: Vec<String>,
}

/// Rounds before those that count: the compilers do not do the same in every run.
const WARM_UP: u32 = 1;
/// Below this share an operator has no row of its own in the page.
const LEAST: f64 = 0.02;
const TOOLS: [&str; 2] = ["plugin", "flag"];

/// A query's samples by operator in one run.
type Samples = BTreeMap<String, u64>;

/// The samples of a query in all runs, by tool.
#[derive(Default)]
struct Query {
    runs: [Vec<Samples>; 2],
}

impl Plugin {
    /// Measures and writes `plugin.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        // The ways to divide the runs into two groups, of which this one and its mirror image are always as far apart.
        let ways = (1..=self.runs).fold(1.0, |ways, n| {
            ways * f64::from(self.runs + n) / f64::from(n)
        });
        if 2.0 / ways >= level(self.queries.len() + 1) {
            bail!(
                "--runs {} is too few to find a difference in one of {} queries; use more runs or fewer queries",
                self.runs,
                self.queries.len() + 1
            );
        }
        let page = Measuring::begin(results, "plugin", &ATTRIBUTION)?;
        let suites = self.suites()?;
        let bar = ProgressBar::new(u64::from(self.runs) * 2 * suites.len() as u64).with_style(
            ProgressStyle::with_template("[{bar:24}] {pos} of {len} JVMs, {elapsed}")?,
        );
        let mut queries: BTreeMap<String, Query> = BTreeMap::new();
        for run in 0..self.runs {
            for (spark, work) in &suites {
                for turn in 0..2 {
                    let tool = (turn + run as usize) % 2;
                    for (name, samples) in self.one_run(spark, work, tool)? {
                        queries.entry(name).or_default().runs[tool].push(samples);
                    }
                    bar.inc(1);
                }
            }
            if run > 0 {
                page.keep(
                    run + 1,
                    &figures(&queries),
                    &self.body(&queries),
                    "This run was not finished.",
                )?;
            }
        }
        bar.finish_and_clear();
        page.finish(self.runs, figures(&queries), &self.body(&queries))
    }

    fn suites(&self) -> Result<Vec<(Spark, Work)>> {
        let work = |queries| Work {
            warm_up: WARM_UP,
            rounds: self.rounds,
            queries,
            setup: Setup::default(),
        };
        let canonical = BTreeMap::from([("canonical".to_owned(), Canonical::REFERENCE.sql())]);
        let tpcds = Spark::install_tpcds("1")?;
        let all = tpcds.queries_of_data()?;
        let mut asked = BTreeMap::new();
        for name in &self.queries {
            let sql = all
                .get(name)
                .with_context(|| format!("TPC-DS has no query {name}"))?;
            asked.insert(name.clone(), sql.clone());
        }
        Ok(vec![
            (Spark::install("1")?, work(canonical)),
            (tpcds, work(asked)),
        ])
    }

    /// Runs the queries in one JVM; returns the samples of each by operator.
    fn one_run(
        &self,
        spark: &Spark,
        work: &Work,
        tool: usize,
    ) -> Result<BTreeMap<String, Samples>> {
        // Columns of TPC-DS have names such as "30 days".
        let quoted = "spark.sql.ansi.doubleQuotedIdentifiers=true".to_owned();
        let run = match TOOLS[tool] {
            "plugin" => {
                let rate = format!("spark.unfuse.rate={}", self.rate);
                spark.run(work, &Tool::Plugin(vec![quoted, rate]))?
            }
            _ => {
                let rate = format!("rate={}", self.rate);
                spark.run(work, &Tool::Unfuse(rate, vec![quoted]))?
            }
        };
        let profile = Profile::open(&run.profile)?;
        let mut names = BTreeMap::new();
        for execution in executions(&run.event_log)? {
            if let Some(name) = execution.counted_query()
                && work.queries.contains_key(name)
            {
                names.insert(execution.id, name.to_owned());
            }
        }
        let mut queries: BTreeMap<String, Samples> = BTreeMap::new();
        for row in Totals::new(&profile, Selection::default(), By::Operator).rows {
            // Threads without a task do not have the same part of each query in every run.
            let (Some(name), Some(_)) = (row.query.and_then(|query| names.get(&query)), row.stage)
            else {
                continue;
            };
            let operator = match row.node_id {
                Some(node) => format!("{} ({node})", row.operator),
                None => format!("[{}]", row.operator),
            };
            *queries
                .entry(name.clone())
                .or_default()
                .entry(operator)
                .or_default() += row.samples;
        }
        Ok(queries)
    }

    fn body(&self, queries: &BTreeMap<String, Query>) -> String {
        let mut body = format!(
            "The canonical query on TPC-H and {} queries of TPC-DS, scale factor 1, local[2], Spark 4.3, {} Hz. A JVM with the \
             plugin and one with the flag take turns. In each JVM each query runs {} to warm up, and then {}, which count. The distance of two \
             profiles of a query is half the sum of the differences of the operators' shares. A query differs if of all ways to \
             divide its runs into two groups, less than 5% ÷ {} have groups so far apart as plugin and flag are (a permutation \
             test with Bonferroni's correction).\n\n| query | samples | distance of plugin and flag, points | ways with as much, % | \
             unattributed by plugin, % | by flag, % |\n|---|---|---|---|---|---|\n",
            self.queries.len(),
            self.rate,
            counted(WARM_UP, "time"),
            counted(self.rounds, "time"),
            queries.len(),
        );
        for (name, query) in queries {
            let samples: u64 = query.runs.iter().flatten().flat_map(BTreeMap::values).sum();
            let [plugin, flag] = query.unattributed();
            let _ = writeln!(
                body,
                "| {name} | {samples} | {:.2} | {:.1} | {plugin:.2} | {flag:.2} |",
                query.distance(),
                100.0 * query.ways_as_far(),
            );
        }
        body += "\n## Operators\n\nShares of the samples of the query's tasks, means over the runs; operators with at least 2%. \
                 Difference: the mean over the pairs and its 95% interval; of equal shares, one interval in twenty does not have \
                 0.\n\n| query | operator | plugin, % | flag, % | difference, points |\n|---|---|---|---|---|\n";
        for (name, query) in queries {
            for (operator, [plugin, flag], (difference, half)) in query.operators() {
                let _ = writeln!(
                    body,
                    "| {name} | {operator} | {plugin:.2} | {flag:.2} | {difference:+.2} ({:+.2} to {:+.2}) |",
                    difference - half,
                    difference + half,
                );
            }
        }
        body + "\n"
    }
}

/// The share of ways below which one of several queries differs, with Bonferroni's correction.
fn level(queries: usize) -> f64 {
    0.05 / queries.max(1) as f64
}

fn figures(queries: &BTreeMap<String, Query>) -> Vec<Figure> {
    let level = level(queries.len());
    let differ = queries.values().filter(|query| query.ways_as_far() < level);
    let rows: Vec<_> = queries.values().flat_map(Query::operators).collect();
    let outside = rows
        .iter()
        .filter(|(_, _, (difference, half))| difference.abs() > *half);
    let (outside, all) = (outside.count() as f64, rows.len() as f64);
    let (share, interval) = stats::share(outside, all);
    let unattributed = |tool: usize| {
        let of = queries.values().map(|query| query.unattributed()[tool]);
        of.fold(0.0, f64::max)
    };
    vec![
        Figure::new(
            "differ",
            "queries whose operators have other shares with the plugin than with the flag",
            differ.count() as f64,
            "",
            0,
        )
        .exact(),
        Figure::new(
            "outside",
            "operators whose 95% interval of the difference does not have 0",
            100.0 * share,
            "%",
            1,
        )
        .within(Some(interval.map(|end| 100.0 * end))),
        Figure::new(
            "unattributed_plugin",
            "unattributed samples of the query with most, by the plugin",
            unattributed(0),
            "%",
            2,
        )
        .exact(),
        Figure::new(
            "unattributed_flag",
            "unattributed samples of the query with most, by the flag",
            unattributed(1),
            "%",
            2,
        )
        .exact(),
    ]
}

impl Query {
    /// Unattributed samples by tool, per cent.
    fn unattributed(&self) -> [f64; 2] {
        let heading = format!("[{}]", Standing::Unattributed.name());
        [0, 1].map(|tool: usize| {
            let (mut of, mut all) = (0, 0);
            for run in &self.runs[tool] {
                of += run.get(&heading).copied().unwrap_or_default();
                all += run.values().sum::<u64>();
            }
            100.0 * of as f64 / all.max(1) as f64
        })
    }

    /// Distance of plugin and flag, points.
    fn distance(&self) -> f64 {
        let [plugin, flag] = &self.runs;
        distance(&mean(plugin.iter()), &mean(flag.iter()))
    }

    /// Of all ways to divide the runs into two groups of the same sizes: the part in which they are at least as far apart.
    fn ways_as_far(&self) -> f64 {
        let [plugin, flag] = &self.runs;
        let all: Vec<&Samples> = plugin.iter().chain(flag).collect();
        let found = self.distance() - 1e-9;
        let (mut far, mut ways) = (0u32, 0u32);
        // Few runs: all ways are some hundreds.
        for chosen in 0u32..1 << all.len().min(20) {
            if chosen.count_ones() as usize != plugin.len() {
                continue;
            }
            let part = |wanted: bool| {
                let of = all.iter().enumerate();
                mean(of.filter_map(move |(index, run)| {
                    (((chosen >> index) & 1 == 1) == wanted).then_some(*run)
                }))
            };
            ways += 1;
            far += u32::from(distance(&part(true), &part(false)) >= found);
        }
        f64::from(far) / f64::from(ways.max(1))
    }

    /// Operators with their shares by tool and the difference in the pairs with its half width, in per cent and points.
    fn operators(&self) -> Vec<(String, [f64; 2], (f64, f64))> {
        let means = [0, 1].map(|tool: usize| mean(self.runs[tool].iter()));
        let mut names: Vec<&String> = means.iter().flat_map(BTreeMap::keys).collect();
        names.sort();
        names.dedup();
        let of = |shares: &BTreeMap<String, f64>, name: &String| {
            shares.get(name).copied().unwrap_or_default()
        };
        let mut rows = Vec::new();
        for name in names {
            let both = [0, 1].map(|tool: usize| of(&means[tool], name));
            if both.iter().all(|share| *share < LEAST) {
                continue;
            }
            let [plugin, flag] = &self.runs;
            let differences: Vec<f64> = plugin
                .iter()
                .zip(flag)
                .map(|(plugin, flag)| 100.0 * (of(&shares(plugin), name) - of(&shares(flag), name)))
                .collect();
            rows.push((
                name.clone(),
                both.map(|share| 100.0 * share),
                stats::mean_and_half_width(&differences),
            ));
        }
        rows
    }
}

/// Shares of one run, 0 to 1.
fn shares(samples: &Samples) -> BTreeMap<String, f64> {
    let all: u64 = samples.values().sum();
    let share = |(name, count): (&String, &u64)| (name.clone(), *count as f64 / all.max(1) as f64);
    samples.iter().map(share).collect()
}

/// Mean shares of several runs.
fn mean<'a>(runs: impl Iterator<Item = &'a Samples>) -> BTreeMap<String, f64> {
    let (mut sums, mut count) = (BTreeMap::new(), 0.0);
    for run in runs {
        count += 1.0;
        for (name, share) in shares(run) {
            *sums.entry(name).or_insert(0.0) += share;
        }
    }
    sums.values_mut().for_each(|sum| *sum /= count);
    sums
}

/// Half the sum of the differences of shares, points.
fn distance(a: &BTreeMap<String, f64>, b: &BTreeMap<String, f64>) -> f64 {
    let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
    names.sort();
    names.dedup();
    let of =
        |shares: &BTreeMap<String, f64>, name: &String| shares.get(name).copied().unwrap_or(0.0);
    let differences = names.iter().map(|name| (of(a, name) - of(b, name)).abs());
    50.0 * differences.sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(a: u64, b: u64) -> Samples {
        BTreeMap::from([("A (1)".to_owned(), a), ("[unattributed]".to_owned(), b)])
    }

    #[test]
    fn equal_runs_do_not_differ_and_others_do() {
        let equal = Query {
            runs: [
                vec![run(90, 10), run(92, 8), run(88, 12)],
                vec![run(91, 9), run(89, 11), run(90, 10)],
            ],
        };
        assert!(equal.ways_as_far() > 0.5 && equal.distance() < 1.0);
        let other = Query {
            runs: [
                vec![run(90, 10), run(91, 9), run(92, 8)],
                vec![run(70, 30), run(71, 29), run(72, 28)],
            ],
        };
        // Of the 20 ways, this and its mirror image.
        assert!((other.ways_as_far() - 0.1).abs() < 1e-9);
        assert!((other.distance() - 20.0).abs() < 1e-9);
        assert_eq!(other.unattributed()[1], 29.0);
    }
}
