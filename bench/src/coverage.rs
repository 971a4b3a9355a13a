//! Where the CPU time of tasks lands: on plan nodes, under headings, or nowhere.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Result, bail};
use clap::Args;
use unfuse_postprocess::{By, Profile, Selection, Total, Totals};

use crate::event_log::executions;
use crate::report;
use crate::session::Failed;
use crate::spark::{Setup, Spark, Tool, Work, tpch_queries};

/// How much of the tasks' CPU time of the TPC-H and TPC-DS queries lands on plan nodes
#[derive(Debug, Args)]
pub struct Coverage {
    /// Samples a second of CPU time
    #[arg(long, default_value_t = 1000)]
    pub rate: u32,
    /// Scale factor of the data
    #[arg(long, default_value = "1")]
    pub scale: String,
    /// Only queries whose name begins so, such as tpcds-q0
    #[arg(long)]
    pub only: Option<String>,
}

/// One query.
#[derive(Default)]
struct Covered {
    /// CPU time of its tasks by Spark's own account, s.
    spark_s: f64,
    /// And by the samples, s.
    sampled_s: f64,
    samples: u64,
    nodes: u64,
    unattributed: u64,
    /// Samples by heading.
    headings: BTreeMap<String, u64>,
}

impl Coverage {
    /// Measures and writes `coverage.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        let suites = [
            ("tpch", Spark::install(&self.scale)?),
            ("tpcds", Spark::install_tpcds(&self.scale)?),
        ];
        let mut queries = BTreeMap::new();
        let mut outside: BTreeMap<String, f64> = BTreeMap::new();
        let mut failed = Vec::new();
        for (suite, spark) in &suites {
            let texts = match *suite {
                "tpch" => tpch_queries(),
                _ => spark.queries_of_data()?,
            };
            let wanted = |name: &str| self.only.as_ref().is_none_or(|only| name.starts_with(only));
            let texts: BTreeMap<String, String> = texts
                .into_iter()
                .map(|(name, text)| (format!("{suite}-{name}"), text))
                .filter(|(name, _)| wanted(name))
                .collect();
            if !texts.is_empty() {
                failed.extend(self.run(spark, texts, &mut queries, &mut outside)?);
            }
        }
        if queries.is_empty() {
            bail!("no query ran; --only is the beginning of a name such as tpch-q01");
        }
        let only = self
            .only
            .as_ref()
            .map_or_else(String::new, |only| format!(" --only {only}"));
        report::write(
            results,
            "coverage",
            &format!(
                "unfuse-bench coverage --rate {} --scale {}{only}",
                self.rate, self.scale
            ),
            &self.body(&queries, &outside, &failed),
        )
    }

    fn run(
        &self,
        spark: &Spark,
        texts: BTreeMap<String, String>,
        queries: &mut BTreeMap<String, Covered>,
        outside: &mut BTreeMap<String, f64>,
    ) -> Result<Vec<Failed>> {
        let work = Work {
            warm_up: 0,
            rounds: 1,
            queries: texts,
            setup: Setup::default(),
        };
        // Columns of TPC-DS have names such as "30 days".
        let quoted = "spark.sql.ansi.doubleQuotedIdentifiers=true".to_owned();
        let run = spark.run_what_can(
            &work,
            &Tool::Unfuse(format!("rate={}", self.rate), vec![quoted]),
        )?;
        let profile = Profile::open(&run.profile)?;
        let mut names = BTreeMap::new();
        for execution in executions(&run.event_log)? {
            let Some((name, _)) = execution.description.split_once(' ') else {
                continue;
            };
            let covered = queries.entry(name.to_owned()).or_default();
            covered.spark_s += execution.all_cpu_s;
            names.insert(execution.id, name.to_owned());
        }
        for row in Totals::of(&profile, Selection::default(), By::Operator).rows {
            if let Some(name) = row.query.and_then(|query| names.get(&query)) {
                queries.entry(name.clone()).or_default().add(&row);
            } else {
                // Views of the data are made by jobs too.
                let heading = match row.stage {
                    Some(_) => "tasks of other jobs".to_owned(),
                    None => row.operator,
                };
                *outside.entry(heading).or_default() += row.cpu_seconds;
            }
        }
        Ok(run.failed)
    }

    fn body(
        &self,
        queries: &BTreeMap<String, Covered>,
        outside: &BTreeMap<String, f64>,
        failed: &[Failed],
    ) -> String {
        let mut body = format!(
            "{} queries, scale factor {}, local[2], Spark 4.3, {} Hz, each run once, cold. Shares are of the samples \
             of the query's tasks. *sampled ÷ Spark* is the tasks' CPU time by samples over that by Spark's own \
             metrics, which leave out what a task does before and after it runs.\n\n",
            queries.len(),
            self.scale,
            self.rate
        );
        for failed in failed {
            let _ = writeln!(body, "Not run: {}: {}\n", failed.query, failed.reason);
        }
        body += "| query | CPU, s | sampled ÷ Spark | on plan nodes, % | under headings, % | unattributed, % | headings |\n\
                 |---|---|---|---|---|---|---|\n";
        let mut all = Covered::default();
        for (name, covered) in queries {
            body += &covered.row(name);
            all.merge(covered);
        }
        body += &all.row("**all**");
        let above: Vec<&str> = queries
            .iter()
            .filter(|(_, covered)| covered.share(covered.unattributed) > 1.0)
            .map(|(name, _)| name.as_str())
            .collect();
        let _ = writeln!(
            body,
            "\nMore than 1% unattributed: {}.\n\nOutside the queries' tasks:\n\n| heading | CPU, s |\n|---|---|",
            if above.is_empty() {
                "none".to_owned()
            } else {
                above.join(", ")
            }
        );
        for (heading, seconds) in outside {
            let _ = writeln!(body, "| {heading} | {seconds:.2} |");
        }
        body + "\n"
    }
}

impl Covered {
    fn add(&mut self, row: &Total) {
        self.samples += row.samples;
        self.sampled_s += row.cpu_seconds;
        match (row.heading, row.operator.as_str()) {
            (false, _) => self.nodes += row.samples,
            (true, "unattributed") => self.unattributed += row.samples,
            (true, heading) => *self.headings.entry(heading.to_owned()).or_default() += row.samples,
        }
    }

    fn merge(&mut self, other: &Self) {
        self.spark_s += other.spark_s;
        self.sampled_s += other.sampled_s;
        self.samples += other.samples;
        self.nodes += other.nodes;
        self.unattributed += other.unattributed;
        for (heading, samples) in &other.headings {
            *self.headings.entry(heading.clone()).or_default() += samples;
        }
    }

    /// Per cent of the samples.
    fn share(&self, samples: u64) -> f64 {
        100.0 * samples as f64 / self.samples.max(1) as f64
    }

    fn row(&self, name: &str) -> String {
        let headed: u64 = self.headings.values().sum();
        let mut headings: Vec<_> = self.headings.iter().collect();
        headings.sort_by_key(|(_, samples)| std::cmp::Reverse(**samples));
        let headings: Vec<String> = headings
            .into_iter()
            .filter(|(_, samples)| self.share(**samples) >= 0.5)
            .map(|(heading, samples)| {
                format!(
                    "{} {:.1}",
                    heading.trim_start_matches("task: "),
                    self.share(*samples)
                )
            })
            .collect();
        format!(
            "| {name} | {:.2} | {:.3} | {:.2} | {:.2} | {:.2} | {} |\n",
            self.sampled_s,
            self.sampled_s / self.spark_s,
            self.share(self.nodes),
            self.share(headed),
            self.share(self.unattributed),
            headings.join(", ")
        )
    }
}
